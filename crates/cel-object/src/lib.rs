//! JSON values without a schema, as CEL expressions read them: in place, without a copy.
//!
//! ```
//! let object = object::json::parse(br#"{"a":[1]}"#).unwrap();
//! assert!(matches!(cel_object::dynamic(&object), cel::value::Value::Map(_)));
//! ```

use cel::value::{AdaptedList, Data, List, ListAdapter, Map, MapAdapter, Result as CelResult, Value as Cel};
use object::{Map as Members, Value};

/// A value of type `dyn`.
pub fn dynamic(value: &Value) -> Cel<'_> {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Int(i) => Cel::Int(*i),
        Value::Float(f) => Cel::Double(*f),
        Value::String(s) => Cel::borrowed(s),
        Value::Array(_) => Cel::List(List::Adapted(AdaptedList { adapter: &Dynamic, data: value })),
        Value::Object(_) => Cel::Map(Map::Adapted { adapter: &Dynamic, data: value }),
    }
}

/// Reads values without a schema.
struct Dynamic;

fn items(data: &Data) -> &[Value] {
    data.downcast_ref::<Value>().and_then(Value::as_array).unwrap_or_default()
}

fn members(data: &Data) -> Option<&Members> {
    data.downcast_ref::<Value>().and_then(Value::as_object)
}

impl ListAdapter for Dynamic {
    fn len(&self, data: &Data) -> usize {
        items(data).len()
    }

    fn get<'a>(&'a self, data: &'a Data, index: usize) -> CelResult<Cel<'a>> {
        Ok(items(data).get(index).map_or(Cel::Null, dynamic))
    }
}

impl MapAdapter for Dynamic {
    fn len(&self, data: &Data) -> usize {
        members(data).map_or(0, Members::len)
    }

    fn get<'a>(&'a self, data: &'a Data, key: &str) -> Option<CelResult<Cel<'a>>> {
        members(data)?.get(key).map(|value| Ok(dynamic(value)))
    }

    fn key<'a>(&'a self, data: &'a Data, index: usize) -> Option<&'a str> {
        members(data)?.keys().nth(index)
    }
}
