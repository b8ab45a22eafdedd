//! Checks of embedded resources: they must say what they are, and their metadata must be valid.

use crate::structural::Node;
use crate::typed;
use object::field::{FieldError, Path};
use object::{Map, Value, metadata, names};

/// Checks every embedded resource in `value`. With `resource` the value itself is one.
pub(crate) fn validate(node: &Node, value: &Value, resource: bool, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(node, value, resource, path, &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, resource: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            if resource || node.embedded() {
                validate_resource(members, path, errors);
            }
            for (key, value) in members.iter().filter(|(_, v)| matches!(v, Value::Array(_) | Value::Object(_))) {
                if let Some(property) = node.property(key) {
                    walk(property, value, false, &path.child(key), errors);
                } else if let Some(schema) = node.additional_schema() {
                    walk(schema, value, false, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = node.items() else { return };
            for (i, item) in items.iter().enumerate() {
                walk(node, item, false, &path.index(i), errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(members: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let path = path.child(key);
        match members.get(key) {
            None => errors.push(FieldError::required(&path, "must not be empty")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&path, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(&path, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                let complaints = names::dns1035_label(&text.to_lowercase());
                if !complaints.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
                    errors.push(FieldError::invalid(&path, text.as_str(), detail));
                }
            }
            Some(other) => errors.push(FieldError::invalid(&path, other, "must be a string")),
        }
    }
    let Some(value) = members.get("metadata") else { return };
    let path = path.child("metadata");
    match typed::decode(value, &typed::OBJECT_META) {
        Err(error) => errors.push(FieldError::invalid(&path, value, error)),
        Ok(decoded) => {
            let mut meta = match decoded.value {
                Value::Object(meta) => meta,
                _ => Map::new(),
            };
            // An embedded resource needs no name.
            if meta.get("name").is_none() {
                meta.insert("name", "fakename");
            }
            let namespaced = meta.get("namespace").is_some();
            errors.extend(metadata::validate(&meta, namespaced, names::path_segment, &path));
        }
    }
}
