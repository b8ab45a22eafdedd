//! Short ways to the fields of decoded objects: the zero value stands for what is absent, as in Go.

use object::{Map, Value};

static NULL: Value = Value::Null;
static EMPTY: Map = Map::new();

/// Fields of an object by their names; whatever has another type counts as absent.
pub trait Read {
    /// The field, null where it is absent.
    fn sub(&self, key: &str) -> &Value;
    /// Whether the field is there and not null.
    fn has(&self, key: &str) -> bool;
    /// The string; empty where there is none.
    fn text(&self, key: &str) -> &str;
    /// The integer; 0 where there is none.
    fn int(&self, key: &str) -> i64;
    /// The integer, where there is one.
    fn opt_int(&self, key: &str) -> Option<i64>;
    /// The boolean; false where there is none.
    fn flag(&self, key: &str) -> bool;
    /// The items; none where there is no list.
    fn list(&self, key: &str) -> &[Value];
    /// The strings of a list.
    fn strings(&self, key: &str) -> Vec<&str>;
    /// The members; none where there is no object.
    fn members(&self, key: &str) -> &Map;
}

impl Read for Value {
    fn sub(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| !v.is_null())
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, key: &str) -> i64 {
        self.opt_int(key).unwrap_or_default()
    }

    fn opt_int(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(Value::as_int)
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    fn strings(&self, key: &str) -> Vec<&str> {
        self.list(key).iter().filter_map(Value::as_str).collect()
    }

    fn members(&self, key: &str) -> &Map {
        self.get(key).and_then(Value::as_object).unwrap_or(&EMPTY)
    }
}

/// Sets a field where it is absent or null.
pub fn default_to(object: &mut Value, key: &str, value: impl Into<Value>) {
    if !object.has(key)
        && let Some(members) = object.as_object_mut()
    {
        members.insert(key, value.into());
    }
}

/// Sets a string where it is absent or empty.
pub fn default_text(object: &mut Value, key: &str, value: &str) {
    if object.text(key).is_empty()
        && let Some(members) = object.as_object_mut()
    {
        members.insert(key, value);
    }
}

/// The items of a list for change.
pub fn list_mut<'v>(object: &'v mut Value, key: &str) -> &'v mut [Value] {
    object.get_mut(key).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// The object at a path of fields for change, where every one of them is an object.
pub fn object_mut<'v>(object: &'v mut Value, path: &[&str]) -> Option<&'v mut Value> {
    let at = path.iter().try_fold(object, |v, key| v.get_mut(key))?;
    at.as_object().is_some().then_some(at)
}
