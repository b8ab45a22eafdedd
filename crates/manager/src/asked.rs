//! For how much of a parent there is work: for all of it, or for some new namespaces only.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};

/// What is asked for, by parents' keys. What nobody asked for, such as work that failed or is due by time, is all of it.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Nothing stands for everything.
    keys: Mutex<HashMap<String, Option<BTreeSet<String>>>>,
}

impl Asked {
    /// All of a parent is to be looked at.
    pub fn whole(&self, key: &str) {
        self.keys.lock().insert(key.to_owned(), None);
    }

    /// A namespace of a parent is new.
    pub fn part(&self, key: &str, namespace: &str) {
        let mut keys = self.keys.lock();
        let known = keys.entry(key.to_owned()).or_insert_with(|| Some(BTreeSet::new()));
        if let Some(namespaces) = known {
            namespaces.insert(namespace.to_owned());
        }
    }

    /// What is asked for, if it is only some namespaces. From now on nothing is.
    pub fn take(&self, key: &str) -> Option<BTreeSet<String>> {
        self.keys.lock().remove(key).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_more_than_some() {
        let asked = Asked::default();
        let set = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(asked.take("a"), None);
        asked.part("a", "x");
        asked.part("a", "y");
        assert_eq!((asked.take("a"), asked.take("a")), (Some(set(&["x", "y"])), None));
        asked.part("a", "x");
        asked.whole("a");
        asked.part("a", "y");
        assert_eq!(asked.take("a"), None);
    }
}
