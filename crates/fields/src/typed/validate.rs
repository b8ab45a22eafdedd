//! Does a value fit its schema?

use super::items::{ItemKey, Items};
use super::{Shape, Shapes, fits};
use crate::schema::{ListKind, ListType, MapType, Scalar, TypeId, TypeSchema};
use object::{Value, go};
use std::fmt;

/// Whether list items may repeat a key or value: not in what a client applies, but in what is stored already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They are an error.
    Forbid,
    /// They are tolerated.
    Allow,
}

/// What does not fit, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationErrors(Vec<(String, String)>);

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, (path, message): &(String, String)| match path.as_str() {
            "" => f.write_str(message),
            _ => write!(f, "{path}: {message}"),
        };
        if let [only] = self.0.as_slice() {
            return one(f, only);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|e| {
            f.write_str("\n  ")?;
            one(f, e)
        })
    }
}

impl std::error::Error for ValidationErrors {}

/// Checks a value against the schema.
pub fn validate(schema: &TypeSchema, value: &Value, duplicates: Duplicates) -> Result<(), ValidationErrors> {
    let mut walk = Walk { schema, duplicates, errors: Vec::new() };
    walk.value(schema.root(), value);
    if walk.errors.is_empty() { Ok(()) } else { Err(ValidationErrors(walk.errors)) }
}

struct Walk<'s> {
    schema: &'s TypeSchema,
    duplicates: Duplicates,
    errors: Vec<(String, String)>,
}

impl Walk<'_> {
    fn error(&mut self, message: impl Into<String>) {
        self.errors.push((String::new(), message.into()));
    }

    fn value(&mut self, ty: TypeId, value: &Value) {
        let schema = self.schema;
        let atom = schema.atom(ty);
        match (Shapes::of(atom, Some(value)).first(), value) {
            (Shape::Map, Value::Object(members)) => {
                if let Some(map) = &atom.map {
                    self.members(map, members);
                }
            }
            (Shape::List, Value::Array(items)) => {
                if let Some(list) = &atom.list {
                    self.items(list, items);
                }
            }
            (Shape::Map | Shape::List, Value::Null) => {}
            (Shape::Map, _) => self.error(format!("expected map, got &{{{}}}", go::plain(value))),
            (Shape::List, _) => self.error(format!("expected list, got &{{{}}}", go::plain(value))),
            (Shape::Scalar, _) => {
                if let Some(scalar) = atom.scalar.filter(|s| !fits(*s, value)) {
                    self.error(expected(scalar, value));
                }
            }
            (Shape::Nothing, _) => self.error("schema error: invalid atom: inlined"),
        }
    }

    fn members(&mut self, map: &MapType, members: &object::Map) {
        for (key, value) in members.iter() {
            match map.type_of(key) {
                Some(ty) => self.below(ty, value, || format!(".{key}")),
                None => {
                    // Upstream stops at the first field it does not know.
                    self.errors.push((format!(".{key}"), "field not declared in schema".to_owned()));
                    return;
                }
            }
        }
    }

    fn items(&mut self, list: &ListType, items: &[Value]) {
        if list.kind == ListKind::Atomic {
            for (i, item) in items.iter().enumerate() {
                self.below(list.element, item, || format!("[{i}]"));
            }
            return;
        }
        let keyed = Items::new(self.schema, list);
        let mut keys: Vec<ItemKey<'_>> = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match keyed.key(item) {
                Some(key) => keys.push(key),
                None => {
                    self.error(format!("element {i}: {}", keyed.why_not(item)));
                    // Without a name what is deeper cannot be told.
                    break;
                }
            }
        }
        let repeated = match self.duplicates {
            Duplicates::Allow => Vec::new(),
            Duplicates::Forbid => repetitions(&keys),
        };
        for (i, (key, item)) in keys.iter().zip(items).enumerate() {
            if repeated.binary_search(&i).is_ok() {
                self.error(format!("duplicate entries for key {}", keyed.element(key)));
            }
            self.below(list.element, item, || keyed.element(key).to_string());
        }
    }

    fn below(&mut self, ty: TypeId, value: &Value, step: impl Fn() -> String) {
        let before = self.errors.len();
        self.value(ty, value);
        for (path, _) in &mut self.errors[before..] {
            path.insert_str(0, &step());
        }
    }
}

/// The positions of keys that an earlier position has too, in order.
fn repetitions(keys: &[ItemKey<'_>]) -> Vec<usize> {
    if keys.windows(2).all(|w| w[0] < w[1]) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by(|a, b| keys[*a].cmp(&keys[*b]).then(a.cmp(b)));
    let mut out: Vec<usize> = order.windows(2).filter(|w| keys[w[0]] == keys[w[1]]).map(|w| w[1]).collect();
    out.sort_unstable();
    out
}

fn expected(scalar: Scalar, value: &Value) -> String {
    match scalar {
        Scalar::Numeric => format!("expected numeric (int or float), got {}", go::type_name(value)),
        Scalar::String => format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(value)),
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", go::plain(value)),
        Scalar::Untyped => format!("expected any scalar, got &{{{}}}", go::plain(value)),
    }
}
