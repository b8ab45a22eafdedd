//! Schedules of CronJobs: the standard five fields and the named ones, with the complaints of the usual Go parser.

use object::go;

struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { min: 0, max: 59, names: &[] },
    Field { min: 0, max: 23, names: &[] },
    Field { min: 1, max: 31, names: &[] },
    Field {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Checks a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    for prefix in ["TZ=", "CRON_TZ="] {
        if schedule.starts_with(prefix) {
            rest = schedule.split_once(' ').map_or("", |(_, rest)| rest.trim());
        }
    }
    if let Some(name) = rest.strip_prefix('@') {
        return named(rest, name);
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    parts.iter().zip(&FIELDS).try_for_each(|(part, field)| part.split(',').try_for_each(|range| one(range, field)))
}

fn named(whole: &str, name: &str) -> Result<(), String> {
    match name {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        _ => match name.strip_prefix("every ") {
            Some(duration) if is_duration(duration) => Ok(()),
            Some(duration) => Err(format!(
                "failed to parse duration @every {duration}: time: invalid duration {}",
                go::quote(duration)
            )),
            None => Err(format!("unrecognized descriptor: {whole}")),
        },
    }
}

/// Whether Go reads a text as a duration.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (digits, after) = rest.split_at(number);
        if digits.is_empty() || digits == "." || digits.matches('.').count() > 1 {
            return false;
        }
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let Some(unit) = unit.iter().filter(|u| after.starts_with(**u)).max_by_key(|u| u.len()) else { return false };
        rest = after.get(unit.len()..).unwrap_or_default();
    }
    true
}

fn one(range: &str, field: &Field) -> Result<(), String> {
    let steps: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = steps.first().copied().unwrap_or_default().split('-').collect();
    let whole = matches!(ends.first(), Some(&"*" | &"?"));
    let (start, mut end) = if whole {
        (field.min, field.max)
    } else {
        let start = number(ends.first().copied().unwrap_or_default(), field)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number(end, field)?),
            _ => return Err(format!("too many hyphens: {range}")),
        }
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = integer(step)?;
            if ends.len() == 1 && !whole {
                end = field.max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    if start < field.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {range}", field.min));
    }
    if end > field.max {
        return Err(format!("end of range ({end}) above maximum ({}): {range}", field.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number(text: &str, field: &Field) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match field.names.iter().position(|n| *n == lower) {
        Some(i) => Ok(i as u32 + field.min),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Ok(n) => Ok(n.try_into().unwrap_or(u32::MAX)),
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax", go::quote(text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules_are_checked_field_by_field() {
        for good in ["* * * * *", "*/5 0-12 1,15 jan-mar mon", "@daily", "@every 1h30m", "0 0 ? * 1-5"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(check(bad), Err(why.to_owned()));
        }
    }
}
