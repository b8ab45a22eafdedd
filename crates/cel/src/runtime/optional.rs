//! The functions of optional values; `or` and `orValue`, which evaluate lazily, are the interpreter's.

use crate::value::{Error, List, Result, Value};

/// `optional.of(value)`
pub(crate) fn of<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [value] => Ok(Value::some(value.clone())),
        _ => Err(Error::mismatch()),
    }
}

/// `optional.ofNonZeroValue(value)`
pub(crate) fn of_non_zero<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [value] if value.is_zero() => Ok(Value::Optional(None)),
        [value] => Ok(Value::some(value.clone())),
        _ => Err(Error::mismatch()),
    }
}

/// `optional.none()`
pub(crate) fn none<'a>(_: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Optional(None))
}

/// `optional.value()`
pub(crate) fn value<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::mismatch()),
    }
}

/// `optional.hasValue()`
pub(crate) fn has_value<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::mismatch()),
    }
}

/// `optional.unwrap(list)` and `list.unwrapOpt()`: the values present in a list of optionals.
pub(crate) fn unwrap<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::List(list)] = args else { return Err(Error::mismatch()) };
    let mut values = Vec::with_capacity(list.len());
    for element in list.iter() {
        match element? {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                return Err(Error::new(format!("value {other} is not optional")));
            }
        }
    }
    Ok(Value::List(List::new(values)))
}

/// `list.first()`
pub(crate) fn first<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::List(list)] if list.is_empty() => Ok(Value::Optional(None)),
        [Value::List(list)] => list.get(0).map(Value::some),
        _ => Err(Error::mismatch()),
    }
}

/// `list.last()`
pub(crate) fn last<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::List(list)] => match list.len().checked_sub(1) {
            None => Ok(Value::Optional(None)),
            Some(index) => list.get(index).map(Value::some),
        },
        _ => Err(Error::mismatch()),
    }
}
