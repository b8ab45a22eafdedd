//! Numbers as Go reads and prints them.

/// Go's `strconv.FormatFloat(value, 'g', -1, 64)`: `%v` and `string(double)`.
pub(crate) fn format_shortest(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // The shortest form decides as if its precision were 6.
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

/// Reads what Go's `strconv.ParseFloat` reads: decimals with underscores only where Go allows them, hexadecimal
/// floats, infinities and NaN. `None` also for values out of range.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'+' => (false, &text[1..]),
        b'-' => (true, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let magnitude = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        // A sign before nan is refused.
        "nan" if unsigned.len() == text.len() => f64::NAN,
        _ => {
            let value = match lower.strip_prefix("0x") {
                Some(hex) => parse_hex_float(hex)?,
                None => {
                    let valid = |c: u8| c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'+' | b'-' | b'_');
                    if !lower.bytes().all(valid) {
                        return None;
                    }
                    let plain = without_underscores(&lower)?;
                    if plain.starts_with(['+', '-']) {
                        return None;
                    }
                    plain.parse::<f64>().ok()?
                }
            };
            if value.is_infinite() {
                return None;
            }
            value
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Underscores must stand between digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'_' {
            let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_hexdigit);
            if !digit(at.checked_sub(1)) || !digit(Some(at + 1)) {
                return None;
            }
        }
    }
    Some(text.replace('_', ""))
}

fn parse_hex_float(text: &str) -> Option<f64> {
    let plain = without_underscores(text.strip_prefix('_').unwrap_or(text))?;
    let (mantissa, exponent) = plain.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0u64;
    let mut shift = 0i32;
    let mut sticky = false;
    for (digit, fractional) in whole.chars().map(|c| (c, false)).chain(fraction.chars().map(|c| (c, true))) {
        let digit = u64::from(digit.to_digit(16)?);
        if value >> 58 == 0 {
            value = value << 4 | digit;
            shift -= if fractional { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            shift += if fractional { 0 } else { 4 };
        }
    }
    if sticky {
        value |= 1;
    }
    // Two steps, so that subnormal results are not flushed to zero on the way.
    let total = exponent.saturating_add(shift);
    let first = total.clamp(-1000, 1000);
    let rest = total.saturating_sub(first).clamp(-1000, 1000);
    Some(value as f64 * 2f64.powi(first) * 2f64.powi(rest))
}

/// Reads what Go's `strconv.ParseInt(text, 10, 64)` reads.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads what Go's `strconv.ParseUint(text, 10, 64)` reads: no sign.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Go's `strconv.Quote`, the form of `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if is_printable(c) => quoted.push(c),
            c if u32::from(c) < 0x80 => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Go's `unicode.IsPrint`, by way of Rust's debug escapes: both print graphic characters and the ASCII space only.
/// Grapheme-extending marks, which Rust escapes when they stand first, are graphic.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let mut buffer = [0u8; 5];
    buffer[0] = b'a';
    let end = 1 + c.encode_utf8(&mut buffer[1..]).len();
    // After a letter, an extending mark is shown as it is.
    let text = std::str::from_utf8(&buffer[..end]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_go_prints_them() {
        for (value, printed) in [
            (1.0, "1"),
            (1e6, "1e+06"),
            (999_999.0, "999999"),
            (9_999_999.0, "9.999999e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (12_345.678, "12345.678"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (-0.0, "-0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e20, "1e+20"),
            (1e21, "1e+21"),
            (1.5, "1.5"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (1_234_567_890_123_456_789.0, "1.2345678901234568e+18"),
        ] {
            assert_eq!(format_shortest(value), printed);
        }
    }

    #[test]
    fn floats_read_as_go_reads_them() {
        for (text, value) in [
            ("1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+5", Some(5.0)),
            ("1e3", Some(1000.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0x1p-2", Some(0.25)),
            ("1e-400", Some(0.0)),
            ("1e400", None),
            ("0x10", None),
            ("", None),
            ("-", None),
            ("+-1", None),
            (" 1", None),
            ("1d", None),
            ("1,5", None),
            ("abc", None),
            (".", None),
        ] {
            assert_eq!(parse_float(text), value, "{text}");
        }
        assert!(parse_float("nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        for (text, quoted) in [
            ("a\"b\\", r#""a\"b\\""#),
            ("\u{0}\u{7f}", r#""\x00\x7f""#),
            ("é日\u{301}", "\"é日\u{301}\""),
            ("\u{a0}\u{200b}\u{85}", r#""\u00a0\u200b\u0085""#),
            ("\u{e0001}", r#""\U000e0001""#),
            ("\n\t\u{b}", r#""\n\t\v""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }
}
