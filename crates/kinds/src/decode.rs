//! JSON into a built-in type, as Go's decoder reads it and its encoder writes it back.
//!
//! What comes out has the fields that Go always writes (`status: {}`, `creationTimestamp: null`), quantities and times
//! in canonical form, and none of the scalars that Go leaves out. Unknown fields are dropped and reported. Empty lists
//! and maps are still there, because checks tell them from absent ones; [`finish`] takes them away.

use crate::definitions::{Definition, Field, ListType, Schema, Type};
use crate::go_time::{self, Layout};
use crate::quantity::Quantity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value, go, json};
use std::fmt::Write;

/// A decoded object.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub object: Value,
    /// The paths of unknown fields, `spec.containers[0].x`, in order.
    pub unknown: Vec<String>,
}

/// Decodes a JSON value into the type of a definition.
///
/// # Errors
/// Go's text, for example
/// `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`.
pub fn decode(definition: &'static Definition, value: Value) -> Result<Decoded, String> {
    let mut decoder = Decoder { unknown: Vec::new(), saved: None, fields: Vec::new(), path: Vec::new(), structure: "" };
    let object = match value {
        Value::Object(members) => Value::Object(decoder.structure(definition, members)?),
        Value::Null => Value::Object(definition.zero()),
        other => {
            let kind = go::json_kind(&other);
            return Err(format!("json: cannot unmarshal {kind} into Go value of type {}", definition.go_name()));
        }
    };
    match decoder.saved {
        Some(error) => Err(error),
        None => Ok(Decoded { object, unknown: decoder.unknown }),
    }
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

/// Where the decoder is in the document.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

struct Decoder<'a> {
    unknown: Vec<String>,
    /// The first value of a wrong type. Go reads on and reports it in the end.
    saved: Option<String>,
    /// The struct fields on the way: what errors name.
    fields: Vec<&'static str>,
    /// Everything on the way: what reports of unknown fields name.
    path: Vec<Step<'a>>,
    /// The innermost struct.
    structure: &'static str,
}

impl Decoder<'_> {
    fn structure(&mut self, definition: &'static Definition, members: Map) -> Result<Map, String> {
        let outer = std::mem::replace(&mut self.structure, definition.type_name());
        let mut out: Vec<(_, Value)> = Vec::with_capacity(members.len() + 2);
        // Both the members and the fields are sorted: one walk over both.
        let mut fields = definition.fields.iter().peekable();
        for (key, value) in members {
            while let Some(field) = fields.next_if(|f| f.name < key.as_str()) {
                out.extend(field.zero().map(|zero| (field.name.into(), zero)));
            }
            let Some(field) = fields.next_if(|f| f.name == key.as_str()) else {
                self.report_unknown(&key);
                continue;
            };
            self.fields.push(field.name);
            self.path.push(Step::Field(field.name));
            let value = self.value(&field.schema, value, field.go_type)?;
            self.path.pop();
            self.fields.pop();
            match value {
                Some(value) if !(field.omit_empty && !field.pointer && is_zero(&value, &field.schema.ty)) => {
                    out.push((key, value));
                }
                _ => out.extend(field.zero().map(|zero| (key, zero))),
            }
        }
        for field in fields {
            out.extend(field.zero().map(|zero| (field.name.into(), zero)));
        }
        self.structure = outer;
        Ok(out.into())
    }

    /// Nothing stands for a value that stays what it is when nothing is said (null, or one of the wrong type).
    fn value(&mut self, schema: &Schema, value: Value, go_name: &str) -> Result<Option<Value>, String> {
        if value.is_null() {
            return Ok(None);
        }
        let definition = schema.ty.definition();
        let ty = match definition {
            Some(d) if d.fields.is_empty() => &d.schema.ty,
            _ => &schema.ty,
        };
        Ok(match (ty, value) {
            (Type::Ref(_), Value::Object(members)) => match definition {
                Some(d) => Some(Value::Object(self.structure(d, members)?)),
                None => Some(Value::Object(members)),
            },
            (Type::List(item), Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for (i, value) in items.into_iter().enumerate() {
                    self.path.push(Step::Index(i));
                    out.push(
                        self.value(item, value, go_name.strip_prefix("[]").unwrap_or_default())?
                            .unwrap_or_else(|| zero(&item.ty)),
                    );
                    self.path.pop();
                }
                Some(Value::Array(out))
            }
            (Type::Map(inner), Value::Object(members)) => {
                let quantities = matches!(&inner.ty, Type::Ref(to) if to.name().ends_with(".Quantity"));
                let mut out: Vec<(_, Value)> = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let value = self.value(inner, value, "")?.unwrap_or_else(|| zero(&inner.ty));
                    let value = if quantities { rounded(value) } else { value };
                    out.push((key, value));
                }
                Some(Value::Object(out.into()))
            }
            (Type::String, value @ Value::String(_)) => Some(value),
            (Type::Bool, value @ Value::Bool(_)) => Some(value),
            (Type::Int64, value @ Value::Int(_)) => Some(value),
            (Type::Int32, Value::Int(i)) if i32::try_from(i).is_ok() => Some(Value::Int(i)),
            (Type::Double, value @ (Value::Int(_) | Value::Float(_))) => Some(value),
            (Type::IntOrString, value @ Value::String(_)) => Some(value),
            (Type::IntOrString, Value::Int(i)) if i32::try_from(i).is_ok() => Some(Value::Int(i)),
            (Type::IntOrString, value) => {
                // The type reads itself, and its error ends the decoding.
                return Err(self.wrong_type(&value, "int32", true));
            }
            (Type::Quantity, value) => {
                let text = match &value {
                    Value::String(s) => s.trim().to_owned(),
                    other => json::to_string(other),
                };
                Some(Quantity::parse(&text)?.to_string().into())
            }
            (Type::DateTime, Value::String(text)) => {
                let micros = definition.is_some_and(|d| d.type_name() == "MicroTime");
                let layout = if micros { Layout::Micros } else { Layout::Seconds };
                Some(go_time::normalise(&text, layout)?.into())
            }
            (Type::DateTime, value) => return Err(self.wrong_type(&value, "string", false)),
            (Type::Bytes, Value::String(text)) => match read_base64(&text) {
                Ok(bytes) => Some(STANDARD.encode(bytes).into()),
                Err(at) => {
                    self.save(format!("illegal base64 data at input byte {at}"));
                    None
                }
            },
            (Type::Any, value) => Some(self.raw(definition, value)?),
            (Type::Object, value) => Some(value),
            (ty, value) => {
                let plain;
                let name = if go_name.is_empty() {
                    plain = go_type(ty, definition);
                    &plain
                } else {
                    go_name
                };
                let error = self.wrong_type(&value, name, is_number(ty));
                self.save(error);
                None
            }
        })
    }

    /// Values that a type of its own reads: raw JSON, or the schema of a schema.
    fn raw(&mut self, definition: Option<&'static Definition>, value: Value) -> Result<Value, String> {
        let Some(definition) = definition else { return Ok(value) };
        if definition.type_name() == "JSON" {
            return Ok(value);
        }
        let Some(props) = crate::definitions().get(&definition.name.replace(definition.type_name(), "JSONSchemaProps"))
        else {
            return Ok(value);
        };
        match value {
            // Decoded by a decoder of its own: unknown fields are not reported, and errors know nothing of the outside.
            Value::Object(_) => Ok(decode(props, value)?.object),
            Value::Array(items) if definition.type_name() == "JSONSchemaPropsOrArray" => {
                let items: Result<Vec<Value>, String> =
                    items.into_iter().map(|item| Ok(decode(props, item)?.object)).collect();
                Ok(Value::Array(items?))
            }
            other => Ok(other),
        }
    }

    fn wrong_type(&self, value: &Value, go_type: &str, literal: bool) -> String {
        let kind = match value {
            Value::Int(_) | Value::Float(_) if literal => format!("number {}", json::to_string(value)),
            other => go::json_kind(other).to_owned(),
        };
        format!(
            "json: cannot unmarshal {kind} into Go struct field {}.{} of type {go_type}",
            self.structure,
            self.fields.join(".")
        )
    }

    fn save(&mut self, error: String) {
        self.saved.get_or_insert(error);
    }

    fn report_unknown(&mut self, key: &str) {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => {
                    let _ = write!(text, ".{name}");
                }
                Step::Index(i) => {
                    let _ = write!(text, "[{i}]");
                }
            }
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(key);
        self.unknown.push(text);
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int32 | Type::Int64 | Type::Double)
}

/// Whether Go's `omitempty` leaves a scalar out.
fn is_zero(value: &Value, ty: &Type) -> bool {
    match value {
        _ if matches!(ty, Type::Ref(_)) => false,
        Value::Array(_) | Value::Object(_) => false,
        Value::String(s) => s.is_empty(),
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::Bool(b) => !b,
        Value::Null => true,
    }
}

/// The zero value of an item.
fn zero(ty: &Type) -> Value {
    match ty {
        Type::String | Type::Bytes => "".into(),
        Type::Int32 | Type::Int64 | Type::Double => Value::Int(0),
        Type::Bool => Value::Bool(false),
        Type::Ref(_) => match ty.definition() {
            Some(d) if !d.fields.is_empty() => Value::Object(d.zero()),
            Some(d) if matches!(d.schema.ty, Type::Quantity) => "0".into(),
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

fn rounded(value: Value) -> Value {
    match value.as_str().map(Quantity::parse) {
        Some(Ok(quantity)) => quantity.rounded_to_milli().to_string().into(),
        _ => value,
    }
}

/// A type as Go's errors print it.
fn go_type(ty: &Type, definition: Option<&Definition>) -> String {
    match ty {
        Type::String => "string".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Double => "float64".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::List(item) => format!("[]{}", go_type(&item.ty, item.ty.definition())),
        Type::Map(inner) if matches!(&inner.ty, Type::Ref(to) if to.name().ends_with(".Quantity")) => {
            "v1.ResourceList".to_owned()
        }
        Type::Map(inner) => format!("map[string]{}", go_type(&inner.ty, inner.ty.definition())),
        Type::Ref(_) => match definition {
            Some(d) if d.type_name() == "Quantity" => "resource.Quantity".to_owned(),
            Some(d) => d.go_name().to_owned(),
            None => "struct {}".to_owned(),
        },
        _ => "interface {}".to_owned(),
    }
}

/// Standard base64 as Go reads it: line breaks are skipped; the error is the offset of the first bad byte.
fn read_base64(text: &str) -> Result<Vec<u8>, usize> {
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    STANDARD.decode(&clean).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
        // Go tells where the group of four starts that is not whole, or where more padding would be.
        base64::DecodeError::InvalidPadding if clean.ends_with('=') => clean.len(),
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => clean.len() / 4 * 4,
    })
}

#[cfg(test)]
mod tests;
