//! The subresource `resize` of pods: amounts of CPU and memory change, nothing else does.

use crate::check::{Errors, quantity};
use crate::ephemeral::take;
use crate::gostruct;
use crate::pod;
use crate::read::{Read, list_mut};
use object::Value;
use object::field::{FieldError, Path};

/// The lists of containers that can be resized.
const LISTS: [&str; 2] = ["containers", "initContainers"];
/// What of a container a resize takes.
const PARTS: [&str; 2] = ["resources", "resizePolicy"];
/// The resources that can be resized.
const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Takes from a sent pod nothing but its containers' resources and resize policies: the rest stays as in `old`.
pub fn prepare(object: &mut Value, old: &Value) {
    take(object, old, |sent, kept| {
        for list in LISTS {
            let Some(spec) = kept.get_mut("spec") else { return };
            for container in list_mut(spec, list) {
                let same = |c: &&Value| c.text("name") == container.text("name");
                let Some(new) = sent.sub("spec").list(list).iter().find(same) else { continue };
                for part in PARTS {
                    match new.get(part) {
                        Some(value) => container.set_at(&[part], value.clone()),
                        None => {
                            container.remove_at(&[part]);
                        }
                    }
                }
            }
        }
    });
}

/// Checks such a change.
pub fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::new();
    pod::validate_pod(new, &mut out);
    let (root, spec) = (Path::ROOT, Path::ROOT.child("spec"));
    let empty = root.child("");
    if old.sub("spec").has("resources") {
        out.push(FieldError::forbidden(&spec.child("resources"), "pods with pod-level resources cannot be resized"));
        return out;
    }
    if old.sub("metadata").members("annotations").contains_key("kubernetes.io/config.mirror") {
        return vec![FieldError::forbidden(&empty, "static pods cannot be resized")];
    }
    if old.sub("spec").sub("os").text("name") == "windows" {
        return vec![FieldError::forbidden(&empty, "windows pods cannot be resized")];
    }
    let class = old.sub("status").text("qosClass");
    if pod::qos_class(new.sub("spec")) != class {
        let why = "Pod QOS Class may not change as a result of resizing";
        out.push(FieldError::invalid(&spec, class, why));
    }
    let running = old.sub("status").list("containerStatuses").iter().find(|c| c.sub("state").has("running"));
    if running.is_some_and(|c| !c.has("resources")) {
        out.push(FieldError::forbidden(&spec, "Pod running on node without support for resize"));
    }
    let mut unresized = new.sub("spec").clone();
    for list in LISTS {
        let path = spec.child(list);
        let held = old.sub("spec").list(list);
        for (i, (new, old)) in list_mut(&mut unresized, list).iter_mut().zip(held).enumerate() {
            let at = path.index(i);
            amounts(new, old, &at.child("resources"), &mut out);
            if list == "containers" || old.text("restartPolicy") == "Always" {
                take_back(new, old);
            }
        }
    }
    if unresized != *old.sub("spec") {
        let difference = gostruct::pod_spec_diff(old.sub("spec"), &unresized);
        out.push(FieldError::forbidden(&spec, format!("only cpu and memory resources are mutable\n{difference}")));
    }
    out
}

/// Gives a container the amounts again that it had of what may be resized.
fn take_back(container: &mut Value, old: &Value) {
    for part in ["requests", "limits"] {
        for name in MUTABLE {
            match old.at(&["resources", part, name]) {
                Some(amount) => container.set_at(&["resources", part, name], amount.clone()),
                None => {
                    container.remove_at(&["resources", part, name]);
                }
            }
        }
        if container.sub("resources").members(part).is_empty() {
            container.remove_at(&["resources", part]);
        }
    }
}

/// Requests and limits that are there stay; memory is taken back only by a restart.
fn amounts(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    for (part, what) in [("requests", "resource requests"), ("limits", "resource limits")] {
        let (new, old) = (new.sub("resources").members(part), old.sub("resources").members(part));
        if old.keys().any(|key| !new.contains_key(key)) {
            out.push(FieldError::forbidden(&path.child(part), format!("{what} cannot be removed")));
        }
    }
    let limit = |c: &Value| quantity(c.sub("resources").sub("limits").sub("memory"));
    let restarts = new.list("resizePolicy").iter().find(|p| p.text("resourceName") == "memory");
    let restarts = restarts.is_some_and(|p| p.text("restartPolicy") == "RestartContainer");
    if let (Some(now), Some(before)) = (limit(new), limit(old))
        && now.minus(before).sign().is_lt()
        && !restarts
    {
        let why = "memory limits cannot be decreased unless resizePolicy is RestartContainer";
        out.push(FieldError::forbidden(&path.child("limits"), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn pod(resources: &str, rest: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"generation":1,"name":"p"}},"spec":{{"containers":[{{"name":"c","resources":{resources}}}]{rest}}},"status":{{"qosClass":"Burstable"}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_resources_are_taken() {
        let old = pod(r#"{"requests":{"cpu":"1"}}"#, "");
        let mut new = pod(r#"{"requests":{"cpu":"2"}}"#, r#","nodeName":"n","serviceAccountName":"strong""#);
        new.set_at(&["status", "phase"], "Running".into());
        new.set_at(&["metadata", "labels", "a"], "b".into());
        prepare(&mut new, &old);
        let mut wanted = pod(r#"{"requests":{"cpu":"2"}}"#, "");
        wanted.set_at(&["metadata", "generation"], Value::Int(2));
        assert_eq!(new, wanted);
    }

    #[test]
    fn what_cannot_be_resized_is_told() {
        let old = pod(r#"{"limits":{"memory":"2Gi"},"requests":{"cpu":"1"}}"#, "");
        for (resources, why) in [
            (r#"{"limits":{"memory":"1Gi"},"requests":{"cpu":"1"}}"#, "memory limits cannot be decreased"),
            (r#"{"limits":{"memory":"2Gi"}}"#, "resource requests cannot be removed"),
            (r#"{"limits":{"memory":"2Gi"},"requests":{"cpu":"1","ephemeral-storage":"1"}}"#, "only cpu and memory"),
        ] {
            let errors = validate(&pod(resources, ""), &old);
            assert!(errors.iter().any(|e| e.body().contains(why)), "{resources}: {errors:?}");
        }
        let more = pod(r#"{"limits":{"memory":"3Gi"},"requests":{"cpu":"2"}}"#, "");
        assert!(!validate(&more, &old).iter().any(|e| e.body().contains("mutable") || e.body().contains("removed")));
    }
}
