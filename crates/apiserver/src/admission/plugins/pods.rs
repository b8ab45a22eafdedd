//! Priority, DefaultTolerationSeconds, TaintNodesByCondition.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use object::{Value, map};

/// What the keys of priority classes start with.
const CLASSES: &str = "/registry/priorityclasses/";
/// For how many seconds a pod stays on a node that is not ready or not reachable.
const TOLERATION: i64 = 300;

/// Gives a new pod the priority of its class, or of the default class; a changed one keeps what it has.
pub(super) async fn prioritise(asked: Asked<'_>, pod: &mut Value) -> Outcome<()> {
    if !asked.has(Plugin::Priority) || !asked.subresource.is_empty() {
        return Ok(());
    }
    if let Some(old) = asked.old {
        for key in ["priority", "preemptionPolicy"] {
            if let (None, Some(held)) = (pod.at(&["spec", key]), old.at(&["spec", key])) {
                pod.set_at(&["spec", key], held.clone());
            }
        }
        return Ok(());
    }
    let name = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default().to_owned();
    let class = match name.as_str() {
        "" => default_class(asked).await?,
        name => {
            let built_in = matches!(name, "system-cluster-critical" | "system-node-critical");
            match asked.get(&format!("{CLASSES}{name}")).await? {
                Some(class) => Some(class),
                None if built_in => {
                    let value = if name == "system-node-critical" { 2_000_001_000 } else { 2_000_000_000 };
                    Some(Value::Object(map! { "value" => value }))
                }
                None => {
                    let why = format!("no PriorityClass with name {name} was found");
                    return Err(asked.forbid(pod, &why));
                }
            }
        }
    };
    let number = |key: &str| class.as_ref().and_then(|c| c.get(key)).and_then(Value::as_int);
    let priority = number("value").unwrap_or(0);
    if let Some(given) = pod.at(&["spec", "priority"]).and_then(Value::as_int).filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(asked.forbid(pod, &why));
    }
    if let (true, Some(class)) =
        (name.is_empty(), class.as_ref().map(|c| c.name().to_owned()).filter(|n| !n.is_empty()))
    {
        pod.set_at(&["spec", "priorityClassName"], Value::from(class));
    }
    pod.set_at(&["spec", "priority"], Value::Int(priority));
    let policy = class.as_ref().and_then(|c| c.str_at(&["preemptionPolicy"])).unwrap_or("PreemptLowerPriority");
    if let Some(given) = pod.str_at(&["spec", "preemptionPolicy"]).filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(asked.forbid(pod, &why));
    }
    pod.set_at(&["spec", "preemptionPolicy"], Value::from(policy));
    Ok(())
}

/// The class of pods that name none: of those marked so, the one of the lowest value.
async fn default_class(asked: Asked<'_>) -> Outcome<Option<Value>> {
    let classes = asked.list(CLASSES).await?.into_iter();
    let defaults = classes.filter(|c| c.get("globalDefault").and_then(Value::as_bool) == Some(true));
    Ok(defaults.min_by_key(|c| c.get("value").and_then(Value::as_int).unwrap_or(0)))
}

/// Lets only one class be the default.
pub(super) async fn check_class(asked: Asked<'_>, class: &Value) -> Outcome<()> {
    let is_default = class.get("globalDefault").and_then(Value::as_bool) == Some(true);
    if !is_default || !asked.has(Plugin::Priority) {
        return Ok(());
    }
    match default_class(asked).await? {
        Some(held) if asked.old.is_none() || held.name() != class.name() => {
            let held = held.name();
            let why = format!("PriorityClass {held} is already marked as default. Only one default can exist");
            Err(asked.forbid(class, &why))
        }
        _ => Ok(()),
    }
}

/// Lets a pod stay for a while on a node that is not ready or not reachable.
pub(super) fn tolerate(asked: Asked<'_>, pod: &mut Value) {
    if asked.subresource.is_empty() && asked.has(Plugin::DefaultTolerationSeconds) {
        add_tolerations(pod);
    }
}

fn add_tolerations(pod: &mut Value) {
    let held = pod.at(&["spec", "tolerations"]).and_then(Value::as_array).unwrap_or_default();
    let mut tolerations = held.to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |t: &Value| {
            let text = |name: &str| t.str_at(&[name]).unwrap_or_default();
            let effect = matches!(text("effect"), "" | "NoExecute");
            effect && (text("key") == key || text("key").is_empty() && text("operator") == "Exists")
        };
        if !held.iter().any(tolerates) {
            tolerations.push(Value::Object(map! {
                "key" => key, "operator" => "Exists", "effect" => "NoExecute", "tolerationSeconds" => TOLERATION,
            }));
        }
    }
    pod.set_at(&["spec", "tolerations"], Value::Array(tolerations));
}

/// Keeps pods away from a new node until somebody says that it is ready.
pub(super) fn taint(asked: Asked<'_>, node: &mut Value) {
    if !asked.creates() || !asked.has(Plugin::TaintNodesByCondition) {
        return;
    }
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let mut taints = node.at(&["spec", "taints"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let has = |t: &Value| t.str_at(&["key"]) == Some(NOT_READY) && t.str_at(&["effect"]) == Some("NoSchedule");
    if !taints.iter().any(has) {
        taints.push(Value::Object(map! { "key" => NOT_READY, "effect" => "NoSchedule" }));
    }
    node.set_at(&["spec", "taints"], Value::Array(taints));
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_that_tolerates_everything_gets_no_more() {
        let mut pod = json::parse(br#"{"spec":{"tolerations":[{"operator":"Exists"}]}}"#).unwrap();
        add_tolerations(&mut pod);
        assert_eq!(json::to_string(&pod), r#"{"spec":{"tolerations":[{"operator":"Exists"}]}}"#);
        let mut pod = json::parse(br#"{"spec":{}}"#).unwrap();
        add_tolerations(&mut pod);
        assert_eq!(pod.at(&["spec", "tolerations"]).and_then(Value::as_array).map(<[_]>::len), Some(2));
    }
}
