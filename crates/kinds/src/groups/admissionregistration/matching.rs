//! Rules and conditions that say which requests are meant, for webhooks and policies alike.

use super::expressions::Checker;
use crate::check::{self, Errors};
use crate::expressions::Purpose;
use crate::read::{Read, default_to, list_mut, object_mut};
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};
use std::collections::HashSet;

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

/// Resources may not be named twice, one by one and by a wildcard. Upstream remembers the wildcards it has seen, and of
/// plain names and `*` only whether the last one was a name.
fn resources(list: &[&str], path: &Path<'_>, out: &mut Errors) {
    if list.is_empty() {
        out.push(FieldError::required(path, ""));
    }
    let (mut every_subresource, mut of_every, mut plain) = (HashSet::new(), HashSet::new(), false);
    for (i, resource) in list.iter().enumerate() {
        let at = path.index(i);
        if resource.is_empty() {
            out.push(FieldError::required(&at, ""));
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            plain = *resource != "*";
            continue;
        };
        let mut covered = |by: String| {
            let why = format!("if '{by}' is present, must not specify {resource}");
            out.push(FieldError::invalid(&at, *resource, why));
        };
        if every_subresource.contains(name) {
            covered(format!("{name}/*"));
        }
        if of_every.contains(sub) {
            covered(format!("*/{sub}"));
        }
        if sub == "*" {
            every_subresource.insert(name);
        }
        if name == "*" {
            of_every.insert(sub);
        }
    }
    let mut invalid = |why: &str| out.push(FieldError::invalid(path, Shown::raw(go::string_list(list)), why));
    if list.len() > 1 && list.contains(&"*/*") {
        invalid("if '*/*' is present, must not specify other resources");
    }
    if plain && list.contains(&"*") {
        invalid("if '*' is present, must not specify other resources without subresources");
    }
}

/// The constraints of a policy or binding.
pub(super) fn match_resources(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if value.has("matchPolicy") {
        check::one_of(value, "matchPolicy", &["Equivalent", "Exact"], path, out);
    } else {
        out.push(FieldError::required(&path.child("matchPolicy"), ""));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if value.has(key) {
            check::label_selector(value.sub(key), &path.child(key), out);
        } else {
            out.push(FieldError::required(&path.child(key), ""));
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let list = path.child(key);
        for (i, named) in value.list(key).iter().enumerate() {
            let at = list.index(i);
            resource_names(&named.strings("resourceNames"), &at.child("resourceNames"), out);
            rule(named, &at, out);
        }
    }
}

fn resource_names(list: &[&str], path: &Path<'_>, out: &mut Errors) {
    let mut seen = HashSet::new();
    for (i, name) in list.iter().enumerate() {
        let at = path.index(i);
        check::name(names::path_segment, name, &at, out);
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&at, *name));
        }
    }
}

/// `matchConditions`.
pub(super) fn match_conditions(list: &[Value], path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    if list.len() > 64 {
        out.push(FieldError::too_many(path, list.len(), 64));
    }
    let mut seen = HashSet::new();
    for (i, condition) in list.iter().enumerate() {
        let at = path.index(i);
        let (expression, expression_path) = (condition.text("expression"), at.child("expression"));
        if expression.trim().is_empty() {
            out.push(FieldError::required(&expression_path, ""));
        } else {
            checker.check(Purpose::Condition, expression, &expression_path, out);
        }
        let (name, name_path) = (condition.text("name"), at.child("name"));
        if name.is_empty() {
            out.push(FieldError::required(&name_path, ""));
            continue;
        }
        check::label_name(name, &name_path, out);
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&name_path, name));
        }
    }
}
