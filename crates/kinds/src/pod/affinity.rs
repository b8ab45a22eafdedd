//! Where pods may run: affinity, tolerations, spread.

use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};
use std::collections::{HashMap, HashSet};

/// `spec.affinity`.
pub(super) fn affinity(affinity: &Value, path: &Path<'_>, out: &mut Errors) {
    let node = affinity.sub("nodeAffinity");
    let at = path.child("nodeAffinity");
    if node.has("requiredDuringSchedulingIgnoredDuringExecution") {
        let key = "requiredDuringSchedulingIgnoredDuringExecution";
        node_selector(node.sub(key), &at.child(key), out);
    }
    let key = "preferredDuringSchedulingIgnoredDuringExecution";
    let preferred = at.child(key);
    for (i, term) in node.list(key).iter().enumerate() {
        let here = preferred.index(i);
        weight(term, &here, out);
        node_selector_term(term.sub("preference"), false, &here.child("preference"), out);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (value, at) = (affinity.sub(kind), path.child(kind));
        let required = at.child("requiredDuringSchedulingIgnoredDuringExecution");
        for (i, term) in value.list("requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            pod_affinity_term(term, &required.index(i), out);
        }
        let preferred = at.child(key);
        for (i, term) in value.list(key).iter().enumerate() {
            let here = preferred.index(i);
            weight(term, &here, out);
            pod_affinity_term(term.sub("podAffinityTerm"), &here.child("podAffinityTerm"), out);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, out: &mut Errors) {
    let weight = term.int("weight");
    if !(1..=100).contains(&weight) {
        out.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

fn pod_affinity_term(term: &Value, path: &Path<'_>, out: &mut Errors) {
    if term.has("labelSelector") {
        check::label_selector(term.sub("labelSelector"), &path.child("labelSelector"), out);
    }
    if term.has("namespaceSelector") {
        check::label_selector(term.sub("namespaceSelector"), &path.child("namespaceSelector"), out);
    }
    for namespace in term.strings("namespaces") {
        check::name(names::dns1123_label, namespace, &path.child("namespace"), out);
    }
    match_label_keys(term, path, out);
    let key = term.text("topologyKey");
    if key.is_empty() {
        out.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
    }
    check::label_name(key, &path.child("topologyKey"), out);
}

/// The labels of the pod itself that a term about other pods asks for, or against.
fn match_label_keys(term: &Value, path: &Path<'_>, out: &mut Errors) {
    let selector = term.sub("labelSelector");
    let (same, other) = (term.strings("matchLabelKeys"), term.strings("mismatchLabelKeys"));
    for (key, keys) in [("matchLabelKeys", &same), ("mismatchLabelKeys", &other)] {
        let at = path.child(key);
        if !keys.is_empty() && !term.has("labelSelector") {
            out.push(FieldError::forbidden(&at, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (i, key) in keys.iter().enumerate() {
            check::label_name(key, &at.index(i), out);
        }
    }
    // The selector holds an expression for each of these keys by now: a second mention is the client's own.
    let mut mentioned: HashSet<&str> = selector.members("matchLabels").keys().collect();
    let places: HashMap<&str, usize> = same.iter().enumerate().map(|(i, key)| (*key, i)).collect();
    for key in selector.list("matchExpressions").iter().map(|e| e.text("key")) {
        let is_new = mentioned.insert(key);
        if let Some(i) = places.get(key).filter(|_| !is_new) {
            out.push(FieldError::invalid(&path.index(*i), key, "exists in both matchLabelKeys and labelSelector"));
        }
    }
    let at = path.child("matchLabelKeys");
    let other: HashSet<&str> = other.into_iter().collect();
    for (i, key) in same.iter().enumerate().filter(|(_, k)| other.contains(*k)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        out.push(FieldError::invalid(&at.index(i), *key, why));
    }
}

/// A selector of nodes.
pub(crate) fn node_selector(selector: &Value, path: &Path<'_>, out: &mut Errors) {
    let terms = path.child("nodeSelectorTerms");
    if selector.list("nodeSelectorTerms").is_empty() {
        out.push(FieldError::required(&terms, "must have at least one node selector term"));
    }
    for (i, term) in selector.list("nodeSelectorTerms").iter().enumerate() {
        node_selector_term(term, true, &terms.index(i), out);
    }
}

/// Values of what is preferred only may be no labels: such a term finds nothing, and hurts nobody.
fn node_selector_term(term: &Value, required: bool, path: &Path<'_>, out: &mut Errors) {
    let expressions = path.child("matchExpressions");
    for (i, requirement) in term.list("matchExpressions").iter().enumerate() {
        let at = expressions.index(i);
        let values = requirement.list("values");
        match requirement.text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                out.push(FieldError::required(&at.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.push(FieldError::forbidden(&at.child("values"), why));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                out.push(FieldError::required(&at.child("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => out.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator")),
        }
        check::label_name(requirement.text("key"), &at.child("key"), out);
        let values = at.child("values");
        for (j, value) in requirement.strings("values").into_iter().enumerate().filter(|_| required) {
            check::name(names::label_value, value, &values.index(j), out);
        }
    }
    let fields = path.child("matchFields");
    for (i, requirement) in term.list("matchFields").iter().enumerate() {
        let at = fields.index(i);
        match requirement.text("operator") {
            "In" | "NotIn" => {
                if requirement.list("values").len() != 1 {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    out.push(FieldError::required(&at.child("values"), why));
                }
            }
            other => out.push(FieldError::invalid(&at.child("operator"), other, "not a valid selector operator")),
        }
        let key = requirement.text("key");
        if key != "metadata.name" {
            out.push(FieldError::invalid(&at.child("key"), key, "not a valid field selector key"));
            continue;
        }
        let values = at.child("values");
        for (j, value) in requirement.strings("values").into_iter().enumerate() {
            check::name(names::dns1123_subdomain, value, &values.index(j), out);
        }
    }
}

/// `spec.tolerations`.
pub(crate) fn tolerations(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    for (i, toleration) in list.iter().enumerate() {
        let at = path.index(i);
        let (key, value) = (toleration.text("key"), toleration.text("value"));
        if !key.is_empty() {
            check::label_name(key, &at.child("key"), out);
        }
        if key.is_empty() && toleration.text("operator") != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            out.push(FieldError::invalid(&at.child("operator"), toleration.text("operator"), why));
        }
        if toleration.has("tolerationSeconds") && toleration.text("effect") != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            out.push(FieldError::invalid(&at.child("effect"), toleration.text("effect"), why));
        }
        match toleration.text("operator") {
            "Equal" | "" => {
                let why = names::label_value(value);
                if !why.is_empty() {
                    out.push(FieldError::invalid(&at.child("operator"), value, why.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                out.push(FieldError::invalid(&at.child("operator"), value, why));
            }
            "Exists" => {}
            other => out.push(FieldError::not_supported(&at.child("operator"), other, &["Equal", "Exists"])),
        }
        if !toleration.text("effect").is_empty() {
            check::one_of(toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &at, out);
        }
    }
}

/// `spec.topologySpreadConstraints`.
pub(super) fn spread(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    const POSITIVE: &str = "must be greater than zero";
    let pair = |c: &Value| (c.text("topologyKey").to_owned(), c.text("whenUnsatisfiable").to_owned());
    // Where the last one of each pair stands: those before it are told.
    let last: HashMap<(String, String), usize> = list.iter().enumerate().map(|(i, c)| (pair(c), i)).collect();
    for (i, constraint) in list.iter().enumerate() {
        let at = path.index(i);
        let skew = constraint.int("maxSkew");
        if skew <= 0 {
            out.push(FieldError::invalid(&at.child("maxSkew"), skew, POSITIVE));
        }
        let key = constraint.text("topologyKey");
        if key.is_empty() {
            out.push(FieldError::required(&at.child("topologyKey"), "can not be empty"));
        }
        check::one_of(constraint, "whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"], &at, out);
        if last.get(&pair(constraint)).is_some_and(|last| i < *last) {
            let shown = format!("{{{key}, {}}}", constraint.text("whenUnsatisfiable"));
            out.push(FieldError::duplicate(&at.child("{topologyKey, whenUnsatisfiable}"), shown.as_str()));
        }
        if let Some(domains) = constraint.opt_int("minDomains") {
            let here = at.child("minDomains");
            if domains <= 0 {
                out.push(FieldError::invalid(&here, domains, POSITIVE));
            }
            if constraint.text("whenUnsatisfiable") != "DoNotSchedule" {
                let action = constraint.text("whenUnsatisfiable");
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                out.push(FieldError::invalid(&here, domains, why));
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.has(key) {
                check::one_of(constraint, key, &["Honor", "Ignore"], &at, out);
            }
        }
        spread_keys(constraint, &at.child("matchLabelKeys"), out);
        if constraint.has("labelSelector") {
            check::label_selector(constraint.sub("labelSelector"), &at.child("labelSelector"), out);
        }
    }
}

fn spread_keys(constraint: &Value, path: &Path<'_>, out: &mut Errors) {
    let keys = constraint.strings("matchLabelKeys");
    let selector = constraint.sub("labelSelector");
    let expressions: HashSet<&str> = selector.list("matchExpressions").iter().map(|e| e.text("key")).collect();
    if !keys.is_empty() && !constraint.has("labelSelector") {
        out.push(FieldError::forbidden(path, "must not be specified when labelSelector is not set"));
    }
    for (i, key) in keys.into_iter().enumerate() {
        check::label_name(key, &path.index(i), out);
        if selector.members("matchLabels").contains_key(key) || expressions.contains(key) {
            let why = "exists in both matchLabelKeys and labelSelector";
            out.push(FieldError::invalid(&path.index(i), key, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_that_a_later_one_repeats_are_told_however_many_there_are() {
        let one = |key: String, action: &str| {
            let mut constraint = Value::Object(object::Map::new());
            constraint.set_at(&["maxSkew"], Value::Int(1));
            constraint.set_at(&["topologyKey"], Value::from(key));
            constraint.set_at(&["whenUnsatisfiable"], Value::from(action));
            constraint
        };
        let mut list: Vec<Value> = (0..50_000).map(|i| one(format!("k{i}"), "DoNotSchedule")).collect();
        list.extend([one("k0".to_owned(), "DoNotSchedule"), one("k1".to_owned(), "ScheduleAnyway")]);
        list.push(one("k0".to_owned(), "DoNotSchedule"));
        let mut errors = Vec::new();
        spread(&list, &Path::ROOT, &mut errors);
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [0, 50_000].map(|i| {
                format!(r#"[{i}].{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{k0, DoNotSchedule}}""#)
            })
        );
    }

    #[test]
    fn keys_that_a_selector_names_too_are_told_however_many_there_are() {
        let quoted = |prefix: &str, around: fn(&str) -> String| {
            (0..30_000).map(|i| around(&format!("\"{prefix}{i}\""))).collect::<Vec<_>>().join(",")
        };
        let expressions = quoted("k", |key| format!(r#"{{"key":{key},"operator":"Exists"}}"#));
        let (same, other) = (quoted("s", str::to_owned), quoted("o", str::to_owned));
        let text = format!(
            r#"{{"labelSelector":{{"matchLabels":{{"s1":""}},"matchExpressions":[{expressions},{{"key":"s1"}},{{"key":"k5"}}]}},
                "matchLabelKeys":[{same},"o2"],"mismatchLabelKeys":[{other}]}}"#
        );
        let term = object::json::parse(text.as_bytes()).unwrap();
        let told = |check: fn(&Value, &Path<'_>, &mut Errors)| {
            let mut errors = Vec::new();
            check(&term, &Path::ROOT, &mut errors);
            errors.iter().map(|e| e.field.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told(match_label_keys), ["[1]", "matchLabelKeys[30000]"]);
        assert_eq!(told(spread_keys), ["[1]"]);
    }
}
