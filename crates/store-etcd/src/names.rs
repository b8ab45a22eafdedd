//! How keys are called in etcd.

use bytes::Bytes;
use store::Key;

/// What the store keeps for itself, below the prefix.
const OWN: &str = ".stanchion/";

/// The names of keys: in etcd a prefix stands in the place of what all keys begin with.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// What all keys begin with.
    root: String,
    /// What they begin with in etcd.
    prefix: String,
}

impl Names {
    pub(crate) fn new(root: &str, prefix: &str) -> Self {
        Names { root: root.to_owned(), prefix: prefix.to_owned() }
    }

    /// A key's name in etcd; nothing for keys that do not begin as all do.
    pub(crate) fn theirs(&self, key: &str) -> Option<Bytes> {
        let rest = key.strip_prefix(&self.root)?;
        Some(Bytes::from(format!("{}{rest}", self.prefix)))
    }

    /// The key of a name in etcd; nothing for what the store keeps for itself, and for what it cannot have written.
    pub(crate) fn ours(&self, name: &[u8]) -> Option<Key> {
        let rest = std::str::from_utf8(name).ok()?.strip_prefix(&self.prefix)?;
        (!rest.starts_with(OWN)).then(|| format!("{}{rest}", self.root).into())
    }

    /// The name of something that the store keeps for itself.
    pub(crate) fn own(&self, what: &str) -> Bytes {
        Bytes::from(format!("{}{OWN}{what}", self.prefix))
    }

    /// The first name and the one after the last.
    pub(crate) fn all(&self) -> (Bytes, Bytes) {
        let mut end = self.prefix.clone().into_bytes();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        match end.last_mut() {
            Some(last) => *last += 1,
            // In etcd's words: all keys.
            None => end.push(0),
        }
        let start = if self.prefix.is_empty() { vec![0] } else { self.prefix.clone().into_bytes() };
        (start.into(), end.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_stands_for_the_root() {
        let names = Names::new("/registry/", "/other/");
        assert_eq!(names.theirs("/registry/pods/a").unwrap(), "/other/pods/a");
        assert_eq!(names.theirs("/elsewhere"), None);
        assert_eq!(names.ours(b"/other/pods/a").as_deref(), Some("/registry/pods/a"));
        assert_eq!(names.ours(&names.own("barrier")), None);
        assert_eq!(names.ours(b"/other/\xff"), None);
        assert_eq!(names.all(), (Bytes::from("/other/"), Bytes::from("/other0")));
        assert_eq!(Names::new("", "").all(), (Bytes::from("\0"), Bytes::from("\0")));
    }
}
