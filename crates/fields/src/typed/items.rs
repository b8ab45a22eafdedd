//! The identity of list items.

use super::Shapes;
use crate::path::PathElement;
use crate::schema::{ListKind, ListType, TypeId, TypeSchema};
use compact_str::CompactString;
use object::{Value, go};

/// The element that names an item of a list.
pub(super) fn element(schema: &TypeSchema, list: &ListType, index: usize, item: &Value) -> Result<PathElement, String> {
    match &list.kind {
        ListKind::Atomic => Ok(PathElement::Index(index as i64)),
        ListKind::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(scalar.clone())),
        },
        ListKind::Map(keys) => keyed(schema, list, keys, item),
    }
}

fn keyed(schema: &TypeSchema, list: &ListType, keys: &[CompactString], item: &Value) -> Result<PathElement, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields = Vec::with_capacity(keys.len());
    for key in keys {
        let value = match (members.get(key), &schema.atom(list.element).map) {
            (Some(value), _) => value,
            (None, Some(map)) => map.field(key).and_then(|f| f.default.as_ref()).ok_or_else(|| {
                let key = go::quote(key);
                format!("associative list with keys has an element that omits key field {key} (and doesn't have default value)")
            })?,
            (None, None) => {
                let why = "associative list may not have non-map types";
                return Err(format!("couldn't find default value for {key}: {why}"));
            }
        };
        fields.push((key.clone(), value.clone()));
    }
    if fields.windows(2).any(|w| w[0].0 > w[1].0) {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
    }
    Ok(PathElement::Key(fields))
}

/// The elements of a list's items with their positions, sorted by element, then position. Items without an element
/// are left out.
pub(super) fn sorted(schema: &TypeSchema, list: &ListType, items: &[Value]) -> Vec<(PathElement, usize)> {
    let mut out: Vec<(PathElement, usize)> =
        items.iter().enumerate().filter_map(|(i, item)| element(schema, list, i, item).ok().map(|e| (e, i))).collect();
    if out.windows(2).any(|w| w[0].0 > w[1].0) {
        out.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    }
    out
}

/// The element that names an item of a list; `None` where an item has none.
pub fn item_element(schema: &TypeSchema, list: &ListType, index: usize, item: &Value) -> Option<PathElement> {
    element(schema, list, index, item).ok()
}

/// What stands at a path. Of items that repeat a key it is the first.
pub fn value_at<'v>(schema: &TypeSchema, value: &'v Value, path: &[PathElement]) -> Option<&'v Value> {
    let mut at = (Some(schema.root()), value);
    for step in path {
        at = step_into(schema, at.0, at.1, step)?;
    }
    Some(at.1)
}

fn step_into<'v>(
    schema: &TypeSchema,
    ty: Option<TypeId>,
    value: &'v Value,
    step: &PathElement,
) -> Option<(Option<TypeId>, &'v Value)> {
    let atom = ty.map(|ty| schema.atom(ty));
    match (step, value) {
        (PathElement::Field(name), Value::Object(members)) => {
            let ty = atom.and_then(|a| a.map.as_ref()).and_then(|m| m.type_of(name));
            Some((ty, members.get(name)?))
        }
        (PathElement::Index(i), Value::Array(items)) => {
            let ty = atom.and_then(|a| a.list.as_ref()).map(|l| l.element);
            Some((ty, items.get(usize::try_from(*i).ok()?)?))
        }
        (_, Value::Array(items)) => {
            let list =
                atom.and_then(|a| a.list.as_ref()).filter(|_| atom.is_some_and(|a| Shapes::of(a, Some(value)).list))?;
            let found =
                items.iter().enumerate().find(|(i, item)| item_element(schema, list, *i, item).as_ref() == Some(step));
            Some((Some(list.element), found?.1))
        }
        _ => None,
    }
}
