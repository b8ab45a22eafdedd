//! Arithmetic as the validators do it in Go, with its conversions between int64 and float64.

use object::{Value, go};

/// A broken bound.
pub(super) struct Problem {
    /// What the value should be.
    pub(super) sentence: String,
    /// The factor, where that itself is wrong.
    pub(super) factor: Option<String>,
}

/// Whether a float is a whole number that JSON readers agree on: within ±(2⁵³−1).
pub(super) fn is_json_integer(f: f64) -> bool {
    const MOST: f64 = ((1u64 << 53) - 1) as f64;
    f.is_finite() && f.abs() <= MOST && f.trunc() == f
}

/// Go's `int64(f)` on amd64: what is out of range becomes the least integer.
fn to_int(f: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&f) { f as i64 } else { i64::MIN }
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Int(i) => *i as f64,
        Value::Float(f) => *f,
        _ => 0.0,
    }
}

fn problem(sentence: &str, bound: String) -> Option<Problem> {
    Some(Problem { sentence: format!("{sentence} {bound}"), factor: None })
}

/// `maximum`. An integer is compared with the integral part of the limit.
pub(super) fn maximum(value: &Value, limit: f64, exclusive: bool) -> Option<Problem> {
    let sentence = if exclusive { "should be less than" } else { "should be less than or equal to" };
    if let Value::Int(i) = value {
        let limit = to_int(limit);
        return if *i > limit || exclusive && *i == limit { problem(sentence, limit.to_string()) } else { None };
    }
    let f = as_float(value);
    if f > limit || exclusive && f == limit { problem(sentence, go::float(limit)) } else { None }
}

/// `minimum`. An integer is compared with the integral part of the limit.
pub(super) fn minimum(value: &Value, limit: f64, exclusive: bool) -> Option<Problem> {
    let sentence = if exclusive { "should be greater than" } else { "should be greater than or equal to" };
    if let Value::Int(i) = value {
        let limit = to_int(limit);
        return if *i < limit || exclusive && *i == limit { problem(sentence, limit.to_string()) } else { None };
    }
    let f = as_float(value);
    if f < limit || exclusive && f == limit { problem(sentence, go::float(limit)) } else { None }
}

/// `multipleOf`. An integer is divided by the integral part of the factor.
pub(super) fn multiple_of(value: &Value, factor: f64) -> Option<Problem> {
    let positive = |shown: String| Some(Problem { sentence: String::new(), factor: Some(shown) });
    if let Value::Int(i) = value {
        let factor = to_int(factor);
        return match factor {
            ..=0 => positive(factor.to_string()),
            _ if i % factor != 0 => problem("should be a multiple of", factor.to_string()),
            _ => None,
        };
    }
    if factor <= 0.0 {
        return positive(go::float(factor));
    }
    let f = as_float(value);
    let times = if factor < 1.0 { 1.0 / factor * f } else { f / factor };
    if is_json_integer(times) { None } else { problem("should be a multiple of", go::float(factor)) }
}

/// Whether `value` equals `one` of an enumeration after Go's conversion to its type: between the kinds of numbers, and
/// from an integer to the character of that number.
pub(super) fn converts_to(value: &Value, one: &Value) -> bool {
    match (value, one) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(i), Value::Float(f)) => *i as f64 == *f,
        (Value::Float(f), Value::Int(i)) => to_int(f.trunc()) == *i,
        (Value::Int(i), Value::String(text)) => {
            let c = u32::try_from(*i).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut chars = text.chars();
            chars.next() == Some(c) && chars.next().is_none()
        }
        _ => value == one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_with_a_fraction_go_wrong_for_integers_as_upstream() {
        let shown = |v: Value, factor: f64| multiple_of(&v, factor).map(|p| (p.sentence, p.factor));
        assert_eq!(shown(Value::Int(1), 0.5), Some((String::new(), Some("0".to_owned()))));
        assert_eq!(shown(Value::Int(5), 2.5), Some(("should be a multiple of 2".to_owned(), None)));
        assert_eq!(shown(Value::Float(7.5), 2.5), None);
        assert_eq!(shown(Value::Float(0.29), 0.01), Some(("should be a multiple of 0.01".to_owned(), None)));
    }

    #[test]
    fn enumerations_compare_after_conversion() {
        for (value, one, same) in [
            (Value::Int(5), Value::Float(5.0), true),
            (Value::Float(5.7), Value::Int(5), true),
            (Value::Int(97), Value::from("a"), true),
            (Value::from("5"), Value::Int(5), false),
            (Value::Null, Value::Null, false),
        ] {
            assert_eq!(converts_to(&value, &one), same, "{value:?} {one:?}");
        }
    }
}
