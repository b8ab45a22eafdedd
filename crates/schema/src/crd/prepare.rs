//! Defaults of a definition, and what the server sets before it stores one.

use crate::metadata::{self, Malformed};
use crate::stack;
use crate::structural::{Node, Structural};
use object::field::Path;
use object::{Map, Value, map};

/// Fills in what may be left out: singular and list kind, the conversion strategy, a webhook's port; API version and
/// kind.
pub fn default(definition: &mut Value) {
    definition.set_at(&["apiVersion"], Value::from("apiextensions.k8s.io/v1"));
    definition.set_at(&["kind"], Value::from("CustomResourceDefinition"));
    let spec = definition.object_entry("spec");
    let names = spec.object_entry("names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        names.get_or_insert("singular", || Value::from(kind.to_lowercase()));
        names.get_or_insert("listKind", || Value::from(format!("{kind}List")));
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion", map! { "strategy" => "None" });
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut)
        && conversion.get("webhook").is_some_and(says_nothing)
    {
        conversion.remove("webhook");
    }
    if let Some(service) = spec
        .get_mut("conversion")
        .and_then(|c| c.get_mut("webhook"))
        .and_then(|w| w.get_mut("clientConfig"))
        .and_then(|c| c.get_mut("service"))
        .and_then(Value::as_object_mut)
    {
        service.get_or_insert("port", || Value::Int(443));
    }
    default_stored_versions(definition);
}

/// A definition without stored versions has the storage version as the only one; so a write of the status that empties
/// them gets it back.
fn default_stored_versions(definition: &mut Value) {
    let held = definition.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or_default();
    if !held.is_empty() {
        return;
    }
    let stored: Option<String> = storage_versions(definition).next().map(str::to_owned);
    if let Some(version) = stored {
        definition.set_at(&["status", "storedVersions"], Value::Array(vec![Value::from(version)]));
    }
}

fn says_nothing(webhook: &Value) -> bool {
    let reviews = webhook.get("conversionReviewVersions").and_then(Value::as_array).unwrap_or_default();
    webhook.get("clientConfig").is_none() && reviews.is_empty()
}

/// What creation sets: an empty status with the storage version as the only stored one, generation 1. The finalizer
/// is the caller's to add once the definition exists.
pub fn prepare_create(definition: &mut Value) {
    let stored: Vec<Value> = storage_versions(definition).map(Value::from).take(1).collect();
    let stored = if stored.is_empty() { Value::Null } else { Value::Array(stored) };
    let names = map! { "plural" => "", "kind" => "" };
    definition.set_at(
        &["status"],
        Value::Object(map! { "conditions" => Value::Null, "acceptedNames" => names, "storedVersions" => stored }),
    );
    definition.set_at(&["metadata", "generation"], Value::Int(1));
    settle_defaults(definition);
    if let Some(Value::Object(metadata)) = definition.get_mut("metadata") {
        metadata.remove("namespace");
    }
}

/// What an update sets: the status of `old` with the storage version among the stored ones, and the generation, which
/// grows when the spec changes.
pub fn prepare_update(definition: &mut Value, old: &Value) {
    let mut status = old.get("status").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let storage: Vec<String> = storage_versions(definition).map(str::to_owned).take(1).collect();
    let mut versions = status.get("storedVersions").and_then(Value::as_array).unwrap_or_default().to_vec();
    for version in storage {
        if !versions.iter().any(|v| v.as_str() == Some(&version)) {
            versions.push(Value::from(version));
        }
    }
    status.set_at(&["storedVersions"], if versions.is_empty() { Value::Null } else { Value::Array(versions) });
    definition.set_at(&["status"], status);
    settle_defaults(definition);
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
    let changed = definition.get("spec") != old.get("spec");
    definition.set_at(&["metadata", "generation"], Value::Int(generation + i64::from(changed)));
}

/// What an update of the status subresource sets: the specification is that of `old`. Metadata stay as they are sent:
/// upstream means to reset them, but does so to themselves.
pub fn prepare_status_update(definition: &mut Value, old: &Value) {
    definition.set_at(&["spec"], old.get("spec").cloned().unwrap_or_default());
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
    definition.set_at(&["metadata", "generation"], Value::Int(generation));
}

/// The names of the versions that are marked as storage version.
fn storage_versions(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    versions
        .iter()
        .filter(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|v| v.get("name").and_then(Value::as_str))
}

/// Brings the metadata of embedded resources inside of defaults into shape, as upstream does on the way.
fn settle_defaults(definition: &mut Value) {
    let depth = stack::depth(definition);
    let Some(versions) = definition.get_mut("spec").and_then(|s| s.get_mut("versions")).and_then(Value::as_array_mut)
    else {
        return;
    };
    for version in versions {
        if let Some(schema) = version.get_mut("schema").and_then(|s| s.get_mut("openAPIV3Schema"))
            && mentions(schema, "x-kubernetes-embedded-resource")
            && mentions(schema, "default")
            && let Ok(structural) = Structural::new(schema)
        {
            stack::with_room(depth, || settle(schema, structural.root()));
        }
    }
}

/// Whether a member of the name `key` stands anywhere.
fn mentions(value: &Value, key: &str) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if members.contains_key(key) {
                    return true;
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

fn settle(schema: &mut Value, node: &Node) {
    for (name, inner) in node.properties() {
        if let Some(property) = schema.get_mut("properties").and_then(|p| p.get_mut(name)) {
            settle(property, inner);
        }
    }
    for (key, inner) in [("items", node.items()), ("additionalProperties", node.additional_schema())] {
        if let (Some(schema), Some(inner)) = (schema.get_mut(key), inner) {
            settle(schema, inner);
        }
    }
    if let Some(default @ (Value::Object(_) | Value::Array(_))) = schema.get_mut("default") {
        let mut coerced = default.clone();
        if metadata::coerce_part(node, &mut coerced, Malformed::Refuse, false, &Path::ROOT).is_ok() {
            *default = coerced;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_write_of_the_status_brings_metadata_along() {
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        let old =
            value(r#"{"metadata":{"name":"a","generation":3,"finalizers":["f"]},"spec":{"group":"old"},"status":{}}"#);
        let mut new = value(
            r#"{"metadata":{"name":"a","generation":9,"labels":{"l":"1"}},"spec":{"group":"new"},"status":{"a":1}}"#,
        );
        prepare_status_update(&mut new, &old);
        let wanted =
            r#"{"metadata":{"name":"a","generation":3,"labels":{"l":"1"}},"spec":{"group":"old"},"status":{"a":1}}"#;
        assert_eq!(new, value(wanted));
    }
}
