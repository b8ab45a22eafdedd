//! Taking away what a schema does not know, and nulls that it does not allow.

use crate::stack;
use crate::structural::{Additional, Node, Structural};
use object::{Map, Told, Value};

/// Drops unknown members of a whole object and, where `track` is true, gives their paths (`spec.a[0].b`). `apiVersion`,
/// `kind` and `metadata` stay.
pub fn prune(schema: &Structural, object: &mut Value, track: bool) -> Vec<String> {
    let mut pruner = Pruner { track: track.then(Vec::new), unknown: Told::default() };
    stack::with_room(schema.depth(), || {
        pruner.prune(object, Some(schema.root()), true);
        pruner.unknown.into_vec()
    })
}

/// Drops unknown members of a part of an object, which may be a resource itself; tells whether there were any.
pub(crate) fn prune_part(node: &Node, part: &mut Value, resource: bool) -> bool {
    let mut pruner = Pruner { track: Some(Vec::new()), unknown: Told::default() };
    pruner.prune(part, Some(node), resource);
    !pruner.unknown.is_empty()
}

enum Step {
    Key(String),
    Index(usize),
}

struct Pruner {
    track: Option<Vec<Step>>,
    unknown: Told,
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, node: Option<&Node>, resource: bool) {
        if let Some(node) = node.filter(|n| n.preserve_unknown()) {
            return self.skip(value, node, resource);
        }
        match value {
            Value::Object(members) => self.members(members, node, resource),
            Value::Array(items) => {
                let node = node.and_then(Node::items);
                for (i, item) in items.iter_mut().enumerate() {
                    self.at(Step::Index(i), |p| p.prune(item, node, false));
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &mut Map, node: Option<&Node>, resource: bool) {
        let resource = resource || node.is_some_and(Node::embedded);
        members.retain(|key, value| {
            if resource && is_meta(key) {
                return true;
            }
            let schema = match node {
                None => {
                    self.record(key);
                    return false;
                }
                Some(node) => match (node.property(key), node.additional()) {
                    (Some(property), _) => Some(property),
                    (None, Additional::Schema(schema)) => Some(schema),
                    (None, Additional::Any(_)) => None,
                    (None, Additional::Absent) => {
                        self.record(key);
                        return false;
                    }
                },
            };
            if matches!(value, Value::Array(_) | Value::Object(_)) {
                self.at_key(key, |p| p.prune(value, schema, false));
            }
            true
        });
    }

    /// Inside a node that preserves what it does not know, only declared parts are judged.
    fn skip(&mut self, value: &mut Value, node: &Node, resource: bool) {
        match value {
            Value::Object(members) => {
                let resource = resource || node.embedded();
                for (key, value) in members.iter_mut().filter(|(key, _)| !(resource && is_meta(key))) {
                    match (node.property(key), node.additional()) {
                        (Some(schema), _) | (None, Additional::Schema(schema)) => {
                            self.at_key(key, |p| p.prune(value, Some(schema), false));
                        }
                        (None, Additional::Any(_)) => self.at_key(key, |p| p.prune(value, None, false)),
                        (None, Additional::Absent) => {}
                    }
                }
            }
            Value::Array(items) => {
                let Some(node) = node.items() else { return };
                for (i, item) in items.iter_mut().enumerate() {
                    self.at(Step::Index(i), |p| p.skip(item, node, false));
                }
            }
            _ => {}
        }
    }

    fn at_key(&mut self, key: &str, work: impl FnOnce(&mut Self)) {
        if self.track.is_some() { self.at(Step::Key(key.to_owned()), work) } else { work(self) }
    }

    fn at(&mut self, step: Step, work: impl FnOnce(&mut Self)) {
        if let Some(path) = &mut self.track {
            path.push(step);
        }
        work(self);
        if let Some(path) = &mut self.track {
            path.pop();
        }
    }

    fn record(&mut self, key: &str) {
        let Some(path) = &self.track else { return };
        self.unknown.add_with(|| path_text(path, key));
    }
}

/// The path of a member.
fn path_text(path: &[Step], key: &str) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Step::Index(i) => text.push_str(&format!("[{i}]")),
        }
    }
    if !text.is_empty() {
        text.push('.');
    }
    text.push_str(key);
    text
}

fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// Drops members that are null although their schema has no default and does not allow null.
pub fn drop_nulls(schema: &Structural, object: &mut Value) {
    stack::with_room(schema.depth(), || drop_nulls_at(schema.root(), object));
}

fn drop_nulls_at(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|key, value| {
            let Some(schema) = node.property(key).or_else(|| node.additional_schema()) else { return true };
            if value.is_null() {
                return schema.nullable() || schema.default_value().is_some();
            }
            drop_nulls_at(schema, value);
            true
        }),
        Value::Array(items) => {
            let Some(node) = node.items() else { return };
            items.iter_mut().for_each(|item| drop_nulls_at(node, item));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(schema: &str, object: &str) -> (String, Vec<String>) {
        let schema = Structural::new(&object::json::parse(schema.as_bytes()).unwrap()).unwrap();
        let mut value = object::json::parse(object.as_bytes()).unwrap();
        let unknown = prune(&schema, &mut value, true);
        drop_nulls(&schema, &mut value);
        (object::json::to_string(&value), unknown)
    }

    #[test]
    fn long_paths_of_unknown_members_are_not_all_told() {
        let schema = r#"{"type":"object","additionalProperties":{"type":"object"}}"#;
        let members: Vec<String> = (0..100).map(|i| format!("\"k{i}\":1")).collect();
        let (left, unknown) = run(schema, &format!(r#"{{"{}":{{{}}}}}"#, "x".repeat(1 << 17), members.join(",")));
        assert!(left.ends_with(":{}}"));
        assert_eq!(unknown.len(), 8);
    }

    #[test]
    fn unknown_members_go_and_are_told() {
        let schema = r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}"#;
        let (left, unknown) = run(schema, r#"{"kind":"K","l":[{"a":"x","b":1}],"z":1}"#);
        assert_eq!(left, r#"{"kind":"K","l":[{"a":"x"}]}"#);
        assert_eq!(unknown, ["l[0].b", "z"]);
    }

    #[test]
    fn an_island_keeps_all_but_prunes_inside_what_it_declares() {
        let schema = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"o":{"type":"object","properties":{"a":{"type":"string"}}}}}"#;
        let (left, unknown) = run(schema, r#"{"o":{"a":"x","b":1},"z":{"y":null}}"#);
        assert_eq!(left, r#"{"o":{"a":"x"},"z":{"y":null}}"#);
        assert_eq!(unknown, ["o.b"]);
    }

    #[test]
    fn nulls_stay_only_where_they_are_allowed_or_have_a_default() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","nullable":true},"c":{"type":"string","default":"x"}}}"#;
        assert_eq!(run(schema, r#"{"a":null,"b":null,"c":null}"#).0, r#"{"b":null,"c":null}"#);
    }
}
