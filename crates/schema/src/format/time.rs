//! Dates, times and durations.

use jiff::civil;

/// A date written `2006-01-02`.
pub(crate) fn parse_date(text: &str) -> Option<civil::Date> {
    let b = text.as_bytes();
    if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<i16>().ok())?
    };
    civil::Date::new(number(0..4)?, number(5..7)? as i8, number(8..10)? as i8).ok()
}

/// Whether date and time are written as RFC 3339 wants, letters in either case, the offset not looked at.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    parse_date(date).is_some()
        && regular!("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$", time)
        && time.get(0..2).is_some_and(|h| h <= "23")
        && time.get(3..5).is_some_and(|m| m <= "59")
        && time.get(6..8).is_some_and(|s| s <= "59")
}

/// The moment of a date and time, in seconds and nanoseconds since 1970 began (UTC), and its offset from UTC in
/// seconds. A missing offset means UTC.
pub(crate) fn parse_date_time(text: &str) -> Option<(i64, u32, i32)> {
    let date = parse_date(text.get(..10)?)?;
    let rest = text.get(10..)?.strip_prefix('T')?;
    let two = |at: usize, most: i64| {
        let part = rest.get(at..at + 2)?;
        let n = part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<i64>().ok())??;
        (n <= most).then_some(n)
    };
    let (hour, minute, second) = (two(0, 23)?, two(3, 59)?, two(6, 59)?);
    if rest.get(2..3)? != ":" || rest.get(5..6)? != ":" {
        return None;
    }
    let mut zone = rest.get(8..)?;
    let mut nanos = 0u32;
    if let Some(fraction) = zone.strip_prefix(['.', ',']) {
        let size = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if size == 0 {
            return None;
        }
        for at in 0..9 {
            let digit = if at < size { fraction.as_bytes()[at] - b'0' } else { 0 };
            nanos = nanos * 10 + u32::from(digit);
        }
        zone = &fraction[size..];
    }
    let offset = match zone.as_bytes() {
        [] | [b'Z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()) => {
            let pair = |a: &u8, b: &u8| i32::from(a - b'0') * 10 + i32::from(b - b'0');
            let (hours, minutes) = (pair(h1, h2), pair(m1, m2));
            if hours > 24 || minutes > 60 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let days = date.since(civil::date(1970, 1, 1)).ok()?.get_days();
    Some((i64::from(days) * 86_400 + hour * 3600 + minute * 60 + second - i64::from(offset), nanos, offset))
}

const UNITS: [(i64, &[&str]); 8] = [
    (1, &["ns", "nano"]),
    (1_000, &["us", "µs", "micro"]),
    (1_000_000, &["ms", "milli"]),
    (1_000_000_000, &["s", "sec"]),
    (60_000_000_000, &["m", "min"]),
    (3_600_000_000_000, &["h", "hr", "hour"]),
    (86_400_000_000_000, &["d", "day"]),
    (604_800_000_000_000, &["w", "wk", "week"]),
];

/// A duration in nanoseconds: as Go writes it, or any text that holds amounts with units (`1 week, 2 days`).
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    if let Some(duration) = parse_go_duration(text) {
        return Some(duration);
    }
    let mut total = 0i64;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (amount, after) = rest.split_at(digits);
        let unit_text = after.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let size = unit_text.len() - unit_text.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ').len();
        if size == 0 {
            rest = after;
            continue;
        }
        let amount: i64 = amount.parse().ok()?;
        let unit = unit_text[..size].to_lowercase();
        for (nanos, names) in UNITS {
            for (i, name) in names.iter().enumerate() {
                if *name == unit || (i + 1 == names.len() && unit.starts_with(name)) {
                    found = true;
                    total = total.wrapping_add(amount.wrapping_mul(nanos));
                }
            }
        }
        rest = &unit_text[size..];
    }
    found.then_some(total)
}

/// What Go's `time.ParseDuration` reads: `1h30m`, `-1.5s`, `0`.
fn parse_go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    const LIMIT: u64 = 1 << 63;
    while !rest.is_empty() {
        let whole_size = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = rest.split_at(whole_size);
        let mut fraction = "";
        let mut after_number = after;
        if let Some(tail) = after.strip_prefix('.') {
            let size = tail.bytes().take_while(u8::is_ascii_digit).count();
            (fraction, after_number) = tail.split_at(size);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_size = after_number
            .char_indices()
            .find(|(_, c)| *c == '.' || c.is_ascii_digit())
            .map_or(after_number.len(), |(i, _)| i);
        let (unit, tail) = after_number.split_at(unit_size);
        let nanos: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let mut amount = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? }.checked_mul(nanos)?;
        if !fraction.is_empty() {
            let mut value = 0u64;
            let mut scale = 1f64;
            for b in fraction.bytes() {
                match value.checked_mul(10).and_then(|v| v.checked_add(u64::from(b - b'0'))) {
                    Some(v) if v <= LIMIT => {
                        value = v;
                        scale *= 10.0;
                    }
                    _ => break,
                }
            }
            amount = amount.checked_add((value as f64 * (nanos as f64 / scale)) as u64)?;
        }
        total = total.checked_add(amount)?;
        if amount > LIMIT || total > LIMIT {
            return None;
        }
        rest = tail;
    }
    match (negative, total) {
        (true, LIMIT) => Some(i64::MIN),
        (true, n) => Some(-(n as i64)),
        (false, n) if n < LIMIT => Some(n as i64),
        _ => None,
    }
}
