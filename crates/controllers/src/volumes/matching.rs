//! Which volume a claim gets.

use crate::pods;
use kinds::quantity::Quantity;
use kinds::read::Read;
use object::Value;
use object::selector::Labels;
use std::cmp::Ordering;

/// The annotation of objects that were bound by the controller, not by the user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The annotation of claims that were bound once.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The annotation of volumes that were made for a claim.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The annotation of claims whose pod has a node.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The storage class of a claim or a volume; empty where there is none.
pub fn class(object: &Value) -> &str {
    object.annotation(CLASS).unwrap_or_else(|| object.sub("spec").text("storageClassName"))
}

/// Whether a claim says which storage class it wants, be it none.
pub fn has_class(claim: &Value) -> bool {
    claim.annotation(CLASS).is_some() || claim.sub("spec").has("storageClassName")
}

/// Whether a volume is for this claim, though perhaps it does not know the claim's uid yet.
pub fn is_for(volume: &Value, claim: &Value) -> bool {
    let reference = volume.sub("spec").sub("claimRef");
    let uid = reference.text("uid");
    !reference.is_null()
        && reference.text("name") == claim.name()
        && reference.text("namespace") == claim.namespace()
        && (uid.is_empty() || uid == claim.meta_str("uid"))
}

fn quantity(object: &Value, list: &str) -> Option<Quantity> {
    Quantity::parse(object.sub(list).text("storage")).ok()
}

/// The capacity of a volume compared to what a claim asks for.
fn compare_size(volume: &Value, claim: &Value) -> Ordering {
    let size = quantity(volume.sub("spec"), "capacity");
    let wanted = quantity(claim.sub("spec").sub("resources"), "requests");
    compare(size, wanted)
}

fn compare(a: Option<Quantity>, b: Option<Quantity>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.minus(b).sign(),
        (Some(a), None) => a.sign(),
        (None, Some(b)) => b.sign().reverse(),
        (None, None) => Ordering::Equal,
    }
}

fn mode(object: &Value) -> &str {
    match object.sub("spec").text("volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// Whether a volume can be used in the other way (as a device or with a file system) only.
pub fn mode_differs(volume: &Value, claim: &Value) -> bool {
    mode(volume) != mode(claim)
}

fn has_access_modes(volume: &Value, claim: &Value) -> bool {
    let offered = volume.sub("spec").strings("accessModes");
    claim.sub("spec").strings("accessModes").iter().all(|mode| offered.contains(mode))
}

/// Why a volume that a claim names cannot be bound to it; nothing if it can.
pub fn mismatch(volume: &Value, claim: &Value) -> Option<String> {
    if pods::is_deleting(volume) {
        return Some(format!("the volume is marked for deletion {}", object::go::quote(volume.name())));
    }
    let why = if compare_size(volume, claim) == Ordering::Less {
        "requested PV is too small"
    } else if class(volume) != class(claim) {
        "storageClassName does not match"
    } else if mode_differs(volume, claim) {
        "incompatible volumeMode"
    } else if !has_access_modes(volume, claim) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// The volume for a claim: one that is for it already, else the smallest that is available and does. With `delayed` only
/// the former: the scheduler chooses among the others.
pub fn find<'v>(claim: &Value, volumes: &[&'v Value], delayed: bool) -> Option<&'v Value> {
    let selector = claim.sub("spec").get("selector").filter(|s| !s.is_null());
    // A selector that cannot be read selects nothing.
    let selector = match selector.map(Labels::from_object) {
        Some(Err(_)) => return None,
        Some(Ok(selector)) => Some(selector),
        None => None,
    };
    let fits = |v: &&&'v Value| {
        !pods::is_deleting(v)
            && compare_size(v, claim) != Ordering::Less
            && !mode_differs(v, claim)
            && has_access_modes(v, claim)
    };
    let fitting: Vec<&'v Value> = volumes.iter().filter(fits).copied().collect();
    if let Some(bound) = fitting.iter().find(|v| is_for(v, claim)) {
        return Some(bound);
    }
    if delayed {
        return None;
    }
    let free = fitting.into_iter().filter(|v| {
        !v.sub("spec").has("claimRef")
            && pods::phase(v) == "Available"
            && class(v) == class(claim)
            && selector.as_ref().is_none_or(|s| s.matches_object(v))
    });
    // Fewer access modes first, then the smaller one.
    free.min_by(|a, b| {
        let modes = |v: &Value| v.sub("spec").list("accessModes").len();
        let size = |v: &Value| quantity(v.sub("spec"), "capacity");
        modes(a).cmp(&modes(b)).then_with(|| compare(size(a), size(b)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn volume(name: &str, size: &str, more: &str) -> Value {
        parse(&format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"n":"{name}"}}}},"spec":{{"capacity":{{"storage":"{size}"}},"accessModes":["ReadWriteOnce"],"storageClassName":"c"{more}}},"status":{{"phase":"Available"}}}}"#
        ))
    }

    fn claim(more: &str) -> Value {
        parse(&format!(
            r#"{{"metadata":{{"name":"x","namespace":"n","uid":"u"}},"spec":{{"resources":{{"requests":{{"storage":"2Gi"}}}},"accessModes":["ReadWriteOnce"],"storageClassName":"c"{more}}}}}"#
        ))
    }

    #[test]
    fn the_smallest_volume_that_does_is_chosen() {
        let volumes = [
            volume("small", "1Gi", ""),
            volume("big", "5Gi", ""),
            volume("right", "2048Mi", ""),
            volume("block", "2Gi", r#","volumeMode":"Block""#),
            volume("taken", "2Gi", r#","claimRef":{"name":"y","namespace":"n"}"#),
            volume("many", "2Gi", r#","accessModes":["ReadWriteOnce","ReadOnlyMany"]"#),
        ];
        let volumes: Vec<&Value> = volumes.iter().collect();
        for (more, expected) in [
            ("", Some("right")),
            (r#","selector":{"matchLabels":{"n":"big"}}"#, Some("big")),
            (r#","volumeMode":"Block""#, Some("block")),
            (r#","accessModes":["ReadOnlyMany"]"#, Some("many")),
            (r#","storageClassName":"d""#, None),
            (r#","storageClassName":"""#, None),
        ] {
            let claim = claim(more);
            assert_eq!(find(&claim, &volumes, false).map(Value::name), expected, "{more}");
            assert_eq!(find(&claim, &volumes, true).map(Value::name), None);
        }
    }

    #[test]
    fn a_volume_that_is_for_the_claim_comes_first() {
        let volumes = [
            volume("right", "2Gi", ""),
            volume("other", "9Gi", r#","claimRef":{"name":"x","namespace":"n","uid":"old"}"#),
            volume("mine", "9Gi", r#","claimRef":{"name":"x","namespace":"n"}"#),
        ];
        let volumes: Vec<&Value> = volumes.iter().collect();
        assert_eq!(find(&claim(""), &volumes, true).map(Value::name), Some("mine"));
    }

    #[test]
    fn a_named_volume_has_to_do() {
        for (volume, expected) in [
            (volume("v", "2Gi", ""), None),
            (volume("v", "1Gi", ""), Some("requested PV is too small")),
            (volume("v", "2Gi", r#","storageClassName":"d""#), Some("storageClassName does not match")),
            (volume("v", "2Gi", r#","volumeMode":"Block""#), Some("incompatible volumeMode")),
            (volume("v", "2Gi", r#","accessModes":[]"#), Some("incompatible accessMode")),
        ] {
            assert_eq!(mismatch(&volume, &claim("")).as_deref(), expected);
        }
    }
}
