//! Go's layouts of time: `2006-01-02T15:04:05Z07:00`.

use jiff::ZonedDateTime;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use std::fmt::Write;

/// One part of a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'l> {
    Text(&'l str),
    LongYear,
    Year,
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    SpaceDay,
    ZeroDay,
    SpaceYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    Pm,
    LowerPm,
    Zone,
    /// An offset: `Z` for none, colons, seconds, minutes.
    Offset {
        z: bool,
        colon: bool,
        seconds: bool,
        minutes: bool,
    },
    /// A fraction of so many digits; all of them, or without the zeros at its end.
    Fraction {
        digits: usize,
        trim: bool,
        sign: char,
    },
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The elements of layouts, longer ones first where one begins another.
const ELEMENTS: &[(&str, Part<'static>)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::Month),
    ("Monday", Part::LongWeekday),
    ("Mon", Part::Weekday),
    ("MST", Part::Zone),
    ("2006", Part::LongYear),
    ("__2", Part::SpaceYearDay),
    ("002", Part::ZeroYearDay),
    ("01", Part::ZeroMonth),
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("15", Part::Hour),
    ("_2", Part::SpaceDay),
    ("1", Part::NumMonth),
    ("2", Part::Day),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::Pm),
    ("pm", Part::LowerPm),
    ("-07:00:00", offset(false, true, true, true)),
    ("-07:00", offset(false, true, false, true)),
    ("-070000", offset(false, false, true, true)),
    ("-0700", offset(false, false, false, true)),
    ("-07", offset(false, false, false, false)),
    ("Z07:00:00", offset(true, true, true, true)),
    ("Z07:00", offset(true, true, false, true)),
    ("Z070000", offset(true, false, true, true)),
    ("Z0700", offset(true, false, false, true)),
    ("Z07", offset(true, false, false, false)),
];

const fn offset(z: bool, colon: bool, seconds: bool, minutes: bool) -> Part<'static> {
    Part::Offset { z, colon, seconds, minutes }
}

/// The first element in a layout: the text before it, the element, the rest.
fn next_element(layout: &str) -> Option<(&str, Part<'_>, &str)> {
    let bytes = layout.as_bytes();
    for i in 0..bytes.len() {
        let Some(rest) = layout.get(i..) else { continue };
        // `_2006` is an underscore and a year; "Month" is not "Mon".
        if rest.starts_with("_2006") {
            continue;
        }
        for (name, part) in ELEMENTS {
            if let Some(after) = rest.strip_prefix(name) {
                let longer =
                    matches!(part, Part::Month | Part::Weekday) && after.starts_with(|c: char| c.is_ascii_lowercase());
                if !longer {
                    return Some((&layout[..i], *part, after));
                }
            }
        }
        if let Some(sign @ ('.' | ',')) = rest.chars().next() {
            let digit = bytes.get(i + 1).copied().filter(|b| matches!(b, b'0' | b'9'));
            let digits = digit.map_or(0, |d| bytes[i + 1..].iter().take_while(|b| **b == d).count());
            let after = &rest[1 + digits..];
            if digits > 0 && !after.starts_with(|c: char| c.is_ascii_digit()) {
                return Some((&layout[..i], Part::Fraction { digits, trim: digit == Some(b'9'), sign }, after));
            }
        }
    }
    None
}

fn parts(layout: &str) -> Vec<Part<'_>> {
    let mut out = Vec::new();
    let mut rest = layout;
    while let Some((before, part, after)) = next_element(rest) {
        if !before.is_empty() {
            out.push(Part::Text(before));
        }
        out.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Part::Text(rest));
    }
    out
}

/// A time in a layout.
pub(super) fn format(t: &ZonedDateTime, layout: &str) -> String {
    let mut out = String::new();
    let hour12 = match t.hour() % 12 {
        0 => 12,
        h => h,
    };
    let month = MONTHS[usize::try_from(t.month() - 1).unwrap_or(0) % 12];
    let day = DAYS[usize::try_from(t.weekday().to_sunday_zero_offset()).unwrap_or(0) % 7];
    for part in parts(layout) {
        let _ = match part {
            Part::Text(text) => out.write_str(text),
            Part::LongYear => write!(out, "{:04}", t.year()),
            Part::Year => write!(out, "{:02}", t.year().rem_euclid(100)),
            Part::LongMonth => out.write_str(month),
            Part::Month => out.write_str(&month[..3]),
            Part::NumMonth => write!(out, "{}", t.month()),
            Part::ZeroMonth => write!(out, "{:02}", t.month()),
            Part::LongWeekday => out.write_str(day),
            Part::Weekday => out.write_str(&day[..3]),
            Part::Day => write!(out, "{}", t.day()),
            Part::SpaceDay => write!(out, "{:2}", t.day()),
            Part::ZeroDay => write!(out, "{:02}", t.day()),
            Part::SpaceYearDay => write!(out, "{:3}", t.day_of_year()),
            Part::ZeroYearDay => write!(out, "{:03}", t.day_of_year()),
            Part::Hour => write!(out, "{:02}", t.hour()),
            Part::Hour12 => write!(out, "{hour12}"),
            Part::ZeroHour12 => write!(out, "{hour12:02}"),
            Part::Minute => write!(out, "{}", t.minute()),
            Part::ZeroMinute => write!(out, "{:02}", t.minute()),
            Part::Second => write!(out, "{}", t.second()),
            Part::ZeroSecond => write!(out, "{:02}", t.second()),
            Part::Pm => out.write_str(if t.hour() >= 12 { "PM" } else { "AM" }),
            Part::LowerPm => out.write_str(if t.hour() >= 12 { "pm" } else { "am" }),
            Part::Zone => out.write_str(&zone_name(t)),
            Part::Offset { z: true, .. } if t.offset().seconds() == 0 => out.write_str("Z"),
            Part::Offset { colon, seconds, minutes, .. } => {
                let s = t.offset().seconds();
                let (h, m, r) = (s.abs() / 3600, s.abs() / 60 % 60, s.abs() % 60);
                let colon = if colon { ":" } else { "" };
                let sign = if s < 0 { '-' } else { '+' };
                match (minutes, seconds) {
                    (true, true) => write!(out, "{sign}{h:02}{colon}{m:02}{colon}{r:02}"),
                    (true, false) => write!(out, "{sign}{h:02}{colon}{m:02}"),
                    _ => write!(out, "{sign}{h:02}"),
                }
            }
            Part::Fraction { digits, trim, sign } => {
                let all = format!("{:09}", t.subsec_nanosecond());
                let cut = if digits <= 9 { all[..digits].to_owned() } else { format!("{all:0<digits$}") };
                let cut = if trim { cut.trim_end_matches('0') } else { &cut };
                if cut.is_empty() { Ok(()) } else { write!(out, "{sign}{cut}") }
            }
        };
    }
    out
}

/// The abbreviation of a time's zone.
pub(super) fn zone_name(t: &ZonedDateTime) -> String {
    if t.time_zone() == &TimeZone::UTC {
        return "UTC".to_owned();
    }
    t.time_zone().to_offset_info(t.timestamp()).abbreviation().to_owned()
}

/// What has been read of a time.
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    pm: Option<bool>,
    offset: Option<i64>,
    utc: bool,
}

/// Reads a time in a layout; without a zone in it, it is in `zone`.
pub(super) fn parse(layout: &str, value: &str, zone: &TimeZone) -> Result<ZonedDateTime, String> {
    let quote = object::go::quote;
    let cannot = |rest: &str, element: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(value),
            quote(layout),
            quote(rest),
            quote(element)
        )
    };
    let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", quote(value));
    let mut f = Fields {
        year: 0,
        month: 1,
        day: 1,
        year_day: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        pm: None,
        offset: None,
        utc: false,
    };
    let mut rest = value;
    let mut layout_rest = layout;
    loop {
        let Some((before, part, after)) = next_element(layout_rest) else {
            match rest.strip_prefix(layout_rest) {
                Some("") => break,
                Some(extra) => return Err(format!("parsing time {}: extra text: {}", quote(value), quote(extra))),
                None => return Err(cannot(rest, layout_rest)),
            }
        };
        let element = &layout_rest[before.len()..layout_rest.len() - after.len()];
        let Some(r) = rest.strip_prefix(before) else { return Err(cannot(rest, before)) };
        rest = r;
        let hold = rest;
        if read(part, &mut f, &mut rest, after).is_none() {
            return Err(cannot(hold, element));
        }
        layout_rest = after;
    }
    if !(1..=12).contains(&f.month) {
        return Err(out_of_range("month"));
    }
    for (number, limit, what) in [(f.hour, 24, "hour"), (f.minute, 60, "minute"), (f.second, 60, "second")] {
        if number >= limit {
            return Err(out_of_range(what));
        }
    }
    match f.pm {
        Some(true) if f.hour < 12 => f.hour += 12,
        Some(false) if f.hour == 12 => f.hour = 0,
        _ => {}
    }
    let small = |n: i64| i8::try_from(n).unwrap_or(0);
    let year = i16::try_from(f.year).map_err(|_| out_of_range("year"))?;
    let date = Date::new(year, small(f.month), small(f.day)).map_err(|_| out_of_range("day"))?;
    let date = match f.year_day {
        Some(n) => Date::new(year, 1, 1)
            .and_then(|d| d.checked_add(jiff::Span::new().days(n - 1)))
            .map_err(|_| out_of_range("day-of-year"))?,
        None => date,
    };
    let time = Time::new(small(f.hour), small(f.minute), small(f.second), i32::try_from(f.nanos).unwrap_or(0))
        .map_err(|_| out_of_range("second"))?;
    let zone = match f.offset {
        Some(0) => TimeZone::UTC,
        Some(s) => {
            let offset = i32::try_from(s).ok().and_then(|s| Offset::from_seconds(s).ok());
            TimeZone::fixed(offset.ok_or_else(|| out_of_range("time zone offset"))?)
        }
        None if f.utc => TimeZone::UTC,
        None => zone.clone(),
    };
    DateTime::from_parts(date, time).to_zoned_datetime(zone).map_err(|_| out_of_range("year"))
}

/// Reads one element.
fn read(part: Part<'_>, f: &mut Fields, rest: &mut &str, after: &str) -> Option<()> {
    let fixed = |rest: &mut &str, n: usize| -> Option<i64> {
        let digits = rest.get(..n).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
        *rest = &rest[n..];
        digits.parse().ok()
    };
    let loose = |rest: &mut &str| -> Option<i64> {
        let n = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        fixed(rest, n.max(1))
    };
    let name = |rest: &mut &str, names: &[&str], short: bool| -> Option<i64> {
        let (i, length) = names.iter().enumerate().find_map(|(i, name)| {
            let name = if short { &name[..3] } else { name };
            rest.get(..name.len()).filter(|r| r.eq_ignore_ascii_case(name)).map(|_| (i, name.len()))
        })?;
        *rest = &rest[length..];
        Some(i as i64)
    };
    match part {
        Part::Text(_) => {}
        Part::LongYear => f.year = fixed(rest, 4)?,
        Part::Year => {
            let y = fixed(rest, 2)?;
            f.year = if y >= 69 { y + 1900 } else { y + 2000 };
        }
        Part::LongMonth => f.month = name(rest, &MONTHS, false)? + 1,
        Part::Month => f.month = name(rest, &MONTHS, true)? + 1,
        Part::NumMonth => f.month = loose(rest)?,
        Part::ZeroMonth => f.month = fixed(rest, 2)?,
        Part::LongWeekday => drop(name(rest, &DAYS, false)?),
        Part::Weekday => drop(name(rest, &DAYS, true)?),
        Part::Day | Part::SpaceDay => {
            *rest = rest.strip_prefix(' ').unwrap_or(rest);
            f.day = loose(rest)?;
        }
        Part::ZeroDay => f.day = fixed(rest, 2)?,
        Part::SpaceYearDay | Part::ZeroYearDay => {
            let blank = rest.bytes().take(2).take_while(|b| *b == b' ').count();
            *rest = &rest[blank..];
            f.year_day = Some(fixed(rest, 3 - blank)?);
        }
        Part::Hour => f.hour = loose(rest)?,
        Part::Hour12 => f.hour = loose(rest).filter(|h| *h <= 12)?,
        Part::ZeroHour12 => f.hour = fixed(rest, 2).filter(|h| *h <= 12)?,
        Part::Minute => f.minute = loose(rest)?,
        Part::ZeroMinute => f.minute = fixed(rest, 2)?,
        Part::Second | Part::ZeroSecond => {
            f.second = if part == Part::Second { loose(rest)? } else { fixed(rest, 2)? };
            // A fraction may follow that the layout does not tell of.
            let expected = matches!(next_element(after), Some(("", Part::Fraction { .. }, _)));
            if !expected && rest.starts_with(['.', ',']) {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                if digits > 0 {
                    f.nanos = nanos(&rest[1..1 + digits]);
                    *rest = &rest[1 + digits..];
                }
            }
        }
        Part::Pm | Part::LowerPm => {
            let (pm, am) = if part == Part::Pm { ("PM", "AM") } else { ("pm", "am") };
            f.pm = Some(rest.starts_with(pm));
            *rest = rest.strip_prefix(pm).or_else(|| rest.strip_prefix(am))?;
        }
        Part::Zone => {
            let letters = rest.bytes().take_while(u8::is_ascii_uppercase).count();
            if !(3..=5).contains(&letters) {
                return None;
            }
            f.utc = &rest[..letters] == "UTC";
            *rest = &rest[letters..];
        }
        Part::Offset { z: true, .. } if rest.starts_with('Z') => {
            *rest = &rest[1..];
            f.offset = Some(0);
        }
        Part::Offset { colon, seconds, minutes, .. } => {
            let sign = if rest.starts_with('-') { -1 } else { 1 };
            *rest = rest.strip_prefix(['+', '-'])?;
            let mut total = fixed(rest, 2)? * 3600;
            for (wanted, unit) in [(minutes, 60), (seconds, 1)] {
                if wanted {
                    if colon {
                        *rest = rest.strip_prefix(':')?;
                    }
                    total += fixed(rest, 2)? * unit;
                }
            }
            f.offset = Some(sign * total);
        }
        Part::Fraction { digits, trim, .. } => {
            let has_sign = rest.starts_with(['.', ',']);
            let found = if has_sign { rest[1..].bytes().take_while(u8::is_ascii_digit).count() } else { 0 };
            match trim {
                true if found == 0 => {}
                false if found < digits => return None,
                _ => {
                    let take = if trim { found } else { digits };
                    f.nanos = nanos(&rest[1..=take]);
                    *rest = &rest[1 + take..];
                }
            }
        }
    }
    Some(())
}

fn nanos(digits: &str) -> i64 {
    format!("{:0<9}", &digits[..digits.len().min(9)]).parse().unwrap_or(0)
}
