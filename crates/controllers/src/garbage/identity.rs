//! What objects are called in the graph.

use object::Value;
use std::fmt;
use std::sync::Arc;

/// A uid. Those that servers give take 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Uid(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    /// In the usual form, in lower case.
    Usual([u8; 16]),
    Other(Box<str>),
}

/// Where the dashes are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    pub(super) fn new(text: &str) -> Self {
        Uid(usual(text.as_bytes()).map_or_else(|| Form::Other(text.into()), Form::Usual))
    }
}

fn usual(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let mut out = [0; 16];
    let mut digits = text.iter().enumerate().filter(|(i, _)| !DASHES.contains(i)).map(|(_, c)| digit(*c));
    for byte in &mut out {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(out)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Other(text) => f.write_str(text),
            Form::Usual(bytes) => {
                for (i, byte) in bytes.iter().enumerate() {
                    if matches!(i, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// A resource whose objects are in the graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// What the keys of its objects start with.
    pub(super) prefix: String,
    pub(super) namespaced: bool,
}

/// Where an object is: what a reference says, and the namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Coordinates {
    pub(super) kind: String,
    pub(super) api_version: String,
    /// Empty for an object without a namespace.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Uid,
}

/// As events show it.
impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coordinates { kind, api_version, namespace, name, uid } = self;
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}

/// Where the graph believes an object to be.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    /// It was seen at this key.
    Seen(Arc<Type>, Arc<str>),
    /// It was only heard of.
    Heard(Box<Coordinates>),
}

impl Identity {
    pub(super) fn namespace(&self) -> &str {
        match self {
            Identity::Seen(ty, key) => place(ty, key).0,
            Identity::Heard(coordinates) => &coordinates.namespace,
        }
    }

    pub(super) fn coordinates(&self, uid: &Uid) -> Coordinates {
        match self {
            Identity::Heard(coordinates) => (**coordinates).clone(),
            Identity::Seen(ty, key) => {
                let (namespace, name) = place(ty, key);
                Coordinates {
                    kind: ty.kind.clone(),
                    api_version: ty.api_version.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    uid: uid.clone(),
                }
            }
        }
    }

    /// Whether a reference names this object, the namespace apart.
    pub(super) fn is_meant_by(&self, reference: &Reference) -> bool {
        match self {
            Identity::Seen(ty, key) => {
                reference.name == place(ty, key).1
                    && reference.kind == ty.kind
                    && reference.api_version == ty.api_version
            }
            Identity::Heard(coordinates) => coordinates.is_meant_by(reference),
        }
    }
}

impl Coordinates {
    pub(super) fn is_meant_by(&self, reference: &Reference) -> bool {
        reference.name == self.name && reference.kind == self.kind && reference.api_version == self.api_version
    }
}

/// Namespace and name in a key.
fn place<'k>(ty: &Type, key: &'k str) -> (&'k str, &'k str) {
    let rest = key.strip_prefix(ty.prefix.as_str()).unwrap_or(key);
    if ty.namespaced { rest.split_once('/').unwrap_or(("", rest)) } else { ("", rest) }
}

/// One of `ownerReferences`, without what the collector does not ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) name: String,
    pub(super) uid: Uid,
    /// Whether the owner's deletion in the foreground waits for the dependent.
    pub(super) blocks: bool,
}

impl Reference {
    pub(super) fn of(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        Reference {
            kind: text("kind").to_owned(),
            api_version: text("apiVersion").to_owned(),
            name: text("name").to_owned(),
            uid: Uid::new(text("uid")),
            blocks: value.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true),
        }
    }

    /// Where the owner of an object in this namespace would be.
    pub(super) fn coordinates(&self, namespace: &str) -> Coordinates {
        Coordinates {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            namespace: namespace.to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// The `ownerReferences` of an object's metadata.
pub(super) fn references(list: Option<&Value>) -> Vec<Reference> {
    list.and_then(Value::as_array).unwrap_or_default().iter().map(Reference::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_read_back() {
        for text in ["0badf00d-1111-4222-8333-444455556666", "0BADF00D-1111-4222-8333-444455556666", "x", ""] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
    }
}
