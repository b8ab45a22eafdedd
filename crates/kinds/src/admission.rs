//! What the admission plugins of a real server change that need to know nothing but the object.

use crate::read::{Read, default_to, object_mut};
use crate::resource::Resource;
use object::{Value, map};

/// Changes an object to be created (or updated, with the old object) as the plugins do that are on by default:
/// DefaultTolerationSeconds and Priority for pods, StorageObjectInUseProtection, TaintNodesByCondition.
///
/// A pod that names a priority class is left to the caller, see [`priority`].
///
/// # Errors
/// Why a plugin forbids the object: what follows `is forbidden: ` in the answer.
pub fn mutate(resource: &Resource, object: &mut Value, old: Option<&Value>) -> Result<(), String> {
    match (resource.group, resource.plural) {
        ("", "pods") => {
            tolerations(object);
            if old.is_none() && object.sub("spec").text("priorityClassName").is_empty() {
                return priority(object, None);
            }
        }
        ("", "persistentvolumes") if old.is_none() => finalizer(object, "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") if old.is_none() => finalizer(object, "kubernetes.io/pvc-protection"),
        ("", "nodes") if old.is_none() => taint(object),
        _ => {}
    }
    Ok(())
}

/// Gives a pod the priority and preemption policy of its class; without a class those of pods in general.
///
/// # Errors
/// Why the pod is forbidden: it says something else than its class.
pub fn priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let value = class.map_or(0, |c| c.int("value"));
    let policy = match class.map_or("", |c| c.text("preemptionPolicy")) {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    let Some(spec) = object_mut(pod, &["spec"]) else { return Ok(()) };
    let from = "must not be provided in pod spec; priority admission controller computed";
    if let Some(given) = spec.opt_int("priority").filter(|given| *given != value) {
        return Err(format!(
            "the integer value of priority ({given}) {from} {value} from the given PriorityClass name"
        ));
    }
    if spec.has("preemptionPolicy") && spec.text("preemptionPolicy") != policy {
        let given = spec.text("preemptionPolicy");
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) {from} {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = class {
        spec.set_at(&["priorityClassName"], class.name().into());
    }
    spec.set_at(&["priority"], Value::Int(value));
    default_to(spec, "preemptionPolicy", policy);
    Ok(())
}

/// A pod stays five minutes on a node that is not ready or not reachable.
fn tolerations(pod: &mut Value) {
    const KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let Some(spec) = object_mut(pod, &["spec"]) else { return };
    let mut added = Vec::new();
    for key in KEYS {
        let tolerated = spec.list("tolerations").iter().any(|t| {
            (t.text("key") == key || t.text("key").is_empty()) && matches!(t.text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            added.push(Value::Object(map! {
                "key" => key, "operator" => "Exists", "effect" => "NoExecute", "tolerationSeconds" => 300
            }));
        }
    }
    if let (false, Some(members)) = (added.is_empty(), spec.as_object_mut()) {
        match members.get_or_insert("tolerations", || Value::Array(Vec::new())) {
            Value::Array(list) => list.extend(added),
            other => *other = Value::Array(added),
        }
    }
}

fn finalizer(object: &mut Value, name: &str) {
    if !object.meta_list("finalizers").contains(&name) {
        match object.metadata_mut().get_or_insert("finalizers", || Value::Array(Vec::new())) {
            Value::Array(list) => list.push(name.into()),
            other => *other = vec![name].into(),
        }
    }
}

/// A new node takes no pods until somebody says that it is ready.
fn taint(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    if node.sub("spec").list("taints").iter().any(|t| t.text("key") == KEY && t.text("effect") == "NoSchedule") {
        return;
    }
    let taint = Value::Object(map! { "key" => KEY, "effect" => "NoSchedule" });
    match node.object_entry("spec").get_or_insert("taints", || Value::Array(Vec::new())) {
        Value::Array(list) => list.push(taint),
        other => *other = Value::Array(vec![taint]),
    }
}
