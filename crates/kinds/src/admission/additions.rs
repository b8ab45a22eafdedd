//! The plugins Priority, DefaultTolerationSeconds, StorageObjectInUseProtection and TaintNodesByCondition.

use crate::read::{Read, default_to, object_mut};
use object::{Value, map};

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
pub fn tolerate(pod: &mut Value) {
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

/// Adds a finalizer, once.
pub fn protect(object: &mut Value, name: &str) {
    if !object.meta_list("finalizers").contains(&name) {
        match object.metadata_mut().get_or_insert("finalizers", || Value::Array(Vec::new())) {
            Value::Array(list) => list.push(name.into()),
            other => *other = vec![name].into(),
        }
    }
}

/// A new node takes no pods until somebody says that it is ready.
pub fn taint(node: &mut Value) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_that_tolerates_everything_gets_no_more() {
        let mut pod = json::parse(br#"{"spec":{"tolerations":[{"operator":"Exists"}]}}"#).unwrap();
        tolerate(&mut pod);
        assert_eq!(json::to_string(&pod), r#"{"spec":{"tolerations":[{"operator":"Exists"}]}}"#);
        let mut pod = json::parse(br#"{"spec":{}}"#).unwrap();
        tolerate(&mut pod);
        assert_eq!(pod.sub("spec").list("tolerations").len(), 2);
    }

    #[test]
    fn a_finalizer_is_added_once() {
        let mut claim = json::parse(br#"{"metadata":{}}"#).unwrap();
        protect(&mut claim, "x.io/y");
        protect(&mut claim, "x.io/y");
        assert_eq!(json::to_string(&claim), r#"{"metadata":{"finalizers":["x.io/y"]}}"#);
    }
}
