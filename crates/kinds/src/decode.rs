//! JSON into a built-in type, as Go's decoder reads it and its encoder writes it back.
//!
//! What comes out has the fields that Go always writes (`status: {}`, `creationTimestamp: null`), quantities and times
//! in canonical form, and none of the scalars that Go leaves out. Unknown fields are dropped and reported. Empty lists
//! and maps are still there, because checks tell them from absent ones; [`finish`] takes them away.

mod decoder;
mod source;
mod unstructured;

use crate::definitions::{Definition, Field, ListType, Schema, Type};
use decoder::{Decoder, is_zero};
use object::json::ordered::Ordered;
use object::{Value, go};
use source::Source;
use std::fmt;

pub use unstructured::conform;

/// A decoded object.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub object: Value,
    /// What strict reading does not let pass.
    pub issues: Vec<Issue>,
}

/// What strict reading does not let pass. It is printed in Go's words: `unknown field "spec.containers[0].x"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Issue {
    /// The path of a field that the type does not have.
    Unknown(String),
    /// The path of a field that stands in the text more than once.
    Repeated(String),
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issue::Unknown(path) => write!(f, "unknown field {}", go::quote(path)),
            Issue::Repeated(path) => write!(f, "duplicate field {}", go::quote(path)),
        }
    }
}

impl Decoded {
    /// The paths of the unknown fields.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.issues.iter().filter_map(|issue| match issue {
            Issue::Unknown(path) => Some(path.as_str()),
            Issue::Repeated(_) => None,
        })
    }
}

/// Decodes a JSON value into the type of a definition.
///
/// # Errors
/// Go's text, for example
/// `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`.
pub fn decode(definition: &'static Definition, value: Value) -> Result<Decoded, String> {
    Decoder::default().document(definition, value.open())
}

/// Decodes the value of a JSON text, which is given too, as Go does, that goes by the order of the text: the first value
/// of a wrong type is the one told, issues come in the order of the text, of repeated scalars the last counts, and
/// repeated structures are merged. `repeats` says whether anything is repeated, see [`object::json::parse_noting`].
///
/// # Errors
/// As those of [`decode`].
pub fn decode_text(
    definition: &'static Definition,
    value: Value,
    text: &[u8],
    repeats: bool,
) -> Result<Decoded, String> {
    let type_meta = ["apiVersion", "kind"].map(|key| (key, value.get(key).cloned()));
    // The order matters only where something is wrong: nothing is read twice elsewhere.
    if !repeats
        && let Ok(decoded) = decode(definition, value)
        && decoded.issues.is_empty()
    {
        return Ok(decoded);
    }
    let ordered = Ordered::parse(text).map_err(|e| e.to_string())?;
    let mut decoded = Decoder::default().document(definition, ordered.open())?;
    // What a text leaves out of its type is known by where it was sent.
    for (key, value) in type_meta {
        decoded.object.set_at(&[key], value.unwrap_or_default());
    }
    Ok(decoded)
}

/// Gives a checked object the shape that a real server stores and serves: empty lists and maps, which the storage's
/// encoding does not keep, are gone (null where Go always writes the field), and what hooks left out or emptied is as
/// Go writes it.
pub fn finish(definition: &Definition, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    // Both the members and the fields are sorted: one walk over both, and another one only if something goes or comes.
    let mut fields = definition.fields.iter().peekable();
    let mut missing: Vec<(&str, Value)> = Vec::new();
    let mut unwanted = false;
    for (key, value) in members.iter_mut() {
        while let Some(field) = fields.next_if(|f| f.name < key) {
            missing.extend(field.zero().map(|zero| (field.name, zero)));
        }
        let Some(field) = fields.next_if(|f| f.name == key) else { continue };
        finish_value(&field.schema, value);
        if is_empty(field, value) {
            match field.zero() {
                Some(zero) => *value = zero,
                None => unwanted = true,
            }
        }
    }
    for field in fields {
        missing.extend(field.zero().map(|zero| (field.name, zero)));
    }
    if unwanted {
        members.retain(|key, value| definition.field(key).is_none_or(|f| !is_empty(f, value) || f.zero().is_some()));
    }
    for (name, zero) in missing {
        members.insert(name, zero);
    }
}

/// Whether the storage's encoding does not keep a field's value.
fn is_empty(field: &Field, value: &Value) -> bool {
    match (value, &field.schema.ty) {
        (Value::Array(items), _) => items.is_empty(),
        (Value::Object(m), Type::Map(_)) => m.is_empty(),
        (Value::Null, _) => true,
        (value, ty) => field.omit_empty && !field.pointer && is_zero(value, ty),
    }
}

/// Takes empty lists and maps out that Go leaves out when it writes an object (`omitempty`): nobody owns them. Those
/// within lists that are owned as a whole stay: upstream compares such lists as Go values, which tells empty from absent.
pub fn drop_empty(definition: &Definition, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    for field in &definition.fields {
        let Some(value) = members.get_mut(field.name) else { continue };
        drop_empty_within(&field.schema, value);
        let empty = match (&*value, &field.schema.ty) {
            (Value::Array(items), Type::List(_)) => items.is_empty(),
            (Value::Object(m), Type::Map(_)) => m.is_empty(),
            _ => false,
        };
        if empty && field.omit_empty {
            members.remove(field.name);
        }
    }
}

fn drop_empty_within(schema: &Schema, value: &mut Value) {
    match (&schema.ty, value) {
        (Type::Ref(_), value @ Value::Object(_)) => {
            if let Some(definition) = schema.ty.definition().filter(|d| !d.fields.is_empty()) {
                drop_empty(definition, value);
            }
        }
        (Type::List(item), Value::Array(items)) if !is_owned_whole(schema) => {
            items.iter_mut().for_each(|v| drop_empty_within(item, v));
        }
        (Type::Map(inner), Value::Object(members)) => {
            members.values_mut().for_each(|v| drop_empty_within(inner, v));
        }
        _ => {}
    }
}

/// Whether a list is merged as a whole.
fn is_owned_whole(list: &Schema) -> bool {
    match list.list_type {
        Some(kind) => kind == ListType::Atomic,
        None => !list.patch_strategy.starts_with("merge"),
    }
}

fn finish_value(schema: &Schema, value: &mut Value) {
    match (&schema.ty, value) {
        (Type::Ref(_), value @ Value::Object(_)) => {
            if let Some(definition) = schema.ty.definition().filter(|d| !d.fields.is_empty()) {
                finish(definition, value);
            }
        }
        (Type::List(item), Value::Array(items)) => items.iter_mut().for_each(|v| finish_value(item, v)),
        (Type::Map(inner), Value::Object(members)) => members.values_mut().for_each(|v| finish_value(inner, v)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
