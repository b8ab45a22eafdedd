//! Bringing a set that was written under another schema in line with the present one.

use crate::path::PathElement;
use crate::schema::{ListKind, MapType, Scalar, TypeId, TypeSchema};
use crate::set::{FieldSet, Node};

/// Replaces ownership below a container that is atomic now by ownership of the container. `None` where nothing is to
/// be done. (A container that was atomic and is granular now keeps its one owner entry: measured on a real server.)
pub fn reconcile(schema: &TypeSchema, set: &FieldSet) -> Option<FieldSet> {
    if schema.is_deduced() {
        return None;
    }
    below(schema, schema.root(), set)
}

fn below(schema: &TypeSchema, ty: TypeId, set: &FieldSet) -> Option<FieldSet> {
    let mut changed: Vec<(usize, Option<FieldSet>)> = Vec::new();
    let atom = schema.atom(ty);
    if atom.map.as_ref().is_some_and(|map| is_undescribed(schema, map)) {
        return None;
    }
    for (i, node) in set.nodes().iter().enumerate().filter(|(_, n)| !n.children.is_empty()) {
        let child = match (&node.element, &atom.map, &atom.list) {
            (PathElement::Field(name), Some(map), _) => map.type_of(name),
            (_, Some(map), _) => map.element,
            (_, None, Some(list)) => Some(list.element),
            (_, None, None) => None,
        };
        let Some(child) = child else { continue };
        if is_atomic(schema, child) {
            changed.push((i, None));
        } else if let Some(set) = below(schema, child, &node.children) {
            changed.push((i, Some(set)));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let mut nodes: Vec<Node> = set.nodes().to_vec();
    for (i, children) in changed {
        nodes[i].member |= children.is_none();
        nodes[i].children = children.unwrap_or_default();
    }
    Some(FieldSet::from_nodes(nodes))
}

/// Of a type with alternatives the map counts, as everywhere.
fn is_atomic(schema: &TypeSchema, ty: TypeId) -> bool {
    let atom = schema.atom(ty);
    match (&atom.map, atom.scalar, &atom.list) {
        (Some(map), ..) => map.atomic && !is_undescribed(schema, map),
        (None, None, Some(list)) => list.kind == ListKind::Atomic,
        _ => false,
    }
}

/// Whether a map declares no fields and takes anything at any of them, as `x-kubernetes-preserve-unknown-fields` without
/// properties does. Upstream leaves alone what is owned in such a map, whatever the map is now.
fn is_undescribed(schema: &TypeSchema, map: &MapType) -> bool {
    map.is_empty() && map.element.is_some_and(|element| schema.atom(element).scalar == Some(Scalar::Untyped))
}
