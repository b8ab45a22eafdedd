//! Go's ways to print a value. Messages of the API server carry them, so they are reproduced to the byte.

use crate::Value;
use std::fmt::Write;

/// A string as `strconv.Quote` writes it: double quotes, Go's escapes, non-printable characters escaped.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        push_escaped(&mut out, c, '"');
    }
    out.push('"');
    out
}

/// A character as `strconv.QuoteRune` writes it: `'x'`.
pub fn quote_char(c: char) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, c, '\'');
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, c: char, delimiter: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c if c == delimiter => {
            out.push('\\');
            out.push(c);
        }
        c if is_print(c) => out.push(c),
        c if (c as u32) < 0x80 => {
            let _ = write!(out, "\\x{:02x}", c as u32);
        }
        c if (c as u32) < 0x1_0000 => {
            let _ = write!(out, "\\u{:04x}", c as u32);
        }
        c => {
            let _ = write!(out, "\\U{:08x}", c as u32);
        }
    }
}

/// Whether Go's `strconv.IsPrint` holds: letters, marks, numbers, punctuation, symbols and the ASCII space.
///
/// Unassigned code points are told apart only as far as `char::escape_debug` knows them.
pub fn is_print(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c < '\u{a1}' => false,
        '\u{ad}' => false,
        c if c.is_whitespace() => false,
        c => {
            // escape_debug leaves printable characters alone, and escapes combining marks only at the start of a string.
            let mut escaped = c.escape_debug();
            escaped.len() == 1 && escaped.next() == Some(c) || c.is_alphanumeric() || is_mark(c)
        }
    }
}

fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20f0 | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f)
}

/// A float as `strconv.FormatFloat(f, 'g', -1, 64)` writes it, which is what `%v` prints: shortest digits, with an
/// exponent below 1e-4 and from 1e+06 on.
pub fn float(f: f64) -> String {
    let (digits, exp, negative) = match shortest(f) {
        Ok(parts) => parts,
        Err(special) => return special.to_owned(),
    };
    // strconv takes a precision of 6 for this decision when it looks for the shortest digits.
    if !(-4..6).contains(&exp) { scientific(&digits, exp, negative, 2) } else { positional(&digits, exp, negative) }
}

/// A float as `encoding/json` writes it: shortest digits, exponents only below 1e-6 and from 1e21 on.
pub fn json_float(f: f64) -> String {
    let (digits, exp, negative) = match shortest(f) {
        Ok(parts) => parts,
        Err(special) => return special.to_owned(),
    };
    if f != 0.0 && (f.abs() < 1e-6 || f.abs() >= 1e21) {
        scientific(&digits, exp, negative, 1)
    } else {
        positional(&digits, exp, negative)
    }
}

/// The shortest decimal digits that read back as `f`, the exponent of the first digit, and the sign.
fn shortest(f: f64) -> Result<(String, i32, bool), &'static str> {
    if f.is_nan() {
        return Err("NaN");
    }
    if f.is_infinite() {
        return Err(if f > 0.0 { "+Inf" } else { "-Inf" });
    }
    let text = format!("{:e}", f.abs());
    let (mantissa, exp) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    Ok((digits, exp.parse().unwrap_or(0), f.is_sign_negative()))
}

fn scientific(digits: &str, exp: i32, negative: bool, exp_width: usize) -> String {
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    out.push_str(&digits[..1]);
    if digits.len() > 1 {
        out.push('.');
        out.push_str(&digits[1..]);
    }
    let _ = write!(out, "e{}{:0width$}", if exp < 0 { '-' } else { '+' }, exp.abs(), width = exp_width);
    out
}

fn positional(digits: &str, exp: i32, negative: bool) -> String {
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    if exp < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exp - 1) as usize));
        out.push_str(digits);
    } else {
        let whole = exp as usize + 1;
        if digits.len() <= whole {
            out.push_str(digits);
            out.extend(std::iter::repeat_n('0', whole - digits.len()));
        } else {
            out.push_str(&digits[..whole]);
            out.push('.');
            out.push_str(&digits[whole..]);
        }
    }
    out
}

/// A value as `fmt`'s `%v` prints what Go's JSON decoder made of it: `map[a:1 b:[x y]]`, `<nil>` for null.
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    push_plain(&mut out, value);
    out
}

fn push_plain(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => {
            let _ = write!(out, "{i}");
        }
        Value::Float(f) => out.push_str(&float(*f)),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                push_plain(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(k);
                out.push(':');
                push_plain(out, v);
            }
            out.push(']');
        }
    }
}

/// A value in Go's syntax, as `fmt`'s `%#v` prints it: `map[string]interface {}{"a":1}`.
pub fn syntax(value: &Value) -> String {
    let mut out = String::new();
    push_syntax(&mut out, value);
    out
}

fn push_syntax(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => {
            let _ = write!(out, "{i}");
        }
        Value::Float(f) => out.push_str(&float(*f)),
        Value::String(s) => out.push_str(&quote(s)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_syntax(out, item);
            }
            out.push('}');
        }
        Value::Object(members) => {
            out.push_str("map[string]interface {}{");
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(k));
                out.push(':');
                push_syntax(out, v);
            }
            out.push('}');
        }
    }
}

/// The type by which Go holds a value that was decoded without a type, as `%T` prints it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's JSON decoder calls the kind of a value in its errors.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A pointer in Go's syntax is where its target happens to be, which tells nobody anything: this address stands for all.
pub const ADDRESS: &str = "0xc000000000";

/// Bytes in Go's syntax: `[]byte{0x1, 0xff}`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::from("[]byte{");
    for (i, b) in bytes.iter().enumerate() {
        let _ = write!(out, "{}{b:#x}", if i > 0 { ", " } else { "" });
    }
    out.push('}');
    out
}

/// A list of strings in Go's syntax: `[]string{"a", "b"}`.
pub fn string_list<S: AsRef<str>>(items: &[S]) -> String {
    let quoted: Vec<String> = items.iter().map(|s| quote(s.as_ref())).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_as_in_go() {
        assert_eq!(bytes(&[1, 255]), "[]byte{0x1, 0xff}");
        assert_eq!(bytes(&[]), "[]byte{}");
    }

    #[test]
    fn floats_print_as_in_go() {
        for (f, v, json) in [
            (1.0, "1", "1"),
            (0.1, "0.1", "0.1"),
            (123456.0, "123456", "123456"),
            (1e6, "1e+06", "1000000"),
            (123456789.0, "1.23456789e+08", "123456789"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1e-4, "0.0001", "0.0001"),
            (1e-5, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (-2.5, "-2.5", "-2.5"),
        ] {
            assert_eq!(float(f), v);
            assert_eq!(json_float(f), json);
        }
    }

    #[test]
    fn strings_are_quoted_as_in_go() {
        assert_eq!(quote("a\"b\n\u{1}\u{e9}\u{a0}"), r#""a\"b\n\x01é\u00a0""#);
        assert_eq!(quote_char('\''), r"'\''");
    }

    #[test]
    fn values_print_in_both_forms() {
        let v = Value::Object(crate::map! { "a" => 1, "l" => vec!["x", "y"], "n" => Value::Null });
        assert_eq!(plain(&v), "map[a:1 l:[x y] n:<nil>]");
        assert_eq!(
            syntax(&v),
            r#"map[string]interface {}{"a":1, "l":[]interface {}{"x", "y"}, "n":interface {}(nil)}"#
        );
    }
}
