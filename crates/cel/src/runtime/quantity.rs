//! The functions of quantities.

use std::any::Any;

use crate::quantity::{Format, Quantity};
use crate::value::{Error, Opaque, Result, Value};

impl Opaque for Quantity {
    fn type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A sum or a difference.
#[derive(Debug)]
struct Computed(Quantity);

impl Opaque for Computed {
    fn type_name(&self) -> &'static str {
        Opaque::type_name(&self.0)
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        Opaque::equals(&self.0, other)
    }
    fn is_computed(&self) -> bool {
        true
    }
    fn as_any(&self) -> &dyn Any {
        &self.0
    }
}

/// `quantity(text)`
pub(crate) fn quantity<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => {
            Quantity::parse(text).map(Value::opaque).map_err(|error| Error::new(error.to_string()))
        }
        _ => Err(Error::mismatch()),
    }
}

/// `isQuantity(text)`
pub(crate) fn is_quantity<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        _ => Err(Error::mismatch()),
    }
}

fn only<'s>(args: &'s [Value<'_>]) -> Result<&'s Quantity> {
    match args {
        [value] => value.downcast().ok_or_else(Error::mismatch),
        _ => Err(Error::mismatch()),
    }
}

/// `quantity.isInteger()`
pub(crate) fn is_integer<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(only(args)?.as_i64().is_some()))
}

/// `quantity.asInteger()`
pub(crate) fn as_integer<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    only(args)?.as_i64().map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
}

/// `quantity.asApproximateFloat()`
pub(crate) fn as_approximate_float<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Double(only(args)?.as_approximate_f64()))
}

/// `sign(quantity)`
pub(crate) fn sign<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Int(only(args)?.signum()))
}

fn sum<'a>(args: &[Value<'a>], negate: bool) -> Result<Value<'a>> {
    let [a, b] = args else { return Err(Error::mismatch()) };
    let a: &Quantity = a.downcast().ok_or_else(Error::mismatch)?;
    let integer;
    let b = match b {
        Value::Int(value) => {
            integer = Quantity::from_i64(*value, Format::DecimalExponent);
            &integer
        }
        other => other.downcast().ok_or_else(Error::mismatch)?,
    };
    Ok(Value::opaque(Computed(if negate { a.sub(b) } else { a.add(b) })))
}

/// `quantity.add(other)`
pub(crate) fn add<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, false)
}

/// `quantity.sub(other)`
pub(crate) fn sub<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, true)
}
