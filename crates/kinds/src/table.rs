//! Helpers for the cells of tables.

use jiff::Timestamp;
use object::Value;

/// The row of kinds that show only `Name` and `Age`.
pub fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), age(object, now)]
}

/// How long ago an object was created, `<unknown>` where that is not known.
pub fn age(object: &Value, now: Timestamp) -> Value {
    since(object.at(&["metadata", "creationTimestamp"]), now).into()
}

/// How long ago a time was, as people read it; `<unknown>` where there is none.
pub fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).and_then(|s| s.parse::<Timestamp>().ok()) {
        Some(then) => human(now.as_second() - then.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// A duration in seconds as `kubectl get` shows it: two units at most, fewer the longer it is.
///
/// ```
/// # use kinds::table::human;
/// assert_eq!([human(1), human(125), human(3600), human(86400 * 3)], ["1s", "2m5s", "60m", "3d"]);
/// ```
pub fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |a: i64, au: &str, b: i64, bu: &str| if b == 0 { format!("{a}{au}") } else { format!("{a}{au}{b}{bu}") };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}
