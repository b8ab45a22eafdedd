//! What controllers ask of pods, whoever owns them.

use jiff::Timestamp;
use kinds::read::Read;
use object::names::{self, NameCheck};
use object::{Map, Value, map};
use std::cmp::{Ordering, Reverse};

/// The owner reference of the object's controller.
pub fn controller_of(object: &Value) -> Option<&Value> {
    object.sub("metadata").list("ownerReferences").iter().find(|owner| owner.flag("controller"))
}

/// Whether the object with this uid is the object's controller.
pub fn is_controlled_by(object: &Value, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.text("uid") == uid)
}

/// The owner reference that makes `owner` a controller. `api_version` and `kind` are the owner's.
pub fn controller_reference(owner: &Value, api_version: &str, kind: &str) -> Map {
    map! {
        "apiVersion" => api_version, "kind" => kind, "name" => owner.name(), "uid" => owner.meta_str("uid"),
        "controller" => true, "blockOwnerDeletion" => true,
    }
}

/// Whether an object waits for its end.
pub fn is_deleting(object: &Value) -> bool {
    object.sub("metadata").has("deletionTimestamp")
}

/// `status.phase`.
pub fn phase(pod: &Value) -> &str {
    pod.sub("status").text("phase")
}

/// Whether a pod has ended for good.
pub fn is_terminal(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod has neither ended nor waits for its end.
pub fn is_active(pod: &Value) -> bool {
    !is_terminal(pod) && !is_deleting(pod)
}

/// Whether a pod waits for its end and runs still.
pub fn is_terminating(pod: &Value) -> bool {
    !is_terminal(pod) && is_deleting(pod)
}

/// A condition of an object by its type.
pub fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    object.sub("status").list("conditions").iter().find(|c| c.text("type") == kind)
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|c| c.text("status") == "True")
}

/// Since when a pod is ready.
pub fn ready_since(pod: &Value) -> Option<Timestamp> {
    condition(pod, "Ready").filter(|c| c.text("status") == "True").and_then(|c| time(c, "lastTransitionTime"))
}

/// The time in a field.
pub fn time(object: &Value, field: &str) -> Option<Timestamp> {
    object.text(field).parse().ok()
}

/// A time as objects have it, to the second.
pub fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Which of two active pods goes first when there are too many: the one that has come less far (client-go's `ActivePods`).
pub fn compare_for_removal(a: &Value, b: &Value) -> Ordering {
    removal_rank(a).cmp(&removal_rank(b))
}

/// Sorts before what is kept longer: unassigned, pending, unready, ready for a shorter time, restarted more often, younger.
fn removal_rank(pod: &Value) -> impl Ord + '_ {
    let assigned = !pod.sub("spec").text("nodeName").is_empty();
    let phase = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    (
        assigned,
        phase,
        is_ready(pod),
        // No time goes first, then the later ones.
        newer_first(ready_since(pod)),
        Reverse(restarts(pod)),
        newer_first(time(pod.sub("metadata"), "creationTimestamp")),
    )
}

fn newer_first(time: Option<Timestamp>) -> (bool, Reverse<Option<Timestamp>>) {
    (time.is_some(), Reverse(time))
}

/// The most restarts of any container.
fn restarts(pod: &Value) -> i64 {
    pod.sub("status").list("containerStatuses").iter().map(|c| c.int("restartCount")).max().unwrap_or_default()
}

/// The pod that a template makes for its owner; its name is generated after `prefix`.
pub fn from_template(template: &Value, namespace: &str, prefix: &str, owner: Map) -> Value {
    let from = template.sub("metadata");
    let mut meta = map! { "namespace" => namespace, "generateName" => prefix, "ownerReferences" => vec![owner] };
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = from.get(field).filter(|v| !v.is_null()) {
            meta.insert(field, value.clone());
        }
    }
    map! { "apiVersion" => "v1", "kind" => "Pod", "metadata" => meta, "spec" => template.sub("spec").clone() }.into()
}

/// How the names of a controller's pods begin: its name and a hyphen, where that can begin a name.
pub fn name_prefix(controller: &str) -> String {
    let prefix = format!("{controller}-");
    let check: NameCheck = names::dns1123_subdomain;
    if names::generate_name(&prefix, check).is_empty() { prefix } else { controller.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn pod(spec: &str, status: &str, created: &str) -> Value {
        let text = format!(r#"{{"metadata":{{"creationTimestamp":"{created}"}},"spec":{spec},"status":{status}}}"#);
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn pods_that_have_come_less_far_are_removed_first() {
        let ready = |since: &str| {
            format!(
                r#"{{"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"{since}"}}]}}"#
            )
        };
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
        let node = r#"{"nodeName":"n"}"#;
        let in_order = [
            pod("{}", r#"{"phase":"Pending"}"#, new),
            pod("{}", r#"{"phase":"Pending"}"#, old),
            pod(node, r#"{"phase":"Pending"}"#, old),
            pod(node, r#"{"phase":"Unknown"}"#, old),
            pod(node, r#"{"phase":"Running","containerStatuses":[{"restartCount":3}]}"#, old),
            pod(node, r#"{"phase":"Running"}"#, old),
            pod(node, &ready(new), old),
            pod(node, &ready(old), old),
        ];
        for (i, a) in in_order.iter().enumerate() {
            for (j, b) in in_order.iter().enumerate() {
                assert_eq!(compare_for_removal(a, b), i.cmp(&j), "{i} {j}");
            }
        }
    }

    #[test]
    fn a_pod_takes_over_what_the_template_says() {
        let template = r#"{"metadata":{"labels":{"a":"b"},"creationTimestamp":null},"spec":{"x":1}}"#;
        let owner = json::parse(br#"{"metadata":{"name":"j","uid":"u"}}"#).unwrap();
        let owner = controller_reference(&owner, "batch/v1", "Job");
        let pod = from_template(&json::parse(template.as_bytes()).unwrap(), "n", "j-", owner);
        assert_eq!(pod.label("a"), Some("b"));
        assert!(is_controlled_by(&pod, "u") && !is_controlled_by(&pod, "v"));
        assert_eq!(pod.at(&["spec", "x"]), Some(&Value::Int(1)));
    }

    #[test]
    fn names_begin_with_the_controllers() {
        for (name, prefix) in [("web", "web-"), ("a.b", "a.b-")] {
            assert_eq!(name_prefix(name), prefix);
        }
    }
}
