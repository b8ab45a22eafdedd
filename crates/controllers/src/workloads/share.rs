//! Numbers that may be shares: `maxSurge: 25%`.

use object::Value;

/// The number that a value means of a total: itself, or a percentage of it, rounded up or down. What can be read as
/// neither counts as 0. Numbers of pods have 31 bits.
pub(crate) fn of(value: &Value, total: i64, round_up: bool) -> i64 {
    let number = match value {
        Value::Int(i) => *i,
        Value::String(s) => {
            let percent = s.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()).unwrap_or_default();
            let product = percent.saturating_mul(total);
            let whole = product.div_euclid(100);
            if round_up && product.rem_euclid(100) > 0 { whole + 1 } else { whole }
        }
        _ => 0,
    };
    number.clamp(0, i64::from(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        for (value, total, up, down) in [
            (Value::Int(3), 10, 3, 3),
            ("25%".into(), 10, 3, 2),
            ("25%".into(), 8, 2, 2),
            ("100%".into(), 7, 7, 7),
            ("0%".into(), 7, 0, 0),
            ("x".into(), 7, 0, 0),
            (Value::Null, 7, 0, 0),
            ("9223372036854775807%".into(), i64::MAX, i64::from(i32::MAX), i64::from(i32::MAX)),
            (Value::Int(-3), 10, 0, 0),
        ] {
            assert_eq!((of(&value, total, true), of(&value, total, false)), (up, down), "{value:?}");
        }
    }
}
