//! How an object was last seen: a few numbers that tell whether it changed, and whether that matters.

use std::hash::{DefaultHasher, Hash, Hasher};

use compact_str::CompactString;
use object::{Value, json};

use crate::identity::ObjectKey;

/// The state of an object, as far as its metadata tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    version: CompactString,
    /// 0 where the kind counts none.
    generation: i64,
    /// Of labels, annotations, owner references, finalizers and the time of deletion.
    metadata: u64,
}

impl Seen {
    /// From an object, or its metadata alone.
    pub fn of(object: &Value) -> Self {
        let mut hasher = DefaultHasher::new();
        for field in ["uid", "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp"] {
            let value = object.at(&["metadata", field]).map(json::to_string);
            value.hash(&mut hasher);
        }
        Seen {
            version: object.meta_str("resourceVersion").into(),
            generation: object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default(),
            metadata: hasher.finish(),
        }
    }

    /// All that is known of an object that a list of this version does not have.
    pub fn missing(version: &str) -> Self {
        Seen { version: version.into(), ..Seen::default() }
    }

    /// A digest of the version of an object.
    pub fn digest(&self, key: &ObjectKey) -> u64 {
        let mut hasher = DefaultHasher::new();
        (key, &self.version).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether this is a later state than `other`. Versions of one object grow; those that are no numbers count as
    /// later when they differ.
    pub fn is_after(&self, other: &Seen) -> bool {
        self.is_known_after(other).unwrap_or(self.version != other.version)
    }

    /// Whether this is a later state than `other`, where both versions are numbers.
    pub fn is_known_after(&self, other: &Seen) -> Option<bool> {
        Some(self.version.parse::<u64>().ok()? > other.version.parse::<u64>().ok()?)
    }

    /// Whether nothing changed that a manager writes: the kind counts generations, and this is the same one.
    pub fn differs_in_status_only(&self, other: &Seen) -> bool {
        self.generation != 0 && (self.generation, self.metadata) == (other.generation, other.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Seen {
        Seen::of(&json::parse(text.as_bytes()).unwrap_or_default())
    }

    #[test]
    fn a_change_of_status_is_told_from_one_that_matters() {
        let deployment = seen(r#"{"metadata":{"resourceVersion":"9","generation":2,"labels":{"a":"1"}}}"#);
        for (text, only_status) in [
            (r#"{"metadata":{"resourceVersion":"10","generation":2,"labels":{"a":"1"}}}"#, true),
            (r#"{"metadata":{"resourceVersion":"10","generation":3,"labels":{"a":"1"}}}"#, false),
            (r#"{"metadata":{"resourceVersion":"10","generation":2,"labels":{"a":"2"}}}"#, false),
        ] {
            assert!(seen(text).is_after(&deployment), "{text}");
            assert_eq!(seen(text).differs_in_status_only(&deployment), only_status, "{text}");
        }
        let map = seen(r#"{"metadata":{"resourceVersion":"9"}}"#);
        assert!(!seen(r#"{"metadata":{"resourceVersion":"10"}}"#).differs_in_status_only(&map));
    }
}
