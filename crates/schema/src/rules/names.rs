//! How property names are spelled in expressions.

use cel::parse::is_reserved;
use std::borrow::Cow;

/// The name in expressions of the property `name`; `None` for a property that they cannot reach.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.contains("__") {
        return Some(name.into());
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let size = if rest.starts_with("__") { 2 } else { c.len_utf8() };
        match c {
            '_' if size == 2 => out.push_str("__underscores__"),
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
        rest = &rest[size..];
    }
    Some(out.into())
}

/// The property that `name` stands for in an expression; `None` where it stands for none.
pub(crate) fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(name.into());
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("__") {
        out.push_str(before);
        let Some((word, tail)) = after.split_once("__") else {
            out.push_str("__");
            rest = after;
            continue;
        };
        match word {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_reserved(word) && word.len() + 4 == name.len() => out.push_str(word),
            _ => return None,
        }
        rest = tail;
    }
    out.push_str(rest);
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_so_that_they_are_identifiers() {
        for (name, spelled) in [
            ("a", Some("a")),
            ("my_field", Some("my_field")),
            ("namespace", Some("__namespace__")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), spelled, "{name}");
            if let Some(spelled) = spelled {
                assert_eq!(unescape(spelled).as_deref(), Some(name), "{spelled}");
            }
        }
        assert_eq!(unescape("namespace").as_deref(), Some("namespace"));
        assert_eq!(unescape("a__x__b"), None);
    }
}
