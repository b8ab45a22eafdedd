//! What becomes of claims when pods or sets go: who owns them.

use super::super::meta;
use super::identity;
use client::Resource;
use client::resources::{PODS, STATEFUL_SETS};
use kinds::read::Read;
use object::Value;

/// What goes with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    /// Claims go when their pods are scaled away.
    scaled: bool,
    /// Claims go with the set.
    deleted: bool,
}

fn policy(set: &Value) -> Policy {
    let policy = meta::spec(set).sub("persistentVolumeClaimRetentionPolicy");
    Policy { scaled: policy.text("whenScaled") == "Delete", deleted: policy.text("whenDeleted") == "Delete" }
}

/// Whether claims never go by themselves when pods are scaled away.
pub(super) fn keeps_scaled(set: &Value) -> bool {
    !policy(set).scaled
}

fn references(claim: &Value) -> &[Value] {
    claim.sub("metadata").list("ownerReferences")
}

/// Whether a reference is to an object of this name, whatever its uid.
fn names(reference: &Value, owner: &Value, resource: &Resource) -> bool {
    reference.text("kind") == resource.kind
        && reference.text("apiVersion") == resource.api_version()
        && reference.text("name") == owner.name()
}

fn is_owned(claim: &Value, owner: &Value) -> bool {
    !meta::uid(owner).is_empty() && references(claim).iter().any(|r| r.text("uid") == meta::uid(owner))
}

/// Whether a claim is owned by a former object of this name.
fn is_stale(claim: &Value, owner: &Value, resource: &Resource) -> bool {
    references(claim).iter().any(|r| names(r, owner, resource) && r.text("uid") != meta::uid(owner))
}

/// Whether a claim waits to go with a former pod of this name.
pub(super) fn is_of_former_pod(claim: &Value, pod: &Value) -> bool {
    is_stale(claim, pod, &PODS)
}

/// Whether something else than set and pod controls a claim.
pub(super) fn has_other_controller(claim: &Value, set: &Value, pod: &Value) -> bool {
    if policy(set) == (Policy { scaled: false, deleted: false }) {
        return false;
    }
    references(claim).iter().any(|r| {
        for (owner, resource) in [(set, &STATEFUL_SETS), (pod, &PODS)] {
            if names(r, owner, resource) {
                return r.text("uid") != meta::uid(owner);
            }
        }
        r.flag("controller")
    })
}

/// Who should own a claim.
fn owners(set: &Value, pod: &Value) -> (bool, bool) {
    let gone = !identity::ordinal(pod).is_some_and(|ordinal| identity::ordinals(set).contains(&ordinal));
    let Policy { scaled, deleted } = policy(set);
    (deleted && !(scaled && gone), scaled && gone)
}

/// Whether a claim is owned as the set's policy wants.
pub(super) fn is_right(claim: &Value, set: &Value, pod: &Value) -> bool {
    // What a former set or pod owns is left to go with it.
    if is_stale(claim, set, &STATEFUL_SETS) || is_stale(claim, pod, &PODS) {
        return true;
    }
    let (by_set, by_pod) = (is_owned(claim, set), is_owned(claim, pod));
    if has_other_controller(claim, set, pod) {
        return !by_set && !by_pod;
    }
    let ours = |r: &&Value| [set, pod].iter().any(|owner| r.text("uid") == meta::uid(owner));
    if references(claim).iter().filter(ours).any(|r| !r.flag("controller")) {
        return false;
    }
    (by_set, by_pod) == owners(set, pod)
}

/// Makes a claim owned as the set's policy wants.
pub(super) fn set_owners(claim: &mut Value, set: &Value, pod: &Value) {
    let other = has_other_controller(claim, set, pod);
    let ours = |r: &Value| names(r, set, &STATEFUL_SETS) || names(r, pod, &PODS);
    let mut list: Vec<Value> = references(claim).iter().filter(|r| !ours(r)).cloned().collect();
    if !other {
        let (by_set, by_pod) = owners(set, pod);
        if by_set {
            list.push(meta::controlled_by(set, &STATEFUL_SETS).into());
        }
        if by_pod {
            list.push(meta::controlled_by(pod, &PODS).into());
        }
    }
    if list.is_empty() {
        claim.remove_at(&["metadata", "ownerReferences"]);
    } else {
        claim.set_at(&["metadata", "ownerReferences"], list.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set(deleted: &str, scaled: &str) -> Value {
        value(&format!(
            r#"{{"metadata":{{"name":"db","uid":"s"}},"spec":{{"replicas":1,
            "persistentVolumeClaimRetentionPolicy":{{"whenDeleted":"{deleted}","whenScaled":"{scaled}"}}}}}}"#
        ))
    }

    fn pod(ordinal: i64) -> Value {
        value(&format!(r#"{{"metadata":{{"name":"db-{ordinal}","uid":"p"}}}}"#))
    }

    fn owned_by(claim: &Value) -> Vec<&str> {
        references(claim).iter().map(|r| r.text("uid")).collect()
    }

    #[test]
    fn policies_decide_who_owns_a_claim() {
        for (deleted, scaled, ordinal, want) in [
            ("Retain", "Retain", 0, &[][..]),
            ("Delete", "Retain", 0, &["s"]),
            ("Delete", "Retain", 1, &["s"]),
            ("Retain", "Delete", 0, &[]),
            ("Retain", "Delete", 1, &["p"]),
            ("Delete", "Delete", 0, &["s"]),
            ("Delete", "Delete", 1, &["p"]),
        ] {
            let (set, pod, mut claim) = (set(deleted, scaled), pod(ordinal), value("{}"));
            assert_eq!(is_right(&claim, &set, &pod), want.is_empty(), "{deleted} {scaled} {ordinal}");
            set_owners(&mut claim, &set, &pod);
            assert_eq!(owned_by(&claim), want, "{deleted} {scaled} {ordinal}");
            assert!(is_right(&claim, &set, &pod), "{deleted} {scaled} {ordinal}");
        }
    }

    #[test]
    fn other_controllers_are_left_alone() {
        let mut claim = value(
            r#"{"metadata":{"ownerReferences":[{"uid":"x","kind":"X","controller":true},
            {"uid":"s","kind":"StatefulSet","apiVersion":"apps/v1","name":"db","controller":true}]}}"#,
        );
        let (set, pod) = (set("Delete", "Retain"), pod(0));
        assert!(has_other_controller(&claim, &set, &pod) && !is_right(&claim, &set, &pod));
        set_owners(&mut claim, &set, &pod);
        assert_eq!(owned_by(&claim), ["x"]);
        assert!(is_right(&claim, &set, &pod));
    }

    #[test]
    fn claims_of_former_pods_are_not_touched() {
        let claim = value(
            r#"{"metadata":{"ownerReferences":[{"uid":"old","kind":"Pod","apiVersion":"v1","name":"db-0","controller":true}]}}"#,
        );
        assert!(is_of_former_pod(&claim, &pod(0)) && !is_of_former_pod(&claim, &pod(1)));
        assert!(is_right(&claim, &set("Delete", "Delete"), &pod(0)));
    }
}
