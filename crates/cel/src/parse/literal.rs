//! Constants: from the way they are written to their values.

/// Why a constant is refused; the text is cel-go's.
pub(crate) type LiteralError = &'static str;

const UNABLE: LiteralError = "unable to unescape string";
const UNABLE_OCTAL: LiteralError = "unable to unescape octal sequence in string";
const INVALID_POINT: LiteralError = "invalid unicode code point";

/// A signed integer; `text` without its sign, decimal or `0x` hexadecimal.
pub(crate) fn int(text: &str, negative: bool) -> Result<i64, LiteralError> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    let magnitude = u64::from_str_radix(digits, radix).map_err(|_| "invalid int literal")?;
    if negative && magnitude == i64::MIN.unsigned_abs() {
        return Ok(i64::MIN);
    }
    let value = i64::try_from(magnitude).map_err(|_| "invalid int literal")?;
    Ok(if negative { -value } else { value })
}

/// An unsigned integer with its suffix `u` or `U`.
pub(crate) fn uint(text: &str) -> Result<u64, LiteralError> {
    let text = text.strip_suffix(['u', 'U']).unwrap_or(text);
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
    u64::from_str_radix(digits, radix).map_err(|_| "invalid uint literal")
}

/// A double; `text` without its sign. One too large is an error, as in Go.
pub(crate) fn double(text: &str, negative: bool) -> Result<f64, LiteralError> {
    let value: f64 = text.parse().map_err(|_| "invalid double literal")?;
    if value.is_infinite() {
        return Err("invalid double literal");
    }
    Ok(if negative { -value } else { value })
}

/// The content of a quoted string, with its prefix `r` or `R` if it has one.
pub(crate) fn string(quoted: &str) -> Result<String, LiteralError> {
    String::from_utf8(unescape(quoted, false)?).map_err(|_| UNABLE)
}

/// The content of a quoted bytes literal, with its prefix `b`.
pub(crate) fn bytes(quoted: &str) -> Result<Vec<u8>, LiteralError> {
    unescape(quoted.get(1..).unwrap_or_default(), true)
}

fn unescape(quoted: &str, is_bytes: bool) -> Result<Vec<u8>, LiteralError> {
    let (quoted, raw) = quoted.strip_prefix(['r', 'R']).map_or((quoted, false), |rest| (rest, true));
    let width = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let content = quoted.len().checked_sub(width).and_then(|end| quoted.get(width..end)).ok_or(UNABLE)?;
    // Line ends are line feeds, however the text spells them.
    let normalized;
    let content = if content.contains('\r') {
        normalized = content.replace("\r\n", "\n").replace('\r', "\n");
        &normalized
    } else {
        content
    };
    let mut out = Vec::with_capacity(content.len());
    if raw || !content.contains('\\') {
        out.extend_from_slice(content.as_bytes());
        return Ok(out);
    }
    let mut rest = content;
    while let Some(backslash) = rest.find('\\') {
        out.extend_from_slice(rest.get(..backslash).unwrap_or_default().as_bytes());
        let mut chars = rest.get(backslash + 1..).unwrap_or_default().chars();
        escape(&mut chars, is_bytes, &mut out)?;
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Reads what follows a backslash.
fn escape(chars: &mut std::str::Chars<'_>, is_bytes: bool, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let simple = match chars.next().ok_or("unable to unescape string, found '\\' as last character")? {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        c @ ('\\' | '\'' | '"' | '`' | '?') => c as u8,
        'x' | 'X' => return point(digits(chars, 0, 2, 16, UNABLE)?, is_bytes, out),
        'u' if !is_bytes => return point(digits(chars, 0, 4, 16, UNABLE)?, false, out),
        'U' if !is_bytes => return point(digits(chars, 0, 8, 16, UNABLE)?, false, out),
        c @ '0'..='3' => return point(digits(chars, c as u32 - '0' as u32, 2, 8, UNABLE_OCTAL)?, is_bytes, out),
        _ => return Err(UNABLE),
    };
    out.push(simple);
    Ok(())
}

fn digits(
    chars: &mut std::str::Chars<'_>,
    first: u32,
    count: u32,
    radix: u32,
    error: LiteralError,
) -> Result<u32, LiteralError> {
    (0..count).try_fold(first, |value, _| {
        let digit = chars.next().and_then(|c| c.to_digit(radix)).ok_or(error)?;
        Ok(value.wrapping_mul(radix).wrapping_add(digit))
    })
}

fn point(value: u32, as_byte: bool, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    if as_byte {
        out.push(value as u8);
        return Ok(());
    }
    let c = char::from_u32(value).ok_or(INVALID_POINT)?;
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_unescaped() {
        for (quoted, expected) in [
            (r"'a\n\x41\u00e9\U0001F600\101'", "a\nAé😀A"),
            (r#"r"a\n""#, r"a\n"),
            ("'''a'b\r\nc'''", "a'b\nc"),
            (r#""\"\?\`\'""#, "\"?`'"),
            ("''", ""),
            ("''''''", ""),
        ] {
            assert_eq!(string(quoted).as_deref(), Ok(expected), "{quoted}");
        }
        assert_eq!(string(r"'\ud800'"), Err(INVALID_POINT));
        assert_eq!(string(r"'\UFFFFFFFF'"), Err(INVALID_POINT));
    }

    #[test]
    fn bytes_escapes_are_octets() {
        assert_eq!(bytes(r"b'\xff\377é'"), Ok(vec![0xff, 0xff, 0xc3, 0xa9]));
        assert_eq!(bytes(r"b'\u00e9'"), Err(UNABLE));
        assert_eq!(bytes(r"br'\x'"), Ok(b"\\x".to_vec()));
    }

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(int("9223372036854775808", true), Ok(i64::MIN));
        assert_eq!(int("9223372036854775808", false), Err("invalid int literal"));
        assert_eq!(int("0xFF", true), Ok(-255));
        assert_eq!(uint("18446744073709551615u"), Ok(u64::MAX));
        assert_eq!(uint("18446744073709551616u"), Err("invalid uint literal"));
        assert_eq!(double("1e400", false), Err("invalid double literal"));
        assert_eq!(double(".5e1", true), Ok(-5.0));
    }
}
