//! `+ - * / %` and unary minus.

use crate::value::{Error, Octets, Result, Value};

fn integer_overflow() -> Error {
    Error::new("integer overflow")
}

fn unsigned_overflow() -> Error {
    Error::new("unsigned integer overflow")
}

fn timestamp_overflow() -> Error {
    Error::new("timestamp overflow")
}

/// The error of an operator, or of `size`, that the type of `operand` does not have. Strings, timestamps and durations have functions
/// of their own, which are asked for the operator and do not name it in their answer.
fn undefined(operator: &str, operand: &Value<'_>) -> Error {
    match operand {
        Value::String(_) | Value::Timestamp(_) | Value::Duration(_) => Error::no_such_overload(),
        _ => Error::no_overload_of(operator),
    }
}

/// `a + b`
pub(crate) fn add<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::no_such_overload()) };
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or_else(integer_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            let mut sum = String::with_capacity(a.len() + b.len());
            sum.push_str(a);
            sum.push_str(b);
            Value::shared(sum)
        }
        (Value::Bytes(a), Value::Bytes(b)) => Value::Bytes(Octets::Shared([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => a.concat(b)?,
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(crate::value::Duration(a.0.checked_add(b.0).ok_or_else(integer_overflow)?))
        }
        (Value::Timestamp(time), Value::Duration(span)) | (Value::Duration(span), Value::Timestamp(time)) => {
            Value::Timestamp(time.checked_add(*span).ok_or_else(timestamp_overflow)?)
        }
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ) => return Err(Error::no_such_overload()),
        _ => return Err(Error::no_overload_of("_+_")),
    })
}

/// `a - b`
pub(crate) fn subtract<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::no_such_overload()) };
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or_else(integer_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_sub(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(crate::value::Duration(a.0.checked_sub(b.0).ok_or_else(integer_overflow)?))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => Value::Duration(a.checked_sub(*b).ok_or_else(integer_overflow)?),
        (Value::Timestamp(time), Value::Duration(span)) => {
            let span = crate::value::Duration(span.0.checked_neg().ok_or_else(integer_overflow)?);
            Value::Timestamp(time.checked_add(span).ok_or_else(timestamp_overflow)?)
        }
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => return Err(Error::no_such_overload()),
        (a, _) => return Err(undefined("_-_", a)),
    })
}

/// `a * b`
pub(crate) fn multiply<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::no_such_overload()) };
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(*b).ok_or_else(integer_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_mul(*b).ok_or_else(unsigned_overflow)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a * b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => return Err(Error::no_such_overload()),
        (a, _) => return Err(undefined("_*_", a)),
    })
}

/// `a / b`
pub(crate) fn divide<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::no_such_overload()) };
    let by_zero = || Error::new("division by zero");
    Ok(match (a, b) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(by_zero()),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_div(*b).ok_or_else(integer_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_div(*b).ok_or_else(by_zero)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a / b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => return Err(Error::no_such_overload()),
        (a, _) => return Err(undefined("_/_", a)),
    })
}

/// `a % b`
pub(crate) fn modulo<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::no_such_overload()) };
    let by_zero = || Error::new("modulus by zero");
    Ok(match (a, b) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(by_zero()),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_rem(*b).ok_or_else(integer_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_rem(*b).ok_or_else(by_zero)?),
        (Value::Int(_) | Value::Uint(_), _) => return Err(Error::no_such_overload()),
        (a, _) => return Err(undefined("_%_", a)),
    })
}

/// `-a`
pub(crate) fn negate<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(match args {
        [Value::Int(a)] => Value::Int(a.checked_neg().ok_or_else(integer_overflow)?),
        [Value::Double(a)] => Value::Double(-a),
        [Value::Duration(a)] => {
            Value::Duration(crate::value::Duration(a.0.checked_neg().ok_or_else(integer_overflow)?))
        }
        [Value::Bool(_)] => return Err(Error::no_such_overload()),
        [a] => return Err(undefined("-_", a)),
        _ => return Err(Error::no_such_overload()),
    })
}

/// `!a`
pub(crate) fn not<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::Bool(a)] => Ok(Value::Bool(!a)),
        _ => Err(Error::no_such_overload()),
    }
}

macro_rules! ordering {
    ($($(#[$doc:meta])* $name:ident $symbol:literal $test:ident;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
            let [a, b] = args else { return Err(Error::no_such_overload()) };
            if !is_ordered(a) {
                return Err(Error::no_overload_of($symbol));
            }
            Ok(Value::Bool(a.compare(b)?.$test()))
        })*
    };
}

ordering! {
    /// `a < b`
    less "_<_" is_lt;
    /// `a <= b`
    less_equals "_<=_" is_le;
    /// `a > b`
    greater "_>_" is_gt;
    /// `a >= b`
    greater_equals "_>=_" is_ge;
}

/// Whether values of the type of `value` have an order.
pub(super) fn is_ordered(value: &Value<'_>) -> bool {
    !matches!(
        value,
        Value::Null | Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Optional(_) | Value::Opaque(_)
    )
}

/// `a in b`
pub(crate) fn contains<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [element, container] = args else { return Err(Error::no_such_overload()) };
    match container {
        Value::List(list) => {
            let mut failure = None;
            for member in list.iter() {
                let member = member?;
                // A typed list asks its members, and does not forget that one could not answer.
                let answer = if list.is_typed() { member.equals(element) } else { element.equals(&member) };
                match answer {
                    Ok(true) => return Ok(Value::Bool(true)),
                    Err(error) if error.is_fatal() => return Err(error),
                    Err(error) if list.is_typed() => failure = failure.or(Some(error)),
                    _ => {}
                }
            }
            failure.map_or(Ok(Value::Bool(false)), Err)
        }
        Value::Map(map) if map.is_typed() && element.as_str().is_none() => Err(Error::no_such_overload()),
        Value::Map(map) => Ok(Value::Bool(map.contains(element))),
        _ => Err(Error::no_such_overload()),
    }
}

/// `size(a)`
pub(crate) fn size<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.cost_size()).unwrap_or(i64::MAX)))
        }
        [value] => Err(undefined("size", value)),
        _ => Err(Error::no_overload_of("size")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Value<'_>>) -> String {
        result.map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn integer_arithmetic_is_checked() {
        let (min, max) = (Value::Int(i64::MIN), Value::Int(i64::MAX));
        let minus_one = Value::Int(-1);
        assert_eq!(text(add(&[max.clone(), Value::Int(1)])), "integer overflow");
        assert_eq!(text(divide(&[min.clone(), minus_one.clone()])), "integer overflow");
        assert_eq!(text(modulo(&[min.clone(), minus_one])), "integer overflow");
        assert_eq!(text(negate(std::slice::from_ref(&min))), "integer overflow");
        assert_eq!(text(divide(&[max, Value::Int(0)])), "division by zero");
        assert_eq!(text(modulo(&[min, Value::Int(0)])), "modulus by zero");
        assert_eq!(text(subtract(&[Value::Uint(0), Value::Uint(1)])), "unsigned integer overflow");
        assert_eq!(text(modulo(&[Value::Int(-7), Value::Int(2)])), "-1");
    }

    #[test]
    fn the_left_operand_decides_how_a_missing_overload_is_named() {
        assert_eq!(text(add(&[Value::Int(1), Value::Double(1.0)])), "no such overload");
        assert_eq!(text(add(&[Value::Null, Value::Int(1)])), "no such overload: _+_");
        assert_eq!(text(less(&[Value::borrowed("a"), Value::Int(1)])), "no such overload");
        assert_eq!(text(size(&[Value::Int(1)])), "no such overload: size");
    }
}
