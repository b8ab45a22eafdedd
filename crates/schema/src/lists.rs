//! `x-kubernetes-list-type`: items of sets and maps must be unique.

use crate::found::Found;
use crate::structural::{ListType, Node};
use compact_str::CompactString;
use object::field::{FieldError, Path};
use object::{Map, Value, json};
use std::collections::HashMap;

/// Finds repeated items in every set and map list in `value`: each once, at its second place.
pub(crate) fn validate(node: &Node, value: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut found = Found::default();
    walk(node, value, path, &mut found);
    found.into_errors()
}

fn walk(node: &Node, value: &Value, path: &Path<'_>, found: &mut Found) {
    match value {
        Value::Array(items) => {
            match node.list_type() {
                Some(ListType::Set) => set(items, path, found),
                Some(ListType::Map) => map(items, node.list_map_keys(), path, found),
                _ => {}
            }
            let Some(node) = node.items() else { return };
            for (i, item) in items.iter().enumerate() {
                walk(node, item, &path.index(i), found);
            }
        }
        Value::Object(members) => {
            for (key, value) in members.iter().filter(|(_, v)| matches!(v, Value::Array(_) | Value::Object(_))) {
                if let Some(property) = node.property(key) {
                    walk(property, value, &path.child(key), found);
                } else if let Some(schema) = node.additional_schema() {
                    walk(schema, value, &path.key(key), found);
                }
            }
        }
        _ => {}
    }
}

fn set(items: &[Value], path: &Path<'_>, found: &mut Found) {
    for i in second_places(items.iter().map(identity)) {
        if let Some(item) = items.get(i) {
            found.add_with(|| FieldError::duplicate(&path.index(i), item));
        }
    }
}

fn map(items: &[Value], keys: &[CompactString], path: &Path<'_>, found: &mut Found) {
    // Of what is no object only the first is told, and nothing else about the list.
    let stranger = items.iter().enumerate().find(|(_, item)| !matches!(item, Value::Object(_) | Value::Null));
    if let Some((i, item)) = stranger {
        let why = "must be an object for an array of list-type map";
        found.add_with(|| FieldError::invalid(&path.index(i), item, why));
        return;
    }
    // Null is an item without keys.
    let key_of = |item: &Value| {
        let set = keys.iter().filter_map(|k| Some((k.as_str(), item.get(k)?.clone())));
        Value::Object(set.collect::<Map>())
    };
    let told_apart_by = |item: &Value| match keys {
        [only] => item.get(only).map_or_else(|| "none".to_owned(), identity),
        _ => json::to_string(&key_of(item)),
    };
    for i in second_places(items.iter().map(told_apart_by)) {
        if let Some(key) = items.get(i).map(key_of) {
            found.add_with(|| FieldError::duplicate(&path.index(i), &key));
        }
    }
}

/// A text that is the same for equal items of a set only. The scalars 1 and 1.0 differ, as keys and inside of other
/// items they do not.
fn identity(value: &Value) -> String {
    match value {
        Value::Float(f) => format!("float {f}"),
        other => json::to_string(other),
    }
}

/// The index of the second occurrence of each text that occurs more than once.
fn second_places(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut out = Vec::new();
    for (i, text) in texts.enumerate() {
        let count = seen.entry(text).or_insert(0);
        *count += 1;
        if *count == 2 {
            out.push(i);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Structural;

    #[test]
    fn repetitions_are_told_once_each() {
        let schema = r#"{"type":"object","properties":{
            "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
            "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}}"#;
        let schema = Structural::new(&json::parse(schema.as_bytes()).unwrap()).unwrap();
        let value =
            json::parse(br#"{"s":["a","b","a","a"],"m":[{"k":1,"v":2},{"k":1},{},{"v":1},null,{"k":1.0}]}"#).unwrap();
        let errors: Vec<String> =
            validate(schema.root(), &value, &Path::ROOT).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "m[1]: Duplicate value: map[string]interface {}{\"k\":1}",
                "m[3]: Duplicate value: map[string]interface {}{}",
                "s[2]: Duplicate value: \"a\"",
            ]
        );
        let value = json::parse(br#"{"m":[{"k":1},{"k":1},5,6]}"#).unwrap();
        let errors: Vec<String> =
            validate(schema.root(), &value, &Path::ROOT).iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["m[2]: Invalid value: 5: must be an object for an array of list-type map"]);
    }
}
