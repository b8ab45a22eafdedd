//! The functions of lists and sets.

use std::cmp::Ordering;

use super::arithmetic::is_ordered;
use crate::value::{Duration, Error, List, Result, Value};

/// `list.isSorted()`
pub(crate) fn is_sorted<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::List(list)] = args else { return Err(Error::mismatch()) };
    require_order(list)?;
    let mut previous: Option<Value<'_>> = None;
    for element in list.iter() {
        let element = element?;
        // What cannot be ordered (NaN) does not count as unsorted.
        if previous.is_some_and(|previous| previous.compare(&element) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        previous = Some(element);
    }
    Ok(Value::Bool(true))
}

/// The first element decides whether there is an overload for the list: its type must have an order.
fn require_order(list: &List<'_>) -> Result<()> {
    if list.is_empty() || is_ordered(&list.get(0)?) { Ok(()) } else { Err(Error::mismatch()) }
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Result<Value<'a>> {
    let [Value::List(list)] = args else { return Err(Error::mismatch()) };
    let mut total: Option<Value<'a>> = None;
    for element in list.iter() {
        let element = element?;
        total = Some(match total {
            // The first element decides whether there is an overload for the list.
            None if matches!(element, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)) => {
                element
            }
            None => return Err(Error::mismatch()),
            Some(total) => super::arithmetic::add(&[total, element])?,
        });
    }
    Ok(total.unwrap_or(zero))
}

/// `list.sum()` of integers, or of a type that is known at run time only.
pub(crate) fn sum_int<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, Value::Int(0))
}

/// `list.sum()` of unsigned integers.
pub(crate) fn sum_uint<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, Value::Uint(0))
}

/// `list.sum()` of doubles.
pub(crate) fn sum_double<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, Value::Double(0.0))
}

/// `list.sum()` of durations.
pub(crate) fn sum_duration<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    sum(args, Value::Duration(Duration(0)))
}

fn extreme<'a>(args: &[Value<'a>], name: &str, replace_when: Ordering) -> Result<Value<'a>> {
    let [Value::List(list)] = args else { return Err(Error::mismatch()) };
    require_order(list)?;
    let mut best: Option<Value<'a>> = None;
    for element in list.iter() {
        let element = element?;
        if best.as_ref().is_none_or(|best| best.compare(&element) == Ok(replace_when)) {
            best = Some(element);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

/// `list.min()`
pub(crate) fn min<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    extreme(args, "min", Ordering::Greater)
}

/// `list.max()`
pub(crate) fn max<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    extreme(args, "max", Ordering::Less)
}

/// `list.indexOf(element)`
pub(crate) fn index_of<'a>(list: &List<'a>, element: &Value<'a>) -> Result<Value<'a>> {
    position(list, element, 0..list.len())
}

/// `list.lastIndexOf(element)`
pub(crate) fn last_index_of<'a>(list: &List<'a>, element: &Value<'a>) -> Result<Value<'a>> {
    position(list, element, (0..list.len()).rev())
}

fn position<'a>(list: &List<'a>, element: &Value<'a>, order: impl Iterator<Item = usize>) -> Result<Value<'a>> {
    for index in order {
        if list.get(index)?.is_same(element)? {
            return Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn holds(list: &List<'_>, element: &Value<'_>) -> Result<bool> {
    for member in list.iter() {
        if element.is_same(&member?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn holds_all(list: &List<'_>, part: &List<'_>) -> Result<bool> {
    for element in part.iter() {
        if !holds(list, &element?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `sets.contains(list, part)`
pub(crate) fn sets_contains<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::List(list), Value::List(part)] => Ok(Value::Bool(holds_all(list, part)?)),
        _ => Err(Error::mismatch()),
    }
}

/// `sets.equivalent(a, b)`
pub(crate) fn sets_equivalent<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(holds_all(a, b)? && holds_all(b, a)?)),
        _ => Err(Error::mismatch()),
    }
}

/// `sets.intersects(a, b)`
pub(crate) fn sets_intersects<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::List(a), Value::List(b)] = args else { return Err(Error::mismatch()) };
    for element in b.iter() {
        if holds(a, &element?)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Value<'_>>) -> String {
        result.map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    fn doubles(values: &[f64]) -> [Value<'static>; 1] {
        [Value::list(values.iter().copied().map(Value::Double).collect())]
    }

    #[test]
    fn nothing_orders_nan_so_it_is_skipped() {
        assert_eq!(text(is_sorted(&doubles(&[f64::NAN, 1.0]))), "true");
        assert_eq!(text(is_sorted(&doubles(&[2.0, 1.0]))), "false");
    }

    #[test]
    fn empty_lists_sum_to_zero_but_have_no_extremes() {
        assert_eq!(text(sum_double(&doubles(&[]))), "0");
        assert_eq!(text(sum_int(&doubles(&[1.5, 2.5]))), "4");
        assert_eq!(text(min(&doubles(&[]))), "min called on empty list");
        assert_eq!(text(max(&doubles(&[1.0, 3.0, 2.0]))), "3");
        assert_eq!(text(min(&doubles(&[2.0, 1.0, 3.0]))), "1");
    }

    #[test]
    fn sets_ignore_order_and_repetition() {
        let set = |values: &[i64]| Value::list(values.iter().copied().map(Value::Int).collect());
        assert_eq!(text(sets_equivalent(&[set(&[1, 1, 2]), set(&[2, 1])])), "true");
        assert_eq!(text(sets_contains(&[set(&[1]), set(&[1, 2])])), "false");
        assert_eq!(text(sets_intersects(&[set(&[1]), set(&[2, 1])])), "true");
        assert_eq!(text(sets_intersects(&[set(&[]), set(&[])])), "false");
    }
}
