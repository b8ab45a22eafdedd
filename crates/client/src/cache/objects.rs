//! The objects of a cache and their indexes.

use super::Change;
use object::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// `NAMESPACE/NAME`, or `NAME` for an object without a namespace.
pub fn key(object: &Value) -> String {
    match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    }
}

type Sorted = BTreeMap<Arc<str>, Arc<Value>>;

/// Objects by key.
#[derive(Default)]
pub(super) struct Objects {
    all: Sorted,
    indexes: HashMap<&'static str, Index>,
}

struct Index {
    texts: fn(&Value) -> Vec<String>,
    found: HashMap<Box<str>, Found>,
}

/// What an index has under one text. Mostly that is one object, which takes a tenth of the memory of a map.
enum Found {
    One(Arc<str>, Arc<Value>),
    Many(Sorted),
}

impl Found {
    fn put(&mut self, key: &Arc<str>, object: &Arc<Value>) {
        match self {
            Found::One(known, held) if known == key => *held = object.clone(),
            Found::One(known, held) => {
                let both = [(known.clone(), held.clone()), (key.clone(), object.clone())];
                *self = Found::Many(both.into_iter().collect());
            }
            Found::Many(all) => _ = all.insert(key.clone(), object.clone()),
        }
    }

    /// Whether nothing is left.
    fn remove(&mut self, key: &str) -> bool {
        match self {
            Found::One(known, _) => **known == *key,
            Found::Many(all) => {
                all.remove(key);
                all.is_empty()
            }
        }
    }

    fn list(&self) -> Vec<Arc<Value>> {
        match self {
            Found::One(_, object) => vec![object.clone()],
            Found::Many(all) => all.values().cloned().collect(),
        }
    }
}

impl Index {
    fn put(&mut self, key: &Arc<str>, object: &Arc<Value>) {
        for text in (self.texts)(object) {
            match self.found.get_mut(text.as_str()) {
                Some(found) => found.put(key, object),
                None => _ = self.found.insert(text.into(), Found::One(key.clone(), object.clone())),
            }
        }
    }

    fn remove(&mut self, key: &str, object: &Value) {
        for text in (self.texts)(object) {
            if self.found.get_mut(text.as_str()).is_some_and(|found| found.remove(key)) {
                self.found.remove(text.as_str());
            }
        }
    }
}

impl Objects {
    /// Puts an object in; gives what was there in its place.
    pub(super) fn put(&mut self, object: Arc<Value>) -> Option<Arc<Value>> {
        let key: Arc<str> = key(&object).into();
        let old = self.all.insert(key.clone(), object.clone());
        for index in self.indexes.values_mut() {
            if let Some(old) = &old {
                index.remove(&key, old);
            }
            index.put(&key, &object);
        }
        old
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Value>> {
        let old = self.all.remove(key)?;
        self.indexes.values_mut().for_each(|index| index.remove(key, &old));
        Some(old)
    }

    /// Makes these all objects; gives what that changed, deletions first.
    pub(super) fn replace(&mut self, items: Vec<Value>) -> Vec<Change> {
        let kept: BTreeSet<String> = items.iter().map(key).collect();
        let gone: Vec<Arc<str>> = self.all.keys().filter(|k| !kept.contains(&***k)).cloned().collect();
        let mut changes: Vec<Change> = gone.iter().map(|key| Change { old: self.remove(key), new: None }).collect();
        for item in items {
            let same = |old: &Arc<Value>| old.meta_str("resourceVersion") == item.meta_str("resourceVersion");
            if !item.meta_str("resourceVersion").is_empty() && self.all.get(key(&item).as_str()).is_some_and(same) {
                continue;
            }
            let new = Arc::new(item);
            changes.push(Change { old: self.put(new.clone()), new: Some(new) });
        }
        changes
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<Value>> {
        self.all.get(key).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn list(&self) -> Vec<Arc<Value>> {
        self.all.values().cloned().collect()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Value>> {
        let prefix = format!("{namespace}/");
        let after = self.all.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        after.take_while(|(key, _)| key.starts_with(&prefix)).map(|(_, object)| object.clone()).collect()
    }

    pub(super) fn has_index(&self, name: &str) -> bool {
        self.indexes.contains_key(name)
    }

    pub(super) fn add_index(&mut self, name: &'static str, texts: fn(&Value) -> Vec<String>) {
        let mut index = Index { texts, found: HashMap::new() };
        self.all.iter().for_each(|(key, object)| index.put(key, object));
        self.indexes.insert(name, index);
    }

    pub(super) fn indexed(&self, index: &str, text: &str) -> Vec<Arc<Value>> {
        let found = self.indexes.get(index).and_then(|index| index.found.get(text));
        found.map(Found::list).unwrap_or_default()
    }
}
