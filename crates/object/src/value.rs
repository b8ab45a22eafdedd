//! The dynamic value.

use compact_str::CompactString;
use std::cmp::Ordering;

/// A JSON value. Integers (int64) and floats (float64) are apart, as in Go's unstructured objects: `1` and `1.0`
/// are different values.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without fraction and exponent that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(CompactString),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl Value {
    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The integer, if this is one (a float never is).
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(a) => Some(a),
            _ => None,
        }
    }

    /// The items for change, if this is an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(a) => Some(a),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(m) => Some(m),
            _ => None,
        }
    }

    /// The members for change, if this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(m) => Some(m),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The member `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The member `key` for change, if this is an object that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// What stands at a path of member names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |v, key| v.get(key))
    }

    /// The string at a path of member names.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// The members at `key`, made (or put in the place of something else) where there are none.
    pub fn object_entry(&mut self, key: &str) -> &mut Map {
        self.make_object().object_entry(key)
    }

    /// Sets what stands at a path of member names; objects on the way are made where they are missing.
    pub fn set_at(&mut self, path: &[&str], value: Value) {
        match path {
            [] => *self = value,
            [key] => {
                self.make_object().insert(*key, value);
            }
            [key, rest @ ..] => {
                self.make_object().get_or_insert(key, || Value::Object(Map::new())).set_at(rest, value);
            }
        }
    }

    /// Takes away what stands at a path of member names.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        match path {
            [] => None,
            [key] => self.as_object_mut()?.remove(key),
            [key, rest @ ..] => self.get_mut(key)?.remove_at(rest),
        }
    }

    /// The name of the value's type in OpenAPI schemas: `integer` for [`Value::Int`], `number` for [`Value::Float`].
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "integer",
            Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Value::Object(_)) {
            *self = Value::Object(Map::new());
        }
        match self {
            Value::Object(m) => m,
            _ => unreachable!("made an object just above"),
        }
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Value::Bool(v)
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Value::Int(v)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Value::Float(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Value::String(v.into())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Value::String(v.into())
    }
}

impl From<CompactString> for Value {
    fn from(v: CompactString) -> Self {
        Value::String(v)
    }
}

impl From<Map> for Value {
    fn from(v: Map) -> Self {
        Value::Object(v)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(v: Vec<T>) -> Self {
        Value::Array(v.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}

/// The members of an object, sorted bytewise by key, each key once.
///
/// Lookup is a binary search over one allocation; building from unsorted members sorts once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(CompactString, Value)>);

/// Up to this many members are looked at one after the other: keys of another length are told apart at a glance.
const FEW: usize = 8;

impl Map {
    /// No members.
    pub const fn new() -> Self {
        Map(Vec::new())
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        if self.0.len() <= FEW {
            return self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v);
        }
        self.find(key).ok().map(|i| &self.0[i].1)
    }

    /// The value of `key`, for change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.find(key).ok().map(|i| &mut self.0[i].1)
    }

    /// Whether `key` is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets `key`; gives back what it held before.
    pub fn insert(&mut self, key: impl Into<CompactString>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.find(&key) {
            Ok(i) => Some(std::mem::replace(&mut self.0[i].1, value)),
            Err(i) => {
                self.0.insert(i, (key, value));
                None
            }
        }
    }

    /// Takes `key` away; gives back what it held.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).ok().map(|i| self.0.remove(i).1)
    }

    /// The value of `key`, made by `make` where it is missing.
    pub fn get_or_insert(&mut self, key: &str, make: impl FnOnce() -> Value) -> &mut Value {
        let i = match self.find(key) {
            Ok(i) => i,
            Err(i) => {
                self.0.insert(i, (key.into(), make()));
                i
            }
        };
        &mut self.0[i].1
    }

    /// The members of the object at `key`, made (or put in the place of something else) where there are none.
    pub fn object_entry(&mut self, key: &str) -> &mut Map {
        self.get_or_insert(key, || Value::Object(Map::new())).make_object()
    }

    /// The members in order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// The members in order of their keys, values for change.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut Value)> + ExactSizeIterator {
        self.0.iter_mut().map(|(k, v)| (k.as_str(), v))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.0.iter().map(|(k, _)| k.as_str())
    }

    /// The values in order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.iter().map(|(_, v)| v)
    }

    /// The values in order of their keys, for change.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.0.iter_mut().map(|(_, v)| v)
    }

    /// Keeps the members for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.0.retain_mut(|(k, v)| keep(k, v));
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(k, _)| order(k, key))
    }
}

/// The order of two keys. Most differ in their first byte, for which no comparison of memory is called.
#[inline]
fn order(a: &str, b: &str) -> Ordering {
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(x), Some(y)) if x != y => x.cmp(y),
        _ => a.cmp(b),
    }
}

/// Of repeated keys the last one counts. Costs one walk where the members are sorted already.
impl From<Vec<(CompactString, Value)>> for Map {
    fn from(mut members: Vec<(CompactString, Value)>) -> Self {
        if members.is_sorted_by(|a, b| order(&a.0, &b.0).is_lt()) {
            return Map(members);
        }
        members.sort_by(|a, b| order(&a.0, &b.0));
        // dedup_by hands over (later, earlier): the later value moves into the kept, earlier place.
        members.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(&mut later.1, &mut earlier.1);
            }
            same
        });
        Map(members)
    }
}

impl IntoIterator for Map {
    type Item = (CompactString, Value);
    type IntoIter = std::vec::IntoIter<(CompactString, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Of repeated keys the last one counts.
impl<K: Into<CompactString>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(iter: T) -> Self {
        iter.into_iter().map(|(k, v)| (k.into(), v.into())).collect::<Vec<(CompactString, Value)>>().into()
    }
}

/// Makes a [`Map`] from `key => value` pairs; values are anything that converts to [`Value`].
///
/// ```
/// let m = object::map! { "a" => 1, "b" => "x" };
/// assert_eq!(m.get("a").and_then(object::Value::as_int), Some(1));
/// ```
#[macro_export]
macro_rules! map {
    ($($key:expr => $value:expr),* $(,)?) => {
        <$crate::Map as ::std::iter::FromIterator<(&str, $crate::Value)>>::from_iter([$(($key, $crate::Value::from($value))),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let m: Map = [("b", 1i64), ("a", 2), ("b", 3)].into_iter().collect();
        assert_eq!(m.iter().collect::<Vec<_>>(), [("a", &Value::Int(2)), ("b", &Value::Int(3))]);
    }

    #[test]
    fn set_at_makes_the_objects_on_the_way() {
        let mut v = Value::Null;
        v.set_at(&["a", "b"], Value::Int(1));
        assert_eq!(v.at(&["a", "b"]), Some(&Value::Int(1)));
        assert_eq!(v.remove_at(&["a", "b"]), Some(Value::Int(1)));
        assert_eq!(v.remove_at(&["x", "b"]), None);
    }

    #[test]
    fn ints_and_floats_are_different_values() {
        assert_ne!(Value::Int(1), Value::Float(1.0));
    }
}
