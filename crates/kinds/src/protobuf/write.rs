//! Objects of built-in kinds as protobuf, which typed Go clients ask for.
//!
//! What is absent is not written: a Go client reads a field that is not there as one that is empty. That is less than
//! upstream writes (there, what is no pointer is always written), and never wrong about a pointer.

use super::wire::Writer;
use super::{MAGIC, MAX_DEPTH, META, Place, definition_of, is_special, resolved, tags};
use crate::definitions::{Definition, Schema, Type, definitions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use object::{Map, Value, json};

/// Writes an object, a list, a `Status` or partial metadata with the envelope around it, as
/// [`read`](super::read) reads it. None for what has no protobuf form: custom resources, tables.
pub fn write(object: &Value) -> Option<Vec<u8>> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let mut out = Writer::new(MAGIC);
    out.message(1, |out| {
        out.bytes(1, api_version.as_bytes());
        out.bytes(2, kind.as_bytes());
        Some(())
    })?;
    out.message(2, |out| content(out, api_version, kind, object.as_object()?))?;
    // The content's encoding and type.
    out.bytes(3, b"");
    out.bytes(4, b"");
    Some(out.finish())
}

/// Writes an event of a watch as a frame: its length, its type, and the object as [`write`] makes it.
pub fn write_event(ty: &str, object: &Value) -> Option<Vec<u8>> {
    let object = write(object)?;
    let mut out = Writer::new(&[0; 4]);
    out.bytes(1, ty.as_bytes());
    out.message(2, |out| {
        out.bytes(1, &object);
        Some(())
    })?;
    let mut frame = out.finish();
    let length = u32::try_from(frame.len() - 4).ok()?;
    frame.first_chunk_mut::<4>()?.copy_from_slice(&length.to_be_bytes());
    Some(frame)
}

/// Writes the fields of the object.
fn content(out: &mut Writer, api_version: &str, kind: &str, members: &Map) -> Option<()> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if group == "meta.k8s.io" {
        return match kind {
            "PartialObjectMetadata" => partial(out, members),
            "PartialObjectMetadataList" => {
                out.message(1, |out| list_meta(out, members))?;
                for item in members.get("items").and_then(Value::as_array).unwrap_or_default() {
                    out.message(2, |out| partial(out, item.as_object()?))?;
                }
                Some(())
            }
            _ => None,
        };
    }
    let definition = definition_of(group, version, kind)?;
    fields(out, definition, definition.name, members, 0)
}

fn partial(out: &mut Writer, members: &Map) -> Option<()> {
    let metadata = definitions().get(&format!("{META}ObjectMeta"))?;
    out.message(1, |out| match members.get("metadata").and_then(Value::as_object) {
        Some(members) => fields(out, metadata, metadata.name, members, 1),
        None => Some(()),
    })
}

/// Writes the metadata of a list. Upstream writes its texts even when they are empty; so the `Status` of a failure is the
/// same to the byte.
fn list_meta(out: &mut Writer, members: &Map) -> Option<()> {
    let empty = Map::default();
    let members = members.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    for (tag, key) in [(1, "selfLink"), (2, "resourceVersion"), (3, "continue")] {
        out.bytes(tag, members.get(key).and_then(Value::as_str).unwrap_or_default().as_bytes());
    }
    if let Some(remaining) = members.get("remainingItemCount").and_then(Value::as_int) {
        out.varint(4, remaining as u64);
    }
    Some(())
}

/// Writes the members that belong to a message, those of inlined messages too.
fn fields(out: &mut Writer, definition: &'static Definition, name: &str, members: &Map, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    for (tag, place) in tags(name)? {
        match *place {
            Place::Inline(inner) => {
                if holds(inner, members) {
                    out.message(*tag, |out| fields(out, definition, inner, members, depth + 1))?;
                }
            }
            Place::Field(name) => {
                let Some(field) = definition.field(name) else { continue };
                let is_list_meta =
                    matches!(&field.schema.ty, Type::Ref(to) if to.name().strip_prefix(META) == Some("ListMeta"));
                match members.get(name) {
                    _ if is_list_meta => out.message(*tag, |out| list_meta(out, members))?,
                    Some(value) => add(out, *tag, &field.schema, value, depth)?,
                    None => {}
                }
            }
        }
    }
    Some(())
}

/// Whether any of the members belongs to an inlined message.
fn holds(message: &str, members: &Map) -> bool {
    tags(message).is_some_and(|tags| {
        tags.iter().any(|(_, place)| match *place {
            Place::Field(name) => members.contains_key(name),
            Place::Inline(inner) => holds(inner, members),
        })
    })
}

/// Writes a field: each item of a list, each entry of a map, or the value.
fn add(out: &mut Writer, tag: u32, schema: &Schema, content: &Value, depth: usize) -> Option<()> {
    match (&resolved(&schema.ty), content) {
        (Type::List(item), Value::Array(items)) => items.iter().try_for_each(|v| value(out, tag, &item.ty, v, depth)),
        (Type::Map(inner), Value::Object(members)) => members.iter().try_for_each(|(key, content)| {
            out.message(tag, |out| {
                out.bytes(1, key.as_bytes());
                value(out, 2, &inner.ty, content, depth)
            })
        }),
        (Type::List(_) | Type::Map(_), _) => Some(()),
        (ty, content) => value(out, tag, ty, content, depth),
    }
}

/// Writes a value that is no list or map of a message. What is not of its type is left out, as if it were absent.
fn value(out: &mut Writer, tag: u32, ty: &Type, value: &Value, depth: usize) -> Option<()> {
    let ty = resolved(ty);
    if let Some(definition) = ty.definition() {
        return match value {
            _ if is_special(definition.name) => special(out, tag, definition, value, depth + 1),
            Value::Object(members) => {
                out.message(tag, |out| fields(out, definition, definition.name, members, depth + 1))
            }
            _ => Some(()),
        };
    }
    match (&ty, value) {
        (Type::Bool, Value::Bool(flag)) => out.varint(tag, u64::from(*flag)),
        (Type::Int32 | Type::Int64, Value::Int(number)) => out.varint(tag, *number as u64),
        (Type::Double, Value::Float(number)) => out.fixed64(tag, number.to_bits()),
        (Type::Double, Value::Int(number)) => out.fixed64(tag, (*number as f64).to_bits()),
        (Type::String, Value::String(text)) => out.bytes(tag, text.as_bytes()),
        (Type::Bytes, Value::String(text)) => out.bytes(tag, &STANDARD.decode(&**text).ok()?),
        (Type::Quantity, Value::String(text)) => out.bytes_in(tag, 1, text.as_bytes()),
        (Type::Quantity, Value::Int(number)) => out.bytes_in(tag, 1, number.to_string().as_bytes()),
        (Type::IntOrString, value) => out.message(tag, |out| {
            let text = value.as_str();
            out.varint(1, u64::from(text.is_some()));
            out.varint(2, value.as_int().unwrap_or(0) as u64);
            out.bytes(3, text.unwrap_or_default().as_bytes());
            Some(())
        })?,
        // A list in a map is a message with the items in its first field.
        (Type::List(item), Value::Array(items)) => {
            out.message(tag, |out| items.iter().try_for_each(|v| self::value(out, 1, &item.ty, v, depth + 1)))?
        }
        (Type::DateTime, value) => time(out, tag, value, 1)?,
        (Type::Object, Value::Object(_)) => out.message(tag, |_| Some(()))?,
        _ => {}
    }
    Some(())
}

fn special(out: &mut Writer, tag: u32, definition: &'static Definition, value: &Value, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    let schema = |out: &mut Writer, tag: u32, value: &Value| {
        let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let definition = definitions().get(name)?;
        out.message(tag, |out| fields(out, definition, name, value.as_object()?, depth + 1))
    };
    match definition.type_name() {
        "Time" => time(out, tag, value, 1_000_000_000),
        "MicroTime" => time(out, tag, value, 1000),
        "RawExtension" | "FieldsV1" | "JSON" => {
            out.bytes_in(tag, 1, json::to_string(value).as_bytes());
            Some(())
        }
        "JSONSchemaPropsOrBool" => out.message(tag, |out| {
            out.varint(1, u64::from(*value != Value::Bool(false)));
            if value.as_object().is_some() { schema(out, 2, value) } else { Some(()) }
        }),
        _ => out.message(tag, |out| match value {
            Value::Array(items) => items.iter().try_for_each(|item| match item {
                Value::String(text) => {
                    out.bytes(2, text.as_bytes());
                    Some(())
                }
                item => schema(out, 2, item),
            }),
            value => schema(out, 1, value),
        }),
    }
}

/// Writes a time in whole units of nanoseconds. No time is an empty message.
fn time(out: &mut Writer, tag: u32, value: &Value, unit: i32) -> Option<()> {
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    out.message(tag, |out| {
        if let Some(time) = time {
            let nanoseconds = time.subsec_nanosecond();
            out.varint(1, time.as_second() as u64);
            out.varint(2, (nanoseconds - nanoseconds % unit) as u64);
        }
        Some(())
    })
}
