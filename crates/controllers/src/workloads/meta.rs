//! Short ways to what workloads read of metadata.

use client::Resource;
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value};
use std::cmp::Ordering;

use crate::controller_of;
pub(crate) use crate::pods::{is_deleting, seconds as time_text};

static NULL: Value = Value::Null;

/// `metadata`; null where there is none.
fn metadata(object: &Value) -> &Value {
    object.sub("metadata")
}

/// The uid; empty where there is none.
pub(crate) fn uid(object: &Value) -> &str {
    object.meta_str("uid")
}

/// The labels; none where there are none.
pub(crate) fn labels(object: &Value) -> &Map {
    metadata(object).members("labels")
}

/// The annotations; none where there are none.
pub(crate) fn annotations(object: &Value) -> &Map {
    metadata(object).members("annotations")
}

/// A label; empty where there is none.
pub(crate) fn label<'v>(object: &'v Value, name: &str) -> &'v str {
    labels(object).get(name).and_then(Value::as_str).unwrap_or_default()
}

/// An annotation, where there is one.
pub(crate) fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    annotations(object).get(name).and_then(Value::as_str)
}

/// `metadata.generation`.
pub(crate) fn generation(object: &Value) -> i64 {
    metadata(object).int("generation")
}

/// Whether this is the same object, not another of its name.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    uid(a) == uid(b) && a.name() == b.name()
}

/// `spec`; null where there is none.
pub(crate) fn spec(object: &Value) -> &Value {
    object.sub("spec")
}

/// `status`; null where there is none.
pub(crate) fn status(object: &Value) -> &Value {
    object.sub("status")
}

/// `spec.replicas`, which the server sets to 1 where it is missing.
pub(crate) fn replicas(object: &Value) -> i64 {
    spec(object).opt_int("replicas").unwrap_or(1).clamp(0, i64::from(i32::MAX))
}

/// `spec.template`; null where there is none.
pub(crate) fn template(object: &Value) -> &Value {
    spec(object).get("template").unwrap_or(&NULL)
}

/// `spec.minReadySeconds`.
pub(crate) fn min_ready_seconds(object: &Value) -> i64 {
    spec(object).int("minReadySeconds").max(0)
}

/// A time as objects write it.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Older objects first, then by name.
pub(crate) fn by_age(a: &Value, b: &Value) -> Ordering {
    let created = |o: &Value| time(o.meta_str("creationTimestamp"));
    created(a).cmp(&created(b)).then_with(|| a.name().cmp(b.name()))
}

/// The uid of the owner that controls an object; empty where there is none.
pub(crate) fn controller_uid(object: &Value) -> &str {
    controller_of(object).map(|r| r.text("uid")).unwrap_or_default()
}

/// A reference to an owner that controls.
pub(crate) fn controlled_by(owner: &Value, resource: &Resource) -> Map {
    crate::pods::controller_reference(owner, &resource.api_version(), &resource.kind)
}

/// Sets a number, or takes it away where it is 0, as Go writes numbers that may be left out.
pub(crate) fn set_count(members: &mut Map, key: &str, count: i64) {
    if count == 0 {
        members.remove(key);
    } else {
        members.insert(key, count);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use object::json;

    /// A value from its text, for tests.
    pub(crate) fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn odd_objects_read_as_empty_ones() {
        for text in ["null", "1", r#"{"metadata":[],"spec":"x","status":1}"#, r#"{"metadata":{"labels":[1]}}"#] {
            let object = value(text);
            assert_eq!((uid(&object), replicas(&object), is_deleting(&object)), ("", 1, false), "{text}");
            assert!(labels(&object).is_empty() && controller_uid(&object).is_empty());
        }
        assert_eq!(replicas(&value(r#"{"spec":{"replicas":-5}}"#)), 0);
    }

    #[test]
    fn older_objects_come_first_then_names_count() {
        let object = |time: &str, name: &str| {
            value(&format!(r#"{{"metadata":{{"creationTimestamp":"{time}","name":"{name}"}}}}"#))
        };
        let (a, b) = (object("2026-01-01T00:00:01Z", "a"), object("2026-01-01T00:00:00Z", "b"));
        assert_eq!(by_age(&a, &b), Ordering::Greater);
        assert_eq!(by_age(&a, &object("2026-01-01T00:00:01Z", "b")), Ordering::Less);
    }
}
