//! Reads some members of an object's JSON and skips the others.

use object::{Map, json};

/// The members of these names, of the text of an object as this program writes it: without spaces, and sorted, so that
/// nothing is read that comes after the last of them.
pub(super) fn members(text: &[u8], wanted: &[&str]) -> Map {
    let last = wanted.iter().max().map_or(&b""[..], |name| name.as_bytes());
    let mut out = Vec::new();
    let mut at = 1;
    while text.get(at) == Some(&b'"') {
        let name_end = skip(text, at);
        let name = text.get(at + 1..name_end.saturating_sub(1)).unwrap_or_default();
        if name > last {
            break;
        }
        let value_start = name_end + 1;
        let value_end = skip(text, value_start);
        if let Some(name) = wanted.iter().find(|w| w.as_bytes() == name)
            && let Some(Ok(value)) = text.get(value_start..value_end).map(json::parse)
        {
            out.push((*name, value));
        }
        at = value_end + 1;
    }
    out.into_iter().collect()
}

/// The value of the last member, if that is of this name and a string without escapes.
pub(super) fn last_string<'t>(text: &'t [u8], name: &str) -> Option<&'t str> {
    let inside = text.strip_suffix(b"\"}")?;
    let start = inside.iter().rposition(|b| *b == b'"')? + 1;
    let (before, value) = inside.split_at_checked(start)?;
    let before = before.strip_suffix(b"\":\"")?.strip_suffix(name.as_bytes())?.strip_suffix(b"\"")?;
    // Else the quotes were part of a string.
    let is_name = matches!(before.last(), Some(b',' | b'{'));
    if is_name && !value.contains(&b'\\') { std::str::from_utf8(value).ok() } else { None }
}

/// The end of the value that starts here.
fn skip(text: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' | b':' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return at;
        }
    }
    at
}

/// Where the closing quote of the string is that starts here.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(step) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step;
        match text.get(at) {
            Some(b'\\') => at += 2,
            _ => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Value;

    #[test]
    fn only_what_is_wanted_is_read() {
        let text = br#"{"a":{"x":["}\"",{}]},"finalizers":["a\"b"],"generation":12,"n":null,"uid":"u"}"#;
        let found = members(text, &["uid", "finalizers", "generation", "absent"]);
        let expected = r#"{"finalizers":["a\"b"],"generation":12,"uid":"u"}"#;
        assert_eq!(json::to_string(&Value::Object(found)), expected);
    }

    #[test]
    fn the_last_member_is_read_from_the_end() {
        for (text, found) in [
            (r#"{"a":"x","uid":"u-1"}"#, Some("u-1")),
            (r#"{"uid":""}"#, Some("")),
            (r#"{"uid":"u","z":"x"}"#, None),
            (r#"{"uid":"u\""}"#, None),
            (r#"{"uid":"\\"}"#, None),
            (r#"{"a":",\"uid\":\"u"}"#, None),
            (r#"{"a":{"uid":"u"}}"#, None),
            (r#"{"a_uid":"u"}"#, None),
            (r#"{"uid":5}"#, None),
            ("\"}", None),
            ("", None),
        ] {
            assert_eq!(last_string(text.as_bytes(), "uid"), found, "{text}");
        }
    }

    #[test]
    fn other_texts_give_nothing_and_end() {
        for text in [&b""[..], b"{}", b"{", b"{\"", b"{\"a", b"{\"a\":", b"{\"a\":{", b"[1]", b"5"] {
            assert!(members(text, &["a"]).is_empty());
        }
    }
}
