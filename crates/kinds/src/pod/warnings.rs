//! Warnings about pods and templates of pods.

use crate::read::Read;
use object::field::Path;
use object::{Value, go, names};
use std::collections::HashMap;

/// Warnings about the specification of a pod or template.
pub(crate) fn spec_warnings(spec: &Value, path: &Path<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for list in ["containers", "initContainers"] {
        let containers = path.child(list);
        for (i, container) in spec.list(list).iter().enumerate() {
            let at = containers.index(i);
            environment(container, &at, &mut out);
            ports(container, &at, &mut out);
        }
    }
    out
}

/// The warning about a name that does not do for the names of pods.
pub(crate) fn name_warning(name: &str) -> Option<String> {
    let complaints = names::dns1123_label(name);
    (!complaints.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
             a DNS label is recommended: [{}]",
            complaints.join(" ")
        )
    })
}

/// The warnings of a workload with a template: its name when it is created, and its template.
pub(crate) fn workload_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out: Vec<String> =
        if old.is_none() { name_warning(object.name()).into_iter().collect() } else { Vec::new() };
    out.extend(template_warnings(object, old));
    out
}

/// The warnings about the template of a workload, repeated with each new generation.
pub(crate) fn template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let generation = |v: &Value| v.at(&["metadata", "generation"]).and_then(Value::as_int);
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    warnings_of_template(object.sub("spec").sub("template"))
}

/// The warnings about the template of a daemon set, repeated when the template changes.
pub(crate) fn changed_template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let template = object.sub("spec").sub("template");
    if old.is_some_and(|old| old.sub("spec").sub("template") == template) {
        return Vec::new();
    }
    warnings_of_template(template)
}

fn warnings_of_template(template: &Value) -> Vec<String> {
    let spec = Path::ROOT.child("spec");
    let at = spec.child("template");
    spec_warnings(template.sub("spec"), &at.child("spec"))
}

fn environment(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let env = path.child("env");
    let mut seen: HashMap<&str, &Value> = HashMap::new();
    for (i, variable) in container.list("env").iter().enumerate() {
        let name = variable.text("name");
        if let Some(before) = seen.insert(name, variable) {
            // A value that refers to the one it hides is no mistake.
            let uses = variable.text("value").contains(&format!("$({name})"));
            if !uses || before.has("valueFrom") {
                let quoted = go::quote(name);
                out.push(format!(
                    "{}: hides previous definition of {quoted}, which may be dropped when using apply",
                    env.index(i)
                ));
            }
        }
    }
}

fn ports(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let list = path.child("ports");
    let mut seen: HashMap<(i64, &str, &str, i64), usize> = HashMap::new();
    for (i, port) in container.list("ports").iter().enumerate() {
        let key = (port.int("containerPort"), port.text("protocol"), port.text("hostIP"), port.int("hostPort"));
        match seen.get(&key) {
            Some(first) => {
                out.push(format!("{}: duplicate port definition with {}", list.index(i), list.index(*first)));
            }
            None => {
                seen.insert(key, i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_variable_that_hides_another_is_named() {
        let spec = json::parse(br#"{"containers": [{"env": [{"name": "A"}, {"name": "A"}]}]}"#).unwrap();
        assert_eq!(
            spec_warnings(&spec, &Path::ROOT.child("spec")),
            [r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#]
        );
    }

    #[test]
    fn a_long_name_of_a_workload_is_named() {
        assert_eq!(name_warning("a"), None);
        assert!(name_warning(&"x".repeat(64)).unwrap().ends_with("[must be no more than 63 characters]"));
    }
}
