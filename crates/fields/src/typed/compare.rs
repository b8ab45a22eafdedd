//! What differs between two values.

use super::items::{ItemKey, Items};
use super::{Shape, Shapes, fits, zip_maps};
use crate::path::{PathElement, equal_values};
use crate::schema::{Atom, ListKind, ListType, MapType, TypeId, TypeSchema};
use crate::set::{FieldFilter, FieldSet};
use object::{Map, Value};

/// How one value differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What only the new value has.
    pub added: FieldSet,
    /// What both have with different values.
    pub modified: FieldSet,
    /// What only the old value has.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The part that passes a filter.
    pub fn filter(self, filter: &FieldFilter) -> Comparison {
        Comparison {
            added: filter.filter(self.added),
            modified: filter.filter(self.modified),
            removed: filter.filter(self.removed),
        }
    }
}

/// Compares two values. Null, an empty list and an empty map are values of their own; the order of items in sets and
/// list maps does not count; atomic lists and maps differ as a whole. Items that repeat a key are compared together.
pub fn compare(schema: &TypeSchema, old: &Value, new: &Value) -> Comparison {
    let mut out = Comparison::default();
    Walk { schema }.compare(schema.root(), Some(old), Some(new), &mut out);
    out
}

/// In which of the three sets a path itself is.
#[derive(Clone, Copy, Default)]
struct Marks {
    added: bool,
    modified: bool,
    removed: bool,
}

struct Walk<'s> {
    schema: &'s TypeSchema,
}

type Side<'v> = Option<&'v Value>;

impl Walk<'_> {
    /// Compares what is below a path into `out`; the marks of the path itself are the caller's to keep.
    fn compare(&self, ty: TypeId, lhs: Side<'_>, rhs: Side<'_>, out: &mut Comparison) -> Marks {
        let atom = self.schema.atom(ty);
        let (left, right) = (Shapes::of(atom, lhs), Shapes::of(atom, rhs));
        let mut marks = Marks::default();
        let leaf = if rhs.is_none() {
            self.shape(atom, left.first(), lhs, rhs, out, &mut marks)
        } else if lhs.is_none() || left.first() == right.first() {
            self.shape(atom, right.first(), lhs, rhs, out, &mut marks)
        } else {
            // The value changed its shape: what the old shape had goes, what the new one has comes.
            self.shape(atom, left.first(), lhs, rhs, out, &mut marks);
            self.shape(atom, right.first(), lhs, rhs, out, &mut marks)
        };
        if !leaf {
            marks.added |= lhs.is_none();
            marks.removed |= lhs.is_some() && rhs.is_none();
        }
        marks
    }

    /// Compares as one shape; tells whether the path is a leaf in it.
    fn shape(
        &self,
        atom: &Atom,
        shape: Shape,
        lhs: Side<'_>,
        rhs: Side<'_>,
        out: &mut Comparison,
        marks: &mut Marks,
    ) -> bool {
        match shape {
            Shape::Scalar => {
                let Some(scalar) = atom.scalar else { return false };
                let bad = |side: Side<'_>| side.is_some_and(|v| !fits(scalar, v));
                if bad(lhs) && bad(rhs) {
                    return false;
                }
            }
            Shape::Map => {
                let Some(map) = &atom.map else { return false };
                let (l, r) = (lhs.and_then(Value::as_object), rhs.and_then(Value::as_object));
                let empty = l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty);
                if !map.atomic && !empty {
                    self.members(map, l, r, out);
                    return false;
                }
            }
            Shape::List => {
                let Some(list) = &atom.list else { return false };
                let (l, r) = (lhs.and_then(Value::as_array), rhs.and_then(Value::as_array));
                let (l, r) = (l.unwrap_or_default(), r.unwrap_or_default());
                if list.kind != ListKind::Atomic && !(l.is_empty() && r.is_empty()) {
                    self.items(list, l, r, out);
                    return false;
                }
            }
            Shape::Nothing => return false,
        }
        match (lhs, rhs) {
            (None, _) => marks.added = true,
            (_, None) => marks.removed = true,
            (Some(l), Some(r)) => marks.modified |= !equal_values(l, r),
        }
        true
    }

    fn members(&self, map: &MapType, lhs: Option<&Map>, rhs: Option<&Map>, out: &mut Comparison) {
        zip_maps(lhs, rhs, |key, l, r| {
            if let Some(ty) = map.type_of(key) {
                let mut below = Comparison::default();
                let marks = self.compare(ty, l, r, &mut below);
                keep(out, marks, below, || PathElement::field(key));
            }
        });
    }

    fn items(&self, list: &ListType, lhs: &[Value], rhs: &[Value], out: &mut Comparison) {
        if lhs.len() == rhs.len() && lhs.iter().zip(rhs).all(|(l, r)| equal_values(l, r)) {
            return;
        }
        let items = Items::new(self.schema, list);
        let (left, right) = (items.sorted(lhs), items.sorted(rhs));
        let (mut i, mut j) = (0, 0);
        while i < left.len() || j < right.len() {
            let key = match (left.get(i), right.get(j)) {
                (Some((l, _)), Some((r, _))) => l.min(r),
                (Some((k, _)), None) | (None, Some((k, _))) => k,
                (None, None) => return,
            };
            let l = run(&left[i..], key);
            let r = run(&right[j..], key);
            i += l.len();
            j += r.len();
            let mut below = Comparison::default();
            let mut marks = Marks::default();
            match (l, r) {
                ([], []) => return,
                ([] | [_], [] | [_]) => {
                    let (l, r) = (l.first().map(|(_, i)| &lhs[*i]), r.first().map(|(_, i)| &rhs[*i]));
                    marks = self.compare(list.element, l, r, &mut below);
                }
                ([_, _, ..], [_, _, ..]) => {
                    let same =
                        l.len() == r.len() && l.iter().zip(r).all(|((_, i), (_, j))| equal_values(&lhs[*i], &rhs[*j]));
                    marks.modified = !same;
                }
                ([_, _, ..], rest) => {
                    if let Some((_, j)) = rest.first() {
                        marks = self.compare(list.element, None, Some(&rhs[*j]), &mut below);
                    }
                    marks.removed = true;
                }
                (rest, [_, _, ..]) => {
                    if let Some((_, i)) = rest.first() {
                        marks = self.compare(list.element, Some(&lhs[*i]), None, &mut below);
                    }
                    marks.added = true;
                }
            }
            keep(out, marks, below, || items.element(key));
        }
    }
}

/// The items at the front that have this key.
fn run<'i, 'v>(items: &'i [(ItemKey<'v>, usize)], key: &ItemKey<'v>) -> &'i [(ItemKey<'v>, usize)] {
    let n = items.iter().take_while(|(k, _)| k == key).count();
    &items[..n]
}

fn keep(out: &mut Comparison, marks: Marks, below: Comparison, element: impl Fn() -> PathElement) {
    for (set, mark, children) in [
        (&mut out.added, marks.added, below.added),
        (&mut out.modified, marks.modified, below.modified),
        (&mut out.removed, marks.removed, below.removed),
    ] {
        if mark || !children.is_empty() {
            set.push(element(), mark, children);
        }
    }
}
