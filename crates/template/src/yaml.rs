//! Writing YAML: keys sorted, lists not indented, strings quoted where they would read as something else.

use object::{Value, go, json};
use std::fmt::Write;

/// A value as one YAML document, with a line break at its end.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0, false);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value. `inline`: something stands before it on its line.
fn write(out: &mut String, value: &Value, indent: usize, inline: bool) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (i, (key, member)) in members.iter().enumerate() {
                if i > 0 || !inline {
                    pad(out, indent);
                }
                line(out, key);
                out.push(':');
                child(out, member, indent, matches!(member, Value::Array(_)));
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                if i > 0 || !inline {
                    pad(out, indent);
                }
                out.push_str("- ");
                match item {
                    Value::Object(m) if !m.is_empty() => write(out, item, indent + 2, true),
                    Value::Array(a) if !a.is_empty() => write(out, item, indent + 2, true),
                    _ => leaf(out, item, indent + 2),
                }
            }
        }
        _ => leaf(out, value, indent),
    }
}

/// What stands after a key.
fn child(out: &mut String, value: &Value, indent: usize, list: bool) {
    let nested = match value {
        Value::Object(m) => !m.is_empty(),
        Value::Array(a) => !a.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        write(out, value, if list { indent } else { indent + 2 }, false);
    } else {
        out.push(' ');
        leaf(out, value, indent + 2);
    }
}

fn leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(s) => scalar(out, s, indent),
        Value::Float(f) => out.push_str(&go::float(*f)),
        other => out.push_str(&json::to_string(other)),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(out: &mut String, s: &str, indent: usize) {
    let literal =
        s.contains('\n') && !s.starts_with([' ', '\n']) && s.chars().all(|c| c == '\n' || c == '\t' || go::is_print(c));
    if literal {
        let trimmed = s.trim_end_matches('\n');
        out.push_str(match s.len() - trimmed.len() {
            0 => "|-",
            1 => "|",
            _ => "|+",
        });
        for line in s.strip_suffix('\n').unwrap_or(s).split('\n') {
            out.push('\n');
            if !line.is_empty() {
                pad(out, indent.max(2));
                out.push_str(line);
            }
        }
        out.push('\n');
        return;
    }
    line(out, s);
}

/// A string on one line.
fn line(out: &mut String, s: &str) {
    if is_plain(s) {
        out.push_str(s);
    } else if s.chars().all(go::is_print) {
        let _ = write!(out, "'{}'", s.replace('\'', "''"));
    } else {
        json::write_string(out, s);
    }
}

/// Whether a string may stand without quotes: it reads back as itself.
fn is_plain(s: &str) -> bool {
    let safe_start = s.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/' || c == '.');
    let safe = s.chars().all(|c| c.is_alphanumeric() || "_-./:+@()=,;$^ ".contains(c));
    safe_start
        && safe
        && !s.contains(": ")
        && !s.ends_with([' ', ':'])
        && !s.contains(" #")
        && object::yaml::parse(s.as_bytes()).is_ok_and(|v| v.as_str() == Some(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let texts = [
            "",
            "a",
            "1",
            "true",
            "null",
            "~",
            "a: b",
            "- a",
            "a\nb",
            "a\nb\n",
            "a\n\n",
            " a",
            "a ",
            "'",
            "\"",
            "a#b",
            "a #b",
            "0x1",
            "2020-01-01",
            "yes",
            "{}",
            "[x]",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "\u{1}",
            "a\tb",
            "\n",
            "é",
            "a\n b",
            "x:",
            "1e3",
            "=",
            "<<",
            ".",
            "...",
            "---",
            "--- a",
        ];
        let list = Value::Array(texts.iter().map(|t| Value::from(*t)).collect());
        let map: object::Map = texts.iter().map(|t| (*t, Value::from(*t))).collect();
        let nested = Value::Object(object::map! {
            "list" => list.clone(), "map" => map, "empty" => object::Map::new(), "none" => Value::Array(vec![]),
            "deep" => Value::Array(vec![Value::Array(vec![list.clone()]), Value::Object(object::map! { "a" => list, "b" => 1 })]),
            "float" => 1.5, "null" => Value::Null,
        });
        let text = to_string(&nested);
        assert_eq!(object::yaml::parse(text.as_bytes()), Ok(nested), "{text}");
    }

    #[test]
    fn documents_look_as_go_writes_them() {
        let value = Value::Object(object::map! {
            "a" => vec!["x", "y"], "b" => Value::Object(object::map! { "c" => "1", "d" => 2 }), "t" => "l1\nl2\n",
        });
        assert_eq!(to_string(&value), "a:\n- x\n- \"y\"\nb:\n  c: \"1\"\n  d: 2\nt: |\n  l1\n  l2\n".replace('"', "'"));
    }
}
