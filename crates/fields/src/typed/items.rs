//! The identity of list items.

use super::Shapes;
use crate::path::{PathElement, compare_values};
use crate::schema::{ListKind, ListType, TypeId, TypeSchema};
use compact_str::CompactString;
use object::{Value, go};
use std::cmp::Ordering;

/// How the items of one set or list map are told apart. Keys borrow from the items: most are compared and never kept.
pub(super) struct Items<'v> {
    schema: &'v TypeSchema,
    list: &'v ListType,
    /// The key fields in the order of their names, with their defaults; empty for a set.
    keys: Vec<(&'v CompactString, Option<&'v Value>)>,
}

/// What names an item within its list.
#[derive(Clone, Debug)]
pub(super) enum ItemKey<'v> {
    /// The value of a set's item, or of the only key field.
    One(&'v Value),
    /// The values of the key fields, in the order of their names.
    Many(Vec<&'v Value>),
}

impl Ord for ItemKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (ItemKey::One(a), ItemKey::One(b)) => compare_values(a, b),
            (ItemKey::Many(a), ItemKey::Many(b)) => {
                let orders = a.iter().zip(b).map(|(a, b)| compare_values(a, b));
                orders.fold(Ordering::Equal, Ordering::then)
            }
            // Keys of one list are all of one form.
            (ItemKey::One(_), ItemKey::Many(_)) => Ordering::Less,
            (ItemKey::Many(_), ItemKey::One(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for ItemKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ItemKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ItemKey<'_> {}

impl<'v> Items<'v> {
    /// For a list that is not atomic.
    pub fn new(schema: &'v TypeSchema, list: &'v ListType) -> Self {
        let mut keys = Vec::new();
        if let ListKind::Map(names) = &list.kind {
            let map = schema.atom(list.element).map.as_ref();
            let default = |name: &CompactString| map.and_then(|m| m.field(name)).and_then(|f| f.default.as_ref());
            keys = names.iter().map(|name| (name, default(name))).collect();
            keys.sort_by_key(|(name, _)| *name);
        }
        Items { schema, list, keys }
    }

    /// What names an item; `None` where nothing does.
    pub fn key(&self, item: &'v Value) -> Option<ItemKey<'v>> {
        if self.list.kind == ListKind::Set {
            return match item {
                Value::Object(_) | Value::Array(_) | Value::Null => None,
                scalar => Some(ItemKey::One(scalar)),
            };
        }
        let members = item.as_object()?;
        let value = |(name, default): &(&CompactString, Option<&'v Value>)| members.get(name).or(*default);
        match self.keys.as_slice() {
            [only] => Some(ItemKey::One(value(only)?)),
            several => Some(ItemKey::Many(several.iter().map(value).collect::<Option<_>>()?)),
        }
    }

    /// The path element of a key.
    pub fn element(&self, key: &ItemKey<'_>) -> PathElement {
        let values: &[&Value] = match key {
            ItemKey::One(value) if self.list.kind == ListKind::Set => return PathElement::Value((*value).clone()),
            ItemKey::One(value) => &[*value],
            ItemKey::Many(values) => values,
        };
        PathElement::Key(
            self.keys.iter().zip(values).map(|((name, _), value)| ((*name).clone(), (*value).clone())).collect(),
        )
    }

    /// Why an item has no key, in upstream's words.
    pub fn why_not(&self, item: &Value) -> String {
        let text = match (&self.list.kind, item) {
            (ListKind::Map(names), Value::Object(members)) => {
                let missing = |name: &&CompactString| {
                    let default = self.keys.iter().find(|(key, _)| key == name).and_then(|(_, default)| *default);
                    !members.contains_key(name) && default.is_none()
                };
                let name = names.iter().find(missing).map(CompactString::as_str).unwrap_or_default();
                return if self.schema.atom(self.list.element).map.is_some() {
                    let name = go::quote(name);
                    format!(
                        "associative list with keys has an element that omits key field {name} (and doesn't have default value)"
                    )
                } else {
                    format!("couldn't find default value for {name}: associative list may not have non-map types")
                };
            }
            (ListKind::Map(_), Value::Null) => "associative list with keys may not have a null element",
            (ListKind::Map(_), _) => "associative list with keys may not have non-map elements",
            (_, Value::Object(_)) => "associative list without keys has an element that's a map type",
            (_, Value::Array(_)) => "not supported: associative list with lists as elements",
            (_, _) => "associative list without keys has an element that's an explicit null",
        };
        text.to_owned()
    }

    /// The keys of items with their positions, sorted by key, then position. Items without a key are left out.
    pub fn sorted(&self, items: &'v [Value]) -> Vec<(ItemKey<'v>, usize)> {
        let mut out: Vec<(ItemKey<'v>, usize)> = Vec::with_capacity(items.len());
        out.extend(items.iter().enumerate().filter_map(|(i, item)| Some((self.key(item)?, i))));
        if out.windows(2).any(|w| w[0].0 > w[1].0) {
            out.sort_unstable();
        }
        out
    }
}

/// The element that names an item of a list; `None` where an item has none.
pub fn item_element(schema: &TypeSchema, list: &ListType, index: usize, item: &Value) -> Option<PathElement> {
    if list.kind == ListKind::Atomic {
        return Some(PathElement::Index(index as i64));
    }
    let items = Items::new(schema, list);
    items.key(item).map(|key| items.element(&key))
}

/// What stands at a path. Of items that repeat a key it is the first.
pub fn value_at<'v>(schema: &TypeSchema, value: &'v Value, path: &[PathElement]) -> Option<&'v Value> {
    let mut at = (Some(schema.root()), value);
    for step in path {
        at = step_into(schema, at.0, at.1, step)?;
    }
    Some(at.1)
}

fn step_into<'v>(
    schema: &TypeSchema,
    ty: Option<TypeId>,
    value: &'v Value,
    step: &PathElement,
) -> Option<(Option<TypeId>, &'v Value)> {
    let atom = ty.map(|ty| schema.atom(ty));
    match (step, value) {
        (PathElement::Field(name), Value::Object(members)) => {
            let ty = atom.and_then(|a| a.map.as_ref()).and_then(|m| m.type_of(name));
            Some((ty, members.get(name)?))
        }
        (PathElement::Index(i), Value::Array(items)) => {
            let ty = atom.and_then(|a| a.list.as_ref()).map(|l| l.element);
            Some((ty, items.get(usize::try_from(*i).ok()?)?))
        }
        (_, Value::Array(items)) => {
            let list =
                atom.and_then(|a| a.list.as_ref()).filter(|_| atom.is_some_and(|a| Shapes::of(a, Some(value)).list))?;
            let found =
                items.iter().enumerate().find(|(i, item)| item_element(schema, list, *i, item).as_ref() == Some(step));
            Some((Some(list.element), found?.1))
        }
        _ => None,
    }
}
