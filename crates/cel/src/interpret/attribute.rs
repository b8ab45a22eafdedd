//! Selections and indexes.

use std::sync::Arc;

use super::cost;
use super::eval::{Frame, constant};
use super::plan::{Attribute, Key, Node, Root};
use crate::value::{Error, Result, Value};

/// What a chain of selections led to.
enum Selected<'a> {
    /// A value, and whether an optional selection led to it.
    Value(Value<'a>, bool),
    /// Nothing, past an optional selection.
    Absent,
}

impl<'a> Frame<'a, '_> {
    /// Evaluates an attribute and charges for it.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        if !matches!(attribute.root, Root::Conditional(_)) {
            self.charge(cost::SELECT)?;
        }
        self.resolve(attribute)
    }

    /// Evaluates the branch of a conditional, of which the variable or first operand is not charged for.
    pub(super) fn uncharged(&mut self, node: &'a Node) -> Result<Value<'a>> {
        match node {
            Node::Variable(slot) => self.variable(*slot),
            Node::Attribute(attribute) => self.resolve(attribute),
            node => self.eval(node),
        }
    }

    fn resolve(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let root = self.root(attribute)?;
        match self.select(root, attribute, attribute.qualifiers.len())? {
            Selected::Value(value, false) => Ok(value),
            Selected::Value(value, true) => Ok(Value::Optional(Some(Arc::new(value)))),
            Selected::Absent => Ok(Value::Optional(None)),
        }
    }

    fn root(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        match &attribute.root {
            Root::Variable(slot) => self.variable(*slot),
            Root::Operand(operand) => self.eval(operand),
            Root::Conditional(branches) => {
                let branch = self.choose(branches)?;
                self.uncharged(branch)
            }
        }
    }

    /// `has()`: the last selection asks for presence only.
    pub(super) fn has(&mut self, attribute: &'a Attribute) -> Result<Value<'a>> {
        let root = self.root(attribute)?;
        let Some((last, before)) = attribute.qualifiers.split_last() else { return Err(Error::no_such_overload()) };
        let operand = match self.select(root, attribute, before.len())? {
            Selected::Value(value, _) => value,
            Selected::Absent => return Ok(Value::Bool(false)),
        };
        self.charge(cost::SELECT)?;
        let present = match (&last.key, &operand) {
            (Key::Field(name), Value::Map(map)) => map.contains(&Value::borrowed(name)),
            (Key::Constant(key), Value::Map(map)) => map.contains(key),
            (_, Value::List(_)) => index(&operand, &key_value(&last.key))?.is_some(),
            _ => false,
        };
        Ok(Value::Bool(present))
    }

    /// Applies the first `count` selections to `value`.
    fn select(&mut self, mut value: Value<'a>, attribute: &'a Attribute, count: usize) -> Result<Selected<'a>> {
        let mut optional = false;
        match value {
            Value::Optional(None) => return Ok(Selected::Absent),
            Value::Optional(Some(inner)) => {
                optional = true;
                value = Arc::unwrap_or_clone(inner);
            }
            plain => value = plain,
        }
        for qualifier in attribute.qualifiers.iter().take(count) {
            optional |= qualifier.optional;
            let cost = match &qualifier.key {
                Key::Attribute(key) if matches!(key.root, Root::Conditional(_)) => 0,
                _ => cost::SELECT,
            };
            match self.select_one(&value, &qualifier.key) {
                Ok(Found::Value(found)) => {
                    self.charge(cost)?;
                    value = found;
                }
                Ok(Found::Nothing(_)) if optional => return Ok(Selected::Absent),
                Err(error) if error.is_fatal() => return Err(error),
                Ok(Found::Nothing(error)) | Err(error) => {
                    self.charge(if optional { 0 } else { cost })?;
                    return Err(error);
                }
            }
        }
        Ok(Selected::Value(value, optional))
    }

    fn select_one(&mut self, value: &Value<'a>, key: &'a Key) -> Result<Found<'a>> {
        match key {
            Key::Field(name) => field(value, name),
            Key::Constant(key) => index(value, key),
            Key::Attribute(key) => {
                let key = self.resolve(key)?;
                index(value, &key)
            }
            Key::Node(key) => {
                let key = self.eval(key)?;
                index(value, &key)
            }
        }
    }
}

/// The result of one selection.
enum Found<'a> {
    Value(Value<'a>),
    /// Nothing, and the error that is unless absence is an answer.
    Nothing(Error),
}

impl Found<'_> {
    fn is_some(&self) -> bool {
        matches!(self, Found::Value(_))
    }
}

fn key_value(key: &Key) -> Value<'_> {
    match key {
        Key::Field(name) => Value::borrowed(name),
        Key::Constant(value) => constant(value),
        Key::Attribute(_) | Key::Node(_) => Value::Null,
    }
}

fn field<'a>(value: &Value<'a>, name: &str) -> Result<Found<'a>> {
    match value {
        Value::Map(map) => Ok(match map.find_str(name) {
            Some(found) => Found::Value(found?),
            None => Found::Nothing(Error::no_such_key(name)),
        }),
        value => index(value, &Value::borrowed(name)),
    }
}

fn index<'a>(value: &Value<'a>, key: &Value<'_>) -> Result<Found<'a>> {
    require_qualifier(key)?;
    match value {
        Value::Map(map) if map.is_typed() && key.as_str().is_none() => Err(Error::no_such_overload()),
        Value::Map(map) => Ok(match map.find(key) {
            Some(found) => Found::Value(found?),
            None => Found::Nothing(Error::no_such_key(key)),
        }),
        Value::List(list) => {
            let position = list_index(key)?;
            match usize::try_from(position).ok().filter(|position| *position < list.len()) {
                Some(_) if list.is_typed() && !matches!(key, Value::Int(_)) => {
                    Err(Error::new(format!("unsupported index: {key}")))
                }
                Some(position) => list.get(position).map(Found::Value),
                None => Ok(Found::Nothing(Error::new(format!("index out of bounds: {key}")))),
            }
        }
        _ => Ok(Found::Nothing(Error::no_such_key(key))),
    }
}

/// A key must be of a type that a map's keys, or a list's index, can have.
pub(super) fn require_qualifier(key: &Value<'_>) -> Result<()> {
    match key {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        _ => Err(Error::new(format!("invalid qualifier type: {}", go_type(key)))),
    }
}

/// The index a value stands for.
fn list_index(key: &Value<'_>) -> Result<i64> {
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported_index(key)),
        Value::Double(index) => crate::value::int_of_double(*index).ok_or_else(|| unsupported_index(key)),
        _ => Err(Error::new(format!("unsupported index type '{}' in list", &*key.type_name()))),
    }
}

fn unsupported_index(key: &Value<'_>) -> Error {
    Error::new(format!("unsupported index value {key} in list"))
}

/// The name of the Go type cel-go keeps such a value in, which a few errors show.
pub(super) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::List(list) if list.is_typed() => "*common.unstructuredList",
        Value::List(_) => "*types.baseList",
        Value::Map(map) if map.is_typed() => "*common.unstructuredMap",
        Value::Map(_) => "*types.baseMap",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::Opaque(value) => match (value.type_name(), value.is_computed()) {
            ("kubernetes.Quantity", false) => "cel.Quantity",
            ("kubernetes.Quantity", true) => "*cel.Quantity",
            ("kubernetes.URL", _) => "cel.URL",
            ("kubernetes.Semver", _) => "cel.Semver",
            ("kubernetes.NamedFormat", _) => "*cel.Format",
            ("net.IP", _) => "cel.IP",
            ("net.CIDR", _) => "cel.CIDR",
            _ => "types.Opaque",
        },
    }
}
