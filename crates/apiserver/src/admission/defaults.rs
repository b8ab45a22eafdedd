//! What upstream's default admission plugins add to new objects of built-in kinds: Priority, DefaultTolerationSeconds,
//! TaintNodesByCondition, StorageObjectInUseProtection, RuntimeClass.

use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::catalogue::Resource;
use crate::registry::{self, Stored};
use object::{Status, Value, map};
use store::{ListOptions, Range};

/// What the keys of priority classes start with.
const CLASSES: &str = "/registry/priorityclasses/";
/// For how many seconds a pod stays on a node that is not ready or not reachable.
const TOLERATION: i64 = 300;

/// Completes an object that is to be created; it is in the form that is worked on.
pub(crate) async fn complete(server: &Server, resource: &Resource, object: &mut Value) -> Outcome<()> {
    if !resource.group.is_empty() {
        return Ok(());
    }
    match resource.plural.as_str() {
        "pods" => {
            prioritise(server, resource, object).await?;
            tolerate(object);
            super::runtime_class::complete(server, resource, object).await?;
        }
        "nodes" => taint(object),
        "persistentvolumes" => protect(object, "kubernetes.io/pv-protection"),
        "persistentvolumeclaims" => protect(object, "kubernetes.io/pvc-protection"),
        _ => {}
    }
    Ok(())
}

/// Gives a pod the priority of its class, or of the default class.
async fn prioritise(server: &Server, resource: &Resource, pod: &mut Value) -> Outcome<()> {
    let name = pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default().to_owned();
    let class = match name.as_str() {
        "" => default_class(server).await?,
        name => {
            let entry = server.store.get(&format!("{CLASSES}{name}"), None).await.map_err(registry::read_failure)?;
            let built_in = matches!(name, "system-cluster-critical" | "system-node-critical");
            match entry.and_then(|e| Stored::read(e.value)) {
                Some(class) => Some(class.value(0)),
                None if built_in => {
                    let value = if name == "system-node-critical" { 2_000_001_000 } else { 2_000_000_000 };
                    Some(Value::Object(map! { "value" => value }))
                }
                None => {
                    let why = format!("no PriorityClass with name {name} was found");
                    return Err(Status::forbidden(resource.qualified(), pod.name(), &why).into());
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
        return Err(Failure::from(Status::forbidden(resource.qualified(), pod.name(), &why)));
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
        return Err(Failure::from(Status::forbidden(resource.qualified(), pod.name(), &why)));
    }
    pod.set_at(&["spec", "preemptionPolicy"], Value::from(policy));
    Ok(())
}

/// The class of pods that name none: of those marked so, the one of the lowest value.
async fn default_class(server: &Server) -> Outcome<Option<Value>> {
    let page = server.store.list(&Range::prefix(CLASSES), ListOptions::default()).await;
    let entries = page.map_err(registry::read_failure)?.entries;
    let classes = entries.into_iter().filter_map(|e| Some(Stored::read(e.value)?.value(0)));
    let defaults = classes.filter(|c| c.get("globalDefault").and_then(Value::as_bool) == Some(true));
    Ok(defaults.min_by_key(|c| c.get("value").and_then(Value::as_int).unwrap_or(0)))
}

/// Lets a pod stay for a while on a node that is not ready or not reachable.
fn tolerate(pod: &mut Value) {
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

/// Keeps pods away from a node until somebody says that it is ready.
fn taint(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let mut taints = node.at(&["spec", "taints"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let has = |t: &Value| t.str_at(&["key"]) == Some(NOT_READY) && t.str_at(&["effect"]) == Some("NoSchedule");
    if !taints.iter().any(has) {
        taints.push(Value::Object(map! { "key" => NOT_READY, "effect" => "NoSchedule" }));
    }
    node.set_at(&["spec", "taints"], Value::Array(taints));
}

/// Keeps a volume or claim until nobody uses it.
fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = object.meta_list("finalizers").into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|f| f == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    object.metadata_mut().insert("finalizers", finalizers);
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
        assert_eq!(pod.at(&["spec", "tolerations"]).and_then(Value::as_array).map(<[_]>::len), Some(2));
    }

    #[test]
    fn a_finalizer_is_added_once() {
        let mut claim = json::parse(br#"{"metadata":{}}"#).unwrap();
        protect(&mut claim, "x.io/y");
        protect(&mut claim, "x.io/y");
        assert_eq!(json::to_string(&claim), r#"{"metadata":{"finalizers":["x.io/y"]}}"#);
    }
}
