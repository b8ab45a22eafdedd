//! Conversions from and to TOML.

use super::encoding::error_dict;
use super::{Table, arg, text};
use crate::value::Result;
use object::{Map, Value, go};
use std::fmt::Write;

pub(super) const TABLE: Table = &[
    ("toToml", "a", |w, a| {
        let value = w.heap.export(&arg(a, 0))?;
        // What cannot be written is said in the place of the text, as Helm does.
        let text = write(&value).unwrap_or_else(|e| e);
        w.heap.string(text)
    }),
    ("mustToToml", "a", |w, a| {
        let value = w.heap.export(&arg(a, 0))?;
        let text = write(&value)?;
        w.heap.string(text)
    }),
    ("fromToml", "s", |w, a| {
        let text = text(a, 0);
        w.heap.charge(text.len())?;
        match read(&text) {
            Ok(value) => w.heap.adopt(value),
            Err(e) => error_dict(&mut w.heap, e),
        }
    }),
    ("mustFromToml", "s", |w, a| {
        let text = text(a, 0);
        w.heap.charge(text.len())?;
        let value = read(&text)?;
        w.heap.adopt(value)
    }),
];

fn read(text: &str) -> Result<Value> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
    Ok(from_toml(toml::Value::Table(table)))
}

fn from_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(s) => Value::from(s),
        toml::Value::Integer(i) => Value::Int(i),
        toml::Value::Float(f) => Value::Float(f),
        toml::Value::Boolean(b) => Value::Bool(b),
        toml::Value::Datetime(d) => Value::from(d.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(from_toml).collect()),
        toml::Value::Table(members) => Value::Object(members.into_iter().map(|(k, v)| (k, from_toml(v))).collect()),
    }
}

/// A value as a TOML document: plain values first, then tables.
fn write(value: &Value) -> Result<String> {
    let Value::Object(members) = value else {
        return Err("toml: top-level values must be Go maps or structs".to_owned());
    };
    let mut out = String::new();
    table(&mut out, members, &[])?;
    Ok(out)
}

fn is_table(value: &Value) -> bool {
    matches!(value, Value::Object(_))
}

fn is_table_list(value: &Value) -> bool {
    matches!(value, Value::Array(items) if !items.is_empty() && items.iter().all(is_table))
}

fn table(out: &mut String, members: &Map, path: &[String]) -> Result<()> {
    let indent = "  ".repeat(path.len());
    for (name, value) in members.iter().filter(|(_, v)| !is_table(v) && !is_table_list(v) && !v.is_null()) {
        let _ = write!(out, "{indent}{} = ", key(name));
        inline(out, value)?;
        out.push('\n');
    }
    for (name, value) in members.iter() {
        let path: Vec<String> = path.iter().cloned().chain([key(name)]).collect();
        let (head, indent) = (path.join("."), "  ".repeat(path.len() - 1));
        match value {
            Value::Object(inner) => {
                if !out.is_empty() && path.len() == 1 {
                    out.push('\n');
                }
                let _ = writeln!(out, "{indent}[{head}]");
                table(out, inner, &path)?;
            }
            Value::Array(items) if is_table_list(value) => {
                for item in items.iter().filter_map(Value::as_object) {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    let _ = writeln!(out, "{indent}[[{head}]]");
                    table(out, item, &path)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { name.to_owned() } else { string(name) }
}

fn string(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        let _ = match c {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\u{:04X}", c as u32),
            c => write!(out, "{c}"),
        };
    }
    out.push('"');
    out
}

fn inline(out: &mut String, value: &Value) -> Result<()> {
    match value {
        Value::Null => return Err("toml: cannot encode array with nil element".to_owned()),
        Value::String(s) => out.push_str(&string(s)),
        Value::Float(f) => {
            let text = go::float(*f);
            out.push_str(&text);
            if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
                out.push_str(".0");
            }
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                inline(out, item)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (name, member)) in members.iter().filter(|(_, v)| !v.is_null()).enumerate() {
                let _ = write!(out, "{}{} = ", if i > 0 { ", " } else { "" }, key(name));
                inline(out, member)?;
            }
            out.push('}');
        }
        Value::Bool(_) | Value::Int(_) => out.push_str(&go::plain(value)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let value = object::json::parse(
            br#"{"a":1,"b":[1,2],"c":{"d":"x\"\n","e":{"f":1.5}},"g":[{"h":true},{"h":[{"i":1},2]}],"k y":"z"}"#,
        )
        .unwrap();
        let text = write(&value).unwrap();
        assert_eq!(read(&text).unwrap(), value, "{text}");
        assert!(text.starts_with("a = 1\nb = [1, 2]\n\"k y\" = \"z\"\n\n[c]\n"), "{text}");
    }
}
