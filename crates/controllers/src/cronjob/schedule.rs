//! Schedules in the form that the usual Go parser reads (`cron.ParseStandard`), and when they come next.

use jiff::civil::{DateTime, time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ZonedDateTime};

/// When a CronJob starts Jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Minutes, hours, days, months and days of the week in a time zone.
    Fields(Box<Fields>),
    /// `@every 90m`: again after this time.
    Every(SignedDuration),
}

/// The five fields; a bit for each value that matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    minute: u64,
    hour: u64,
    day: Days,
    month: u64,
    weekday: Days,
    zone: TimeZone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Days {
    bits: u64,
    /// Written with `*` or `?`: then the other field of days alone decides.
    any: bool,
}

struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAY: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// How many years ahead a match is looked for.
const YEARS: i16 = 5;

impl Schedule {
    /// Reads a schedule; its times are those of `zone`, unless it names one itself (`TZ=…`, `CRON_TZ=…`). Texts that the
    /// API server refuses give an error that says where reading ended.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Schedule, String> {
        let mut rest = text;
        let mut zone = zone.clone();
        for prefix in ["TZ=", "CRON_TZ="] {
            if let Some(named) = text.strip_prefix(prefix) {
                let (name, after) = named.split_once(' ').unwrap_or((named, ""));
                zone =
                    time_zone(name).ok_or_else(|| format!("provided bad location {name}: unknown time zone {name}"))?;
                rest = after.trim();
            }
        }
        if rest.is_empty() {
            return Err("empty spec string".to_owned());
        }
        if let Some(every) = rest.strip_prefix("@every ") {
            let delay = duration(every).ok_or_else(|| format!("failed to parse duration {rest}"))?;
            let whole = SignedDuration::from_secs(delay.as_secs().max(1));
            return Ok(Schedule::Every(whole));
        }
        let plain = match rest {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => return Err(format!("unrecognized descriptor: {other}")),
            other => other,
        };
        let parts: Vec<&str> = plain.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = parts.as_slice() else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
        };
        Ok(Schedule::Fields(Box::new(Fields {
            minute: field(minute, &MINUTE)?.bits,
            hour: field(hour, &HOUR)?.bits,
            day: field(day, &DAY)?,
            month: field(month, &MONTH)?.bits,
            weekday: field(weekday, &WEEKDAY)?,
            zone,
        })))
    }

    /// The first time after `after`; nothing if there is none within five years (the 31st of February).
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Every(delay) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*delay).ok()
            }
            Schedule::Fields(fields) => fields.next(after),
        }
    }
}

/// A time zone by its name as Go loads it; the empty name and `Local` are UTC here.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" | "Local" => Some(TimeZone::UTC),
        name => TimeZone::get(name).ok(),
    }
}

impl Fields {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = Timestamp::from_second(after.as_second()).ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
        let mut at = start.to_zoned_datetime(self.zone.clone());
        // Schedules have no seconds: the first candidate is the next full minute.
        if at.second() != 0 {
            at = at.checked_add(SignedDuration::from_secs(60 - i64::from(at.second()))).ok()?;
        }
        let limit = at.year().saturating_add(YEARS);
        while at.year() <= limit {
            if !has(self.month, at.month()) {
                at = self.midnight(at.datetime().first_of_month().checked_add(Span::new().months(1)).ok()?)?;
            } else if !self.day_matches(&at) {
                at = self.midnight(at.datetime().checked_add(Span::new().days(1)).ok()?)?;
            } else if !has(self.hour, at.hour()) {
                let left = 3600 - 60 * i64::from(at.minute());
                at = at.checked_add(SignedDuration::from_secs(left)).ok()?;
            } else if !has(self.minute, at.minute()) {
                at = at.checked_add(SignedDuration::from_secs(60)).ok()?;
            } else {
                return Some(at.timestamp());
            }
        }
        None
    }

    /// The first moment of a date; where clocks skip midnight, what comes then.
    fn midnight(&self, date: DateTime) -> Option<ZonedDateTime> {
        date.date().to_datetime(time(0, 0, 0, 0)).to_zoned_datetime(self.zone.clone()).ok()
    }

    fn day_matches(&self, at: &ZonedDateTime) -> bool {
        let day = has(self.day.bits, at.day());
        let weekday = has(self.weekday.bits, at.weekday().to_sunday_zero_offset());
        if self.day.any || self.weekday.any { day && weekday } else { day || weekday }
    }
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).ok().and_then(|v| 1u64.checked_shl(v)).is_some_and(|bit| bits & bit != 0)
}

fn field(text: &str, bounds: &Bounds) -> Result<Days, String> {
    let mut out = Days { bits: 0, any: false };
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let range = range(part, bounds)?;
        out.bits |= range.bits;
        out.any |= range.any;
    }
    Ok(out)
}

/// `number | number "-" number | "*", each with "/" step`.
fn range(text: &str, bounds: &Bounds) -> Result<Days, String> {
    let (ends, step) = match text.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {text}")),
        Some((ends, step)) => (ends, Some(integer(step)?)),
        None => (text, None),
    };
    let (low, high) = match ends.split_once('-') {
        Some((_, high)) if high.contains('-') => return Err(format!("too many hyphens: {text}")),
        Some((low, high)) => (low, Some(high)),
        None => (ends, None),
    };
    let every = matches!(low, "*" | "?");
    let (start, mut end) = match high {
        _ if every => (bounds.min, bounds.max),
        Some(high) => (number(low, bounds)?, number(high, bounds)?),
        None => {
            let start = number(low, bounds)?;
            (start, start)
        }
    };
    // "N/step" means "N-max/step".
    if step.is_some() && high.is_none() && !every {
        end = bounds.max;
    }
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let bits = (start..=end).step_by(step as usize).fold(0, |bits, value| bits | 1u64 << value);
    // A step other than one makes "*" a choice of its own.
    Ok(Days { bits, any: every && step == 1 })
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|n| *n == lower) {
        Some(i) => Ok(i as u32 + bounds.min),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("failed to parse int from {text}"))
}

/// A duration in Go's form (`1h30m`, `1.5h`), in the range that schedules can use.
fn duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut seconds = 0f64;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count());
        let (unit, after) = after.split_at(after.bytes().take_while(|b| !b.is_ascii_digit() && *b != b'.').count());
        let scale = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = after;
    }
    (!text.is_empty()).then_some(())?;
    SignedDuration::try_from_secs_f64(if negative { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_next_time_is_found() {
        for (schedule, after, next) in [
            ("* * * * *", "2026-01-01T10:00:00Z", Some("2026-01-01T10:01:00Z")),
            ("* * * * *", "2026-01-01T10:00:59.5Z", Some("2026-01-01T10:01:00Z")),
            ("*/15 * * * *", "2026-01-01T10:46:00Z", Some("2026-01-01T11:00:00Z")),
            ("5/15 * * * *", "2026-01-01T10:06:00Z", Some("2026-01-01T10:20:00Z")),
            ("0 2-6/2 * * *", "2026-01-01T04:00:00Z", Some("2026-01-01T06:00:00Z")),
            ("0 0 31 2 *", "2026-01-01T00:00:00Z", None),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", Some("2028-02-29T00:00:00Z")),
            ("0 0 13 * fri", "2026-01-01T00:00:00Z", Some("2026-01-02T00:00:00Z")),
            ("0 0 * * Mon-Wed", "2026-01-01T00:00:00Z", Some("2026-01-05T00:00:00Z")),
            ("0 0 */10 * mon", "2026-01-01T00:00:00Z", Some("2026-01-05T00:00:00Z")),
            ("0 0 1 JAN ?", "2026-01-01T00:00:00Z", Some("2027-01-01T00:00:00Z")),
            ("@weekly", "2026-01-01T00:00:00Z", Some("2026-01-04T00:00:00Z")),
            ("@hourly", "2026-01-01T00:00:00Z", Some("2026-01-01T01:00:00Z")),
            ("@every 1h30m", "2026-01-01T00:00:10.7Z", Some("2026-01-01T01:30:10Z")),
            ("@every 5ms", "2026-01-01T00:00:00Z", Some("2026-01-01T00:00:01Z")),
        ] {
            let parsed = Schedule::parse(schedule, &TimeZone::UTC).unwrap();
            assert_eq!(parsed.next(at(after)), next.map(at), "{schedule} after {after}");
        }
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let paris = time_zone("Europe/Paris").unwrap();
        for (schedule, after, next) in [
            ("0 9 * * *", "2026-01-01T08:30:00Z", "2026-01-02T08:00:00Z"),
            ("0 9 * * *", "2026-07-01T00:00:00Z", "2026-07-01T07:00:00Z"),
            // Clocks go from 2 to 3 on the 29th of March: the hour is not there, and is left out.
            ("30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"),
            ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:30:00Z", "2026-01-02T00:00:00Z"),
        ] {
            assert_eq!(Schedule::parse(schedule, &paris).unwrap().next(at(after)), Some(at(next)), "{schedule}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for bad in [
            "",
            "* * * *",
            "61 * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "1-2-3 * * * *",
            "x * * * *",
            "@often",
            "@every x",
            "TZ=Mars/X * * * * *",
        ] {
            assert!(Schedule::parse(bad, &TimeZone::UTC).is_err(), "{bad}");
        }
    }
}
