//! Calendar fields of timestamps and totals of durations.

use jiff::tz::TimeZone;

use super::number::quote;
use crate::value::{Civil, Duration, Error, Result, Timestamp, Value};

/// A getter, by what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Getter {
    FullYear,
    Month,
    DayOfYear,
    DayOfMonth,
    Date,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

macro_rules! getters {
    ($($name:ident $getter:ident;)*) => {
        $(
        /// The getter of the same name.
        pub(crate) fn $name<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
            get(Getter::$getter, args)
        })*
    };
}

getters! {
    full_year FullYear;
    month Month;
    day_of_year DayOfYear;
    day_of_month DayOfMonth;
    date Date;
    day_of_week DayOfWeek;
    hours Hours;
    minutes Minutes;
    seconds Seconds;
    milliseconds Milliseconds;
}

fn get<'a>(getter: Getter, args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::Timestamp(time)] => Ok(Value::Int(field(getter, time.at_offset(0)))),
        [Value::Timestamp(time), Value::String(zone)] => {
            Ok(Value::Int(field(getter, time.at_offset(offset_in(*time, zone)?))))
        }
        [Value::Duration(span)] => total(getter, *span).map(Value::Int),
        _ => Err(Error::mismatch()),
    }
}

fn field(getter: Getter, time: Timestamp) -> i64 {
    let Civil { year, month, day, hour, minute, second, weekday, day_of_year } = time.civil();
    match getter {
        Getter::FullYear => year,
        Getter::Month => i64::from(month) - 1,
        Getter::DayOfYear => i64::from(day_of_year) - 1,
        Getter::DayOfMonth => i64::from(day) - 1,
        Getter::Date => i64::from(day),
        Getter::DayOfWeek => i64::from(weekday),
        Getter::Hours => i64::from(hour),
        Getter::Minutes => i64::from(minute),
        Getter::Seconds => i64::from(second),
        Getter::Milliseconds => i64::from(time.nanos() / 1_000_000),
    }
}

fn total(getter: Getter, span: Duration) -> Result<i64> {
    // By way of a double, as Go's `Duration.Hours` and its like, then cut off.
    let whole = |unit: i64| ((span.0 / unit) as f64 + (span.0 % unit) as f64 / unit as f64) as i64;
    match getter {
        Getter::Hours => Ok(whole(3_600_000_000_000)),
        Getter::Minutes => Ok(whole(60_000_000_000)),
        Getter::Seconds => Ok(whole(1_000_000_000)),
        Getter::Milliseconds => Ok(span.0 / 1_000_000),
        _ => Err(Error::mismatch()),
    }
}

/// Seconds east of UTC at `time` in `zone`: a name of the IANA database, `UTC`, `Local` (which is UTC here), the empty
/// string for UTC, or hours and minutes such as `-05:30`, which are not held to any range.
fn offset_in(time: Timestamp, zone: &str) -> Result<i32> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let (hour, minute) = (go_atoi(hours)?, go_atoi(minutes)?);
        let minutes = hour.saturating_mul(60);
        let east = if zone.starts_with('-') { minutes.saturating_sub(minute) } else { minutes.saturating_add(minute) };
        return Ok(i32::try_from(east.saturating_mul(60)).unwrap_or(if east < 0 { i32::MIN } else { i32::MAX }));
    }
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if zone.starts_with(['/', '\\']) || zone.split(['/', '\\']).any(|part| part == "..") {
        return Err(Error::new("time: invalid location name"));
    }
    let unknown = || Error::new(format!("unknown time zone {zone}"));
    let found = TimeZone::get(zone).map_err(|_| unknown())?;
    // The database here ignores case; files of zones do not.
    if found.iana_name() != Some(zone) {
        return Err(unknown());
    }
    let instant = jiff::Timestamp::from_second(time.seconds()).map_err(|_| unknown())?;
    Ok(found.to_offset(instant).seconds())
}

/// Go's `strconv.Atoi` with its error texts.
fn go_atoi(text: &str) -> Result<i64> {
    super::number::parse_int(text).ok_or_else(|| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let why = if numeric { "value out of range" } else { "invalid syntax" };
        Error::new(format!("strconv.Atoi: parsing {}: {why}", quote(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Value<'_>>) -> String {
        result.map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn getters_follow_zones_and_offsets() {
        let time = Value::Timestamp(Timestamp::parse("1999-12-31T23:59:59.5+02:00").unwrap_or(Timestamp::new(0, 0, 0)));
        assert_eq!(text(hours(std::slice::from_ref(&time))), "21");
        for (zone, hour) in [
            ("UTC", "21"),
            ("", "21"),
            ("Local", "21"),
            ("+02:00", "23"),
            ("02:00", "23"),
            ("-05:30", "16"),
            ("+25:00", "22"),
            ("America/New_York", "16"),
            ("Asia/Kolkata", "3"),
            ("EST", "16"),
            ("utc", "unknown time zone utc"),
            ("Z", "unknown time zone Z"),
            ("+0200", "unknown time zone +0200"),
            ("Bad/Zone", "unknown time zone Bad/Zone"),
            ("../etc", "time: invalid location name"),
            ("a:b", "strconv.Atoi: parsing \"a\": invalid syntax"),
        ] {
            assert_eq!(text(hours(&[time.clone(), Value::borrowed(zone)])), hour, "{zone}");
        }
    }

    #[test]
    fn days_and_months_count_from_zero_but_date_from_one() {
        let time = Value::Timestamp(Timestamp::parse("2009-02-13T23:31:30Z").unwrap_or(Timestamp::new(0, 0, 0)));
        let args = [time];
        let cases: [(&str, Result<Value<'_>>); 6] = [
            ("2009", full_year(&args)),
            ("1", month(&args)),
            ("43", day_of_year(&args)),
            ("12", day_of_month(&args)),
            ("13", date(&args)),
            ("5", day_of_week(&args)),
        ];
        for (expected, got) in cases {
            assert_eq!(text(got), expected);
        }
    }

    #[test]
    fn durations_give_totals() {
        let span = [Value::Duration(Duration(-90 * 60_000_000_000))];
        assert_eq!(text(hours(&span)), "-1");
        assert_eq!(text(minutes(&span)), "-90");
        assert_eq!(text(milliseconds(&span)), "-5400000");
        assert_eq!(text(month(&span)), "no such overload");
    }
}
