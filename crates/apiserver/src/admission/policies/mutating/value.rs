//! What expressions make, as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cel::value::{Map as CelMap, Value as Cel};
use object::{Map, Value, go};

/// How deep values may nest, and of how many parts they may consist: an expression may hold one list many times.
const MAX_DEPTH: usize = 500;
const MAX_PARTS: usize = 500_000;
/// How many bytes the texts of a value may have together: more than a request may.
const MAX_BYTES: usize = 4 << 20;

/// How numbers become JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// As they are.
    Kept,
    /// As upstream's JSON has them, whose numbers are doubles: integers that those cannot hold are strings.
    AsJson,
}

/// Beyond this doubles do not hold every integer.
const SAFE: u64 = (1 << 53) - 1;

/// What was walked over.
#[derive(Default)]
struct Effort {
    depth: usize,
    parts: usize,
    bytes: usize,
}

impl Effort {
    fn part(&mut self) -> Result<(), String> {
        self.parts += 1;
        if self.parts > MAX_PARTS || self.depth > MAX_DEPTH || self.bytes > MAX_BYTES {
            return Err("the value is too large".to_owned());
        }
        Ok(())
    }

    fn within<T>(&mut self, walk: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        result
    }
}

/// A value as JSON. The error says what has no form there.
pub(super) fn to_json(value: &Cel<'_>, numbers: Numbers) -> Result<Value, String> {
    json(value, numbers, &mut Effort::default())
}

fn json(value: &Cel<'_>, numbers: Numbers, effort: &mut Effort) -> Result<Value, String> {
    effort.part()?;
    let text = |text: String| Ok(Value::from(text));
    match value {
        Cel::Null => Ok(Value::Null),
        Cel::Bool(value) => Ok(Value::Bool(*value)),
        Cel::Int(value) if numbers == Numbers::AsJson && value.unsigned_abs() > SAFE => text(value.to_string()),
        Cel::Int(value) => Ok(Value::Int(*value)),
        Cel::Uint(value) if numbers == Numbers::AsJson && *value > SAFE => text(value.to_string()),
        Cel::Uint(value) => Ok(i64::try_from(*value).map_or(Value::Float(*value as f64), Value::Int)),
        Cel::Double(value) if !value.is_finite() => Err(format!("invalid floating-point value: {value}")),
        // Without a fraction it is written like an integer, and read as one.
        Cel::Double(value) if value.trunc() == *value && value.abs() <= SAFE as f64 => Ok(Value::Int(*value as i64)),
        Cel::Double(value) => Ok(Value::Float(*value)),
        Cel::String(value) => {
            effort.bytes += value.len();
            text(value.to_string())
        }
        Cel::Bytes(value) => {
            effort.bytes += value.len();
            text(STANDARD.encode(&**value))
        }
        Cel::Timestamp(_) | Cel::Duration(_) => text(value.to_string()),
        Cel::List(list) => effort.within(|effort| {
            let mut items = Vec::with_capacity(list.len().min(1024));
            for item in list.iter() {
                items.push(json(&item.map_err(|why| why.to_string())?, numbers, effort)?);
            }
            Ok(Value::Array(items))
        }),
        Cel::Map(map) => effort.within(|effort| members(map, numbers, effort)),
        Cel::Optional(Some(value)) => effort.within(|effort| json(value, numbers, effort)),
        Cel::Optional(None) | Cel::Type(_) | Cel::Opaque(_) => {
            Err(format!("type conversion error from '{}' to JSON", &*value.type_name()))
        }
    }
}

fn members(map: &CelMap<'_>, numbers: Numbers, effort: &mut Effort) -> Result<Value, String> {
    let mut members = Map::new();
    for (key, value) in map.iter() {
        let Some(name) = key.as_str() else {
            return Err(format!(
                "map key {} is of type {}, not string",
                go::quote(&key.to_string()),
                &*key.type_name()
            ));
        };
        effort.bytes += name.len();
        members.insert(name, json(&value.map_err(|why| why.to_string())?, numbers, effort)?);
    }
    Ok(Value::Object(members))
}

/// Objects that are not of the type that the fields around them ask for: `Object.spec` below `spec`.
pub(super) fn mismatches(value: &Cel<'_>) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let root = match value {
        Cel::Map(map) => map.object_type().unwrap_or_default(),
        _ => "",
    };
    mismatch(value, &mut root.to_owned(), &mut out, &mut Effort::default())?;
    Ok(out)
}

fn mismatch(value: &Cel<'_>, wanted: &mut String, out: &mut Vec<String>, effort: &mut Effort) -> Result<(), String> {
    effort.part()?;
    effort.within(|effort| match value {
        // What the request holds has no types.
        Cel::List(list @ (cel::value::List::Owned(_) | cel::value::List::Joined(_))) => {
            list.iter().try_for_each(|item| mismatch(&item.map_err(|why| why.to_string())?, wanted, out, effort))
        }
        Cel::Map(map @ CelMap::Owned(_)) => {
            let Some(name) = map.object_type() else {
                return map.iter().try_for_each(|(_, value)| {
                    mismatch(&value.map_err(|why| why.to_string())?, wanted, out, effort)
                });
            };
            if name != wanted {
                let (name, wanted) = (go::quote(name), go::quote(wanted));
                out.push(format!(
                    "unexpected type name {name}, expected {wanted}, which matches field name path from root Object type"
                ));
            }
            for (key, value) in map.iter() {
                let len = wanted.len();
                wanted.push('.');
                wanted.push_str(key.as_str().unwrap_or_default());
                mismatch(&value.map_err(|why| why.to_string())?, wanted, out, effort)?;
                wanted.truncate(len);
            }
            Ok(())
        }
        _ => Ok(()),
    })
}
