//! Taking fields out of a value.

use super::items::Items;
use super::{Shape, Shapes};
use crate::path::PathElement;
use crate::schema::{ListKind, ListType, MapType, TypeId, TypeSchema};
use crate::set::FieldSet;
use compact_str::CompactString;
use object::{Map, Value};

/// The value without the members of `set` and what is below them. A container from which something below is taken and
/// in which nothing is left becomes null.
pub fn remove_items(schema: &TypeSchema, value: &Value, set: &FieldSet) -> Value {
    if set.is_empty() {
        return value.clone();
    }
    remove(schema, schema.root(), value, set)
}

fn remove(schema: &TypeSchema, ty: TypeId, value: &Value, set: &FieldSet) -> Value {
    let atom = schema.atom(ty);
    match (Shapes::of(atom, Some(value)).first(), value) {
        (Shape::Scalar, _) => value.clone(),
        (Shape::Map, Value::Object(members)) => match &atom.map {
            Some(map) if !map.atomic => remove_members(schema, map, members, set),
            _ => Value::Null,
        },
        (Shape::List, Value::Array(all)) => match &atom.list {
            Some(list) if list.kind != ListKind::Atomic => {
                let items = Items::new(schema, list);
                let left = all.iter().filter_map(|item| {
                    let element = items.key(item).map(|key| items.element(&key));
                    match element.and_then(|e| set.get(&e)) {
                        None => Some(item.clone()),
                        Some(node) if node.member => None,
                        Some(node) => Some(remove(schema, list.element, item, &node.children)),
                    }
                });
                let left: Vec<Value> = left.collect();
                if left.is_empty() { Value::Null } else { Value::Array(left) }
            }
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

fn remove_members(schema: &TypeSchema, map: &MapType, members: &Map, set: &FieldSet) -> Value {
    let mut left: Vec<(CompactString, Value)> = Vec::with_capacity(members.len());
    for (key, value) in members.iter() {
        let kept = match set.get(&PathElement::field(key)) {
            None => value.clone(),
            Some(node) if node.member => continue,
            Some(node) => match map.type_of(key) {
                Some(ty) => remove(schema, ty, value, &node.children),
                None => value.clone(),
            },
        };
        left.push((key.into(), kept));
    }
    if left.is_empty() { Value::Null } else { Value::Object(left.into()) }
}

/// Only the members of `set` and what leads to them; list items keep their keys. What a member holds below it that is
/// not in the set is left out, except within scalars and atomic containers. Null where nothing is left.
pub fn extract_items(schema: &TypeSchema, value: &Value, set: &FieldSet) -> Value {
    extract(schema, schema.root(), value, set).unwrap_or_default()
}

fn extract(schema: &TypeSchema, ty: TypeId, value: &Value, set: &FieldSet) -> Option<Value> {
    let atom = schema.atom(ty);
    match (Shapes::of(atom, Some(value)).first(), value) {
        (Shape::Map, Value::Object(members)) => match &atom.map {
            Some(map) if !map.atomic => {
                let kept = members.iter().filter_map(|(key, value)| {
                    let node = set.get(&PathElement::field(key))?;
                    let below = extract(schema, map.type_of(key)?, value, &node.children);
                    Some((key, below.or_else(|| node.member.then(|| empty_of(value)))?))
                });
                let kept: Map = kept.collect();
                (!kept.is_empty()).then_some(Value::Object(kept))
            }
            _ => Some(value.clone()),
        },
        (Shape::List, Value::Array(all)) => match &atom.list {
            Some(list) if list.kind != ListKind::Atomic => {
                let items = Items::new(schema, list);
                let kept: Vec<Value> = all
                    .iter()
                    .filter_map(|item| {
                        let node = set.get(&items.element(&items.key(item)?))?;
                        let mut below = extract(schema, list.element, item, &node.children);
                        keep_keys(list, item, &mut below);
                        below.or_else(|| node.member.then(|| empty_of(item)))
                    })
                    .collect();
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            _ => Some(value.clone()),
        },
        _ => Some(value.clone()),
    }
}

fn keep_keys(list: &ListType, item: &Value, kept: &mut Option<Value>) {
    if let (ListKind::Map(keys), Some(members)) = (&list.kind, item.as_object()) {
        let kept = kept.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(kept) = kept {
            for key in keys {
                if let Some(value) = members.get(key) {
                    kept.insert(key.as_str(), value.clone());
                }
            }
        }
    }
}

/// The value, if it is a scalar or null, else an empty one of its kind.
fn empty_of(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        scalar => scalar.clone(),
    }
}
