//! Laying a configuration over a value.

use super::items::Items;
use super::{Shape, Shapes, fits, zip_maps};
use crate::path::equal_values;
use crate::schema::{Atom, ListKind, ListType, MapType, TypeId, TypeSchema};
use compact_str::CompactString;
use object::{Map, Value};

/// Lays `config` over `live`: structs and granular maps field by field, sets and list maps item by item, everything
/// else as a whole. Nothing is removed. Where the configuration touches a list, its items come in the configuration's
/// order, and those that only the live list has stay where they are between them.
pub fn merge(schema: &TypeSchema, live: &Value, config: &Value) -> Value {
    Walk { schema }.both(schema.root(), live, config).unwrap_or_default()
}

/// Whether [`merge`] surely gives `live` again. It walks the configuration and keeps nothing, which is much cheaper than
/// to merge; `false` says nothing. Items of a list must be the same ones in the same order.
pub fn merge_is_noop(schema: &TypeSchema, live: &Value, config: &Value) -> bool {
    covers(schema, schema.root(), live, config)
}

fn covers(schema: &TypeSchema, ty: TypeId, live: &Value, config: &Value) -> bool {
    let atom = schema.atom(ty);
    match (live, config, &atom.map, &atom.list) {
        (Value::Object(l), Value::Object(c), Some(map), _) if !map.atomic => c.iter().all(|(key, config)| {
            let below = l.get(key).zip(map.type_of(key));
            below.is_some_and(|(live, ty)| covers(schema, ty, live, config))
        }),
        (Value::Array(l), Value::Array(c), _, Some(list)) if list.kind != ListKind::Atomic => {
            let items = Items::new(schema, list);
            l.len() == c.len()
                && l.iter().zip(c).all(|(live, config)| {
                    items.key(live) == items.key(config) && covers(schema, list.element, live, config)
                })
        }
        _ => equal_values(live, config),
    }
}

struct Walk<'s> {
    schema: &'s TypeSchema,
}

impl Walk<'_> {
    fn sides(&self, ty: TypeId, lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
        match (lhs, rhs) {
            (Some(l), Some(r)) => self.both(ty, l, r),
            (only, None) | (None, only) => only.cloned(),
        }
    }

    fn both(&self, ty: TypeId, lhs: &Value, rhs: &Value) -> Option<Value> {
        let atom = self.schema.atom(ty);
        self.shape(atom, Shapes::of(atom, Some(rhs)).first(), lhs, rhs)
    }

    fn shape(&self, atom: &Atom, shape: Shape, lhs: &Value, rhs: &Value) -> Option<Value> {
        match shape {
            Shape::Scalar => {
                let scalar = atom.scalar?;
                if !fits(scalar, lhs) && !fits(scalar, rhs) {
                    return None;
                }
                Some(rhs.clone())
            }
            Shape::Map => {
                let map = atom.map.as_ref()?;
                let (l, r) = (lhs.as_object(), rhs.as_object());
                if map.atomic || l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty) {
                    return Some(rhs.clone());
                }
                self.members(map, l, r)
            }
            Shape::List => {
                let list = atom.list.as_ref()?;
                let (l, r) = (lhs.as_array().unwrap_or_default(), rhs.as_array().unwrap_or_default());
                if list.kind == ListKind::Atomic || l.is_empty() && r.is_empty() {
                    return Some(rhs.clone());
                }
                self.items(list, l, r)
            }
            Shape::Nothing => None,
        }
    }

    fn members(&self, map: &MapType, lhs: Option<&Map>, rhs: Option<&Map>) -> Option<Value> {
        let mut out: Vec<(CompactString, Value)> =
            Vec::with_capacity(lhs.map_or(0, Map::len).max(rhs.map_or(0, Map::len)));
        zip_maps(lhs, rhs, |key, l, r| {
            let merged = match map.type_of(key) {
                Some(ty) => self.sides(ty, l, r),
                None => r.or(l).cloned(),
            };
            out.extend(merged.map(|value| (key.into(), value)));
        });
        (!out.is_empty()).then(|| Value::Object(out.into()))
    }

    /// Upstream's order: both lists are walked at once. Items that both have are placed in the order of the
    /// configuration; items of one side only are taken when they are reached.
    fn items(&self, list: &ListType, lhs: &[Value], rhs: &[Value]) -> Option<Value> {
        let pairs = Pairs::new(self.schema, list, lhs, rhs);
        let mut out = Vec::with_capacity(lhs.len().max(rhs.len()));
        let mut shared = (0..rhs.len()).filter(|j| pairs.of_right[*j] != Partner::None);
        let mut next_shared = shared.next();
        let mut placed = vec![false; rhs.len()];
        let (mut i, mut j) = (0, 0);
        while i < lhs.len() || j < rhs.len() {
            if let (Some(partner), true) = (pairs.of_left.get(i), j < rhs.len()) {
                if *partner == Some(j) {
                    placed[j] = true;
                    out.extend(self.pair(list, &pairs, lhs, rhs, j));
                    i += 1;
                    j += 1;
                    next_shared = shared.next();
                    continue;
                }
                if partner.is_some() && next_shared.is_some() && next_shared != *partner {
                    // Both have it, but it is not its turn: it is placed where the configuration has it.
                    i += 1;
                    continue;
                }
            }
            if let Some(partner) = pairs.of_left.get(i) {
                match partner {
                    None => {
                        out.push(lhs[i].clone());
                        i += 1;
                        continue;
                    }
                    Some(partner) if placed[*partner] => i += 1,
                    Some(_) => {}
                }
            }
            if j < rhs.len() {
                placed[j] = true;
                out.extend(self.pair(list, &pairs, lhs, rhs, j));
                if next_shared == Some(j) {
                    next_shared = shared.next();
                }
                j += 1;
            }
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }

    fn pair(&self, list: &ListType, pairs: &Pairs, lhs: &[Value], rhs: &[Value], j: usize) -> Option<Value> {
        match pairs.of_right[j] {
            Partner::None => Some(rhs[j].clone()),
            Partner::One(i) => self.both(list.element, &lhs[i], &rhs[j]),
            // What the live list has several times is not merged with.
            Partner::Several => self.both(list.element, &Value::Null, &rhs[j]),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Partner {
    None,
    One(usize),
    Several,
}

/// Which items of two lists are the same one.
struct Pairs {
    of_left: Vec<Option<usize>>,
    of_right: Vec<Partner>,
}

impl Pairs {
    fn new(schema: &TypeSchema, list: &ListType, lhs: &[Value], rhs: &[Value]) -> Self {
        let mut pairs = Pairs { of_left: vec![None; lhs.len()], of_right: vec![Partner::None; rhs.len()] };
        let items = Items::new(schema, list);
        let right = items.sorted(rhs);
        let mut at = 0;
        for (key, i) in items.sorted(lhs) {
            while right.get(at).is_some_and(|(k, _)| *k < key) {
                at += 1;
            }
            if let Some((_, j)) = right.get(at).filter(|(k, _)| *k == key) {
                pairs.of_left[i] = Some(*j);
                pairs.of_right[*j] = match pairs.of_right[*j] {
                    Partner::None => Partner::One(i),
                    _ => Partner::Several,
                };
            }
        }
        pairs
    }
}
