//! Durations as Go, and with it most kinds and flags, writes them.

use std::time::Duration;

/// Go's notation: `1h30m`, `0.5s`. Negative ones are refused.
///
/// # Errors
///
/// It is no duration.
pub fn go(text: &str) -> Result<Duration, String> {
    read(text, &UNITS[2..])
}

/// Go's notation with days and weeks: `1d`, `2w`.
///
/// # Errors
///
/// It is no duration.
pub fn extended(text: &str) -> Result<Duration, String> {
    read(text, UNITS)
}

/// Go's notation, of more than nothing.
///
/// # Errors
///
/// It is no duration, or one of zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    go(text).and_then(|time| if time.is_zero() { Err("it has to be more than nothing".to_owned()) } else { Ok(time) })
}

/// A duration in Go's notation.
pub fn to_text(duration: Duration) -> String {
    let total = duration.as_secs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Units and their length in nanoseconds; longer names first where one begins another.
const UNITS: &[(&str, u64)] = &[
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("ms", 1_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

fn read(text: &str, units: &[(&str, u64)]) -> Result<Duration, String> {
    let invalid = || format!("invalid duration {}", crate::go::quote(text));
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let (number, after) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, nanos) = units.iter().find(|(u, _)| after.starts_with(u)).ok_or_else(invalid)?;
        let part = Duration::try_from_secs_f64(number * (*nanos as f64) / 1e9).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = &after[unit.len()..];
    }
    if text.is_empty() { Err(invalid()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, seconds) in [("60s", 60.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("250ms", 0.25), ("0", 0.0)] {
            assert_eq!(go(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for bad in ["", "1", "x", "1d", "-1s", "1h x", "s"] {
            assert!(go(bad).is_err(), "{bad}");
        }
        assert_eq!((positive("1s"), positive("0s").is_err()), (Ok(Duration::from_secs(1)), true));
        assert_eq!(extended("1d12h"), Ok(Duration::from_secs(129_600)));
        assert_eq!(extended("2w"), Ok(Duration::from_secs(1_209_600)));
    }
}
