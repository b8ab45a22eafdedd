//! The fields that a value has.

use super::items::Items;
use super::{Shape, Shapes};
use crate::path::PathElement;
use crate::schema::{ListKind, ListType, MapType, TypeId, TypeSchema};
use crate::set::{FieldSet, Node};
use object::{Map, Value};

/// Every leaf of a value, and besides: list items, keys of maps that are not declared fields, and maps that are empty
/// or null. What repeats a list key is there once, without what is below it.
pub fn to_field_set(schema: &TypeSchema, value: &Value) -> FieldSet {
    let mut out = FieldSet::new();
    collect(schema, schema.root(), value, &mut out);
    out
}

/// Puts what is below `value` into `out` and tells whether the value itself is a leaf.
fn collect(schema: &TypeSchema, ty: TypeId, value: &Value, out: &mut FieldSet) -> bool {
    let atom = schema.atom(ty);
    match Shapes::of(atom, Some(value)).first() {
        Shape::Scalar => return true,
        Shape::Map => {
            if let Some(map) = &atom.map {
                if map.atomic {
                    return true;
                }
                if let Value::Object(members) = value {
                    collect_members(schema, map, members, out);
                }
            }
        }
        Shape::List => {
            if let Some(list) = &atom.list {
                if list.kind == ListKind::Atomic {
                    return true;
                }
                if let Value::Array(items) = value {
                    collect_items(schema, list, items, out);
                }
            }
        }
        Shape::Nothing => {}
    }
    false
}

fn collect_members(schema: &TypeSchema, map: &MapType, members: &Map, out: &mut FieldSet) {
    *out = FieldSet::with_capacity(members.len());
    for (key, value) in members.iter() {
        let declared = map.field(key);
        let Some(ty) = declared.map(|f| f.ty).or(map.element) else { continue };
        let mut children = FieldSet::new();
        let leaf = collect(schema, ty, value, &mut children);
        let empty = match value {
            Value::Null => true,
            Value::Object(m) => m.is_empty(),
            _ => false,
        };
        out.push(PathElement::field(key), leaf || empty || declared.is_none(), children);
    }
}

fn collect_items(schema: &TypeSchema, list: &ListType, all: &[Value], out: &mut FieldSet) {
    *out = FieldSet::with_capacity(all.len());
    let items = Items::new(schema, list);
    let mut keys = items.sorted(all).into_iter().peekable();
    while let Some((key, i)) = keys.next() {
        let mut repeated = false;
        while keys.next_if(|(next, _)| *next == key).is_some() {
            repeated = true;
        }
        let mut children = FieldSet::new();
        if !repeated {
            collect(schema, list.element, &all[i], &mut children);
        }
        out.push(items.element(&key), true, children);
    }
}

/// The set and, for each path in it, the declared fields on the way: owning `.spec.a` says that `.spec` is wanted,
/// which owning a key of a map does not.
pub fn named_fields(schema: &TypeSchema, set: &FieldSet) -> FieldSet {
    named(schema, Some(schema.root()), set)
}

fn named(schema: &TypeSchema, ty: Option<TypeId>, set: &FieldSet) -> FieldSet {
    let atom = ty.map(|ty| schema.atom(ty));
    let map = atom.and_then(|a| a.map.as_ref());
    let list = atom.and_then(|a| a.list.as_ref());
    let nodes = set.nodes().iter().map(|n| {
        let (declared, below) = match (&n.element, map, list) {
            (PathElement::Field(name), Some(map), _) => (map.field(name).is_some(), map.type_of(name)),
            (PathElement::Key(_), _, Some(list)) => (false, Some(list.element)),
            _ => (false, None),
        };
        Node {
            element: n.element.clone(),
            member: n.member || declared && !n.children.is_empty(),
            children: named(schema, below, &n.children),
        }
    });
    FieldSet::from_nodes(nodes.collect())
}
