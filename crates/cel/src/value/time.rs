//! Points in time and spans of time, as Go's `time` package has them.

use std::fmt;

/// Seconds of 0001-01-01T00:00:00Z, the earliest timestamp that conversions accept.
pub const MIN_SECONDS: i64 = -62_135_596_800;
/// Seconds of 9999-12-31T23:59:59Z, the latest timestamp that conversions accept.
pub const MAX_SECONDS: i64 = 253_402_300_799;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A point in time with the UTC offset it was written with. The offset shows in print only: two timestamps are
/// equal when they name the same instant.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset: i32,
}

impl Timestamp {
    /// The instant `seconds` and `nanos` (below 10^9) after 1970-01-01T00:00:00Z, shown at `offset` seconds east of
    /// UTC. Nothing is checked against the language's range: dates read from data may lie before year 1.
    pub fn new(seconds: i64, nanos: u32, offset: i32) -> Self {
        Timestamp { seconds, nanos: nanos.min(999_999_999), offset }
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// Seconds east of UTC.
    pub fn offset(self) -> i32 {
        self.offset
    }

    /// Whether the instant lies in years 1 to 9999.
    pub fn in_range(self) -> bool {
        (MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds)
    }

    /// The same instant shown at another offset.
    pub fn at_offset(self, offset: i32) -> Self {
        Timestamp { offset, ..self }
    }

    /// Reads RFC 3339 as Go's `time.Parse(time.RFC3339, …)` does: one-digit hours, a comma before the fraction and
    /// offsets up to `24:60` are accepted, digits of the fraction beyond nanoseconds dropped, lower-case `t` and `z`
    /// refused.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.as_bytes();
        let year = i64::from(digits(&mut rest, 4)?);
        literal(&mut rest, b'-')?;
        let month = digits(&mut rest, 2).filter(|m| (1..=12).contains(m))?;
        literal(&mut rest, b'-')?;
        let day = digits(&mut rest, 2)?;
        literal(&mut rest, b'T')?;
        let hour_digits = if rest.get(1).is_some_and(u8::is_ascii_digit) { 2 } else { 1 };
        let hour = digits(&mut rest, hour_digits).filter(|h| *h < 24)?;
        literal(&mut rest, b':')?;
        let minute = digits(&mut rest, 2).filter(|m| *m < 60)?;
        literal(&mut rest, b':')?;
        let second = digits(&mut rest, 2).filter(|s| *s < 60)?;
        let mut nanos = 0u32;
        if matches!(rest.first(), Some(b'.' | b',')) && rest.get(1).is_some_and(u8::is_ascii_digit) {
            rest = &rest[1..];
            let mut scale = 100_000_000u32;
            while let Some((digit, tail)) = rest.split_first().filter(|(d, _)| d.is_ascii_digit()) {
                nanos += u32::from(digit - b'0') * scale;
                scale /= 10;
                rest = tail;
            }
        }
        let offset = match *rest {
            [b'Z'] => 0,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let hours = digits(&mut &[h1, h2][..], 2).filter(|h| *h <= 24)?;
                let minutes = digits(&mut &[m1, m2][..], 2).filter(|m| *m <= 60)?;
                let east = i32::try_from(hours * 3600 + minutes * 60).ok()?;
                if sign == b'-' { -east } else { east }
            }
            _ => return None,
        };
        if day < 1 || day > days_in(year, month) {
            return None;
        }
        let days = days_from_civil(year, month, day);
        let seconds = days * 86_400 + i64::from(hour * 3600 + minute * 60 + second) - i64::from(offset);
        Some(Timestamp { seconds, nanos, offset })
    }

    /// The date and time of day at the timestamp's offset.
    pub fn civil(self) -> Civil {
        let local = self.seconds.saturating_add(i64::from(self.offset));
        let days = local.div_euclid(86_400);
        let second_of_day = u32::try_from(local.rem_euclid(86_400)).unwrap_or(0);
        let (year, month, day) = civil_from_days(days);
        let weekday = u32::try_from((days + 4).rem_euclid(7)).unwrap_or(0);
        let day_of_year = u32::try_from(days - days_from_civil(year, 1, 1) + 1).unwrap_or(1);
        Civil {
            year,
            month,
            day,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            weekday,
            day_of_year,
        }
    }

    /// `self + duration`, or `None` where cel-go reports `timestamp overflow`.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let total =
            i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos) + i128::from(duration.0);
        let billion = i128::from(NANOS_PER_SECOND);
        let seconds = i64::try_from(total.div_euclid(billion)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(billion)).ok()?;
        Some(Timestamp { seconds, nanos, offset: self.offset }).filter(|t| t.in_range())
    }

    /// `self - other`, or `None` where the difference does not fit in nanoseconds.
    pub fn checked_sub(self, other: Self) -> Option<Duration> {
        let seconds = self.seconds.checked_sub(other.seconds)?;
        let nanos = i64::from(self.nanos) - i64::from(other.nanos);
        seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Duration)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl fmt::Display for Timestamp {
    /// Go's `RFC3339Nano`: no trailing zeros in the fraction, `Z` for offset zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.civil();
        let sign = if c.year < 0 { "-" } else { "" };
        write!(
            f,
            "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            c.year.unsigned_abs(),
            c.month,
            c.day,
            c.hour,
            c.minute,
            c.second
        )?;
        if self.nanos != 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 for Sunday to 6.
    pub weekday: u32,
    /// 1 to 366.
    pub day_of_year: u32,
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(
    /// The nanoseconds.
    pub i64,
);

impl Duration {
    /// Reads what Go's `time.ParseDuration` reads: `1h30m`, `-1.5s`, `.5ms`, `0`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let negative = rest.starts_with('-');
        if let Some(tail) = rest.strip_prefix(['-', '+']) {
            rest = tail;
        }
        if rest == "0" {
            return Some(Duration(0));
        }
        if rest.is_empty() {
            return None;
        }
        let mut total = 0u64;
        while !rest.is_empty() {
            let (whole, tail) = leading_digits(rest);
            let mut value = 0u64;
            for digit in whole.bytes() {
                value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
                if value > 1 << 63 {
                    return None;
                }
            }
            rest = tail;
            let mut fraction = 0u64;
            let mut scale = 1f64;
            let mut fraction_digits = "";
            if let Some(tail) = rest.strip_prefix('.') {
                let (part, tail) = leading_digits(tail);
                fraction_digits = part;
                rest = tail;
                let mut overflow = false;
                for digit in part.bytes() {
                    if overflow {
                        continue;
                    }
                    if fraction > (i64::MAX as u64) / 10 {
                        overflow = true;
                        continue;
                    }
                    let next = fraction * 10 + u64::from(digit - b'0');
                    if next > 1 << 63 {
                        overflow = true;
                        continue;
                    }
                    fraction = next;
                    scale *= 10.0;
                }
            }
            if whole.is_empty() && fraction_digits.is_empty() {
                return None;
            }
            let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
            let (unit_name, tail) = rest.split_at(unit_end);
            rest = tail;
            let unit = match unit_name {
                "ns" => 1u64,
                "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            };
            if value > (1 << 63) / unit {
                return None;
            }
            value *= unit;
            if fraction > 0 {
                value += (fraction as f64 * (unit as f64 / scale)) as u64;
                if value > 1 << 63 {
                    return None;
                }
            }
            total = total.checked_add(value)?;
            if total > 1 << 63 {
                return None;
            }
        }
        if negative {
            // -2^63 has no positive counterpart.
            return Some(Duration(0i64.wrapping_sub_unsigned(total)));
        }
        i64::try_from(total).ok().map(Duration)
    }

    /// The span in seconds, as Go's `Duration.Seconds`.
    pub fn as_seconds(self) -> f64 {
        (self.0 / NANOS_PER_SECOND) as f64 + (self.0 % NANOS_PER_SECOND) as f64 / 1e9
    }
}

impl fmt::Display for Duration {
    /// Seconds as the shortest decimal that reads back as the same double, then `s`: `3723.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.as_seconds())
    }
}

fn digits(rest: &mut &[u8], count: usize) -> Option<u32> {
    let (head, tail) = rest.split_at_checked(count)?;
    let mut value = 0;
    for digit in head {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u32::from(digit - b'0');
    }
    *rest = tail;
    Some(value)
}

fn literal(rest: &mut &[u8], byte: u8) -> Option<()> {
    let (head, tail) = rest.split_first()?;
    *rest = tail;
    (*head == byte).then_some(())
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn days_in(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_as_go_reads_them_and_print_with_their_offset() {
        for (text, printed) in [
            ("1999-12-31T23:59:59Z", Some("1999-12-31T23:59:59Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("1999-12-31T23:59:59,5Z", Some("1999-12-31T23:59:59.5Z")),
            ("1999-12-31T23:59:59.1234567891Z", Some("1999-12-31T23:59:59.123456789Z")),
            ("1999-12-31T23:59:59+24:00", Some("1999-12-31T23:59:59+24:00")),
            ("1999-06-01T00:00:00-12:30", Some("1999-06-01T00:00:00-12:30")),
            ("1999-06-01T7:00:00+00:00", Some("1999-06-01T07:00:00Z")),
            ("1996-02-29T00:00:00Z", Some("1996-02-29T00:00:00Z")),
            ("1999-02-29T00:00:00Z", None),
            ("1999-12-31T24:00:00Z", None),
            ("1999-12-31t23:59:59z", None),
            ("1999-12-31T23:59:60Z", None),
            ("1999-12-31T23:59:59.+01:00", None),
            ("10000-01-01T00:00:00Z", None),
            ("1999-12-31", None),
            ("", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|t| t.to_string()).as_deref(), printed, "{text}");
        }
    }

    #[test]
    fn durations_read_and_print_as_go_does() {
        for (text, printed) in [
            ("1h30m", Some("5400s")),
            ("-1.5s", Some("-1.5s")),
            (".5s", Some("0.5s")),
            ("1.s", Some("1s")),
            ("0", Some("0s")),
            ("1µs", Some("0.000001s")),
            ("1ns", Some("0.000000001s")),
            ("1m1h", Some("3660s")),
            ("2562047h47m16.854775807s", Some("9223372036.854776s")),
            ("-2562047h47m16.854775808s", Some("-9223372036.854776s")),
            ("2562048h", None),
            ("1", None),
            ("1 s", None),
            ("s", None),
            ("1d", None),
            ("", None),
            ("1h-1m", None),
        ] {
            assert_eq!(Duration::parse(text).map(|d| d.to_string()).as_deref(), printed, "{text}");
        }
    }

    #[test]
    fn calendar_fields_follow_the_offset() {
        let at = Timestamp::parse("1999-12-31T23:59:59.5Z").map(|t| t.at_offset(7200).civil());
        let civil = Civil { year: 2000, month: 1, day: 1, hour: 1, minute: 59, second: 59, weekday: 6, day_of_year: 1 };
        assert_eq!(at, Some(civil));
    }

    #[test]
    fn arithmetic_is_checked() {
        let last = Timestamp::new(MAX_SECONDS, 999_999_999, 0);
        assert_eq!(last.checked_add(Duration(1)), None);
        assert_eq!(last.checked_sub(Timestamp::new(MIN_SECONDS, 0, 0)), None);
        let zero = Timestamp::new(0, 0, 0);
        assert_eq!(zero.checked_add(Duration(-1)), Some(Timestamp::new(-1, 999_999_999, 0)));
    }
}
