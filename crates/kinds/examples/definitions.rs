//! Makes `src/definitions/definitions.txt`, the table behind [`kinds::definitions`].
//!
//! `cargo run -p kinds --example definitions -- _definitions.json` reads the `v1.33.0-local/_definitions.json` of the
//! Python package `kubernetes-validate` and `generate/facts.txt`, and prints the table. Of the definitions it takes the
//! structure (fields, types, list and map types, merge keys, kinds) and leaves the sentences.
//!
//! The package holds JSON Schema made from the published OpenAPI, which this undoes: optional fields have the type
//! `[T, "null"]`, and `apiVersion` and `kind` an `enum`. Groups and versions that are off by default are left out, but for
//! those that can be switched on.

use object::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What is in the table beside that: kinds that can be switched on.
const OPTIONAL: [&str; 2] = [
    "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyList",
    "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyBindingList",
];

/// Versions that a 1.33 server does not serve by default.
const OFF: [&str; 6] = ["v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v2beta1"];

type Facts = BTreeMap<String, BTreeMap<String, String>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: definitions FILE")?;
    let root = json::parse(&std::fs::read(path)?).map_err(|e| format!("{e:?}"))?;
    let facts = facts(&std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/generate/facts.txt"))?);
    let all = root.get("$defs").and_then(Value::as_object).ok_or("no $defs")?;
    let mut out = String::new();
    let reachable = reachable(all);
    for (name, schema) in all.iter().filter(|(name, _)| reachable.contains(*name)) {
        definition(&mut out, name, schema, facts.get(name).unwrap_or(&BTreeMap::new()));
    }
    print!("{out}");
    Ok(())
}

fn facts(text: &str) -> Facts {
    let mut facts = Facts::new();
    let mut name = String::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => name = line.to_owned(),
            Some(field) => {
                let (field, rest) = field.split_once(' ').unwrap_or((field, ""));
                facts.entry(name.clone()).or_default().insert(field.to_owned(), rest.to_owned());
            }
        }
    }
    facts
}

/// What is served by default or can be switched on, and what that refers to.
fn reachable(all: &object::Map) -> BTreeSet<String> {
    let served = |name: &&str| OPTIONAL.contains(name) || !name.split('.').any(|part| OFF.contains(&part));
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut todo: Vec<String> = all.keys().filter(served).map(str::to_owned).collect();
    while let Some(name) = todo.pop() {
        if let Some(schema) = all.get(&name)
            && found.insert(name)
        {
            references(schema, &mut todo);
        }
    }
    found
}

fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(m) => {
            if let Some(target) = m.get("$ref").and_then(Value::as_str) {
                out.push(target.trim_start_matches("#/$defs/").to_owned());
            }
            m.values().for_each(|v| references(v, out));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

fn definition(out: &mut String, name: &str, schema: &Value, facts: &BTreeMap<String, String>) {
    out.push_str(name);
    let fields = schema.get("properties").and_then(Value::as_object);
    if fields.is_none() {
        let _ = write!(out, " {}", type_of(schema, name));
    }
    if let Some(required) = schema.get("required") {
        let _ = write!(out, " required={}", strings(required).join(","));
    }
    extensions(out, schema);
    for gvk in schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).unwrap_or_default() {
        let part = |key| gvk.str_at(&[key]).unwrap_or_default();
        let _ = write!(out, " kind={}/{}/{}", part("group"), part("version"), part("kind"));
    }
    out.push('\n');
    for (field, schema) in fields.into_iter().flat_map(|f| f.iter()) {
        let _ = write!(out, " {field} {}", type_of(schema, ""));
        extensions(out, schema);
        if let Some(facts) = facts.get(field) {
            let _ = write!(out, " {facts}");
        }
        out.push('\n');
    }
}

fn type_of(schema: &Value, name: &str) -> String {
    match name.rsplit('.').next() {
        Some("Quantity") => return "quantity".to_owned(),
        Some("IntOrString") => return "int-or-string".to_owned(),
        _ => {}
    }
    if let Some(target) = schema.str_at(&["$ref"]) {
        return format!("@{}", target.trim_start_matches("#/$defs/"));
    }
    let kind = match schema.get("type") {
        Some(Value::String(s)) => s.as_str(),
        Some(Value::Array(a)) => a.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("any"),
        _ => "any",
    };
    match (kind, schema.str_at(&["format"])) {
        ("array", _) => format!("[{}]", type_of(schema.get("items").unwrap_or(&Value::Null), "")),
        ("object", _) => match schema.get("additionalProperties") {
            Some(values) => format!("{{{}}}", type_of(values, "")),
            None => "object".to_owned(),
        },
        ("string", Some("byte")) => "bytes".to_owned(),
        ("string", Some(format)) => format.to_owned(),
        ("integer", Some(format)) => format.to_owned(),
        ("number", _) => "double".to_owned(),
        ("boolean", _) => "bool".to_owned(),
        (kind, _) => kind.to_owned(),
    }
}

fn extensions(out: &mut String, schema: &Value) {
    for (key, short) in
        [("list-type", "list"), ("map-type", "map"), ("patch-merge-key", "merge"), ("patch-strategy", "strategy")]
    {
        if let Some(value) = schema.str_at(&[&format!("x-kubernetes-{key}")]) {
            let _ = write!(out, " {short}={value}");
        }
    }
    if let Some(keys) = schema.get("x-kubernetes-list-map-keys") {
        let _ = write!(out, " keys={}", strings(keys).join(","));
    }
    for union in schema.get("x-kubernetes-unions").and_then(Value::as_array).unwrap_or_default() {
        let _ = write!(out, " union={}", json::to_string(union));
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap_or_default().iter().filter_map(Value::as_str).collect()
}
