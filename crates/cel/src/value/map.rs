//! Maps: entries made by the expression, or data of the embedding program read in place.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Data, MapAdapter, Result, Text, Value};

/// Below this many entries a search from the front beats hashing.
const INDEX_FROM: usize = 12;

/// A map.
#[derive(Clone)]
pub enum Map<'a> {
    /// Entries made by the expression or handed in by value.
    Owned(Arc<MapBuilder<'a>>),
    /// Entries of the embedding program, read in place.
    Adapted {
        /// Interprets the data.
        adapter: &'a dyn MapAdapter,
        /// The data.
        data: &'a Data,
    },
}

/// The entries of a map, in insertion order, or the fields of an object that an expression made.
#[derive(Clone, Default)]
pub struct MapBuilder<'a> {
    /// The name of an object's type.
    name: Option<Arc<str>>,
    entries: Vec<(Value<'a>, Value<'a>)>,
    strings: HashMap<Arc<str>, usize>,
    scalars: HashMap<Scalar, usize>,
}

/// A key that is not a string. Keys of different types differ even where they compare equal, as in Go's maps.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Scalar {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
}

impl Scalar {
    fn new(value: &Value<'_>) -> Option<Scalar> {
        Some(match value {
            Value::Bool(key) => Scalar::Bool(*key),
            Value::Int(key) => Scalar::Int(*key),
            Value::Uint(key) => Scalar::Uint(*key),
            Value::Double(key) => Scalar::Double(key.to_bits()),
            _ => return None,
        })
    }
}

impl<'a> MapBuilder<'a> {
    /// No entries.
    pub fn new() -> Self {
        MapBuilder::default()
    }

    /// An object without fields, of the type called `name`. It behaves as a map but for its type.
    pub fn object(name: Arc<str>) -> Self {
        MapBuilder { name: Some(name), ..MapBuilder::default() }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets `key` to `value`, over what it was.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(at) = self.position(&key) {
            if let Some(entry) = self.entries.get_mut(at) {
                entry.1 = value;
            }
            return;
        }
        self.entries.push((key, value));
        match self.entries.len() {
            0..INDEX_FROM => {}
            INDEX_FROM => (0..INDEX_FROM).for_each(|at| self.index(at)),
            len => self.index(len - 1),
        }
    }

    fn index(&mut self, at: usize) {
        match self.entries.get(at).map(|entry| &entry.0) {
            Some(Value::String(Text::Shared(key))) => {
                self.strings.insert(key.clone(), at);
            }
            Some(Value::String(key)) => {
                self.strings.insert(Arc::from(&**key), at);
            }
            Some(key) => {
                if let Some(key) = Scalar::new(key) {
                    self.scalars.insert(key, at);
                }
            }
            None => {}
        }
    }

    /// Whether `key` is present, numbers of other types that equal it included.
    pub fn contains(&self, key: &Value<'_>) -> bool {
        self.find(key).is_some()
    }

    /// The value of `key`, or of a number of another type that equals it.
    pub fn find(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        let at = self.position(key).or_else(|| match *key {
            Value::Double(value) => int_of_double(value)
                .and_then(|int| self.position(&Value::Int(int)))
                .or_else(|| uint_of_double(value).and_then(|uint| self.position(&Value::Uint(uint)))),
            Value::Int(value) => u64::try_from(value).ok().and_then(|uint| self.position(&Value::Uint(uint))),
            Value::Uint(value) => i64::try_from(value).ok().and_then(|int| self.position(&Value::Int(int))),
            _ => None,
        })?;
        self.entries.get(at).map(|entry| &entry.1)
    }

    fn position(&self, key: &Value<'_>) -> Option<usize> {
        if self.entries.len() < INDEX_FROM {
            return self.entries.iter().position(|entry| same_key(&entry.0, key));
        }
        match key {
            Value::String(key) => self.strings.get(&**key).copied(),
            key => self.scalars.get(&Scalar::new(key)?).copied(),
        }
    }
}

fn same_key(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => **a == **b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        _ => false,
    }
}

/// Two to the 63rd, the first double above all signed integers.
pub(crate) const TWO_63: f64 = 9_223_372_036_854_775_808.0;
/// Two to the 64th, the first double above all unsigned integers.
pub(crate) const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// The integer a double is exactly.
pub(crate) fn int_of_double(value: f64) -> Option<i64> {
    (value.trunc() == value && value > -TWO_63 && value < TWO_63).then_some(value as i64)
}

/// The unsigned integer a double is exactly.
pub(crate) fn uint_of_double(value: f64) -> Option<u64> {
    (value.trunc() == value && (0.0..TWO_64).contains(&value)).then_some(value as u64)
}

impl<'a> Map<'a> {
    /// A map of `entries`; of equal keys the last wins.
    pub fn new(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Self {
        let mut builder = MapBuilder::new();
        for (key, value) in entries {
            builder.insert(key, value);
        }
        Map::Owned(Arc::new(builder))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(map) => map.len(),
            Map::Adapted { adapter, data } => adapter.len(*data),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key` if present.
    pub fn find(&self, key: &Value<'_>) -> Option<Result<Value<'a>>> {
        match self {
            Map::Owned(map) => map.find(key).cloned().map(Ok),
            Map::Adapted { adapter, data } => match key {
                Value::String(key) => adapter.get(*data, key),
                _ => None,
            },
        }
    }

    /// Whether the map is of a type that the embedding program declares.
    pub(crate) fn is_typed(&self) -> bool {
        match self {
            Map::Owned(_) => false,
            Map::Adapted { adapter, .. } => adapter.is_typed(),
        }
    }

    /// The value of the string key `key` if present.
    pub fn find_str(&self, key: &str) -> Option<Result<Value<'a>>> {
        match self {
            Map::Owned(_) => self.find(&Value::borrowed(key)),
            Map::Adapted { adapter, data } => adapter.get(*data, key),
        }
    }

    /// Whether `key` is present.
    pub fn contains(&self, key: &Value<'_>) -> bool {
        match self {
            Map::Owned(map) => map.contains(key),
            Map::Adapted { adapter, data } => key.as_str().is_some_and(|key| adapter.contains(*data, key)),
        }
    }

    /// The key at `index` in iteration order.
    pub fn key(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Map::Owned(map) => map.entries.get(index).map(|entry| entry.0.clone()),
            Map::Adapted { adapter, data } => adapter.key(*data, index).map(Value::borrowed),
        }
    }

    /// The keys in iteration order: insertion order, or the embedding program's.
    pub fn keys(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.key(index))
    }

    /// The entries in iteration order. A key without a value (a null field) is passed over.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, Result<Value<'a>>)> + '_ {
        self.keys().filter_map(|key| {
            let value = self.find(&key)?;
            Some((key, value))
        })
    }

    /// The name of the type of an object that the expression made with `Name{field: value}`; none for plain maps and
    /// for what the embedding program has.
    pub fn object_type(&self) -> Option<&str> {
        match self {
            Map::Owned(map) => map.name.as_deref(),
            Map::Adapted { .. } => None,
        }
    }

    pub(super) fn type_name(&self) -> Text<'a> {
        match self {
            Map::Adapted { adapter, .. } => Text::Borrowed(adapter.type_name().unwrap_or("map")),
            Map::Owned(map) => map.name.clone().map_or(Text::Borrowed("map"), Text::Shared),
        }
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for MapBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|(key, value)| (key, value))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_types_find_the_key_they_equal() {
        for size in [1, 40] {
            let map = Map::new((0..size).map(|key| (Value::Int(key), Value::Int(key))));
            assert!(map.contains(&Value::Uint(0)), "{size}");
            assert!(map.contains(&Value::Double(0.0)), "{size}");
            assert!(!map.contains(&Value::Double(0.5)), "{size}");
            assert!(!map.contains(&Value::borrowed("0")), "{size}");
        }
    }

    #[test]
    fn of_equal_keys_the_last_wins_in_small_and_large_maps() {
        for size in [2u32, 100] {
            let keys = (0..size).chain(0..size);
            let map =
                Map::new(keys.enumerate().map(|(at, key)| (Value::shared(key.to_string()), Value::from(at as u64))));
            assert_eq!(map.len(), size as usize);
            assert!(matches!(map.find_str("1"), Some(Ok(Value::Uint(at))) if at == u64::from(size) + 1));
        }
    }
}
