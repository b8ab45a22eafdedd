//! `text.format(list)`, with the output of cel-go's strings extension before its version 4: numbers of `%f` and `%e`
//! are written as a person in en-US would read them.

use super::convert::to_text;
use super::number::quote;
use super::strings::MAX_TEXT;
use crate::value::{Error, List, Map, Result, Value};

const DEFAULT_PRECISION: usize = 6;
/// Nesting of lists and maps at which formatting gives up.
const MAX_DEPTH: u32 = 1_000;

/// Stands for the error of a text that grows too long.
const TOO_LONG: &str = "text too long";

/// `text.format(arguments)`
pub(crate) fn format<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(template), Value::List(arguments)] = args else { return Err(Error::mismatch()) };
    let mut out = String::with_capacity(template.len());
    let mut rest: &str = template;
    let mut used = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        if used >= arguments.len() {
            return Err(Error::new(format!("index {used} out of range")));
        }
        let argument = arguments.get(used)?;
        used += 1;
        if rest.is_empty() {
            return Err(Error::new("unexpected end of string"));
        }
        let (clause, tail) =
            Clause::parse(rest).map_err(|why| Error::new(format!("could not parse formatting clause: {why}")))?;
        rest = tail;
        clause.write(&argument, &mut out).map_err(|why| match &*why {
            TOO_LONG => Error::cost_limit(),
            why => Error::new(format!("error during formatting: {why}")),
        })?;
        if out.len() > MAX_TEXT {
            return Err(Error::cost_limit());
        }
    }
    out.push_str(rest);
    Ok(Value::shared(out))
}

/// What follows a `%`.
enum Clause {
    String,
    Decimal,
    Fixed(usize),
    /// The number is the least width: cel-go hands the precision on in the wrong place.
    Scientific(usize),
    Binary,
    Hex,
    UpperHex,
    Octal,
}

impl Clause {
    fn parse(text: &str) -> std::result::Result<(Clause, &str), String> {
        let (precision, rest) = match text.strip_prefix('.') {
            None => (None, text),
            Some(tail) => {
                let end = tail
                    .find(|c: char| !c.is_ascii_digit())
                    .ok_or("error while parsing precision: could not find end of precision specifier")?;
                let (digits, rest) = tail.split_at(end);
                let precision = digits.parse::<i64>().map_err(|_| {
                    let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                    format!(
                        "error while parsing precision: error while converting precision to integer: \
                         strconv.Atoi: parsing {}: {why}",
                        quote(digits)
                    )
                })?;
                (Some(usize::try_from(precision).unwrap_or(0)), rest)
            }
        };
        let precision = precision.unwrap_or(DEFAULT_PRECISION);
        let clause = match rest.as_bytes().first() {
            Some(b's') => Clause::String,
            Some(b'd') => Clause::Decimal,
            Some(b'f') => Clause::Fixed(precision),
            Some(b'e') => Clause::Scientific(precision),
            Some(b'b') => Clause::Binary,
            Some(b'x') => Clause::Hex,
            Some(b'X') => Clause::UpperHex,
            Some(b'o') => Clause::Octal,
            // Upstream reads one octet as one character.
            Some(byte) => return Err(format!("unrecognized formatting clause \"{}\"", char::from(*byte))),
            None => return Err("error while parsing precision: could not find end of precision specifier".to_owned()),
        };
        Ok((clause, rest.get(1..).unwrap_or_default()))
    }

    fn write(&self, argument: &Value<'_>, out: &mut String) -> std::result::Result<(), String> {
        let type_name = argument.type_name();
        match self {
            Clause::String => return write_string(argument, out, 0),
            Clause::Decimal => match argument {
                Value::Int(int) => out.push_str(&int.to_string()),
                Value::Uint(uint) => out.push_str(&uint.to_string()),
                _ => return Err(format!("decimal clause can only be used on integers, was given {}", &*type_name)),
            },
            Clause::Fixed(precision) => match number(argument) {
                Some(value) => out.push_str(&fixed(value, *precision)),
                None => {
                    return Err(format!("fixed-point clause can only be used on doubles, was given {}", &*type_name));
                }
            },
            Clause::Scientific(width) => match number(argument) {
                Some(value) => {
                    let text = scientific(value);
                    let padding = width.saturating_sub(text.chars().count()).min(usize::from(u16::MAX));
                    out.extend(std::iter::repeat_n(' ', padding));
                    out.push_str(&text);
                }
                None => {
                    return Err(format!("scientific clause can only be used on doubles, was given {}", &*type_name));
                }
            },
            Clause::Binary => match argument {
                Value::Int(int) => out.push_str(&format!("{}{:b}", sign(*int), int.unsigned_abs())),
                Value::Uint(uint) => out.push_str(&format!("{uint:b}")),
                Value::Bool(bool) => out.push(if *bool { '1' } else { '0' }),
                _ => {
                    return Err(format!(
                        "only integers and bools can be formatted as binary, was given {}",
                        &*type_name
                    ));
                }
            },
            Clause::Hex | Clause::UpperHex => {
                let mut hex = match argument {
                    Value::Int(int) => format!("{}{:x}", sign(*int), int.unsigned_abs()),
                    Value::Uint(uint) => format!("{uint:x}"),
                    Value::String(text) => hex_of(text.as_bytes()),
                    Value::Bytes(octets) => hex_of(octets),
                    _ => {
                        return Err(format!(
                            "only integers, byte buffers, and strings can be formatted as hex, was given {}",
                            &*type_name
                        ));
                    }
                };
                if matches!(self, Clause::UpperHex) {
                    hex.make_ascii_uppercase();
                }
                out.push_str(&hex);
            }
            Clause::Octal => match argument {
                Value::Int(int) => out.push_str(&format!("{}{:o}", sign(*int), int.unsigned_abs())),
                Value::Uint(uint) => out.push_str(&format!("{uint:o}")),
                _ => return Err(format!("octal clause can only be used on integers, was given {}", &*type_name)),
            },
        }
        Ok(())
    }
}

fn sign(int: i64) -> &'static str {
    if int < 0 { "-" } else { "" }
}

fn hex_of(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A double, or one of the three strings that stand for one.
fn number(argument: &Value<'_>) -> Option<f64> {
    match argument {
        Value::Double(double) => Some(*double),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value.is_infinite().then(|| if value > 0.0 { "∞" } else { "-∞" }.to_owned())
}

/// `-1,234,567.891000`. Upstream keeps the least number of fraction digits in one octet, the most in more.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    // No double has more digits.
    let most = precision.min(1_100);
    let least = precision % 256;
    let mut plain = format!("{:.most$}", value.abs());
    while plain.ends_with('0') && plain.split_once('.').is_some_and(|(_, fraction)| fraction.len() > least) {
        plain.pop();
    }
    let plain = plain.strip_suffix('.').unwrap_or(&plain);
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let mut text = String::with_capacity(plain.len() + whole.len() / 3 + 1);
    if value.is_sign_negative() {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// `1.234568×10⁰³`
fn scientific(value: f64) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let plain = format!("{value:.6e}");
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let mut text = format!("{mantissa}×10");
    let digits = exponent.strip_prefix('-').unwrap_or(exponent);
    if digits.len() < exponent.len() {
        text.push('⁻');
    }
    for digit in format!("{digits:0>2}").bytes() {
        let superscripts = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        text.extend(superscripts.get(usize::from(digit.wrapping_sub(b'0'))));
    }
    text
}

/// `%s`
fn write_string(argument: &Value<'_>, out: &mut String, depth: u32) -> std::result::Result<(), String> {
    match argument {
        Value::List(list) => write_list(list, out, depth),
        Value::Map(map) => write_map(map, out, depth),
        Value::Optional(_) | Value::Opaque(_) => Err(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps, was given {}",
            &*argument.type_name()
        )),
        _ => {
            match to_text(argument) {
                Some(Ok(text)) => out.push_str(&text),
                Some(Err(why)) => return Err(format!("could not convert argument {} to string", quote(why.message()))),
                None => {}
            }
            Ok(())
        }
    }
}

/// A value within a list or map, written as a literal of the language.
fn write_literal(value: &Value<'_>, out: &mut String, depth: u32) -> std::result::Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("values are nested too deeply to format".to_owned());
    }
    if out.len() > MAX_TEXT {
        return Err(TOO_LONG.to_owned());
    }
    match value {
        Value::Timestamp(time) => out.push_str(&format!("timestamp({})", quote(&time.to_string()))),
        Value::Duration(span) => out.push_str(&format!("duration({})", quote(&span.to_string()))),
        Value::Double(double) if double.is_nan() => out.push_str("\"NaN\""),
        Value::Double(double) if double.is_infinite() => {
            out.push_str(if *double > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" });
        }
        Value::Double(double) => out.push_str(&format!("{double:.6}")),
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(format!("no formatting function for {}", &*value.type_name()));
        }
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(_) => {
            let mut text = String::new();
            write_string(value, &mut text, depth)?;
            out.push('b');
            out.push_str(&quote(&text));
        }
        _ => write_string(value, out, depth)?,
    }
    Ok(())
}

fn write_list(list: &List<'_>, out: &mut String, depth: u32) -> std::result::Result<(), String> {
    out.push('[');
    for (index, element) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let element = element.map_err(|_| "no formatting function for error".to_owned())?;
        write_literal(&element, out, depth + 1)?;
    }
    out.push(']');
    Ok(())
}

fn write_map(map: &Map<'_>, out: &mut String, depth: u32) -> std::result::Result<(), String> {
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        let mut key_text = String::new();
        match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                write_literal(&key, &mut key_text, depth)?;
            }
            _ => return Err(format!("no formatting function for map key of type {}", &*key.type_name())),
        }
        let Some(value) = map.find(&key) else {
            return Err(format!("could not find key: {}", quote(&key.to_string())));
        };
        let value = value.map_err(|_| "no formatting function for error".to_owned())?;
        let mut value_text = String::new();
        write_literal(&value, &mut value_text, depth + 1)?;
        entries.push((key_text, value_text));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    out.push('{');
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(template: &str, arguments: Vec<Value<'_>>) -> String {
        match format(&[Value::shared(template), Value::list(arguments)]) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn numbers_are_written_for_en_us_readers() {
        for (template, value, expected) in [
            ("%f", 1_234_567.891, "1,234,567.891000"),
            ("%.2f", -1234.5, "-1,234.50"),
            ("%.0f", 2.5, "2"),
            ("%f", f64::INFINITY, "∞"),
            ("%f", f64::NEG_INFINITY, "-∞"),
            ("%f", f64::NAN, "NaN"),
            ("%e", 1234.56789, "1.234568×10⁰³"),
            ("%.2e", 1234.56789, "1.234568×10⁰³"),
            ("%e", 0.000_123, "1.230000×10⁻⁰⁴"),
            ("%s", 1e6, "1e+06"),
        ] {
            assert_eq!(text(template, vec![Value::Double(value)]), expected, "{template} {value}");
        }
        assert_eq!(text("%.1001f", vec![Value::Double(1.5)]).len(), 235);
    }

    #[test]
    fn lists_and_maps_are_written_as_literals() {
        let map = Map::new([(Value::borrowed("b"), Value::Double(1.0)), (Value::borrowed("a"), Value::Null)]);
        let list = vec![Value::list(vec![Value::borrowed("x\""), Value::Double(1.5), Value::Bool(true)])];
        assert_eq!(text("%s", vec![Value::Map(map)]), r#"{"a":null, "b":1.000000}"#);
        assert_eq!(text("%s", list), r#"["x\"", 1.500000, true]"#);
        let span = Value::Duration(crate::value::Duration(1_000_000_000));
        assert_eq!(text("%s", vec![Value::list(vec![span])]), r#"[duration("1s")]"#);
    }

    #[test]
    fn mistakes_are_named() {
        for (template, argument, expected) in [
            (
                "%d",
                Value::Double(1.0),
                "error during formatting: decimal clause can only be used on integers, was given double",
            ),
            ("%", Value::Null, "unexpected end of string"),
            ("%s%s", Value::Null, "index 1 out of range"),
            ("%5f", Value::Null, "could not parse formatting clause: unrecognized formatting clause \"5\""),
            ("%é", Value::Null, "could not parse formatting clause: unrecognized formatting clause \"Ã\""),
            (
                "%.2",
                Value::Null,
                "could not parse formatting clause: error while parsing precision: could not find end of precision \
                 specifier",
            ),
            (
                "%.f",
                Value::Null,
                "could not parse formatting clause: error while parsing precision: error while converting precision \
                 to integer: strconv.Atoi: parsing \"\": invalid syntax",
            ),
        ] {
            assert_eq!(text(template, vec![argument]), expected, "{template}");
        }
    }
}
