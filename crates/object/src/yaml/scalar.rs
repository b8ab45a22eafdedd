//! What scalars mean in YAML 1.1 as Go's yaml package reads them.

use super::Key;
use crate::{Value, go, json};
use compact_str::CompactString;
use saphyr_parser::{ScalarStyle, Tag};

/// Keys of maps become strings: booleans and numbers as JSON writes them.
pub(super) fn key_name(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Key, String> {
    if style == ScalarStyle::Plain && tag.is_none() && text == "<<" {
        return Ok(Key::Merge);
    }
    Ok(Key::Name(match scalar(text, style, tag)? {
        Value::String(s) => s,
        Value::Null => {
            return Err("error converting YAML to JSON: unsupported map key of type: %!s(<nil>)".to_owned());
        }
        other => json::to_string(&other).into(),
    }))
}

/// What a scalar means.
pub(super) fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let core = tag.filter(|t| t.handle == "tag:yaml.org,2002:" || t.handle == "!!").map(|t| t.suffix.as_str());
    match core {
        Some("str") => return Ok(text.into()),
        Some("binary") => return binary(text),
        None if style != ScalarStyle::Plain => return Ok(text.into()),
        None if tag.is_some() => return Ok(text.into()),
        _ => {}
    }
    let value = resolve(text)?;
    match (core, value) {
        (Some("float"), Value::Int(i)) => number(i as f64),
        (None | Some("int" | "float" | "bool" | "null" | "timestamp"), value) => Ok(value),
        (Some(_), _) => Ok(text.into()),
    }
}

fn binary(text: &str) -> Result<Value, String> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0u32, 0);
    for b in text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=') {
        let digit = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err("yaml: !!binary value contains invalid base64 data".to_owned()),
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Ok(Value::String(CompactString::from_utf8_lossy(&bytes)))
}

/// What a plain scalar means in YAML 1.1 as Go's yaml package reads it.
fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Ok(true.into()),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(false.into());
        }
        ".nan" | ".NaN" | ".NAN" => return number(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return number(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return number(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Ok(text.into());
    }
    let plain = text.replace('_', "");
    if let Some(i) = integer(&plain) {
        return Ok(i);
    }
    if is_float(&plain)
        && let Ok(f) = plain.parse::<f64>()
    {
        return number(f);
    }
    Ok(text.into())
}

/// An integer with Go's prefixes: `0x`, `0o`, `0b`, and a plain leading zero for octal.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -magnitude } else { magnitude };
    match i64::try_from(value) {
        Ok(i) => Some(Value::Int(i)),
        Err(_) if negative => None,
        Err(_) => Some(Value::Float(value as f64)),
    }
}

fn is_float(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['+', '-']).unwrap_or(e))),
        None => (rest, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_good = match mantissa.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty()),
        None => digits(mantissa) && !mantissa.is_empty(),
    };
    mantissa_good && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

/// A float goes through JSON text, where a whole number is an integer again.
fn number(f: f64) -> Result<Value, String> {
    if !f.is_finite() {
        return Err(format!("json: unsupported value: {}", go::float(f)));
    }
    json::parse(go::json_float(f).as_bytes()).map_err(|e| e.to_string())
}
