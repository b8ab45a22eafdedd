//! Literals as Go's `strconv` reads them.

use crate::node::Number;
use object::go;

const SYNTAX: &str = "invalid syntax";

/// A quoted or raw string without its quotes. Bytes that are not UTF-8 become U+FFFD.
pub(crate) fn unquote(quoted: &str) -> Result<String, String> {
    if let Some(raw) = quoted.strip_prefix('`').and_then(|q| q.strip_suffix('`')) {
        return Ok(raw.replace('\r', ""));
    }
    let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"')).ok_or(SYNTAX)?;
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, tail) = unquote_char(rest, '"')?;
        match unit {
            Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(b) => out.push(b),
        }
        rest = tail;
    }
    Ok(String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

enum Unit {
    Char(char),
    Byte(u8),
}

fn unquote_char(s: &str, quote: char) -> Result<(Unit, &str), String> {
    let mut chars = s.chars();
    let c = chars.next().ok_or(SYNTAX)?;
    if c == quote {
        return Err(SYNTAX.to_owned());
    }
    if c != '\\' {
        return Ok((Unit::Char(c), chars.as_str()));
    }
    let escape = chars.next().ok_or(SYNTAX)?;
    let rest = chars.as_str();
    let simple = |c| Ok((Unit::Char(c), rest));
    match escape {
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        '\\' => simple('\\'),
        '\'' | '"' if escape == quote => simple(escape),
        'x' | 'u' | 'U' => {
            let width = match escape {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            let digits = rest.get(..width).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).ok_or(SYNTAX)?;
            let value = u32::from_str_radix(digits, 16).map_err(|_| SYNTAX)?;
            let unit = if escape == 'x' {
                u8::try_from(value).map(Unit::Byte).map_err(|_| SYNTAX)?
            } else {
                Unit::Char(char::from_u32(value).ok_or(SYNTAX)?)
            };
            Ok((unit, &rest[width..]))
        }
        '0'..='7' => {
            let digits = s.get(1..4).filter(|d| d.bytes().all(|b| (b'0'..=b'7').contains(&b))).ok_or(SYNTAX)?;
            let value = u32::from_str_radix(digits, 8).map_err(|_| SYNTAX)?;
            Ok((Unit::Byte(u8::try_from(value).map_err(|_| SYNTAX)?), &s[4..]))
        }
        _ => Err(SYNTAX.to_owned()),
    }
}

impl Number {
    /// A character constant with its quotes.
    pub fn char_constant(text: &str) -> Result<Number, String> {
        let inner = text.strip_prefix('\'').ok_or(SYNTAX)?;
        let (unit, tail) = unquote_char(inner, '\'')?;
        if tail != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        let code = match unit {
            Unit::Char(c) => u32::from(c),
            Unit::Byte(b) => u32::from(b),
        };
        Ok(Number {
            text: text.to_owned(),
            int: Some(i64::from(code)),
            uint: Some(u64::from(code)),
            float: Some(f64::from(code)),
            complex: None,
        })
    }

    /// A constant with two parts: `1+2i`.
    pub fn complex(text: &str) -> Result<Number, String> {
        let body = text.strip_suffix('i').ok_or("syntax error scanning complex number")?;
        let split = body
            .char_indices()
            .rev()
            .find(|(i, c)| matches!(c, '+' | '-') && *i > 0 && !body[..*i].ends_with(['e', 'E', 'p', 'P']));
        let (real, imaginary) = split.map(|(i, _)| body.split_at(i)).ok_or("syntax error scanning complex number")?;
        match (parse_float(real), parse_float(imaginary)) {
            (Some(re), Some(im)) => Ok(Number::from_complex(text, re, im)),
            _ => Err("syntax error scanning complex number".to_owned()),
        }
    }

    fn from_complex(text: &str, re: f64, im: f64) -> Number {
        let mut n = Number { text: text.to_owned(), complex: Some((re, im)), ..Number::default() };
        if im == 0.0 {
            n.float = Some(re);
            n.int = exact_int(re);
            n.uint = exact_uint(re);
        }
        n
    }

    /// Any other number.
    pub fn real(text: &str) -> Result<Number, String> {
        if let Some(f) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Number::from_complex(text, 0.0, f));
        }
        let mut n = Number { text: text.to_owned(), uint: parse_uint(text), int: parse_int(text), ..Number::default() };
        if n.int == Some(0) {
            n.uint = Some(0);
        }
        if let Some(i) = n.int {
            n.float = Some(i as f64);
        } else if let Some(u) = n.uint {
            n.float = Some(u as f64);
        } else if let Some(f) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", go::quote(text)));
            }
            n.float = Some(f);
            n.int = exact_int(f);
            n.uint = exact_uint(f);
        } else {
            return Err(format!("illegal number syntax: {}", go::quote(text)));
        }
        Ok(n)
    }
}

fn exact_int(f: f64) -> Option<i64> {
    (f.fract() == 0.0 && f >= i64::MIN as f64 && f < i64::MAX as f64).then_some(f as i64)
}

fn exact_uint(f: f64) -> Option<u64> {
    (f.fract() == 0.0 && f >= 0.0 && f < u64::MAX as f64).then_some(f as u64)
}

/// `strconv.ParseUint(text, 0, 64)`.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    if !underscores_are_fine(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase().replace('_', "");
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// `strconv.ParseInt(text, 0, 64)`.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = parse_uint(digits)?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// `strconv.ParseFloat(text, 64)`, infinite results refused.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    if !underscores_are_fine(text) {
        return None;
    }
    let plain = text.replace('_', "");
    let (negative, body) = match plain.as_bytes() {
        [b'-', ..] => (true, &plain[1..]),
        [b'+', ..] => (false, &plain[1..]),
        _ => (false, plain.as_str()),
    };
    let magnitude = match body.get(..2) {
        Some("0x" | "0X") => hex_float(&body[2..])?,
        _ if text.contains('_') => return None,
        _ => body.starts_with(|c: char| c.is_ascii_digit() || c == '.').then(|| body.parse::<f64>().ok()).flatten()?,
    };
    magnitude.is_finite().then_some(if negative { -magnitude } else { magnitude })
}

/// The digits of a hexadecimal float after `0x`: the exponent of two is mandatory.
fn hex_float(body: &str) -> Option<f64> {
    let (mantissa, exponent) = body.split_once(['p', 'P'])?;
    let mut exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 10_000)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut value = 0u64;
    let mut sticky = false;
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(c.to_digit(16)?);
        let in_fraction = i >= whole.len();
        if value >> 58 == 0 {
            value = value << 4 | digit;
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    let value = (value | u64::from(sticky)) as f64;
    // In two steps, since the power alone may leave the range.
    let half = exponent / 2;
    Some(value * 2f64.powi(half) * 2f64.powi(exponent - half))
}

/// Underscores stand between digits, or after the prefix of a base.
fn underscores_are_fine(text: &str) -> bool {
    if !text.contains('_') {
        return true;
    }
    let body = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    let (body, mut last, hex) = match body.get(..2) {
        Some("0x") => (&body[2..], '0', true),
        Some("0b" | "0o") => (&body[2..], '0', false),
        _ => (body.as_str(), '^', false),
    };
    for c in body.chars() {
        if c.is_ascii_digit() || hex && ('a'..='f').contains(&c) {
            last = '0';
        } else if c == '_' {
            if last != '0' {
                return false;
            }
            last = '_';
        } else {
            if last == '_' {
                return false;
            }
            last = '!';
        }
    }
    last != '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_unquoted_as_in_go() {
        assert_eq!(unquote(r#""a\n\x41\u00e9\101\"""#).unwrap(), "a\nA\u{e9}A\"");
        assert_eq!(unquote("`a\\n\r`").unwrap(), "a\\n");
        for bad in [r#""\'""#, r#""\400""#, r#""\ud800""#, r#""\z""#] {
            assert_eq!(unquote(bad).unwrap_err(), "invalid syntax", "{bad}");
        }
    }

    #[test]
    fn numbers_are_everything_they_can_be() {
        for (text, int, float) in [
            ("12", Some(12), Some(12.0)),
            ("-0x1F", Some(-31), Some(-31.0)),
            ("017", Some(15), Some(15.0)),
            ("1_000", Some(1000), Some(1000.0)),
            ("1e3", Some(1000), Some(1000.0)),
            ("1.5", None, Some(1.5)),
            ("0x1p-2", None, Some(0.25)),
            ("0i", Some(0), Some(0.0)),
        ] {
            let n = Number::real(text).unwrap();
            assert_eq!((n.int, n.float), (int, float), "{text}");
        }
        assert_eq!(Number::real("18446744073709551616").unwrap_err(), "integer overflow: \"18446744073709551616\"");
        assert_eq!(Number::real("08").unwrap_err(), "integer overflow: \"08\"");
        assert_eq!(Number::complex("1+2i").unwrap().complex, Some((1.0, 2.0)));
        assert_eq!(Number::char_constant(r"'\n'").unwrap().int, Some(10));
        assert_eq!(Number::char_constant("'ab'").unwrap_err(), "malformed character constant: 'ab'");
    }
}
