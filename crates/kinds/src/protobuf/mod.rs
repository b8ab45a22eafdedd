//! Objects of built-in kinds from protobuf and as protobuf, which typed Go clients send and ask for (kubectl from 1.32
//! on, controller-runtime).
//!
//! What is read is the JSON that the same client would have sent; [`crate::decode`] reads it like any other. The field
//! numbers are a table (`tags.txt`, made by `examples/tags.rs`): a message a line, `NUMBER=FIELD` for each field and
//! `NUMBER+MESSAGE` where JSON has the fields of an inner message in the outer one.
//!
//! Source of the envelope: `k8s.io/apimachinery/pkg/runtime/serializer/protobuf` (`k8s\0`, then a `runtime.Unknown`).

mod wire;
mod write;

pub use write::{write, write_event};

use crate::definitions::{Definition, Schema, Type, definitions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use object::{Map, Value, json};
use std::collections::HashMap;
use std::sync::OnceLock;
use wire::{Datum, Reader};

static TEXT: &str = include_str!("tags.txt");

/// What stands before every body.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may lie in each other. Schemas of definitions are the only ones that recurse.
const MAX_DEPTH: usize = 200;

/// Where a field's value goes.
#[derive(Clone, Copy)]
enum Place {
    /// The field of this name in JSON.
    Field(&'static str),
    /// The value's own fields belong to the message around it.
    Inline(&'static str),
}

type Tags = Vec<(u32, Place)>;

fn tags(message: &str) -> Option<&'static Tags> {
    static TABLE: OnceLock<HashMap<&'static str, Tags>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let line = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let place = |word: &'static str| match word.split_once('=') {
                Some((tag, field)) => Some((tag.parse().ok()?, Place::Field(field))),
                None => {
                    let (tag, message) = word.split_once('+')?;
                    Some((tag.parse().ok()?, Place::Inline(message)))
                }
            };
            Some((name, words.filter_map(place).collect()))
        };
        TEXT.lines().filter_map(line).collect()
    });
    table.get(message)
}

/// The place of a field among those that Go declares in a definition's type, inlined ones too: the table has their order.
pub(crate) fn declared_at(message: &str, field: &str) -> Option<usize> {
    let mut before = 0;
    for (_, place) in tags(message)? {
        before += match *place {
            Place::Field(name) if name == field => return Some(before),
            Place::Field(_) => 1,
            Place::Inline(inner) => match declared_at(inner, field) {
                Some(at) => return Some(before + at),
                None => tags(inner).map_or(0, Vec::len),
            },
        };
    }
    None
}

/// Reads a body: the envelope and the object in it, with its `apiVersion` and `kind`.
///
/// # Errors
/// What is wrong, as upstream's decoder puts it where that is told to clients.
pub fn read(body: &[u8]) -> Result<Value, String> {
    let Some(text) = body.strip_prefix(MAGIC) else {
        return Err("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".to_owned());
    };
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for item in Reader::new(text) {
        match item? {
            (1, Datum::Bytes(meta)) => {
                for item in Reader::new(meta) {
                    match item? {
                        (1, Datum::Bytes(text)) => api_version = string(text)?,
                        (2, Datum::Bytes(text)) => kind = string(text)?,
                        _ => {}
                    }
                }
            }
            (2, Datum::Bytes(inner)) => raw = inner,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(definition) = definition_of(group, version, &kind) else {
        return Err(format!("no kind \"{kind}\" is registered for version \"{api_version}\""));
    };
    let mut object = message(definition, raw, 0)?;
    object.insert("apiVersion", Value::from(api_version));
    object.insert("kind", Value::from(kind));
    Ok(Value::Object(object))
}

/// The names of definitions under `io.k8s.apimachinery.pkg.apis.meta.v1`.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The definition of a kind; a `Status` is published under none.
fn definition_of(group: &str, version: &str, kind: &str) -> Option<&'static Definition> {
    let found = definitions().of_kind(group, version, kind);
    found.or_else(|| match (group, version, kind) {
        ("", "v1", "Status") => definitions().get(&format!("{META}Status")),
        _ => None,
    })
}

fn message(definition: &'static Definition, text: &[u8], depth: usize) -> Result<Map, String> {
    let mut out = Map::default();
    fields(definition, definition.name, text, depth, &mut out)?;
    Ok(out)
}

/// Reads the fields of a message, those of inlined ones too, into the members of a definition's object.
fn fields(definition: &'static Definition, name: &str, text: &[u8], depth: usize, out: &mut Map) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("exceeded max depth".to_owned());
    }
    let Some(tags) = tags(name) else { return Err(format!("{name} has no protobuf form")) };
    for item in Reader::new(text) {
        let (tag, datum) = item?;
        let Some((_, place)) = tags.iter().find(|(t, _)| *t == tag) else { continue };
        match *place {
            Place::Inline(inner) => fields(definition, inner, datum.bytes()?, depth + 1, out)?,
            Place::Field(name) => {
                if let Some(field) = definition.field(name) {
                    add(out, name, &field.schema, datum, depth)?;
                }
            }
        }
    }
    Ok(())
}

/// Adds one occurrence of a field: an item of a list, an entry of a map, or the value.
fn add(out: &mut Map, name: &'static str, schema: &Schema, datum: Datum<'_>, depth: usize) -> Result<(), String> {
    match &resolved(&schema.ty) {
        Type::List(item) => {
            let mut items = match out.remove(name) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            match (datum, &item.ty) {
                // Numbers may come packed.
                (Datum::Bytes(text), Type::Int32 | Type::Int64 | Type::Bool) => {
                    let mut reader = Reader::new(text);
                    while let Some(number) = reader.packed() {
                        items.push(value(&item.ty, Datum::Varint(number?), depth)?);
                    }
                }
                (datum, ty) => items.push(value(ty, datum, depth)?),
            }
            out.insert(name, Value::Array(items));
        }
        Type::Map(inner) => {
            let mut members = match out.remove(name) {
                Some(Value::Object(members)) => members,
                _ => Map::default(),
            };
            let (mut key, mut content) = (String::new(), None);
            for item in Reader::new(datum.bytes()?) {
                match item? {
                    (1, Datum::Bytes(text)) => key = string(text)?,
                    (2, datum) => content = Some(datum),
                    _ => {}
                }
            }
            let content = match content {
                Some(datum) => value(&inner.ty, datum, depth)?,
                None => value(&inner.ty, Datum::Bytes(&[]), depth)?,
            };
            members.insert(key, content);
            out.insert(name, Value::Object(members));
        }
        ty => {
            out.insert(name, value(ty, datum, depth)?);
        }
    }
    Ok(())
}

/// A type behind names of scalars.
fn resolved(ty: &Type) -> Type {
    match ty.definition() {
        Some(d) if d.fields.is_empty() && !is_special(d.name) => resolved(&d.schema.ty),
        _ => ty.clone(),
    }
}

/// The types whose JSON is not that of their message.
fn is_special(name: &str) -> bool {
    matches!(
        name.rsplit('.').next().unwrap_or_default(),
        "Time"
            | "MicroTime"
            | "RawExtension"
            | "FieldsV1"
            | "JSON"
            | "JSONSchemaPropsOrBool"
            | "JSONSchemaPropsOrArray"
            | "JSONSchemaPropsOrStringArray"
    )
}

fn value(ty: &Type, datum: Datum<'_>, depth: usize) -> Result<Value, String> {
    let ty = resolved(ty);
    if let Some(definition) = ty.definition() {
        return match is_special(definition.name) {
            true => special(definition, datum.bytes()?, depth + 1),
            false => Ok(Value::Object(message(definition, datum.bytes()?, depth + 1)?)),
        };
    }
    Ok(match (&ty, datum) {
        (Type::Bool, datum) => Value::Bool(datum.varint()? != 0),
        (Type::Int32 | Type::Int64, datum) => Value::Int(datum.varint()? as i64),
        (Type::Double, Datum::Fixed64(bits)) => Value::Float(f64::from_bits(bits)),
        (Type::String, datum) => Value::from(string(datum.bytes()?)?),
        (Type::Bytes, datum) => Value::from(STANDARD.encode(datum.bytes()?)),
        (Type::Quantity, datum) => first_string(datum.bytes()?)?,
        (Type::IntOrString, datum) => int_or_string(datum.bytes()?)?,
        // A list in a map is a message with the items in its first field.
        (Type::List(item), datum) => {
            let mut items = Vec::new();
            for part in Reader::new(datum.bytes()?) {
                if let (1, datum) = part? {
                    items.push(value(&item.ty, datum, depth + 1)?);
                }
            }
            Value::Array(items)
        }
        (Type::DateTime, datum) => time(datum.bytes()?, 0)?,
        // A structure without fields says what it says by being there.
        (Type::Object, Datum::Bytes(_)) => Value::Object(Map::default()),
        _ => return Err("a field has the wrong wire type".to_owned()),
    })
}

fn special(definition: &'static Definition, text: &[u8], depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("exceeded max depth".to_owned());
    }
    let schemas = |datum: Datum<'_>| -> Result<Value, String> {
        let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let definition = definitions().get(name).ok_or("no schema of schemas")?;
        Ok(Value::Object(message(definition, datum.bytes()?, depth + 1)?))
    };
    match definition.type_name() {
        "Time" => time(text, 0),
        "MicroTime" => time(text, 6),
        // The bytes are JSON.
        "RawExtension" | "FieldsV1" | "JSON" => {
            let mut out = Value::Null;
            for item in Reader::new(text) {
                if let (1, Datum::Bytes(raw)) = item?
                    && !raw.is_empty()
                {
                    out = json::parse(raw).map_err(|e| e.to_string())?;
                }
            }
            Ok(out)
        }
        "JSONSchemaPropsOrBool" => {
            let mut out = Value::Bool(false);
            for item in Reader::new(text) {
                match item? {
                    (1, datum) if !matches!(out, Value::Object(_)) => out = Value::Bool(datum.varint()? != 0),
                    (2, datum) => out = schemas(datum)?,
                    _ => {}
                }
            }
            Ok(out)
        }
        name => {
            let (mut one, mut many) = (None, Vec::new());
            for item in Reader::new(text) {
                match item? {
                    (1, datum) => one = Some(schemas(datum)?),
                    (2, datum) if name == "JSONSchemaPropsOrArray" => many.push(schemas(datum)?),
                    (2, datum) => many.push(Value::from(string(datum.bytes()?)?)),
                    _ => {}
                }
            }
            Ok(one.unwrap_or(Value::Array(many)))
        }
    }
}

/// A time with as many digits of a second. An empty message is no time.
fn time(text: &[u8], digits: u8) -> Result<Value, String> {
    let (mut seconds, mut nanoseconds) = (None, 0);
    for item in Reader::new(text) {
        match item? {
            (1, datum) => seconds = Some(datum.varint()? as i64),
            (2, datum) => nanoseconds = datum.varint()? as i32,
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(Value::Null) };
    let time = Timestamp::new(seconds, nanoseconds).map_err(|e| e.to_string())?;
    Ok(Value::from(format!("{time:.prec$}", prec = usize::from(digits))))
}

fn first_string(text: &[u8]) -> Result<Value, String> {
    let mut out = String::new();
    for item in Reader::new(text) {
        if let (1, datum) = item? {
            out = string(datum.bytes()?)?;
        }
    }
    Ok(Value::from(out))
}

fn int_or_string(text: &[u8]) -> Result<Value, String> {
    let (mut is_string, mut number, mut words) = (false, 0, String::new());
    for item in Reader::new(text) {
        match item? {
            (1, datum) => is_string = datum.varint()? == 1,
            (2, datum) => number = datum.varint()? as i64,
            (3, datum) => words = string(datum.bytes()?)?,
            _ => {}
        }
    }
    Ok(if is_string { Value::from(words) } else { Value::Int(number) })
}

fn string(text: &[u8]) -> Result<String, String> {
    // Go's JSON encoder replaces what is not UTF-8 in the same way.
    Ok(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests;
