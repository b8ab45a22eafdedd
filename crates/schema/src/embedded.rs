//! Checks of embedded resources: they must say what they are, and their metadata must be valid.

use crate::found::Found;
use crate::structural::Node;
use crate::typed;
use object::field::{FieldError, Path};
use object::{Map, Value, metadata, names};

/// Checks every embedded resource in `value`. With `resource` the value itself is one.
pub(crate) fn validate(node: &Node, value: &Value, resource: bool, path: &Path<'_>) -> Vec<FieldError> {
    let mut found = Found::default();
    walk(node, value, resource, path, &mut found);
    found.into_errors()
}

fn walk(node: &Node, value: &Value, resource: bool, path: &Path<'_>, found: &mut Found) {
    match value {
        Value::Object(members) => {
            if resource || node.embedded() {
                validate_resource(members, path, found);
            }
            for (key, value) in members.iter().filter(|(_, v)| matches!(v, Value::Array(_) | Value::Object(_))) {
                if let Some(property) = node.property(key) {
                    walk(property, value, false, &path.child(key), found);
                } else if let Some(schema) = node.additional_schema() {
                    walk(schema, value, false, &path.key(key), found);
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = node.items() else { return };
            for (i, item) in items.iter().enumerate() {
                walk(node, item, false, &path.index(i), found);
            }
        }
        _ => {}
    }
}

fn validate_resource(members: &Map, path: &Path<'_>, found: &mut Found) {
    for key in ["apiVersion", "kind"] {
        let path = path.child(key);
        match members.get(key) {
            None => found.add_with(|| FieldError::required(&path, "must not be empty")),
            Some(Value::String(text)) if text.is_empty() => {
                found.add_with(|| FieldError::invalid(&path, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    found.add_with(|| FieldError::invalid(&path, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                let complaints = names::dns1035_label(&text.to_lowercase());
                if !complaints.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
                    found.add_with(|| FieldError::invalid(&path, text.as_str(), detail));
                }
            }
            Some(other) => found.add_with(|| FieldError::invalid(&path, other, "must be a string")),
        }
    }
    let Some(value) = members.get("metadata") else { return };
    let inside = path.child("metadata");
    match typed::decode(value, &typed::OBJECT_META) {
        Err(error) => found.add_with(|| FieldError::invalid(&inside, value, error)),
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
            // There may be very many of them: the place of the resource is put before each that is told.
            for error in metadata::validate(&meta, namespaced, names::path_segment, &Path::ROOT.child("metadata")) {
                found.add_with(|| match path.is_root() {
                    true => error,
                    false => FieldError { field: format!("{path}.{}", error.field), ..error },
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Structural;
    use object::json;

    fn errors(value: &str) -> Vec<String> {
        let schema = r#"{"type":"object","additionalProperties":{"type":"array","items":{
            "type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#;
        let schema = Structural::new(&json::parse(schema.as_bytes()).unwrap()).unwrap();
        let value = json::parse(value.as_bytes()).unwrap();
        validate(schema.root(), &value, false, &Path::ROOT).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn resources_say_what_they_are_and_have_valid_metadata() {
        assert_eq!(
            errors(r#"{"l":[{"kind":"A","metadata":{"generation":-1}}]}"#),
            [
                "[l][0].apiVersion: Required value: must not be empty",
                "[l][0].metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn long_paths_of_errors_are_not_all_told() {
        let labels: Vec<String> = (0..100).map(|i| format!("\"k{i}\":\"!\"")).collect();
        let one = format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"labels":{{{}}}}}}}"#, labels.join(","));
        let (long, many) = ("x".repeat(1 << 19), vec!["{}"; 100].join(","));
        for items in [&one, &many] {
            assert_eq!(errors(&format!(r#"{{"{long}":[{items}]}}"#)).len(), 8);
        }
    }
}
