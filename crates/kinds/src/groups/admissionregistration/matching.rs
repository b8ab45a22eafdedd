//! Rules and conditions that say which requests are meant, for webhooks and policies alike.

use crate::check::{self, Errors};
use crate::read::{Read, default_to, list_mut, object_mut};
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go};

/// Defaults of `rules` and `resourceRules`.
pub(super) fn default_rules(object: &mut Value, key: &str) {
    for rule in list_mut(object, key) {
        default_to(rule, "scope", "*");
    }
}

/// Defaults of the constraints of a policy or binding.
pub(super) fn default_match_resources(parent: &mut Value, key: &str) {
    let Some(constraints) = object_mut(parent, &[key]) else { return };
    default_to(constraints, "matchPolicy", "Equivalent");
    default_to(constraints, "namespaceSelector", Map::new());
    default_to(constraints, "objectSelector", Map::new());
    default_rules(constraints, "resourceRules");
    default_rules(constraints, "excludeResourceRules");
}

/// One rule.
pub(super) fn rule(rule: &Value, path: &Path<'_>, out: &mut Errors) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let operations = rule.strings("operations");
    let at = path.child("operations");
    if operations.is_empty() {
        out.push(FieldError::required(&at, ""));
    }
    if operations.len() > 1 && operations.contains(&"*") {
        let shown = check::go_list("admissionregistration.OperationType", &operations);
        out.push(FieldError::invalid(&at, shown, "if '*' is present, must not specify other operations"));
    }
    for (i, operation) in operations.iter().enumerate().filter(|(_, o)| !OPERATIONS.contains(o)) {
        out.push(FieldError::not_supported(&at.index(i), *operation, &OPERATIONS));
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.strings(key);
        let at = path.child(key);
        if list.is_empty() {
            out.push(FieldError::required(&at, ""));
        }
        if list.len() > 1 && list.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {what}");
            out.push(FieldError::invalid(&at, Shown::raw(go::string_list(&list)), why));
        }
        for (i, _) in list.iter().enumerate().filter(|(_, v)| v.is_empty() && key == "apiVersions") {
            out.push(FieldError::required(&at.index(i), ""));
        }
    }
    resources(&rule.strings("resources"), &path.child("resources"), out);
    if rule.has("scope") {
        check::one_of(rule, "scope", &["*", "Cluster", "Namespaced"], path, out);
    }
}

/// Resources may not be named twice, one by one and by a wildcard.
fn resources(list: &[&str], path: &Path<'_>, out: &mut Errors) {
    if list.is_empty() {
        out.push(FieldError::required(path, ""));
    }
    if list.contains(&"*/*") && list.len() > 1 {
        let why = "if '*/*' is present, must not specify other resources";
        out.push(FieldError::invalid(path, Shown::raw(go::string_list(list)), why));
    }
    let every_subresource: Vec<&str> = list.iter().filter_map(|r| r.strip_suffix("/*")).collect();
    let of_every: Vec<&str> = list.iter().filter_map(|r| r.strip_prefix("*/")).collect();
    for (i, resource) in list.iter().enumerate() {
        let at = path.index(i);
        if resource.is_empty() {
            out.push(FieldError::required(&at, ""));
            continue;
        }
        if let Some((plain, sub)) = resource.split_once('/') {
            if sub != "*" && every_subresource.contains(&plain) && plain != "*" {
                let why = format!("if '{plain}/*' is present, must not specify {resource}");
                out.push(FieldError::invalid(&at, *resource, why));
            }
            if plain != "*" && of_every.contains(&sub) && sub != "*" {
                let why = format!("if '*/{sub}' is present, must not specify {resource}");
                out.push(FieldError::invalid(&at, *resource, why));
            }
        }
    }
    if list.len() > 1 && list.contains(&"*") && list.iter().any(|r| !r.contains('/') && *r != "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        out.push(FieldError::invalid(path, Shown::raw(go::string_list(list)), why));
    }
}

/// `matchConditions`, apart from their expressions' meaning.
pub(super) fn match_conditions(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    if list.len() > 64 {
        out.push(FieldError::too_many(path, list.len(), 64));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, condition) in list.iter().enumerate() {
        let at = path.index(i);
        if condition.text("expression").trim().is_empty() {
            out.push(FieldError::required(&at.child("expression"), ""));
        }
        let name = condition.text("name");
        let name_path = at.child("name");
        if name.is_empty() {
            out.push(FieldError::required(&name_path, ""));
            continue;
        }
        check::label_name(name, &name_path, out);
        if seen.contains(&name) {
            out.push(FieldError::duplicate(&name_path, name));
        }
        seen.push(name);
    }
}
