//! What differs from run to run is taken out of answers before they are compared.

use object::{Value, json};
use regex::Regex;
use std::sync::LazyLock;

static SCRUB: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"selfType\d+", "selfType<N>"),
        (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b", "<time>"),
        (r"\b0xc[0-9a-f]{6,}\b", "<ptr>"),
        (r"\b127\.0\.0\.1:\d+\b", "<address>"),
        (
            r#"((?:resourceVersion|ResourceVersion|resource version)(?: in object meta| in record| in the precondition)?(?:\\*"|[:=(]| is| ){0,8})\d+\b"#,
            "${1}<rv>",
        ),
        (r"<rv>( \(|, current: )\d+", "<rv>${1}<rv>"),
    ];
    rules.into_iter().filter_map(|(pattern, by)| Regex::new(pattern).ok().map(|r| (r, by))).collect()
});

/// Replaces uids, times, pointers, the server's address and versions in a text by stand-ins.
pub fn scrub(text: &str) -> String {
    let mut out = text.to_owned();
    for (pattern, by) in SCRUB.iter() {
        if pattern.is_match(&out) {
            out = pattern.replace_all(&out, *by).into_owned();
        }
    }
    out
}

/// An answer without what differs from run to run: uids, versions, times and, unless `keep` names `managedFields`, field
/// ownership; the status of a definition unless `keep` names `crdStatus`.
pub fn normalise(answer: &Value, keep: &[&str]) -> Value {
    let mut out = walk(answer, keep);
    let kind = out.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "CustomResourceDefinition" && !keep.contains(&"crdStatus") {
        out.remove_at(&["status"]);
    }
    if kind == "Status" {
        out.remove_at(&["details", "uid"]);
        if let Some(Value::Array(causes)) = out.get_mut("details").and_then(|d| d.get_mut("causes")) {
            let key = |c: &Value| ["field", "reason", "message"].map(|f| c.str_at(&[f]).unwrap_or_default().to_owned());
            causes.sort_by_key(key);
            // The joined message repeats the causes, in an order that varies on a real server.
            if causes.len() > 1 {
                let message = out.str_at(&["message"]).unwrap_or_default();
                let head = message.split(": ").next().unwrap_or_default().to_owned();
                out.set_at(&["message"], head.into());
            }
        }
        out.remove_at(&["apiVersion"]);
    }
    if kind == "Table" {
        normalise_ages(&mut out);
    }
    out
}

/// How old an object is depends on how fast it was asked for: every age in seconds is that of a new one.
fn normalise_ages(table: &mut Value) {
    let columns = table.get("columnDefinitions").and_then(Value::as_array).unwrap_or_default();
    let ages: Vec<usize> = (0..columns.len()).filter(|i| columns[*i].str_at(&["name"]) == Some("Age")).collect();
    let Some(Value::Array(rows)) = table.get_mut("rows") else { return };
    for cells in rows.iter_mut().filter_map(|row| row.get_mut("cells")) {
        let Value::Array(cells) = cells else { continue };
        for age in &ages {
            if let Some(cell) = cells.get_mut(*age)
                && cell.as_str().and_then(|text| text.strip_suffix('s')).is_some_and(|n| n.parse::<u32>().is_ok())
            {
                *cell = "0s".into();
            }
        }
    }
}

fn walk(value: &Value, keep: &[&str]) -> Value {
    match value {
        Value::Object(members) => {
            let mut members = members.clone();
            if let Some(Value::Object(meta)) = members.get_mut("metadata") {
                normalise_metadata(meta, keep);
            }
            Value::Object(members.into_iter().map(|(k, v)| (k, walk(&v, keep))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|v| walk(v, keep)).collect()),
        Value::String(s) => scrub(s).into(),
        other => other.clone(),
    }
}

fn normalise_metadata(meta: &mut object::Map, keep: &[&str]) {
    let set = ["uid", "resourceVersion", "creationTimestamp", "selfLink", "deletionTimestamp", "continue"];
    for field in set {
        if let Some(value) = meta.get_mut(field)
            && is_true(value)
        {
            *value = "<set>".into();
        }
    }
    if !keep.contains(&"managedFields") {
        meta.remove("managedFields");
        return;
    }
    if let Some(Value::Array(entries)) = meta.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            entry.remove_at(&["time"]);
            // The program that was recorded had another name.
            if entry.str_at(&["manager"]) == Some("kube-apiserver") {
                entry.set_at(&["manager"], "oracle-kube-apiserver".into());
            }
        }
        entries.sort_by_key(|e| {
            ["manager", "operation", "apiVersion", "subresource"]
                .map(|f| e.get(f).map_or("null".to_owned(), |v| ascii(&json::to_string(v))))
        });
    }
}

/// JSON as the recording tool writes it: characters outside ASCII are escaped.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Whether the recording tool's language takes a value for true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Int(i) => *i != 0,
        Value::Float(f) => *f != 0.0,
        Value::String(s) => !s.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// The parts of a value at a dotted path, where `*` stands for every item; null for what is not there.
pub fn pick(value: &Value, path: &str) -> Value {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let deeper = |v: &Value| if rest.is_empty() { v.clone() } else { pick(v, rest) };
    match (key, value) {
        ("*", Value::Array(items)) => Value::Array(items.iter().map(deeper).collect()),
        ("*", Value::Object(members)) => Value::Array(members.values().map(deeper).collect()),
        ("*", _) => Value::Array(Vec::new()),
        (key, Value::Array(items)) => key.parse::<usize>().ok().and_then(|i| items.get(i)).map_or(Value::Null, deeper),
        (key, other) => match other.get(key) {
            Some(v) => deeper(v),
            None if rest.is_empty() => Value::Null,
            None => pick(&Value::Null, rest),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_dependent_texts_are_replaced() {
        for (text, expected) in [
            ("uid 12345678-1234-1234-1234-123456789abc.", "uid <uid>."),
            ("too old resource version: 12 (34)", "too old resource version: <rv> (<rv>)"),
            ("at 2026-01-02T03:04:05Z", "at <time>"),
            ("selfType17.spec", "selfType<N>.spec"),
        ] {
            assert_eq!(scrub(text), expected);
        }
    }

    #[test]
    fn seconds_of_age_are_replaced() {
        let table = |age: &str| {
            let text = r#"{"kind":"Table","columnDefinitions":[{"name":"Name"},{"name":"Age"}],"rows":[{"cells":["3s","AGE"]}]}"#;
            normalise(&json::parse(text.replace("AGE", age).as_bytes()).unwrap(), &[])
        };
        assert_eq!(table("0s"), table("17s"));
        assert_ne!(table("0s"), table("<unknown>"));
        let rows = json::parse(br#"[{"cells":["3s","0s"]}]"#).unwrap();
        assert_eq!(table("0s").at(&["rows"]), Some(&rows));
    }

    #[test]
    fn parts_are_picked_by_path() {
        let v = json::parse(br#"{"items":[{"a":{"b":1}},{"a":{}}]}"#).unwrap();
        assert_eq!(json::to_string(&pick(&v, "items.*.a.b")), "[1,null]");
        assert_eq!(json::to_string(&pick(&v, "items.0.a")), r#"{"b":1}"#);
        assert_eq!(json::to_string(&pick(&v, "x.y")), "null");
    }
}
