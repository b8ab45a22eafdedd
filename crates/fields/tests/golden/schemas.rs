//! As much of pruning and defaulting as the recorded cases need.

use object::{Map, Value};

pub fn prune(value: &mut Value, schema: &Value, root: bool) {
    let preserves = |s: &Value| s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    match value {
        Value::Object(members) => {
            let embedded = root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
            let properties = schema.get("properties").and_then(Value::as_object);
            let additional = schema.get("additionalProperties").filter(|a| !a.is_null() && **a != Value::Bool(false));
            let keep_all = preserves(schema) || additional.is_some();
            members.retain(|key, value| {
                if embedded && matches!(key, "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                match properties.and_then(|p| p.get(key)).or(additional) {
                    Some(schema) => {
                        prune(value, schema, false);
                        true
                    }
                    None => keep_all,
                }
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| prune(item, schema, false));
            }
        }
        _ => {}
    }
}

pub fn default(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            for (key, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
                if let Some(default) = schema.get("default") {
                    let nullable = schema.get("nullable") == Some(&Value::Bool(true));
                    if members.get(key).is_none_or(|v| v.is_null() && !nullable) {
                        members.insert(key, default.clone());
                    }
                }
                if members.get(key).is_some_and(Value::is_null) && schema.get("nullable") != Some(&Value::Bool(true)) {
                    members.remove(key);
                }
                if let Some(value) = members.get_mut(key) {
                    self::default(value, schema);
                }
            }
            if let Some(schema @ Value::Object(_)) = schema.get("additionalProperties") {
                let declared = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
                for (_, value) in members.iter_mut().filter(|(k, _)| !declared.contains_key(k)) {
                    default(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| default(item, schema));
            }
        }
        _ => {}
    }
}
