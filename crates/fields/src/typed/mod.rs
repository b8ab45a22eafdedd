//! Operations on values by their schema.
//!
//! Every walk goes as deep as the value does; values come from readers that limit their depth to 1,000. All but
//! [`validate`] take values that are valid by the schema and never fail: what does not fit is skipped.

mod compare;
mod field_set;
mod items;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub use compare::{Comparison, compare};
pub use field_set::{named_fields, to_field_set};
pub use items::{item_element, value_at};
pub use merge::{merge, merge_is_noop};
pub use reconcile::reconcile;
pub use remove::{extract_items, remove_items};
pub use validate::{Duplicates, ValidationErrors, validate};

use crate::schema::{Atom, Scalar};
use object::{Map, Value};

/// Which of an atom's alternatives a value takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Map,
    Scalar,
    List,
    /// The atom allows nothing; only a schema built wrongly has such.
    Nothing,
}

/// The alternatives that remain once the value is known: its own kind where the atom has it, else all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shapes {
    map: bool,
    scalar: bool,
    list: bool,
}

impl Shapes {
    fn of(atom: &Atom, value: Option<&Value>) -> Self {
        let all = Shapes { map: atom.map.is_some(), scalar: atom.scalar.is_some(), list: atom.list.is_some() };
        let none = Shapes { map: false, scalar: false, list: false };
        match value {
            Some(Value::Object(_)) if all.map => Shapes { map: true, ..none },
            Some(Value::Array(_)) if all.list => Shapes { list: true, ..none },
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) if all.scalar => {
                Shapes { scalar: true, ..none }
            }
            _ => all,
        }
    }

    /// Of several the map counts, then the scalar.
    fn first(self) -> Shape {
        match self {
            Shapes { map: true, .. } => Shape::Map,
            Shapes { scalar: true, .. } => Shape::Scalar,
            Shapes { list: true, .. } => Shape::List,
            _ => Shape::Nothing,
        }
    }
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match (scalar, value) {
        (_, Value::Null) => true,
        (_, Value::Array(_) | Value::Object(_)) => false,
        (Scalar::Untyped, _) => true,
        (Scalar::Numeric, v) => matches!(v, Value::Int(_) | Value::Float(_)),
        (Scalar::String, v) => matches!(v, Value::String(_)),
        (Scalar::Boolean, v) => matches!(v, Value::Bool(_)),
    }
}

/// Walks two maps together in the order of their keys.
fn zip_maps<'v>(
    lhs: Option<&'v Map>,
    rhs: Option<&'v Map>,
    mut visit: impl FnMut(&'v str, Option<&'v Value>, Option<&'v Value>),
) {
    let mut left = lhs.into_iter().flat_map(Map::iter).peekable();
    let mut right = rhs.into_iter().flat_map(Map::iter).peekable();
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some((k, v)), None) => {
                visit(k, Some(v), None);
                left.next();
            }
            (None, Some((k, v))) => {
                visit(k, None, Some(v));
                right.next();
            }
            (Some((k, v)), Some((k2, v2))) => {
                let order = k.cmp(k2);
                let (take_left, take_right) = (order.is_le(), order.is_ge());
                visit(if take_left { k } else { k2 }, take_left.then_some(*v), take_right.then_some(*v2));
                if take_left {
                    left.next();
                }
                if take_right {
                    right.next();
                }
            }
        }
    }
}
