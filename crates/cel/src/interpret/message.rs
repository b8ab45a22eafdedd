//! Literals of objects of the embedding program, and of the well-known messages, which stand for values of the language.

use std::sync::Arc;

use super::cost;
use super::eval::Frame;
use super::plan::{Field, Message};
use crate::value::{Duration, Error, Map, MapBuilder, Octets, Result, Timestamp, Value};

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
        let mut object = message.maker.as_ref().map(|maker| (maker, MapBuilder::object(message.name.clone())));
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
            if let Some((maker, fields)) = &mut object {
                maker.check_field(name, field, &value)?;
                fields.insert(Value::borrowed(field), value);
            } else if known.is_some() {
                result = set(name, result, field, value)?;
            }
        }
        if let Some((_, fields)) = object {
            return Ok(Value::Map(Map::Owned(Arc::new(fields))));
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

#[cfg(test)]
mod tests {
    use crate::check::check;
    use crate::env::{Env, TypeProvider};
    use crate::interpret::{Functions, Limits, ObjectTypes, Program};
    use crate::library::ExpressionSet;
    use crate::parse::{ParserOptions, parse};
    use crate::types::Type;
    use crate::value::{Error, Result, Value};
    use std::sync::Arc;

    /// A type `Box` with a field `size`, which is no negative number.
    struct Boxes;

    impl TypeProvider for Boxes {
        fn find_type(&self, name: &str) -> Option<Type> {
            (name == "Box").then(|| Type::object(name))
        }

        fn field_type(&self, object: &str, field: &str) -> Option<Type> {
            (object == "Box" && field == "size").then_some(Type::Int)
        }

        fn field_names(&self, _: &str) -> Vec<Arc<str>> {
            vec!["size".into()]
        }
    }

    impl ObjectTypes for Boxes {
        fn makes(&self, name: &str) -> bool {
            name == "Box"
        }

        fn check_field(&self, _: &str, _: &str, value: &Value<'_>) -> Result<()> {
            if matches!(value, Value::Int(..0)) { Err(Error::new("too small")) } else { Ok(()) }
        }
    }

    #[test]
    fn objects_of_the_embedding_program_are_made() {
        let env = Env::kubernetes(ExpressionSet::Stored).with_provider(Arc::new(Boxes));
        let functions = Functions::new().with_objects(Arc::new(Boxes));
        for (text, expected) in [
            ("Box{size: 1}.size + 1", "2"),
            ("type(Box{}) == Box", "true"),
            ("Box{size: 1} == Box{size: 1} && Box{} != Box{size: 1}", "true"),
            ("dyn(Box{size: 1}) == {'size': 1}", "false"),
            ("has(Box{?size: optional.none()}.size)", "false"),
            ("Box{size: -1}", "too small"),
        ] {
            let checked = check(&env, parse(text, &ParserOptions::default()).unwrap()).unwrap();
            let program = Program::with_functions(&checked, &functions).unwrap();
            let none: [(&str, Value<'_>); 0] = [];
            let result = program.eval(&none, Limits::NONE).result;
            assert_eq!(result.map_or_else(|e| e.to_string(), |v| v.to_string()), expected, "{text}");
        }
        let none = check(&env, parse("Box{depth: 1}", &ParserOptions::default()).unwrap());
        assert!(none.unwrap_err().to_string().contains("undefined field 'depth'"));
    }
}
