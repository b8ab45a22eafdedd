//! Times as Go reads and writes them.

use object::go;

/// Which of the two layouts of the API a time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `2006-01-02T15:04:05Z07:00`; a fraction is read and dropped.
    Seconds,
    /// `2006-01-02T15:04:05.000000Z07:00`; six digits of fraction, neither more nor fewer.
    Micros,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Layout::Seconds => "2006-01-02T15:04:05Z07:00",
            Layout::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Reads a time and writes it in UTC, as a round trip through Go's type does; the error is that of Go's `time.Parse`.
pub(crate) fn normalise(text: &str, layout: Layout) -> Result<String, String> {
    let mut rest = text;
    let fail = |rest: &str, wanted: &str| {
        Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            go::quote(text),
            go::quote(layout.text()),
            go::quote(rest),
            go::quote(wanted)
        ))
    };
    let range = |what: &str| Err(format!("parsing time {}: {what} out of range", go::quote(text)));
    let mut numbers = [0u32; 6];
    const PARTS: [(&str, usize, &str); 6] =
        [("2006", 4, ""), ("01", 2, "-"), ("02", 2, "-"), ("15", 2, "T"), ("04", 2, ":"), ("05", 2, ":")];
    for (number, (wanted, digits, before)) in numbers.iter_mut().zip(PARTS) {
        match rest.strip_prefix(before) {
            Some(after) => rest = after,
            None => return fail(rest, before),
        }
        // Hours may have one digit in Go's parser, the other parts not.
        let found = rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
        let enough = found == digits || (wanted == "15" && found == 1);
        match rest.get(..found).filter(|_| enough).and_then(|d| d.parse().ok()) {
            Some(n) => *number = n,
            None => return fail(rest, wanted),
        }
        rest = rest.get(found..).unwrap_or_default();
        let bad = match wanted {
            "01" => (!(1..=12).contains(number)).then_some("month"),
            "15" => (*number > 23).then_some("hour"),
            "04" => (*number > 59).then_some("minute"),
            "05" => (*number > 59).then_some("second"),
            _ => None,
        };
        if let Some(bad) = bad {
            return range(bad);
        }
    }
    let [year, month, day, hour, minute, second] = numbers;
    let fraction_len = match rest.strip_prefix(['.', ',']) {
        Some(digits) => digits.bytes().take_while(u8::is_ascii_digit).count(),
        None => 0,
    };
    let mut micros = 0i64;
    match layout {
        Layout::Micros if fraction_len < 6 => return fail(rest, ".000000"),
        Layout::Micros => {
            micros = rest.get(1..7).and_then(|d| d.parse().ok()).unwrap_or(0);
            rest = rest.get(7..).unwrap_or_default();
        }
        Layout::Seconds if fraction_len > 0 => rest = rest.get(1 + fraction_len..).unwrap_or_default(),
        Layout::Seconds => {}
    }
    let mut offset = 0i64;
    if let Some(after) = rest.strip_prefix('Z') {
        rest = after;
    } else {
        let two = |from: usize| {
            rest.get(from..from + 2)
                .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|d| d.parse::<i64>().ok())
        };
        let sign = match rest.bytes().next() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return fail(rest, "Z07:00"),
        };
        match (two(1), rest.as_bytes().get(3), two(4)) {
            (Some(hours), Some(b':'), Some(minutes)) => {
                if hours > 24 {
                    return range("time zone offset hour");
                }
                if minutes > 60 {
                    return range("time zone offset minute");
                }
                offset = sign * (hours * 60 + minutes) * 60;
            }
            _ => return fail(rest, "Z07:00"),
        }
        rest = rest.get(6..).unwrap_or_default();
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", go::quote(text), go::quote(rest)));
    }
    let date = jiff::civil::Date::new(year as i16, month as i8, day as i8);
    let Ok(date) = date else { return range("day") };
    let utc = jiff::tz::Offset::UTC;
    let time = date.at(hour as i8, minute as i8, second as i8, 0);
    let Ok(time) = utc.to_timestamp(time) else { return range("year") };
    let Ok(time) = jiff::Timestamp::from_second(time.as_second() - offset) else { return range("year") };
    let time = utc.to_datetime(time);
    let text = time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    Ok(match layout {
        Layout::Seconds => format!("{text}Z"),
        Layout::Micros => format!("{text}.{micros:06}Z"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, want) in [
            ("2024-02-29T01:02:03Z", Ok("2024-02-29T01:02:03Z")),
            ("2024-02-29T01:02:03.5+01:00", Ok("2024-02-29T00:02:03Z")),
            ("", Err(r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#)),
            ("2024-13-01T00:00:00Z", Err(r#"parsing time "2024-13-01T00:00:00Z": month out of range"#)),
            ("2024-02-30T00:00:00Z", Err(r#"parsing time "2024-02-30T00:00:00Z": day out of range"#)),
            (
                "2024-02-01 00:00:00Z",
                Err(
                    r#"parsing time "2024-02-01 00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T""#,
                ),
            ),
        ] {
            assert_eq!(normalise(text, Layout::Seconds), want.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
        assert_eq!(normalise("2024-02-29T01:02:03.123456Z", Layout::Micros).unwrap(), "2024-02-29T01:02:03.123456Z");
        assert!(
            normalise("2024-02-29T01:02:03Z", Layout::Micros)
                .unwrap_err()
                .ends_with(r#"cannot parse "Z" as ".000000""#)
        );
    }
}
