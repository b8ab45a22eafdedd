//! Equality and order of values.

use std::cmp::Ordering;

use super::map::{TWO_63, TWO_64};
use super::{Error, List, Map, Result, Value};

/// Nesting at which comparing gives up: beyond what any request carries, within what the stack holds.
const MAX_DEPTH: u32 = 2_000;
/// Parts compared at which comparing gives up. The language's price of `==` does not count the parts of lists within
/// lists, and a list may hold one list many times: some lines of text make values of billions of parts.
const MAX_PARTS: u32 = 4_000_000;

impl Value<'_> {
    /// `self == other`: numbers compare across types, values of different types differ, lists and maps compare by
    /// their elements unless the embedding program has rules of its own.
    pub fn equals(&self, other: &Value<'_>) -> Result<bool> {
        equal(self, other, &mut Effort { depth: 0, parts: 0 })
    }

    /// Whether `self == other` is true: what cannot be compared is not the same.
    pub(crate) fn is_same(&self, other: &Value<'_>) -> Result<bool> {
        decided(self.equals(other)).map(|equal| equal == Some(true))
    }

    /// The order of `self` and `other`, or the error of `<`.
    pub fn compare(&self, other: &Value<'_>) -> Result<Ordering> {
        let unordered = || Error::new("NaN values cannot be ordered");
        Ok(match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).ok_or_else(unordered)?,
            (Value::Int(a), Value::Uint(b)) => compare_int_uint(*a, *b),
            (Value::Uint(a), Value::Int(b)) => compare_int_uint(*b, *a).reverse(),
            (Value::Int(a), Value::Double(b)) => compare_int_double(*a, *b).ok_or_else(unordered)?,
            (Value::Double(a), Value::Int(b)) => compare_int_double(*b, *a).ok_or_else(unordered)?.reverse(),
            (Value::Uint(a), Value::Double(b)) => compare_uint_double(*a, *b).ok_or_else(unordered)?,
            (Value::Double(a), Value::Uint(b)) => compare_uint_double(*b, *a).ok_or_else(unordered)?.reverse(),
            (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Bytes(a), Value::Bytes(b)) => (**a).cmp(&**b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
            _ => return Err(Error::no_such_overload()),
        })
    }
}

/// The answer of a comparison; none where the values cannot be compared.
pub(crate) fn decided(answer: Result<bool>) -> Result<Option<bool>> {
    match answer {
        Err(error) if !error.is_fatal() => Ok(None),
        answer => answer.map(Some),
    }
}

/// How much has been compared.
struct Effort {
    depth: u32,
    parts: u32,
}

impl Effort {
    /// Compares parts one level deeper.
    fn within(&mut self, compare: impl FnOnce(&mut Self) -> Result<bool>) -> Result<bool> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new("values are nested too deeply to compare"));
        }
        self.depth += 1;
        let result = compare(self);
        self.depth -= 1;
        result
    }

    fn part(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS { Err(Error::cost_limit()) } else { Ok(()) }
    }
}

fn equal(a: &Value<'_>, b: &Value<'_>, effort: &mut Effort) -> Result<bool> {
    Ok(match (a, b) {
        (Value::String(a), Value::String(b)) => **a == **b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        (Value::Int(a), Value::Uint(b)) | (Value::Uint(b), Value::Int(a)) => compare_int_uint(*a, *b).is_eq(),
        (Value::Int(a), Value::Double(b)) | (Value::Double(b), Value::Int(a)) => {
            compare_int_double(*a, *b).is_some_and(Ordering::is_eq)
        }
        (Value::Uint(a), Value::Double(b)) | (Value::Double(b), Value::Uint(a)) => {
            compare_uint_double(*a, *b).is_some_and(Ordering::is_eq)
        }
        (Value::Bytes(a), Value::Bytes(b)) => **a == **b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => **a == **b,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Opaque(a), Value::Opaque(b)) if a.type_name() == b.type_name() && !b.is_computed() => a.equals(&**b),
        (Value::Opaque(_), _) => return Err(Error::no_such_overload()),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => effort.within(|effort| equal(a, b, effort))?,
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::List(a), Value::List(b)) => effort.within(|effort| equal_lists(a, b, effort))?,
        (Value::Map(a), Value::Map(b)) => effort.within(|effort| equal_maps(a, b, effort))?,
        (Value::List(list), _) if list.is_typed() => return Err(Error::no_such_overload()),
        (Value::Map(map), _) if map.is_typed() => return Err(Error::no_such_overload()),
        _ => false,
    })
}

fn equal_lists(a: &List<'_>, b: &List<'_>, effort: &mut Effort) -> Result<bool> {
    if let Some(semantics) = a.semantics() {
        return semantics.equals(a, b);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    let typed = a.is_typed();
    for (a, b) in a.iter().zip(b.iter()) {
        effort.part()?;
        if !equal_parts(&a?, &b?, typed, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Parts of a typed list or map must be comparable; in others, those that are not pass as equal.
fn equal_parts(a: &Value<'_>, b: &Value<'_>, typed: bool, effort: &mut Effort) -> Result<bool> {
    let answer = equal(a, b, effort);
    if typed { answer } else { decided(answer).map(|equal| equal != Some(false)) }
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, effort: &mut Effort) -> Result<bool> {
    if let Map::Adapted { adapter, data } = a
        && let Some(answer) = adapter.equals(*data, b)
    {
        return answer;
    }
    if a.len() != b.len() || a.object_type() != b.object_type() {
        return Ok(false);
    }
    let typed = a.is_typed();
    for (key, value) in a.iter() {
        let Some(other) = b.find(&key) else { return Ok(false) };
        effort.part()?;
        if !equal_parts(&value?, &other?, typed, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn compare_int_uint(int: i64, uint: u64) -> Ordering {
    u64::try_from(int).map_or(Ordering::Less, |int| int.cmp(&uint))
}

/// As cel-go: integers are compared as doubles within the doubles' integer range.
fn compare_int_double(int: i64, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        None
    } else if double < -TWO_63 {
        Some(Ordering::Greater)
    } else if double > TWO_63 {
        Some(Ordering::Less)
    } else {
        (int as f64).partial_cmp(&double)
    }
}

fn compare_uint_double(uint: u64, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        None
    } else if double < 0.0 {
        Some(Ordering::Greater)
    } else if double > TWO_64 {
        Some(Ordering::Less)
    } else {
        (uint as f64).partial_cmp(&double)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_across_types() {
        for (a, b, equal) in [
            (Value::Int(1), Value::Double(1.0), true),
            (Value::Uint(1), Value::Int(1), true),
            (Value::Int(-1), Value::Uint(u64::MAX), false),
            (Value::Double(f64::NAN), Value::Double(f64::NAN), false),
            (Value::Double(-0.0), Value::Int(0), true),
            (Value::Bool(true), Value::Int(1), false),
            (Value::Null, Value::Bool(false), false),
            (Value::Uint(u64::MAX), Value::Double(1e30), false),
        ] {
            assert_eq!(a.equals(&b), Ok(equal), "{a:?} {b:?}");
            assert_eq!(b.equals(&a), Ok(equal), "{b:?} {a:?}");
        }
    }

    #[test]
    fn lists_and_maps_compare_by_content() {
        let list = |n| Value::list(vec![Value::Int(n), Value::borrowed("x")]);
        assert_eq!(list(1).equals(&list(1)), Ok(true));
        assert_eq!(list(1).equals(&list(2)), Ok(false));
        let map = |n| Value::Map(Map::new([(Value::borrowed("k"), list(n)), (Value::Int(1), Value::Null)]));
        assert_eq!(map(1).equals(&map(1)), Ok(true));
        assert_eq!(map(1).equals(&map(2)), Ok(false));
    }

    #[test]
    fn deep_values_do_not_overflow_the_stack() {
        let mut value = Value::Int(1);
        for _ in 0..MAX_DEPTH + 10 {
            value = Value::some(value);
        }
        assert!(value.equals(&value.clone()).is_err());
        // Taken apart step by step: dropping it whole would recurse as deep as it is nested.
        while let Value::Optional(Some(inner)) = value {
            value = std::sync::Arc::unwrap_or_clone(inner);
        }
    }
}
