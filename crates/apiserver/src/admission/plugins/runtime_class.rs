//! The admission plugin RuntimeClass: pods take over what their runtime class asks for.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use object::{Map, Value, go};

/// What the keys of runtime classes start with.
const CLASSES: &str = "/registry/runtimeclasses/";

/// Completes a pod that is to be created with the overhead and the scheduling of its class. 403 where there is no such
/// class or the pod contradicts it.
pub(super) async fn complete(asked: Asked<'_>, pod: &mut Value) -> Outcome<()> {
    if !asked.creates() || !asked.has(Plugin::RuntimeClass) {
        return Ok(());
    }
    let name = pod.str_at(&["spec", "runtimeClassName"]).unwrap_or_default().to_owned();
    let overhead = pod.at(&["spec", "overhead"]).filter(|o| !o.is_null());
    if name.is_empty() {
        if overhead.is_none() {
            return Ok(());
        }
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(asked.forbid(pod, why));
    }
    let Some(class) = asked.get(&format!("{CLASSES}{name}")).await? else {
        return Err(asked.forbid(pod, &format!("pod rejected: RuntimeClass {} not found", go::quote(&name))));
    };
    apply(pod, &class).map_err(|why| asked.forbid(pod, &why))
}

fn apply(pod: &mut Value, class: &Value) -> Result<(), String> {
    let fixed = class.at(&["overhead", "podFixed"]).filter(|o| !o.is_null());
    match (pod.at(&["spec", "overhead"]).filter(|o| !o.is_null()), fixed) {
        (given, wanted) if given == wanted => {}
        (None, Some(wanted)) => pod.set_at(&["spec", "overhead"], wanted.clone()),
        _ => {
            return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned());
        }
    }
    let labels = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
    for (key, wanted) in labels.into_iter().flat_map(Map::iter) {
        let given = pod.at(&["spec", "nodeSelector"]).and_then(|s| s.get(key));
        if let Some(given) = given.filter(|given| *given != wanted) {
            let (given, wanted) = (given.as_str().unwrap_or_default(), wanted.as_str().unwrap_or_default());
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        pod.set_at(&["spec", "nodeSelector", key], wanted.clone());
    }
    let added = class.at(&["scheduling", "tolerations"]).and_then(Value::as_array).unwrap_or_default();
    if !added.is_empty() {
        let mut all = pod.at(&["spec", "tolerations"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        for toleration in added {
            if !all.contains(toleration) {
                all.push(toleration.clone());
            }
        }
        pod.set_at(&["spec", "tolerations"], Value::Array(all));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_pod_takes_over_what_its_class_asks_for() {
        let class = value(
            r#"{"overhead":{"podFixed":{"cpu":"1"}},"scheduling":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k"}]}}"#,
        );
        let mut pod = value(r#"{"spec":{"nodeSelector":{"c":"d"}}}"#);
        apply(&mut pod, &class).unwrap();
        let wanted =
            r#"{"spec":{"nodeSelector":{"a":"b","c":"d"},"overhead":{"cpu":"1"},"tolerations":[{"key":"k"}]}}"#;
        assert_eq!(json::to_string(&pod), wanted);
    }

    #[test]
    fn a_pod_does_not_contradict_its_class() {
        let class = value(r#"{"scheduling":{"nodeSelector":{"a":"b"}}}"#);
        assert!(apply(&mut value(r#"{"spec":{"nodeSelector":{"a":"x"}}}"#), &class).is_err());
        assert!(apply(&mut value(r#"{"spec":{"overhead":{"cpu":"1"}}}"#), &class).is_err());
    }
}
