//! Checks of CSIDrivers, CSINodes and CSIStorageCapacities.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};
use std::collections::{HashMap, HashSet};

pub(super) fn validate_driver(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let required = |key: &str, shown: &str, out: &mut Errors| {
        if !spec.has(key) {
            out.push(FieldError::required(&path.child(shown), ""));
        }
    };
    required("attachRequired", "attachedRequired", &mut out);
    required("podInfoOnMount", "podInfoOnMount", &mut out);
    required("storageCapacity", "storageCapacity", &mut out);
    if spec.has("fsGroupPolicy") {
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        check::one_of(spec, "fsGroupPolicy", &policies, &path, &mut out);
    }
    let requests = path.child("tokenRequests");
    let mut audiences = HashSet::new();
    for (i, request) in spec.list("tokenRequests").iter().enumerate() {
        let (audience, at) = (request.text("audience"), requests.index(i));
        if !audiences.insert(audience) {
            out.push(FieldError::duplicate(&at.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.opt_int("expirationSeconds") else { continue };
        let why = match seconds {
            ..600 => "may not specify a duration less than 10 minutes",
            s if s > 1 << 32 => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        out.push(FieldError::invalid(&at.child("expirationSeconds"), seconds, why));
    }
    let modes = path.child("volumeLifecycleModes");
    for mode in spec.strings("volumeLifecycleModes") {
        if !matches!(mode, "Persistent" | "Ephemeral") {
            out.push(FieldError::not_supported(&modes, mode, &["Persistent", "Ephemeral"]));
        }
    }
    required("seLinuxMount", "seLinuxMount", &mut out);
    out
}

pub(super) fn validate_driver_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_driver(new);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    if spec.sub("attachRequired") != before.sub("attachRequired") {
        let at = path.child("attachedRequired");
        out.push(FieldError::invalid(&at, spec.sub("attachRequired"), check::IMMUTABLE));
    }
    if spec.sub("volumeLifecycleModes") != before.sub("volumeLifecycleModes") {
        let modes = spec.strings("volumeLifecycleModes");
        let shown = check::go_list("storage.VolumeLifecycleMode", &modes);
        out.push(FieldError::invalid(&path.child("volumeLifecycleModes"), shown, check::IMMUTABLE));
    }
    out
}

pub(super) fn validate_node(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let drivers = spec.child("drivers");
    let mut seen = HashSet::new();
    for (i, driver) in object.sub("spec").list("drivers").iter().enumerate() {
        let at = drivers.index(i);
        let name = driver.text("name");
        pod::csi_driver_name(name, &at.child("name"), &mut out);
        let id = driver.text("nodeID");
        if id.is_empty() {
            out.push(FieldError::required(&at.child("nodeID"), ""));
        } else if id.len() > 256 {
            out.push(FieldError::invalid(&at.child("nodeID"), id, "must be 256 characters or less"));
        }
        check::not_negative(driver.sub("allocatable"), "count", &at.child("allocatable"), &mut out);
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
        let mut keys = HashSet::new();
        for key in driver.strings("topologyKeys") {
            if key.is_empty() {
                out.push(FieldError::required(&at, ""));
            }
            if !keys.insert(key) {
                out.push(FieldError::duplicate(&at, key));
            }
            check::label_name(key, &at, &mut out);
        }
    }
    out
}

pub(super) fn validate_node_update(new: &Value, old: &Value) -> Errors {
    // Upstream runs the same checks twice, and reports what they find as often.
    let mut out = [validate_node(new), validate_node(new)].concat();
    let mut drivers: HashMap<&str, Vec<&Value>> = HashMap::new();
    for driver in new.sub("spec").list("drivers") {
        drivers.entry(driver.text("name")).or_default().push(driver);
    }
    let path = Path::ROOT.child("spec");
    for before in old.sub("spec").list("drivers") {
        let same = drivers.get(before.text("name")).into_iter().flatten();
        for driver in same.filter(|driver| **driver != before) {
            out.push(FieldError::invalid(&path.child("drivers"), gostruct::csi_node_driver(driver), check::IMMUTABLE));
        }
    }
    out
}

/// Checks a capacity; an update may leave values of labels that are none.
pub(super) fn validate_capacity(object: &Value, old: Option<&Value>) -> Errors {
    let topology = Path::ROOT.child("nodeTopology");
    let mut out = Errors::new();
    check::label_selector(object.sub("nodeTopology"), &topology, &mut out);
    let mut before = Errors::new();
    check::label_selector(old.map_or(&Value::Null, |old| old.sub("nodeTopology")), &topology, &mut before);
    if !before.is_empty() {
        let of_expressions = format!("{topology}.matchExpressions[");
        out.retain(|e| !(e.field.starts_with(&of_expressions) && e.field.contains(".values[")));
    }
    let class = Path::ROOT.child("storageClassName");
    check::name(names::dns1123_subdomain, object.text("storageClassName"), &class, &mut out);
    check::quantity_not_negative(object.sub("capacity"), &Path::ROOT.child("capacity"), &mut out);
    out
}

pub(super) fn validate_capacity_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_capacity(new, Some(old));
    if new.sub("nodeTopology") != old.sub("nodeTopology") {
        let shown = gostruct::label_selector(new.sub("nodeTopology"));
        out.push(FieldError::invalid(&Path::ROOT.child("nodeTopology"), shown, check::IMMUTABLE));
    }
    check::immutable(new, old, "storageClassName", &Path::ROOT, &mut out);
    out
}

/// Old names of labels in where a capacity is.
pub(super) fn capacity_warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let topology = object.sub("nodeTopology");
    let expressions = topology.list("matchExpressions").iter().enumerate().filter_map(|(i, expression)| {
        let key = expression.text("key");
        let why = pod::old_label(key)?;
        Some(format!("nodeTopology.matchExpressions[{i}].key: {key} is {why}"))
    });
    let labels = topology.members("matchLabels").keys();
    let labels = labels.filter_map(|key| Some(format!("nodeTopology.matchLabels.{key}: {}", pod::old_label(key)?)));
    expressions.chain(labels).collect()
}
