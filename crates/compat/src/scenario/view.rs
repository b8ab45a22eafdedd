//! What a snapshot shows of objects.

use super::field::select;
use super::names::{Names, items, name_of, sort_inner};
use crate::case::body_text;
use object::{Map, Value};

/// The fields of a pod's spec that are shown unless all are asked for.
const POD_SPEC: [&str; 8] = [
    "nodeName",
    "hostname",
    "subdomain",
    "schedulingGates",
    "volumes",
    "affinity",
    "restartPolicy",
    "activeDeadlineSeconds",
];

/// Whether every namespace has this object by itself.
pub(crate) fn is_everywhere(object: &Value) -> bool {
    matches!(
        (object.str_at(&["kind"]), name_of(object)),
        (Some("ConfigMap"), "kube-root-ca.crt") | (Some("ServiceAccount"), "default")
    )
}

/// The texts of a list in a step.
pub(crate) fn texts<'v>(step: &'v Value, key: &str) -> Vec<&'v str> {
    step.get(key).and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

/// Whether a step has a switch on.
pub(crate) fn flag(step: &Value, key: &str) -> bool {
    step.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// One object without what differs from run to run, and brief unless the step asks otherwise.
pub(crate) fn view(object: &Value, step: &Value) -> Value {
    let mut o = object.clone();
    let kind = o.str_at(&["kind"]).unwrap_or_default().to_owned();
    for key in ["uid", "resourceVersion", "creationTimestamp", "selfLink"] {
        o.remove_at(&["metadata", key]);
    }
    show_managers(&mut o, texts(step, "keep").contains(&"managedFields"));
    if let Some(conditions) = o.get_mut("status").and_then(|s| s.get_mut("conditions")).and_then(Value::as_array_mut) {
        conditions.sort_by_key(|c| c.str_at(&["type"]).unwrap_or_default().to_owned());
    }
    match kind.as_str() {
        "Pod" => {
            if let Some(volumes) = o.get_mut("spec").and_then(|s| s.get_mut("volumes")).and_then(Value::as_array_mut) {
                // A StatefulSet's claims come in any order.
                volumes.sort_by_key(|v| v.str_at(&["name"]).unwrap_or_default().to_owned());
            }
        }
        // A controlled ReplicaSet's generation counts the steps taken, which vary.
        "ReplicaSet" if select(&o, "metadata.ownerReferences[*].controller").contains(&&Value::Bool(true)) => {
            let generation = o.remove_at(&["metadata", "generation"]);
            if generation.is_some() && o.at(&["status", "observedGeneration"]) == generation.as_ref() {
                o.set_at(&["status", "observedGeneration"], "<generation>".into());
            }
        }
        "EndpointSlice" => {
            o.remove_at(&["metadata", "generation"]);
        }
        "Service" => show_service(&mut o),
        _ => {}
    }
    if !flag(step, "full") {
        shorten(&mut o, &kind);
    }
    o
}

fn show_managers(o: &mut Value, keep: bool) {
    if !keep {
        o.remove_at(&["metadata", "managedFields"]);
        return;
    }
    let list = o.get_mut("metadata").and_then(|m| m.get_mut("managedFields")).and_then(Value::as_array_mut);
    if let Some(entries) = list {
        for entry in entries.iter_mut() {
            entry.remove_at(&["time"]);
        }
        entries.sort_by_cached_key(|entry| {
            let keys = ["manager", "operation", "apiVersion", "subresource"];
            body_text(&Value::Array(keys.iter().map(|k| entry.get(k).cloned().unwrap_or_default()).collect()))
        });
    }
}

fn show_service(o: &mut Value) {
    for key in ["clusterIP", "healthCheckNodePort"] {
        if o.at(&["spec", key]).is_some_and(|v| !v.is_null() && !matches!(v.as_str(), Some("" | "None"))) {
            o.set_at(&["spec", key], "<clusterIP>".into());
        }
    }
    let first = o.at(&["spec", "clusterIPs"]).and_then(Value::as_array).and_then(<[Value]>::first);
    if first.is_some_and(|ip| ip.as_str() != Some("None")) {
        o.set_at(&["spec", "clusterIPs"], vec!["<clusterIP>"].into());
    }
}

fn shorten(o: &mut Value, kind: &str) {
    o.remove_at(&["apiVersion"]);
    if kind == "Pod" {
        if let Some(spec) = o.get_mut("spec").and_then(Value::as_object_mut) {
            spec.retain(|key, _| POD_SPEC.contains(&key));
            if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
                volumes.retain(|v| !v.str_at(&["name"]).unwrap_or_default().starts_with("kube-api-access"));
                if volumes.is_empty() {
                    spec.remove("volumes");
                }
            }
            if spec.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
                spec.remove("restartPolicy");
            }
        }
        for key in ["containerStatuses", "podIPs", "hostIP", "qosClass"] {
            o.remove_at(&["status", key]);
        }
    }
    o.remove_at(&["spec", "template", "spec"]);
    o.remove_at(&["spec", "jobTemplate", "spec", "template", "spec"]);
    if kind == "ControllerRevision" {
        o.remove_at(&["data"]);
    }
}

/// The objects of some lists as a snapshot shows them.
pub(crate) fn snapshot(names: &mut Names, mut lists: Vec<(String, Value)>, step: &Value) -> Value {
    let mut views: Vec<(String, Vec<Value>)> = Vec::new();
    let mut all: Vec<Value> = Vec::new();
    for (path, answer) in &mut lists {
        let found = items(answer);
        all.extend(found.iter().map(|&o| o.clone()));
        let shown = found.into_iter().filter(|o| flag(step, "all") || !is_everywhere(o));
        views.push((path.clone(), shown.map(|o| view(o, step)).collect()));
    }
    names.learn(&all.iter().collect::<Vec<_>>());
    let generated = names.numbered(&views.iter().flat_map(|(_, list)| list).collect::<Vec<_>>());
    let fields = texts(step, "only");
    let mut out = Map::new();
    for (path, list) in views {
        let mut list: Vec<Value> = list.iter().map(|o| sort_inner(names.value(o, &generated))).collect();
        list.sort_by_cached_key(|o| (name_of(o).to_owned(), body_text(o)));
        for o in &mut list {
            if fields.is_empty() {
                o.remove_at(&["kind"]);
            } else {
                *o = only(o, &fields);
            }
        }
        out.insert(path, Value::Array(list));
    }
    Value::Object(out)
}

fn only(object: &Value, fields: &[&str]) -> Value {
    let mut out = object::map! { "name" => name_of(object) };
    for &field in fields {
        let found = select(object, field);
        let Some(&first) = found.first() else { continue };
        if selects_many(field) {
            out.insert(field, Value::Array(found.into_iter().cloned().collect()));
        } else {
            out.insert(field, first.clone());
        }
    }
    Value::Object(out)
}

/// Whether a field is shown as a list: it has a bracket that is no quoted key, and is not one member of an element that a
/// simple filter at its end selects.
fn selects_many(field: &str) -> bool {
    let brackets =
        field.match_indices('[').any(|(i, _)| !matches!(field[i + 1..].chars().next(), None | Some('\'' | ']')));
    let word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_alphanumeric() || c == '_');
    let one = || {
        let (before, member) = field.rsplit_once("].")?;
        let (key, text) = before.rsplit_once('[')?.1.split_once('=')?;
        (word(member) && word(key) && !text.contains(']')).then_some(())
    };
    brackets && one().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn fields_with_brackets_are_lists_unless_a_filter_names_one() {
        for (field, many) in [
            ("status", false),
            ("metadata.annotations['a/b']", false),
            ("items[*].x", true),
            ("conditions[type=Ready].status", false),
            ("conditions[type=Ready].a.b", true),
            ("conditions[metadata.labels].x", true),
        ] {
            assert_eq!(selects_many(field), many, "{field}");
        }
    }

    #[test]
    fn pods_are_shown_briefly() {
        let pod = json::parse(
            br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u","managedFields":[]},
                "spec":{"containers":[],"restartPolicy":"Always","volumes":[{"name":"kube-api-access-x"}],"nodeName":"n"},
                "status":{"phase":"Running","qosClass":"x"}}"#,
        );
        let shown = view(&pod.unwrap(), &Value::Null);
        let want = r#"{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}"#;
        assert_eq!(json::to_string(&shown), want);
    }
}
