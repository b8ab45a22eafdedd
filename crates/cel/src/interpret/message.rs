//! Literals of the well-known messages, which stand for values of the language.

use std::sync::Arc;

use super::cost;
use super::eval::Frame;
use super::plan::{Field, Message};
use crate::value::{Duration, Error, Map, Octets, Result, Timestamp, Value};

/// What a message without fields stands for.
fn empty(name: &str) -> Option<Value<'static>> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "BoolValue" => Value::Bool(false),
        "BytesValue" => Value::Bytes(Octets::Borrowed(b"")),
        "DoubleValue" | "FloatValue" => Value::Double(0.0),
        "Duration" => Value::Duration(Duration(0)),
        "Int32Value" | "Int64Value" => Value::Int(0),
        "ListValue" => Value::list(Vec::new()),
        "StringValue" => Value::borrowed(""),
        "Struct" | "Empty" => Value::Map(Map::new([])),
        "Timestamp" => Value::Timestamp(Timestamp::new(0, 0, 0)),
        "UInt32Value" | "UInt64Value" => Value::Uint(0),
        "Value" => Value::Null,
        _ => return None,
    })
}

impl<'a> Frame<'a, '_> {
    /// Evaluates a message literal.
    pub(super) fn message(&mut self, message: &'a Message) -> Result<Value<'a>> {
        let result = self.fields(message);
        if !result.as_ref().is_err_and(Error::is_fatal) {
            self.charge(cost::STRUCT)?;
        }
        result
    }

    fn fields(&mut self, message: &'a Message) -> Result<Value<'a>> {
        let name = &*message.name;
        let known = empty(name);
        let mut result: Value<'a> = known.clone().unwrap_or(Value::Null);
        for Field { name: field, value, optional } in &message.fields {
            let value = match (self.eval(value)?, optional) {
                (value, false) => value,
                (Value::Optional(Some(value)), true) => Arc::unwrap_or_clone(value),
                (Value::Optional(None), true) => continue,
                (other, true) => {
                    return Err(Error::new(format!(
                        "cannot initialize optional entry '{field}' from non-optional value {other}"
                    )));
                }
            };
            if known.is_some() {
                result = set(name, result, field, value)?;
            }
        }
        match known {
            Some(_) => Ok(result),
            None if name == "google.protobuf.Any" => {
                Err(Error::new("anypb.UnmarshalNew() failed during type conversion: proto: invalid empty type URL"))
            }
            None => Err(Error::new(format!("unknown type '{name}'"))),
        }
    }
}

fn set<'a>(name: &str, message: Value<'a>, field: &str, value: Value<'a>) -> Result<Value<'a>> {
    let range_error = || Error::new(format!("range error setting field '{field}' of {name}"));
    Ok(match (message, field, value) {
        (Value::Duration(span), "seconds", Value::Int(seconds)) => {
            let nanos = seconds.checked_mul(1_000_000_000).and_then(|nanos| nanos.checked_add(span.0));
            Value::Duration(Duration(nanos.ok_or_else(range_error)?))
        }
        (Value::Duration(span), "nanos", Value::Int(nanos)) => {
            Value::Duration(Duration(span.0.checked_add(nanos).ok_or_else(range_error)?))
        }
        (Value::Timestamp(time), "seconds", Value::Int(seconds)) => {
            Value::Timestamp(Timestamp::new(seconds, time.nanos(), 0))
        }
        (Value::Timestamp(time), "nanos", Value::Int(nanos)) => {
            Value::Timestamp(Timestamp::new(time.seconds(), u32::try_from(nanos).map_err(|_| range_error())?, 0))
        }
        (_, "null_value", _) => Value::Null,
        (_, "value" | "number_value" | "string_value" | "bool_value", value) => match name {
            "google.protobuf.Int32Value" => match value {
                Value::Int(int) if i32::try_from(int).is_ok() => value,
                Value::Null => value,
                _ => return Err(range_error()),
            },
            "google.protobuf.UInt32Value" => match value {
                Value::Uint(uint) if u32::try_from(uint).is_ok() => value,
                Value::Null => value,
                _ => return Err(range_error()),
            },
            "google.protobuf.FloatValue" => match value {
                Value::Double(double) => Value::Double(f64::from(double as f32)),
                value => value,
            },
            _ => value,
        },
        (_, "struct_value" | "list_value" | "values" | "fields", value) => value,
        _ => return Err(Error::new(format!("no such field '{field}'"))),
    })
}
