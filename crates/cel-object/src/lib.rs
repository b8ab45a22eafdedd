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

/// How many values one result may have; lists that hold one value many times could grow without end.
const MOST: usize = 100_000;
/// How deep a result may nest.
const DEEPEST: usize = 200;

/// The JSON of what an expression gave.
///
/// # Errors
///
/// If it has no JSON: types, optional values without a value, keys that are no strings, numbers beyond 64 bits with a
/// sign; or if it is too large.
pub fn json(value: &Cel<'_>) -> Result<Value, String> {
    let mut left = MOST;
    written(value, &mut left, 0)
}

fn written(value: &Cel<'_>, left: &mut usize, depth: usize) -> Result<Value, String> {
    *left = left.checked_sub(1).filter(|_| depth <= DEEPEST).ok_or("the result is too large")?;
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(b) => (*b).into(),
        Cel::Int(i) => (*i).into(),
        Cel::Uint(u) => i64::try_from(*u).map_err(|_| format!("{u} is too large"))?.into(),
        Cel::Double(d) if d.is_finite() => Value::Float(*d),
        Cel::String(text) => (**text).into(),
        Cel::List(list) => {
            let items = list.iter().map(|item| written(&item.map_err(|e| e.to_string())?, left, depth + 1));
            Value::Array(items.collect::<Result<_, String>>()?)
        }
        Cel::Map(map) => {
            let mut members = Members::new();
            for (key, member) in map.iter() {
                let key = key.as_str().ok_or("a key is no string")?.to_owned();
                members.insert(key.as_str(), written(&member.map_err(|e| e.to_string())?, left, depth + 1)?);
            }
            members.into()
        }
        Cel::Optional(Some(value)) => written(value, left, depth + 1)?,
        Cel::Optional(None) => Value::Null,
        other => return Err(format!("a value of type {} has no JSON", &*other.type_name())),
    })
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
