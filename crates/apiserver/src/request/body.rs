//! Reading the body of a write, with upstream's texts for what is wrong with it.

use crate::answer::{Failure, Outcome};
use http::{HeaderMap, header};
use kinds::Issue;
use object::{Status, Value, go, json, yaml};

/// The language of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `application/json`, also where nothing is said.
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, which only built-in kinds have.
    Protobuf,
}

/// The media type of a body without its parameters, in small letters; nothing where it is malformed.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Some(String::new()) };
    let value = value.to_str().ok()?;
    let first = value.split(';').next()?.trim().to_ascii_lowercase();
    Some(first)
}

/// The language of a body.
pub fn language(headers: &HeaderMap) -> Outcome<Language> {
    match media_type(headers).as_deref() {
        Some("" | "application/json") => Ok(Language::Json),
        Some("application/yaml") => Ok(Language::Yaml),
        Some("application/vnd.kubernetes.protobuf") => Ok(Language::Protobuf),
        _ => Err(unsupported(&["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"])),
    }
}

/// 415 with the media types that are taken.
pub fn unsupported(accepted: &[&str]) -> Failure {
    let types = accepted.join(", ");
    let message = format!("the body of the request was in an unknown format - accepted media types include: {types}");
    Status::new(415, "UnsupportedMediaType", message).into()
}

/// What a body holds.
#[derive(Debug)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Whether a key is repeated in an object of a JSON text.
    pub repeats: bool,
    /// Keys that are repeated in a YAML text, as upstream words them, if they were asked for.
    pub issues: Vec<String>,
}

/// The JSON text that a value was read from.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    /// The text.
    pub json: &'t [u8],
    /// Whether a key is repeated in an object.
    pub repeats: bool,
}

impl Text<'_> {
    /// The repeated keys, as upstream words them.
    pub fn repetitions(&self) -> Vec<String> {
        if !self.repeats {
            return Vec::new();
        }
        let repeated = json::parse_strict(self.json).map(|(_, repeated)| repeated).unwrap_or_default();
        repeated.into_iter().map(|path| Issue::Repeated(path).to_string()).collect()
    }
}

/// Why a body cannot be read: what upstream's decoder says.
pub fn parse(body: &[u8], language: Language, strict: bool) -> Result<Parsed, String> {
    let (value, repeats, issues) = match language {
        Language::Json => {
            let (value, repeats) = json::parse_noting(body).map_err(|e| json_error(body, &e))?;
            (value, repeats, Vec::new())
        }
        Language::Yaml if strict => {
            let (value, issues) = yaml::parse_strict(body)?;
            (value, false, issues)
        }
        Language::Yaml => (yaml::parse(body)?, false, Vec::new()),
        Language::Protobuf => (kinds::protobuf::read(body)?, false, Vec::new()),
    };
    match &value {
        Value::Object(_) => match check_type(&value) {
            Some(error) => Err(error),
            None => Ok(Parsed { value, repeats, issues }),
        },
        Value::Null => Ok(Parsed { value, repeats, issues }),
        other => {
            let kind = go::json_kind(other);
            Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type {TYPE_META}"
            ))
        }
    }
}

const TYPE_META: &str =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// What is wrong with the types of `apiVersion` and `kind`. (Upstream finds these two whatever their case.)
pub fn check_type(value: &Value) -> Option<String> {
    let members = value.as_object()?;
    ["apiVersion", "kind"].iter().find_map(|key| {
        let mut named = members.iter().filter(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, value)| value);
        let wrong = named.find(|v| !matches!(v, Value::String(_) | Value::Null))?;
        let word = go::json_kind(wrong);
        Some(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {word} into Go struct field .{key} of type string"
        ))
    })
}

fn json_error(body: &[u8], error: &json::Error) -> String {
    let mut text = error.to_string();
    if text == "exceeded max depth" {
        let at = body.get(error.offset).copied().map_or('[', char::from);
        text = format!("invalid character {} exceeded max depth", object::go::quote_char(at));
    }
    // Numbers are read only after the kind is known.
    if text.starts_with("json: cannot unmarshal number") {
        return text;
    }
    format!("couldn't get version/kind; json parse error: {text}")
}

/// 400 for a body that says nothing of its kind.
pub fn unrecognized(kind: &str, error: &str, body: &[u8]) -> Failure {
    let summary = summarize(body);
    let message = format!("the object provided is unrecognized (must be of type {kind}): {error} ({summary})");
    Status::bad_request(message).into()
}

/// The first thirty bytes, as text where it looks like JSON, else in hexadecimal.
fn summarize(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let cut = body.get(..LENGTH).unwrap_or(body);
    let more = if body.len() > LENGTH { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(cut)),
        Some(_) => {
            let hex: String = cut.iter().map(|b| format!("{b:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

/// How upstream puts the issues of strict reading into one sentence.
pub fn strict_error(issues: &[String]) -> String {
    let (yaml, other): (Vec<&String>, Vec<&String>) = issues.iter().partition(|i| i.starts_with("line "));
    let mut parts: Vec<String> = Vec::new();
    if !yaml.is_empty() {
        let lines: Vec<&str> = yaml.iter().map(|s| s.as_str()).collect();
        parts.push(format!("yaml: unmarshal errors:\n  {}", lines.join("\n  ")));
    }
    parts.extend(other.into_iter().cloned());
    format!("strict decoding error: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_no_objects_are_told_as_upstream_does() {
        for (body, text) in [
            ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            ("{} {}", "couldn't get version/kind; json parse error: invalid character '{' after top-level value"),
            (
                "[]",
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
            ),
        ] {
            assert_eq!(parse(body.as_bytes(), Language::Json, true).map(|_| ()).unwrap_err(), text);
        }
    }

    #[test]
    fn bodies_are_summarized() {
        assert_eq!(summarize(b""), "<empty>");
        assert_eq!(summarize(b"null"), "6e756c6c");
        assert_eq!(summarize(br#"{"apiVersion":"ga018.example.com/v1"}"#), r#"{"apiVersion":"ga018.example.c ..."#);
    }
}
