//! Conversions between types: `int(x)`, `string(x)` and so on.

use super::number::{format_shortest, parse_float, parse_int, parse_uint};
use crate::value::{Duration, Error, Octets, Result, TWO_63, TWO_64, Timestamp, Value};

fn conversion_error(value: &Value<'_>, target: &str) -> Error {
    Error::new(format!("type conversion error from '{}' to '{target}'", &*value.type_name()))
}

fn argument<'s, 'a>(args: &'s [Value<'a>]) -> Result<&'s Value<'a>> {
    match args {
        [value] => Ok(value),
        _ => Err(Error::mismatch()),
    }
}

/// `int(x)`
pub(crate) fn int<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let overflow = || Error::new("integer overflow");
    let value = argument(args)?;
    Ok(Value::Int(match value {
        Value::Int(int) => *int,
        Value::Uint(uint) => i64::try_from(*uint).map_err(|_| overflow())?,
        // Exclusive at both ends, as upstream.
        Value::Double(double) if *double > -TWO_63 && *double < TWO_63 => *double as i64,
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => parse_int(text).ok_or_else(|| conversion_error(value, "int"))?,
        Value::Timestamp(time) => time.seconds(),
        Value::Duration(span) => span.0,
        _ => return Err(Error::mismatch()),
    }))
}

/// `uint(x)`
pub(crate) fn uint<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let overflow = || Error::new("unsigned integer overflow");
    let value = argument(args)?;
    Ok(Value::Uint(match value {
        Value::Uint(uint) => *uint,
        Value::Int(int) => u64::try_from(*int).map_err(|_| overflow())?,
        Value::Double(double) if *double >= 0.0 && *double < TWO_64 => *double as u64,
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => parse_uint(text).ok_or_else(|| conversion_error(value, "uint"))?,
        _ => return Err(Error::mismatch()),
    }))
}

/// `double(x)`
pub(crate) fn double<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    Ok(Value::Double(match value {
        Value::Double(double) => *double,
        Value::Int(int) => *int as f64,
        Value::Uint(uint) => *uint as f64,
        Value::String(text) => parse_float(text).ok_or_else(|| conversion_error(value, "double"))?,
        _ => return Err(Error::mismatch()),
    }))
}

/// `bool(x)`
pub(crate) fn bool<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    match value {
        Value::Bool(bool) => Ok(Value::Bool(*bool)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error(value, "bool")),
        },
        _ => Err(Error::mismatch()),
    }
}

/// `bytes(x)`
pub(crate) fn bytes<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::String(text) => Ok(Value::Bytes(Octets::Shared(text.as_bytes().into()))),
        _ => Err(Error::mismatch()),
    }
}

/// `string(x)`, of addresses and networks too.
pub(crate) fn string<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    if let Some(text) = super::net::to_text(value) {
        return Ok(Value::shared(text));
    }
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Null | Value::Type(_) => Err(Error::mismatch()),
        _ => to_text(value).unwrap_or_else(|| Err(Error::mismatch())).map(Value::shared),
    }
}

/// The text a conversion to string gives; `None` where there is no such conversion.
pub(crate) fn to_text(value: &Value<'_>) -> Option<Result<String>> {
    Some(Ok(match value {
        Value::String(text) | Value::Type(text) => text.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => format_shortest(*double),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(span) => span.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bytes(octets) => match std::str::from_utf8(octets) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err(Error::new("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Opaque(_) => return None,
    }))
}

/// `timestamp(x)`
pub(crate) fn timestamp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    let time = match value {
        Value::Timestamp(time) => return Ok(Value::Timestamp(*time)),
        Value::Int(seconds) => Timestamp::new(*seconds, 0, 0),
        Value::String(text) => {
            Timestamp::parse(text).ok_or_else(|| conversion_error(value, "google.protobuf.Timestamp"))?
        }
        _ => return Err(Error::mismatch()),
    };
    if time.in_range() { Ok(Value::Timestamp(time)) } else { Err(Error::new("timestamp overflow")) }
}

/// `duration(x)`
pub(crate) fn duration<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let value = argument(args)?;
    match value {
        Value::Duration(span) => Ok(Value::Duration(*span)),
        Value::String(text) => Duration::parse(text)
            .map(Value::Duration)
            .ok_or_else(|| conversion_error(value, "google.protobuf.Duration")),
        Value::Int(_) => Err(conversion_error(value, "google.protobuf.Duration")),
        _ => Err(Error::mismatch()),
    }
}

/// `dyn(x)`
pub(crate) fn dynamic<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    argument(args).cloned()
}

/// `type(x)`
pub(crate) fn type_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Type(argument(args)?.type_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Convert = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>>;

    fn text(convert: Convert, value: Value<'_>) -> String {
        convert(&[value]).map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn conversions_check_their_ranges() {
        let cases: &[(Convert, Value<'_>, &str)] = &[
            (int, Value::Double(-TWO_63), "integer overflow"),
            (int, Value::Double(9_223_372_036_854_774_784.0), "9223372036854774784"),
            (int, Value::Double(f64::NAN), "integer overflow"),
            (int, Value::Double(-1.9), "-1"),
            (int, Value::Uint(u64::MAX), "integer overflow"),
            (int, Value::borrowed("+42"), "42"),
            (int, Value::borrowed("0x10"), "type conversion error from 'string' to 'int'"),
            (uint, Value::Double(-0.5), "unsigned integer overflow"),
            (uint, Value::borrowed("+1"), "type conversion error from 'string' to 'uint'"),
            (uint, Value::Int(-1), "unsigned integer overflow"),
            (double, Value::borrowed("1_0"), "10"),
            (double, Value::borrowed("1d"), "type conversion error from 'string' to 'double'"),
            (bool, Value::borrowed("maybe"), "type conversion error from 'string' to 'bool'"),
            (bool, Value::borrowed("T"), "true"),
            (string, Value::Bytes(Octets::Borrowed(b"\xff")), "invalid UTF-8 in bytes, cannot convert to string"),
            (timestamp, Value::Int(253_402_300_800), "timestamp overflow"),
            (timestamp, Value::borrowed("0001-01-01T00:00:00+01:00"), "timestamp overflow"),
            (timestamp, Value::borrowed("x"), "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
            (duration, Value::Int(1), "type conversion error from 'int' to 'google.protobuf.Duration'"),
            (type_of, Value::Null, "null_type"),
        ];
        for (convert, value, expected) in cases {
            assert_eq!(text(*convert, value.clone()), *expected, "{value:?}");
        }
    }
}
