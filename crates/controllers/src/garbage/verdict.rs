//! What becomes of an object with owners.

use client::Propagation;
use object::{Map, Value, map};

/// What was found out about an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is there.
    Solid,
    /// It is not.
    Dangling,
    /// It waits for its dependents to be deleted.
    Waiting,
}

/// What becomes of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays as it is.
    Keep,
    /// It stays, without its references to the owners that are absent or going.
    Release,
    /// It is deleted in the foreground: an owner waits for it, and it has dependents.
    Foreground,
    /// It is deleted.
    Delete(Propagation),
}

/// Upstream's rule in `attemptToDeleteItem`, for an object with at least one owner.
pub(super) fn of(owners: &[Owner], finalizers: &[&str], has_dependents: bool) -> Verdict {
    let some = |wanted: Owner| owners.contains(&wanted);
    if some(Owner::Solid) {
        let all = owners.iter().all(|o| *o == Owner::Solid);
        return if all { Verdict::Keep } else { Verdict::Release };
    }
    if some(Owner::Waiting) && has_dependents {
        return Verdict::Foreground;
    }
    Verdict::Delete(if finalizers.contains(&super::ORPHAN) {
        Propagation::Orphan
    } else if finalizers.contains(&super::FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

/// The patch that takes the references to these owners away, for kinds with strategic merge.
pub(super) fn release(uid: &str, owners: &[&str]) -> Value {
    let references: Vec<Map> = owners.iter().map(|uid| map! { "$patch" => "delete", "uid" => *uid }).collect();
    metadata(map! { "uid" => uid, "ownerReferences" => references })
}

/// The same for custom resources: the whole list, for the version that it was read from.
pub(super) fn release_merge(object: &Value, owners: &[&str]) -> Value {
    let gone = |r: &Value| owners.iter().any(|uid| r.str_at(&["uid"]) == Some(*uid));
    let rest: Vec<Value> = references(object).iter().filter(|r| !gone(r)).cloned().collect();
    metadata(map! { "resourceVersion" => object.meta_str("resourceVersion"), "ownerReferences" => rest })
}

/// The patch after which no owner waits for the object.
pub(super) fn unblock(object: &Value) -> Value {
    let blocking = references(object).iter().filter(|r| blocks(r)).map(unblocked).collect::<Vec<_>>();
    metadata(map! { "uid" => object.meta_str("uid"), "ownerReferences" => blocking })
}

/// The same for custom resources.
pub(super) fn unblock_merge(object: &Value) -> Value {
    let all = references(object).iter().map(|r| if blocks(r) { unblocked(r) } else { r.clone() }).collect::<Vec<_>>();
    metadata(map! { "resourceVersion" => object.meta_str("resourceVersion"), "ownerReferences" => all })
}

/// The merge patch that takes a finalizer away; nothing if the object has it not.
pub(super) fn without_finalizer(object: &Value, finalizer: &str) -> Option<Value> {
    let held = object.meta_list("finalizers");
    let rest: Vec<&str> = held.iter().copied().filter(|f| *f != finalizer).collect();
    if rest.len() == held.len() {
        return None;
    }
    let rest = if rest.is_empty() { Value::Null } else { Value::from(rest) };
    Some(metadata(map! { "resourceVersion" => object.meta_str("resourceVersion"), "finalizers" => rest }))
}

fn metadata(metadata: Map) -> Value {
    Value::Object(map! { "metadata" => metadata })
}

/// The `ownerReferences` of an object.
pub(super) fn references(object: &Value) -> &[Value] {
    let list = object.metadata().and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    list.unwrap_or_default()
}

fn blocks(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

fn unblocked(reference: &Value) -> Value {
    let mut out = reference.clone();
    out.set_at(&["blockOwnerDeletion"], Value::Bool(false));
    out
}

#[cfg(test)]
mod tests {
    use super::Owner::{Dangling, Solid, Waiting};
    use super::*;
    use object::json;

    #[test]
    fn objects_without_solid_owners_go() {
        let delete = Verdict::Delete(Propagation::Background);
        for (owners, has_dependents, expected) in [
            (&[Solid][..], false, Verdict::Keep),
            (&[Solid, Dangling], false, Verdict::Release),
            (&[Solid, Waiting], true, Verdict::Release),
            (&[Waiting], true, Verdict::Foreground),
            (&[Waiting, Dangling], true, Verdict::Foreground),
            (&[Dangling], true, delete),
        ] {
            assert_eq!(of(owners, &[], has_dependents), expected, "{owners:?}");
        }
        assert_eq!(of(&[Waiting], &["orphan"], false), Verdict::Delete(Propagation::Orphan));
        assert_eq!(of(&[Dangling], &["foregroundDeletion"], false), Verdict::Delete(Propagation::Foreground));
    }

    #[test]
    fn patches_say_what_goes() {
        let text = r#"{"metadata":{"finalizers":["a","orphan"],"ownerReferences":[{"blockOwnerDeletion":true,"uid":"1"},{"uid":"2"}],"resourceVersion":"7","uid":"u"}}"#;
        let object = json::parse(text.as_bytes()).unwrap();
        for (patch, expected) in [
            (release("u", &["1"]), r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"1"}],"uid":"u"}}"#),
            (release_merge(&object, &["1"]), r#"{"metadata":{"ownerReferences":[{"uid":"2"}],"resourceVersion":"7"}}"#),
            (
                unblock(&object),
                r#"{"metadata":{"ownerReferences":[{"blockOwnerDeletion":false,"uid":"1"}],"uid":"u"}}"#,
            ),
            (
                unblock_merge(&object),
                r#"{"metadata":{"ownerReferences":[{"blockOwnerDeletion":false,"uid":"1"},{"uid":"2"}],"resourceVersion":"7"}}"#,
            ),
            (
                without_finalizer(&object, "orphan").unwrap(),
                r#"{"metadata":{"finalizers":["a"],"resourceVersion":"7"}}"#,
            ),
        ] {
            assert_eq!(json::to_string(&patch), expected);
        }
        assert_eq!(without_finalizer(&object, "b"), None);
    }
}
