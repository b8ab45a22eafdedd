//! Finding the old value of a part of an object, and telling whether it changed.

use crate::structural::{ListType, Node};
use object::Value;
use std::collections::HashMap;
use std::fmt::Write;

/// An old value, and the schema that says how its parts are found again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'p> {
    pub(crate) node: &'p Node,
    pub(crate) old: &'p Value,
}

impl<'p> Pair<'p> {
    /// The old value of a member, where the schema describes the member.
    pub(crate) fn member(self, key: &str) -> Option<Pair<'p>> {
        let old = self.old.get(key)?;
        let node = self.node.property(key).or_else(|| self.node.additional_schema())?;
        Some(Pair { node, old })
    }

    /// The old items, ready to be found.
    pub(crate) fn items(self) -> Correlated<'p> {
        let (Some(ListType::Map), Some(node), Value::Array(items)) =
            (self.node.list_type(), self.node.items(), self.old)
        else {
            return Correlated(None);
        };
        let keys = self.node.list_map_keys();
        let mut by_key = HashMap::with_capacity(items.len());
        for item in items.iter().filter(|item| item.as_object().is_some()) {
            if let Some(key) = key_of(item, keys) {
                by_key.entry(key).or_insert(item);
            }
        }
        Correlated(Some(Keyed { list: self.node, node, by_key }))
    }

    /// Whether `new` is what was there before. Items of a list with keys may have changed places; a member that the
    /// schema does not describe makes objects unequal.
    pub(crate) fn is_equal(self, new: &Value) -> bool {
        match (self.old, new) {
            (Value::Array(old), Value::Array(items)) => {
                if old.len() != items.len() {
                    return false;
                }
                let correlated = self.items();
                if correlated.0.is_none() {
                    return old == items;
                }
                items.iter().all(|item| match correlated.item(item) {
                    Some(pair) => pair.is_equal(item),
                    None => false,
                })
            }
            (Value::Object(old), Value::Object(members)) => {
                old.len() == members.len()
                    && members.iter().all(|(key, value)| self.member(key).is_some_and(|pair| pair.is_equal(value)))
            }
            (old, new) => old == new,
        }
    }
}

/// The old items of a list; those of a list with keys can be found.
pub(crate) struct Correlated<'p>(Option<Keyed<'p>>);

struct Keyed<'p> {
    list: &'p Node,
    node: &'p Node,
    by_key: HashMap<String, &'p Value>,
}

impl<'p> Correlated<'p> {
    /// The old value of an item.
    pub(crate) fn item(&self, item: &Value) -> Option<Pair<'p>> {
        let keyed = self.0.as_ref()?;
        item.as_object()?;
        let old = keyed.by_key.get(&key_of(item, keyed.list.list_map_keys())?)?;
        Some(Pair { node: keyed.node, old })
    }
}

/// The values of an item's keys in one text. An item of which a key is missing or no scalar is never found again.
fn key_of<S: AsRef<str>>(item: &Value, keys: &[S]) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        match item.get(key.as_ref()) {
            Some(Value::String(s)) => {
                let _ = write!(out, "s{}:{s}", s.len());
            }
            Some(Value::Int(i)) => {
                let _ = write!(out, "i{i};");
            }
            Some(Value::Float(f)) => {
                let _ = write!(out, "f{f};");
            }
            Some(Value::Bool(b)) => {
                let _ = write!(out, "b{b};");
            }
            _ => return None,
        }
    }
    Some(out)
}
