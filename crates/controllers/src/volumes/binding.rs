//! How a volume and a claim are bound to each other, and how that is undone.

use super::matching::{BIND_COMPLETED, BOUND_BY_CONTROLLER, is_for};
use kinds::quantity::Quantity;
use kinds::read::Read;
use object::{Map, Value, map};

fn annotate(object: &mut Value, annotation: &str, value: &str) {
    object.metadata_mut().object_entry("annotations").insert(annotation, value);
}

/// The volume with a reference to the claim; nothing if it has one already.
pub fn volume_bound(volume: &Value, claim: &Value) -> Option<Value> {
    let known = volume.sub("spec").sub("claimRef").text("uid") == claim.meta_str("uid") && is_for(volume, claim);
    let by_controller = !is_for(volume, claim) && volume.annotation(BOUND_BY_CONTROLLER).is_none();
    if known && !by_controller {
        return None;
    }
    let mut out = volume.clone();
    if !known {
        let reference = map! {
            "apiVersion" => "v1", "kind" => "PersistentVolumeClaim", "namespace" => claim.namespace(),
            "name" => claim.name(), "uid" => claim.meta_str("uid"), "resourceVersion" => claim.meta_str("resourceVersion"),
        };
        out.set_at(&["spec", "claimRef"], reference.into());
    }
    if by_controller {
        annotate(&mut out, BOUND_BY_CONTROLLER, "yes");
    }
    Some(out)
}

/// The claim with the name of the volume; nothing if it has it already.
pub fn claim_bound(claim: &Value, volume: &Value) -> Option<Value> {
    let named = claim.sub("spec").text("volumeName") == volume.name();
    if named && claim.annotation(BIND_COMPLETED).is_some() {
        return None;
    }
    let mut out = claim.clone();
    if !named {
        out.set_at(&["spec", "volumeName"], volume.name().into());
        if claim.annotation(BOUND_BY_CONTROLLER).is_none() {
            annotate(&mut out, BOUND_BY_CONTROLLER, "yes");
        }
    }
    if claim.annotation(BIND_COMPLETED).is_none() {
        annotate(&mut out, BIND_COMPLETED, "yes");
    }
    Some(out)
}

/// The volume without its claim. One that the user meant for the claim stays meant for it.
pub fn volume_unbound(volume: &Value) -> Value {
    let mut out = volume.clone();
    if volume.annotation(BOUND_BY_CONTROLLER).is_some() {
        out.remove_at(&["spec", "claimRef"]);
        out.remove_at(&["metadata", "annotations", BOUND_BY_CONTROLLER]);
        if out.at(&["metadata", "annotations"]).and_then(Value::as_object).is_some_and(Map::is_empty) {
            out.remove_at(&["metadata", "annotations"]);
        }
    } else {
        out.remove_at(&["spec", "claimRef", "uid"]);
    }
    out
}

/// The claim with its new status, for the volume that it has got; nothing if the status is so already. An error says
/// that the volume has no capacity.
pub fn claim_status(claim: &Value, phase: &str, volume: Option<&Value>) -> Result<Option<Value>, String> {
    let status = claim.sub("status");
    let mut out = claim.clone();
    let changes = out.object_entry("status");
    let mut dirty = false;
    if status.text("phase") != phase {
        changes.insert("phase", phase);
        dirty = true;
    }
    match volume {
        None => {
            for field in ["accessModes", "capacity"] {
                dirty |= changes.remove(field).is_some_and(|v| !v.is_null());
            }
        }
        Some(volume) => {
            let modes = volume.sub("spec").sub("accessModes");
            if status.sub("accessModes") != modes {
                changes.insert("accessModes", modes.clone());
                dirty = true;
            }
            // The capacity of a bound claim may differ on purpose.
            if status.text("phase") != phase {
                let capacity = volume.sub("spec").sub("capacity");
                if !capacity.has("storage") {
                    let name = object::go::quote(volume.name());
                    return Err(format!("PersistentVolume {name} is without a storage capacity"));
                }
                if !same_size(capacity, status.sub("capacity")) {
                    changes.insert("capacity", capacity.clone());
                    dirty = true;
                }
            }
        }
    }
    Ok(dirty.then_some(out))
}

fn same_size(a: &Value, b: &Value) -> bool {
    match (Quantity::parse(a.text("storage")), Quantity::parse(b.text("storage"))) {
        (Ok(a), Ok(b)) => a.minus(b).sign().is_eq(),
        _ => false,
    }
}

/// The volume in another phase; nothing if it is in that phase.
pub fn volume_phase(volume: &Value, phase: &str) -> Option<Value> {
    if crate::pods::phase(volume) == phase {
        return None;
    }
    let mut out = volume.clone();
    let status = out.object_entry("status");
    status.insert("phase", phase);
    status.remove("message");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn claim() -> Value {
        parse(r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#)
    }

    #[test]
    fn both_sides_are_bound_and_unbound() {
        let volume =
            parse(r#"{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}}"#);
        let bound = volume_bound(&volume, &claim()).unwrap();
        assert!(is_for(&bound, &claim()) && bound.annotation(BOUND_BY_CONTROLLER) == Some("yes"));
        assert_eq!(volume_bound(&bound, &claim()), None);
        assert_eq!(volume_unbound(&bound), volume);
        let taken = claim_bound(&claim(), &bound).unwrap();
        assert_eq!((taken.sub("spec").text("volumeName"), taken.annotation(BIND_COMPLETED)), ("v", Some("yes")));
        assert_eq!(claim_bound(&taken, &bound), None);
    }

    #[test]
    fn a_volume_that_the_user_bound_stays_for_the_claim() {
        let volume = parse(r#"{"metadata":{"name":"v"},"spec":{"claimRef":{"name":"x","namespace":"n"}}}"#);
        let bound = volume_bound(&volume, &claim()).unwrap();
        assert_eq!(bound.annotation(BOUND_BY_CONTROLLER), None);
        let free = volume_unbound(&bound);
        assert_eq!(free.sub("spec").sub("claimRef").text("uid"), "");
        assert!(is_for(&free, &claim()));
    }

    #[test]
    fn a_status_is_written_only_when_it_changes() {
        let volume =
            parse(r#"{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}}"#);
        let bound = claim_status(&claim(), "Bound", Some(&volume)).unwrap().unwrap();
        assert_eq!(
            json::to_string(bound.sub("status")),
            r#"{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"phase":"Bound"}"#
        );
        assert_eq!(claim_status(&bound, "Bound", Some(&volume)), Ok(None));
        let lost = claim_status(&bound, "Lost", None).unwrap().unwrap();
        assert_eq!(json::to_string(lost.sub("status")), r#"{"phase":"Lost"}"#);
        let bare = parse(r#"{"metadata":{"name":"v"}}"#);
        assert_eq!(
            claim_status(&claim(), "Bound", Some(&bare)),
            Err("PersistentVolume \"v\" is without a storage capacity".into())
        );
    }
}
