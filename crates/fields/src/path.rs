//! Steps and paths into an object.

use compact_str::CompactString;
use object::{Value, go};
use std::cmp::Ordering;
use std::fmt;

/// One step into an object: how a child is chosen within what holds it.
///
/// Elements are ordered as upstream orders them: fields, then list-map keys, then set values, then indices; numbers
/// compare by value, so `1` and `1.0` are the same element.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map; prints as `.name`.
    Field(CompactString),
    /// An item of a list map, by its key fields in the order of their names; prints as `[a="x",b=1]`.
    Key(Vec<(CompactString, Value)>),
    /// An item of a set, by its value; prints as `[="x"]`.
    Value(Value),
    /// An item of an atomic list, by its position; prints as `[3]`.
    Index(i64),
}

impl PathElement {
    /// A field or map key.
    pub fn field(name: impl Into<CompactString>) -> Self {
        PathElement::Field(name.into())
    }

    /// A list-map key; the fields are put in order.
    pub fn key(fields: impl IntoIterator<Item = (CompactString, Value)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(fields)
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.as_str().cmp(b.as_str()),
            (PathElement::Key(a), PathElement::Key(b)) => {
                for ((an, av), (bn, bv)) in a.iter().zip(b) {
                    let order = an.cmp(bn).then_with(|| compare_values(av, bv));
                    if order.is_ne() {
                        return order;
                    }
                }
                a.len().cmp(&b.len())
            }
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Shown(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", Shown(value)),
            PathElement::Index(i) => write!(f, "[{i}]"),
        }
    }
}

/// A value as paths print it.
struct Shown<'v>(&'v Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) => f.write_str(&go::float(*x)),
            Value::String(s) => f.write_str(&go::quote(s)),
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{}", Shown(item))?;
                }
                f.write_str("]")
            }
            Value::Object(members) => members.iter().try_for_each(|(k, v)| write!(f, "{k}={}", Shown(v))),
        }
    }
}

/// A path from the object's root; prints its elements one after the other: `.spec.ports[name="a"].port`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<PathElement>);

impl FieldPath {
    /// A path of fields only.
    pub fn fields(names: &[&str]) -> Self {
        FieldPath(names.iter().map(|n| PathElement::field(*n)).collect())
    }

    /// The elements from the root on.
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|e| write!(f, "{e}"))
    }
}

impl FromIterator<PathElement> for FieldPath {
    fn from_iter<T: IntoIterator<Item = PathElement>>(iter: T) -> Self {
        FieldPath(iter.into_iter().collect())
    }
}

/// Upstream's total order of values: numbers (by value, integers and floats alike), strings, booleans, lists, maps, null.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(a), Value::Float(b)) => compare_floats(*a as f64, *b),
        (Value::Float(a), Value::Int(b)) => compare_floats(*a, *b as f64),
        (Value::Float(a), Value::Float(b)) => compare_floats(*a, *b),
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                let order = compare_values(a, b);
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Object(a), Value::Object(b)) => {
            for ((ak, av), (bk, bv)) in a.iter().zip(b.iter()) {
                let order = ak.cmp(bk).then_with(|| compare_values(av, bv));
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        _ => value_rank(a).cmp(&value_rank(b)),
    }
}

/// Whether two values are equal as field management sees it: integers and floats by value.
pub fn equal_values(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_values(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((ak, av), (bk, bv))| ak == bk && equal_values(av, bv))
        }
        _ => compare_values(a, b).is_eq(),
    }
}

fn compare_floats(a: f64, b: f64) -> Ordering {
    // JSON has no NaN, so that the fallback is only for values built by hand.
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn value_rank(v: &Value) -> u8 {
    match v {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_print_as_in_conflicts() {
        for (element, text) in [
            (PathElement::field("a.b/c"), ".a.b/c"),
            (PathElement::key([("p".into(), 80.into()), ("n".into(), Value::from("x\"y"))]), "[n=\"x\\\"y\",p=80]"),
            (PathElement::Value(Value::from("a")), "[=\"a\"]"),
            (PathElement::Value(Value::Float(1.5)), "[=1.5]"),
            (PathElement::Index(3), "[3]"),
        ] {
            assert_eq!(element.to_string(), text);
        }
    }

    #[test]
    fn elements_are_ordered_by_kind_then_content() {
        let sorted = [
            PathElement::field("a"),
            PathElement::field("b"),
            PathElement::key([("a".into(), 9.into())]),
            PathElement::key([("a".into(), 10.into())]),
            PathElement::key([("a".into(), 10.into()), ("b".into(), 1.into())]),
            PathElement::Value(Value::Int(2)),
            PathElement::Value(Value::Float(2.5)),
            PathElement::Value(Value::from("a")),
            PathElement::Value(Value::Bool(false)),
            PathElement::Index(0),
        ];
        assert!(sorted.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(PathElement::Value(Value::Int(1)), PathElement::Value(Value::Float(1.0)));
    }
}
