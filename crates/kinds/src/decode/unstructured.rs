//! Upstream's converter from unstructured objects, which reads what a strategic merge patch made. Its rules and texts are
//! others than those of the JSON decoder: it tells no paths but of unknown fields, and lets numbers be cut.
//! (`k8s.io/apimachinery/pkg/runtime/converter.go`)

use super::decoder::{go_type, item_of, read_base64, value_of};
use crate::definitions::{Definition, Schema, Type};
use crate::go_time::{self, Layout};
use crate::protobuf;
use crate::quantity::Quantity;
use object::{Told, Value, go, json};

/// Checks that an object can be converted to the type of a definition, and brings its numbers into the form that the
/// conversion gives them. Gives the complaints about unknown fields (`unknown field "spec.x"`), sorted.
///
/// # Errors
/// The first value that cannot be converted, in the converter's words: `cannot convert int64 to string`.
pub fn conform(definition: &'static Definition, object: &mut Value) -> Result<Vec<String>, String> {
    let mut converter = Converter::default();
    converter.structure(definition, object)?;
    let mut unknown = converter.unknown.into_vec();
    unknown.sort();
    Ok(unknown)
}

#[derive(Default)]
struct Converter {
    unknown: Told,
    /// The path, as the converter writes it.
    path: String,
}

impl Converter {
    fn structure(&mut self, definition: &'static Definition, value: &mut Value) -> Result<(), String> {
        let Value::Object(members) = value else {
            return Err(format!("cannot restore struct from: {}", kind(value)));
        };
        let end = self.path.len();
        // Go goes by the order of the declared fields.
        let mut first: Option<(usize, String)> = None;
        for (key, value) in members.iter_mut() {
            if end > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
            match definition.field(key) {
                Some(field) => {
                    if let Err(error) = self.value(&field.schema, value, field.go_type) {
                        let at = protobuf::declared_at(definition.name, key).unwrap_or_default();
                        if first.as_ref().is_none_or(|(first, _)| at < *first) {
                            first = Some((at, error));
                        }
                    }
                }
                // The converter does not escape.
                None => self.unknown.add_with(|| format!("unknown field \"{}\"", self.path)),
            }
            self.path.truncate(end);
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn value(&mut self, schema: &'static Schema, value: &mut Value, go_name: &'static str) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let definition = schema.ty.definition();
        let ty = match definition {
            Some(d) if !d.is_structure() => &d.schema.ty,
            _ => &schema.ty,
        };
        match ty {
            Type::Ref(_) => match definition {
                Some(definition) => self.structure(definition, value),
                None => Ok(()),
            },
            Type::List(item) => {
                let Value::Array(items) = value else {
                    return Err(format!("cannot restore slice from {}", kind(value)));
                };
                let end = self.path.len();
                for (i, value) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{i}]"));
                    self.value(item, value, item_of(go_name))?;
                    self.path.truncate(end);
                }
                Ok(())
            }
            Type::Map(inner) => {
                let Value::Object(members) = value else {
                    return Err(format!("cannot restore map from {}", kind(value)));
                };
                members.values_mut().try_for_each(|value| self.value(inner, value, value_of(go_name)))
            }
            Type::Bytes => bytes(value),
            Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Double => scalar(ty, value, go_name),
            Type::IntOrString | Type::Quantity | Type::DateTime => {
                unmarshal(ty, value, definition).map_err(|error| format!("error decoding from json: {error}"))
            }
            Type::Any | Type::Object => Ok(()),
        }
    }
}

/// Converts as Go converts values of basic types, within strings, booleans and numbers each.
fn scalar(ty: &'static Type, value: &mut Value, go_name: &str) -> Result<(), String> {
    let cannot = |from: &str| {
        let plain = go_type(ty, None);
        Err(format!("cannot convert {from} to {}", if go_name.is_empty() { &plain } else { go_name }))
    };
    match (ty, &*value) {
        (Type::String, Value::String(_)) | (Type::Bool, Value::Bool(_)) => {}
        (Type::Int64 | Type::Double, Value::Int(_)) | (Type::Double, Value::Float(_)) => {}
        (Type::Int32, Value::Int(i)) => *value = Value::Int(i64::from(*i as i32)),
        (Type::Int32 | Type::Int64, Value::Float(f)) if f.trunc() == *f => {
            let int = whole(*f);
            *value = Value::Int(if matches!(ty, Type::Int32) { i64::from(int as i32) } else { int });
        }
        (Type::Int32 | Type::Int64, Value::Float(_)) => return cannot("float64"),
        // Go would make a character of it.
        (Type::String, Value::Int(_)) => return cannot("int64"),
        _ => return Err(format!("unrecognized type: {}", go_type(ty, None))),
    }
    Ok(())
}

/// A float without a fraction as an integer; what is out of range becomes the least one, as processors do it.
fn whole(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

/// Bytes, in base64 or as a list of numbers.
fn bytes(value: &mut Value) -> Result<(), String> {
    match value {
        Value::String(text) => match read_base64(text) {
            Ok(_) => Ok(()),
            Err(at) => Err(format!("error decoding from json: illegal base64 data at input byte {at}")),
        },
        Value::Array(items) => items.iter_mut().filter(|item| !item.is_null()).try_for_each(|item| {
            let byte = match &*item {
                Value::Int(i) => *i,
                Value::Float(f) if f.trunc() == *f => whole(*f),
                Value::Float(_) => return Err("cannot convert float64 to uint8".to_owned()),
                _ => return Err("unrecognized type: uint8".to_owned()),
            };
            *item = Value::Int(byte & 0xff);
            Ok(())
        }),
        other => Err(format!("cannot restore slice from {}", kind(other))),
    }
}

/// Types that read themselves from JSON.
fn unmarshal(ty: &Type, value: &Value, definition: Option<&Definition>) -> Result<(), String> {
    let wrong = |kind: &str, target: &str| Err(format!("json: cannot unmarshal {kind} into Go value of type {target}"));
    match (ty, value) {
        (Type::Quantity, Value::String(text)) => Quantity::parse(text.trim()).map(drop),
        (Type::Quantity, other) => Quantity::parse(&json::to_string(other)).map(drop),
        (Type::DateTime, Value::String(text)) => {
            let micros = definition.is_some_and(|d| d.type_name() == "MicroTime");
            go_time::normalise(text, if micros { Layout::Micros } else { Layout::Seconds }).map(drop)
        }
        (Type::DateTime, other) => wrong(go::json_kind(other), "string"),
        (_, Value::String(_)) => Ok(()),
        (_, Value::Int(i)) if i32::try_from(*i).is_ok() => Ok(()),
        (_, number @ (Value::Int(_) | Value::Float(_))) => {
            wrong(&format!("number {}", json::to_string(number)), "int32")
        }
        (_, other) => wrong(go::json_kind(other), "int32"),
    }
}

/// The kind of a value in Go's reflection.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_or_refused_as_upstream_does() {
        let definition = crate::definitions().get("io.k8s.api.core.v1.Pod").unwrap();
        for (text, expected) in [
            (r#"{"spec":{"priority":1e3,"nodeName":null}}"#, Ok(r#"{"spec":{"nodeName":null,"priority":1000}}"#)),
            (r#"{"spec":{"priority":4294967297}}"#, Ok(r#"{"spec":{"priority":1}}"#)),
            (r#"{"spec":{"priority":1.5}}"#, Err("cannot convert float64 to int32")),
            (r#"{"spec":{"priority":"1"}}"#, Err("unrecognized type: int32")),
            (r#"{"spec":{"nodeName":1}}"#, Err("cannot convert int64 to string")),
            (r#"{"spec":{"nodeName":1.5}}"#, Err("unrecognized type: string")),
            (r#"{"spec":{"dnsPolicy":1}}"#, Err("cannot convert int64 to v1.DNSPolicy")),
            (r#"{"spec":{"hostNetwork":1}}"#, Err("unrecognized type: bool")),
            (r#"{"spec":[]}"#, Err("cannot restore struct from: slice")),
            (r#"{"spec":{"containers":{}}}"#, Err("cannot restore slice from map")),
            // The first of Go's fields counts.
            (r#"{"spec":{"containers":[{"image":1.5,"name":1}]}}"#, Err("cannot convert int64 to string")),
            (r#"{"metadata":{"labels":true}}"#, Err("cannot restore map from bool")),
            (r#"{"metadata":{"labels":{"a":1}}}"#, Err("cannot convert int64 to string")),
            (
                r#"{"metadata":{"creationTimestamp":1}}"#,
                Err("error decoding from json: json: cannot unmarshal number into Go value of type string"),
            ),
            (
                r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":1.5}}}]}}"#,
                Err("error decoding from json: json: cannot unmarshal number 1.5 into Go value of type int32"),
            ),
        ] {
            let mut object = json::parse(text.as_bytes()).unwrap();
            let outcome = conform(definition, &mut object);
            let shown = outcome.map(|unknown| {
                assert!(unknown.is_empty(), "{text}");
                json::to_string(&object)
            });
            assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_sorted_and_not_escaped() {
        let definition = crate::definitions().get("io.k8s.api.core.v1.Pod").unwrap();
        let mut object = json::parse(br#"{"spec":{"\"q\"":1,"containers":[{"b":1,"a":{"c":1}}]},"z":1}"#).unwrap();
        assert_eq!(
            conform(definition, &mut object).unwrap(),
            [
                r#"unknown field "spec."q"""#,
                r#"unknown field "spec.containers[0].a""#,
                r#"unknown field "spec.containers[0].b""#,
                r#"unknown field "z""#
            ]
        );
    }
}
