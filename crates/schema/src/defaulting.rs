//! Filling in defaults.

use crate::stack;
use crate::structural::{Node, Structural};
use object::Value;

/// Sets what is missing (or null where null is not allowed) to its default, from the top down, so that a default is
/// completed by the defaults inside it.
pub fn default(schema: &Structural, object: &mut Value) {
    stack::with_room(schema.depth(), || default_at(schema.root(), object));
}

pub(crate) fn default_at(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in node.properties() {
                let Some(default) = property.default_value() else { continue };
                if members.get(name).is_none_or(|v| is_forbidden_null(v, property)) {
                    members.insert(name, default.clone());
                }
            }
            for (key, value) in members.iter_mut() {
                if let Some(property) = node.property(key) {
                    default_at(property, value);
                } else if let Some(schema) = node.additional_schema() {
                    element(schema, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = node.items() else { return };
            items.iter_mut().for_each(|item| element(node, item));
        }
        _ => {}
    }
}

fn element(node: &Node, value: &mut Value) {
    if is_forbidden_null(value, node) {
        *value = node.default_value().cloned().unwrap_or_default();
    }
    default_at(node, value);
}

fn is_forbidden_null(value: &Value, node: &Node) -> bool {
    value.is_null() && !node.nullable()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_completed_by_the_defaults_inside_it() {
        let schema = r#"{"type":"object","properties":{
            "o":{"type":"object","default":{},"properties":{"a":{"type":"string","default":"x"}}},
            "l":{"type":"array","items":{"type":"integer","default":7}},
            "n":{"type":"string","nullable":true,"default":"y"}}}"#;
        let schema = Structural::new(&object::json::parse(schema.as_bytes()).unwrap()).unwrap();
        let mut value = object::json::parse(br#"{"l":[1,null],"n":null}"#).unwrap();
        default(&schema, &mut value);
        assert_eq!(object::json::to_string(&value), r#"{"l":[1,7],"n":null,"o":{"a":"x"}}"#);
    }
}
