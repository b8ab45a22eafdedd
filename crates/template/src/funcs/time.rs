//! Sprig's functions on dates, and the methods of `time.Time` and `time.Duration` that templates use.

use super::convert::to_int;
use super::layout::{format, parse, zone_name};
use super::{Table, arg, int, text};
use crate::value::{Result, Special, Val};
use crate::world::World;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

pub(super) const TABLE: Table = &[
    ("now", "", |w, _| Ok(Val::special(Special::Time(w.now.to_zoned_datetime(w.zone.clone()))))),
    ("date", "sa", |w, a| in_zone(w, &text(a, 0), &arg(a, 1), "Local")),
    ("dateInZone", "sas", |w, a| in_zone(w, &text(a, 0), &arg(a, 1), &text(a, 2))),
    ("date_in_zone", "sas", |w, a| in_zone(w, &text(a, 0), &arg(a, 1), &text(a, 2))),
    ("htmlDate", "a", |w, a| in_zone(w, "2006-01-02", &arg(a, 0), "Local")),
    ("htmlDateInZone", "as", |w, a| in_zone(w, "2006-01-02", &arg(a, 0), &text(a, 1))),
    ("dateModify", "sa", |w, a| modify(w, a).or_else(|_| Ok(arg(a, 1)))),
    ("date_modify", "sa", |w, a| modify(w, a).or_else(|_| Ok(arg(a, 1)))),
    ("mustDateModify", "sa", modify),
    ("must_date_modify", "sa", modify),
    ("ago", "a", |w, a| {
        let t = time_of(w, &arg(a, 0)).timestamp();
        let nanos = w.now.as_nanosecond() - t.as_nanosecond();
        let seconds = (nanos as f64 / 1e9).round() as i64;
        w.heap.string(duration_string(seconds.saturating_mul(1_000_000_000)))
    }),
    ("toDate", "ss", |w, a| {
        let t = parse(&text(a, 0), &text(a, 1), &w.zone).unwrap_or_else(|_| zero());
        Ok(Val::special(Special::Time(t)))
    }),
    ("mustToDate", "ss", |w, a| Ok(Val::special(Special::Time(parse(&text(a, 0), &text(a, 1), &w.zone)?)))),
    ("unixEpoch", "a", |w, a| {
        let seconds = time_of(w, &arg(a, 0)).timestamp().as_second();
        w.heap.string(seconds.to_string())
    }),
    ("duration", "a", |w, a| {
        let seconds = match arg(a, 0) {
            Val::Str(s) => s.text().parse().unwrap_or(0),
            Val::Int(i, _) => i,
            _ => 0,
        };
        w.heap.string(duration_string(seconds.saturating_mul(1_000_000_000)))
    }),
    ("durationRound", "a", |w, a| {
        let rounded = round(nanos_of(w, &arg(a, 0)));
        w.heap.string(rounded)
    }),
    ("toDuration", "a", |_, a| {
        Ok(Val::special(Special::Duration(match arg(a, 0) {
            Val::Str(s) => parse_duration(&s.text())?,
            other => to_int(&other),
        })))
    }),
];

pub(super) const TIME_METHODS: Table = &[
    ("Format", "s", |w, a| {
        let out = format(&time_of(w, &arg(a, 0)), &text(a, 1));
        w.heap.string(out)
    }),
    ("String", "", |w, a| {
        let out = string(&time_of(w, &arg(a, 0)));
        w.heap.string(out)
    }),
    ("Unix", "", |w, a| Ok(Val::int64(time_of(w, &arg(a, 0)).timestamp().as_second()))),
    ("UnixMilli", "", |w, a| Ok(Val::int64(time_of(w, &arg(a, 0)).timestamp().as_millisecond()))),
    ("UnixNano", "", |w, a| Ok(Val::int64(time_of(w, &arg(a, 0)).timestamp().as_nanosecond() as i64))),
    ("Year", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).year().into()))),
    ("YearDay", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).day_of_year().into()))),
    ("Day", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).day().into()))),
    ("Hour", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).hour().into()))),
    ("Minute", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).minute().into()))),
    ("Second", "", |w, a| Ok(Val::int(time_of(w, &arg(a, 0)).second().into()))),
    ("Month", "", |w, a| Ok(Val::str(format(&time_of(w, &arg(a, 0)), "January")))),
    ("Weekday", "", |w, a| Ok(Val::str(format(&time_of(w, &arg(a, 0)), "Monday")))),
    ("IsZero", "", |w, a| Ok(Val::Bool(time_of(w, &arg(a, 0)).timestamp() == zero().timestamp()))),
    ("UTC", "", |w, a| Ok(Val::special(Special::Time(time_of(w, &arg(a, 0)).with_time_zone(TimeZone::UTC))))),
    ("Add", "d", |w, a| {
        let t = time_of(w, &arg(a, 0));
        add(&t, nanos_of(w, &arg(a, 1)))
    }),
    ("AddDate", "iii", |w, a| {
        let t = time_of(w, &arg(a, 0));
        // Days beyond a month's end run over into the next, as in Go.
        let months = i64::from(t.year()) * 12 + i64::from(t.month()) - 1;
        let months = months.saturating_add(int(a, 1).saturating_mul(12)).saturating_add(int(a, 2));
        let first = i16::try_from(months.div_euclid(12)).ok().zip(i8::try_from(months.rem_euclid(12) + 1).ok());
        let date = first.and_then(|(y, m)| jiff::civil::Date::new(y, m, 1).ok());
        let days = (i64::from(t.day()) - 1).saturating_add(int(a, 3));
        let date = date.and_then(|d| d.checked_add(SignedDuration::from_hours(days.checked_mul(24)?)).ok());
        let moved = date.and_then(|d| t.with().date(d).build().ok());
        moved.map(|t| Val::special(Special::Time(t))).ok_or_else(|| OUT_OF_RANGE.to_owned())
    }),
    ("Sub", "a", |w, a| {
        let nanos =
            time_of(w, &arg(a, 0)).timestamp().as_nanosecond() - time_of(w, &arg(a, 1)).timestamp().as_nanosecond();
        Ok(Val::special(Special::Duration(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)))
    }),
    ("Before", "a", |w, a| Ok(Val::Bool(time_of(w, &arg(a, 0)).timestamp() < time_of(w, &arg(a, 1)).timestamp()))),
    ("After", "a", |w, a| Ok(Val::Bool(time_of(w, &arg(a, 0)).timestamp() > time_of(w, &arg(a, 1)).timestamp()))),
    ("Equal", "a", |w, a| Ok(Val::Bool(time_of(w, &arg(a, 0)).timestamp() == time_of(w, &arg(a, 1)).timestamp()))),
];

pub(super) const DURATION_METHODS: Table = &[
    ("String", "", |w, a| {
        let out = duration_string(nanos_of(w, &arg(a, 0)));
        w.heap.string(out)
    }),
    ("Hours", "", |w, a| Ok(Val::Float(nanos_of(w, &arg(a, 0)) as f64 / 3.6e12))),
    ("Minutes", "", |w, a| Ok(Val::Float(nanos_of(w, &arg(a, 0)) as f64 / 6e10))),
    ("Seconds", "", |w, a| Ok(Val::Float(nanos_of(w, &arg(a, 0)) as f64 / 1e9))),
    ("Milliseconds", "", |w, a| Ok(Val::int64(nanos_of(w, &arg(a, 0)) / 1_000_000))),
    ("Nanoseconds", "", |w, a| Ok(Val::int64(nanos_of(w, &arg(a, 0))))),
];

const OUT_OF_RANGE: &str = "time out of range";

/// Go's zero time: the first of January of the year 1.
fn zero() -> ZonedDateTime {
    let date = jiff::civil::date(1, 1, 1).to_zoned_datetime(TimeZone::UTC);
    date.unwrap_or_else(|_| Timestamp::UNIX_EPOCH.to_zoned_datetime(TimeZone::UTC))
}

/// A time, or seconds since the epoch; anything else is now.
fn time_of(w: &World<'_>, val: &Val<'_>) -> ZonedDateTime {
    let seconds = match val {
        Val::Special(s) => match &**s {
            Special::Time(t) => return t.clone(),
            _ => None,
        },
        Val::Int(i, _) => Timestamp::from_second(*i).ok(),
        _ => None,
    };
    seconds.unwrap_or(w.now).to_zoned_datetime(w.zone.clone())
}

/// A duration in nanoseconds: one, a text, nanoseconds, or the time since a time.
fn nanos_of(w: &World<'_>, val: &Val<'_>) -> i64 {
    match val {
        Val::Str(s) => parse_duration(&s.text()).unwrap_or(0),
        Val::Int(i, _) => *i,
        Val::Special(s) => match &**s {
            Special::Duration(d) => *d,
            Special::Time(t) => (w.now.as_nanosecond() - t.timestamp().as_nanosecond()) as i64,
            _ => 0,
        },
        _ => 0,
    }
}

fn in_zone<'a>(w: &mut World<'a>, layout: &str, date: &Val<'a>, zone: &str) -> Result<Val<'a>> {
    let zone = match zone {
        "Local" => w.zone.clone(),
        "" | "UTC" => TimeZone::UTC,
        name => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    };
    let out = format(&time_of(w, date).with_time_zone(zone), layout);
    w.heap.string(out)
}

fn add<'a>(t: &ZonedDateTime, nanos: i64) -> Result<Val<'a>> {
    let moved = t.checked_add(SignedDuration::from_nanos(nanos)).map_err(|_| OUT_OF_RANGE)?;
    Ok(Val::special(Special::Time(moved)))
}

fn modify<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let nanos = parse_duration(&text(a, 0))?;
    add(&time_of(w, &arg(a, 1)), nanos)
}

/// A time as `time.Time` prints itself.
pub(crate) fn string(t: &ZonedDateTime) -> String {
    format!("{} {}", format(t, "2006-01-02 15:04:05.999999999 -0700"), zone_name(t))
}

/// A time in RFC 3339 with its fraction, as JSON has it.
pub(crate) fn rfc3339_nano(t: &ZonedDateTime) -> String {
    format(t, "2006-01-02T15:04:05.999999999Z07:00")
}

/// A duration as `time.Duration` prints itself: `1h2m3.5s`.
pub(crate) fn duration_string(nanos: i64) -> String {
    let total = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    if total == 0 {
        return "0s".to_owned();
    }
    let decimal = |unit: u64| {
        let (whole, rest) = (total / unit, total % unit);
        if rest == 0 {
            return whole.to_string();
        }
        let width = unit.ilog10() as usize;
        format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
    };
    match total {
        0..1_000 => format!("{sign}{total}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(1_000_000)),
        _ => {
            let minutes = total / 60_000_000_000;
            let rest = total % 60_000_000_000;
            let fraction = rest % 1_000_000_000;
            let fraction = if fraction == 0 {
                String::new()
            } else {
                format!(".{}", format!("{fraction:09}").trim_end_matches('0'))
            };
            let seconds = format!("{}{fraction}s", rest / 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}"),
                (0, m) => format!("{sign}{m}m{seconds}"),
                (h, m) => format!("{sign}{h}h{m}m{seconds}"),
            }
        }
    }
}

/// `time.ParseDuration`, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Result<i64> {
    let invalid = || format!("time: invalid duration {}", object::go::quote(text));
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0f64;
    let mut exact = 0i128;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if number.is_empty() || number == "." || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let nanos: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {}", object::go::quote(text))),
            unit => {
                let quote = object::go::quote;
                return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
            }
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        exact = exact.saturating_add(whole.saturating_mul(nanos));
        if !fraction.is_empty() {
            total += format!("0.{fraction}").parse::<f64>().unwrap_or(0.0) * nanos as f64;
        }
        rest = next;
    }
    let nanos = exact.saturating_add(total as i128);
    let nanos = i64::try_from(nanos).map_err(|_| invalid())?;
    Ok(if negative { -nanos } else { nanos })
}

/// A duration in its largest unit: `2h`, `3d`, `1mo`.
fn round(nanos: i64) -> String {
    let seconds = nanos.unsigned_abs() as f64 / 1e9;
    let sign = if nanos < 0 { "-" } else { "" };
    for (unit, length) in
        [("y", 31_536_000.0), ("mo", 2_592_000.0), ("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)]
    {
        if seconds > length {
            return format!("{sign}{}{unit}", (seconds / length) as u64);
        }
    }
    format!("{sign}{}s", seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_and_read_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (-18_367_000_000_000, "-5h6m7s"),
        ] {
            assert_eq!(duration_string(nanos), text);
            assert_eq!(parse_duration(text), Ok(nanos));
        }
        assert_eq!(parse_duration("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(parse_duration("3"), Err("time: missing unit in duration \"3\"".to_owned()));
        assert_eq!(parse_duration("30d"), Err("time: unknown unit \"d\" in duration \"30d\"".to_owned()));
        assert_eq!(parse_duration(""), Err("time: invalid duration \"\"".to_owned()));
    }

    #[test]
    fn layouts_go_both_ways() {
        let t = parse("2006-01-02T15:04:05Z07:00", "2021-03-04T05:06:07.25+02:00", &TimeZone::UTC).unwrap();
        for (layout, text) in [
            ("2006-01-02T15:04:05.999Z07:00", "2021-03-04T05:06:07.25+02:00"),
            ("Mon Jan _2 3:04PM 06", "Thu Mar  4 5:06AM 21"),
            ("Monday, January 2 002 .000", "Thursday, March 4 063 .250"),
            ("15h Month -0700", "05h Month +0200"),
        ] {
            assert_eq!(format(&t, layout), text);
        }
        assert_eq!(string(&t.with_time_zone(TimeZone::UTC)), "2021-03-04 03:06:07.25 +0000 UTC");
        assert_eq!(
            parse("2006-01-02", "2021-13-01", &TimeZone::UTC).unwrap_err(),
            "parsing time \"2021-13-01\": month out of range"
        );
        assert_eq!(
            parse("2006-01-02", "x", &TimeZone::UTC).unwrap_err(),
            "parsing time \"x\" as \"2006-01-02\": cannot parse \"x\" as \"2006\""
        );
    }
}
