//! The cases: their files, and the references from one step to the answers before it.

use object::{Value, json};
use regex::{Captures, Regex};
use std::path::Path;
use std::sync::LazyLock;

/// A file of cases.
#[derive(Debug)]
pub struct Theme {
    /// The theme's name.
    pub name: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A self-contained sequence of requests.
#[derive(Clone, Debug)]
pub struct Case {
    /// The case's name, unique within its theme.
    pub id: String,
    /// What it is about.
    pub about: String,
    /// The case as it stands in the file.
    pub value: Value,
}

impl Case {
    /// The steps.
    pub fn steps(&self) -> &[Value] {
        self.value.get("steps").and_then(Value::as_array).unwrap_or_default()
    }

    /// Whether the case brings webhooks along.
    pub fn has_hooks(&self) -> bool {
        self.value.get("hooks").is_some()
    }

    /// Patterns whose matches in an answer are replaced by `<x>`.
    pub fn scrub(&self) -> Vec<Regex> {
        let patterns = self.value.get("scrub").and_then(Value::as_array).unwrap_or_default();
        patterns.iter().filter_map(Value::as_str).filter_map(|p| Regex::new(p).ok()).collect()
    }
}

/// Reads a case file.
pub fn read(path: &Path) -> Result<Theme, String> {
    let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = json::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cases = file.get("cases").and_then(Value::as_array).unwrap_or_default();
    let cases = cases.iter().map(|c| Case { id: text(c, "id"), about: text(c, "about"), value: c.clone() }).collect();
    Ok(Theme { name: text(&file, "theme"), cases })
}

static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{\{(.*?)\}\}").ok());

/// Replaces `{{K.a.b}}` in all strings by that field of the answer to step K. A string that is nothing but a reference
/// becomes the field itself, whatever its type.
pub fn fill(value: &Value, answers: &[Value]) -> Value {
    match value {
        Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (k, fill(v, answers))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(|v| fill(v, answers)).collect()),
        Value::String(s) if s.contains("{{") => fill_string(s, answers),
        other => other.clone(),
    }
}

/// [`fill`] for a text, such as a path.
pub fn fill_text(text: &str, answers: &[Value]) -> String {
    match fill_string(text, answers) {
        Value::String(s) => s.into(),
        other => python_text(&other),
    }
}

fn fill_string(text: &str, answers: &[Value]) -> Value {
    let Some(reference) = &*REFERENCE else { return text.into() };
    if let Some(whole) = reference.captures(text).filter(|c| c[0].len() == text.len())
        && let Some(value) = look_up(&whole[1], answers)
    {
        return value;
    }
    let filled = reference.replace_all(text, |c: &Captures<'_>| match look_up(&c[1], answers) {
        Some(value) => python_text(&value),
        None => c[0].to_owned(),
    });
    filled.into_owned().into()
}

/// A field of an answer, null where it is missing; nothing when this is no reference to a step.
fn look_up(reference: &str, answers: &[Value]) -> Option<Value> {
    let mut parts = reference.split('.');
    let step: usize = parts.next()?.parse().ok()?;
    let mut at = answers.get(step)?;
    for part in parts {
        let next = match at {
            Value::Array(items) => part.parse::<usize>().ok().and_then(|i| items.get(i)),
            other => other.get(part),
        };
        match next {
            Some(value) => at = value,
            None => return Some(Value::Null),
        }
    }
    Some(at.clone())
}

/// A value as the recording tool put it into a text.
pub(crate) fn python_text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(s) => s.to_string(),
        other => json::to_string(other),
    }
}

/// The JSON text of a body as the recording tool sent it: `, ` and `: ` as separators, ASCII only. Messages that repeat
/// the body depend on it.
pub fn body_text(value: &Value) -> String {
    let mut out = String::new();
    push_body(&mut out, value);
    out
}

fn push_body(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_body(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (i, (k, v)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_ascii(out, k);
                out.push_str(": ");
                push_body(out, v);
            }
            out.push('}');
        }
        Value::String(s) => push_ascii(out, s),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e16 => out.push_str(&format!("{f:.1}")),
        other => json::write(out, other),
    }
}

fn push_ascii(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_filled_in() {
        let answers = [json::parse(br#"{"metadata":{"uid":"u","n":1},"items":[{"a":"x"}]}"#).unwrap()];
        let body =
            json::parse(br#"{"u":"{{0.metadata.uid}}","n":"{{0.metadata.n}}","t":"a{{0.items.0.a}}b{{hook:x}}"}"#);
        let filled = fill(&body.unwrap(), &answers);
        assert_eq!(json::to_string(&filled), r#"{"n":1,"t":"axb{{hook:x}}","u":"u"}"#);
        assert_eq!(fill_text("/x/{{0.metadata.n}}?y", &answers), "/x/1?y");
    }

    #[test]
    fn bodies_are_sent_as_they_were_recorded() {
        let body = json::parse("{\"a\":[1,2.0],\"b\":\"é<\"}".as_bytes()).unwrap();
        assert_eq!(body_text(&body), r#"{"a": [1, 2.0], "b": "\u00e9<"}"#);
    }
}
