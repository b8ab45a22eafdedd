//! What the replays of recorded cases share.

use object::status::Qualified;
use object::{Map, Status, Value, json};
use std::path::PathBuf;

/// The recorded cases of a theme.
pub fn cases(theme: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../compat/golden/{theme}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = json::parse(&text).unwrap();
    file.get("cases").and_then(Value::as_array).unwrap().to_vec()
}

/// A failure as upstream answers it.
pub fn invalid(kind: &str, group: &str, name: &str, errors: &[object::field::FieldError]) -> (u16, Value) {
    let status = Status::invalid(Qualified { group, name: kind }, name, errors);
    (status.code, status.to_value())
}

/// Drops what differs from run to run, and the order of causes.
pub fn normalise(value: &Value) -> Value {
    // Numbers as they are written: a float without fraction is an integer there.
    let mut out = scrub(&json::parse(json::to_string(value).as_bytes()).unwrap());
    if out.str_at(&["kind"]) == Some("CustomResourceDefinition") {
        out.remove_at(&["status"]);
    }
    if out.str_at(&["kind"]) == Some("Status") {
        out.remove_at(&["apiVersion"]);
        out.remove_at(&["details", "uid"]);
        if let Some(causes) = out.get_mut("details").and_then(|d| d.get_mut("causes")).and_then(Value::as_array_mut) {
            causes.sort_by_key(|c| {
                let text = |key: &str| c.str_at(&[key]).unwrap_or_default().to_owned();
                (text("field"), text("reason"), text("message"))
            });
            if causes.len() > 1 {
                let message = out.str_at(&["message"]).unwrap_or_default().split(": ").next().unwrap().to_owned();
                out.set_at(&["message"], Value::from(message));
            }
        }
    }
    out
}

fn scrub(value: &Value) -> Value {
    match value {
        Value::String(s) => Value::from(numbers_out(&times_out(&uuids_out(&pointers_out(s))))),
        Value::Array(items) => Value::Array(items.iter().map(scrub).collect()),
        Value::Object(members) => {
            let mut out: Map = members.iter().map(|(k, v)| (k, scrub(v))).collect();
            if let Some(Value::Object(meta)) = out.get_mut("metadata") {
                for key in
                    ["uid", "resourceVersion", "creationTimestamp", "selfLink", "deletionTimestamp", "managedFields"]
                {
                    meta.remove(key);
                }
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn pointers_out(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0xc") {
        out.push_str(&rest[..at]);
        let size = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - at - 2);
        if size >= 7 {
            out.push_str("<ptr>");
        } else {
            out.push_str(&rest[at..at + 2 + size]);
        }
        rest = &rest[at + 2 + size..];
    }
    out + rest
}

fn uuids_out(text: &str) -> String {
    let is_uuid = |s: &str| {
        s.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
        })
    };
    let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let found = text.get(at..at + 36).filter(|s| is_uuid(s));
        if found.is_some() && !(at > 0 && word(bytes.get(at - 1))) && !word(bytes.get(at + 36)) {
            out.push_str("<uid>");
            at += 36;
        } else {
            let c = text[at..].chars().next().unwrap();
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

fn times_out(text: &str) -> String {
    const FORM: &str = "20dd-dd-ddTdd:dd:dd";
    let fits = |s: &str| s.bytes().zip(FORM.bytes()).all(|(b, f)| if f == b'd' { b.is_ascii_digit() } else { b == f });
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let whole = found.get(..FORM.len()).filter(|s| fits(s)).and_then(|_| {
            let after = &found[FORM.len()..];
            let after = match after.strip_prefix('.') {
                Some(digits) => digits.trim_start_matches(|c: char| c.is_ascii_digit()),
                None => after,
            };
            after.strip_prefix('Z')
        });
        match whole {
            Some(after) => {
                out.push_str("<time>");
                rest = after;
            }
            None => {
                out.push_str("20");
                rest = &found[2..];
            }
        }
    }
    out + rest
}

fn numbers_out(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("selfType") {
        let after = &rest[at + 8..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        out.push_str(&rest[..at + 8]);
        if digits > 0 {
            out.push_str("<N>");
        }
        rest = &after[digits..];
    }
    out + rest
}

/// RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if target.as_object().is_none() {
        *target = Value::Object(Map::new());
    }
    let members = target.as_object_mut().unwrap();
    for (key, value) in patch.iter() {
        if value.is_null() {
            members.remove(key);
        } else {
            merge(members.get_or_insert(key, || Value::Null), value);
        }
    }
}

/// The lines in which two answers differ.
pub fn difference(want: &Value, got: &Value) -> String {
    let lines = |v: &Value| -> Vec<String> { pretty(v, String::new()) };
    let (want, got) = (lines(want), lines(got));
    let mut out = String::new();
    for line in want.iter().filter(|l| !got.contains(l)) {
        out.push_str(&format!("  want {line}\n"));
    }
    for line in got.iter().filter(|l| !want.contains(l) && !l.starts_with(".spec.")) {
        out.push_str(&format!("  got  {line}\n"));
    }
    out
}

fn pretty(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::Object(m) if path.ends_with("causes.*") => {
            vec![format!("{path} = {}", json::to_string(&Value::Object(m.clone())))]
        }
        Value::Object(m) => m.iter().flat_map(|(k, v)| pretty(v, format!("{path}.{k}"))).collect(),
        Value::Array(items) if path.ends_with("causes") => {
            items.iter().flat_map(|v| pretty(v, format!("{path}.*"))).collect()
        }
        Value::Array(items) => items.iter().enumerate().flat_map(|(i, v)| pretty(v, format!("{path}[{i}]"))).collect(),
        other => vec![format!("{path} = {}", json::to_string(other))],
    }
}
