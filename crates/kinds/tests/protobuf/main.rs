//! What a real server answered goes to protobuf and back, and is the same.

#![allow(clippy::unwrap_used)]

mod filled;

use kinds::definitions::definitions;
use kinds::protobuf;
use object::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

const TIME: &str = "2024-01-01T00:00:00Z";

/// The objects of built-in kinds among the recorded answers, lists too.
fn recorded() -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden");
    let mut out = Vec::new();
    for file in ["builtin.json", "generic-api.json", "admission-policies.json", "admission-webhooks.json"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        // Where the recording says that something is set, a time is right for every field.
        let mut text = text.replace("<set>", TIME).replace("<time>", TIME).replace("<ca>", "Y2E=");
        for field in ["renewTime", "acquireTime", "eventTime", "lastObservedTime"] {
            let precise = TIME.replace('Z', ".000000Z");
            text = text.replace(&format!(r#""{field}": "{TIME}""#), &format!(r#""{field}": "{precise}""#));
        }
        collect(&json::parse(text.as_bytes()).unwrap(), &mut out);
    }
    out
}

/// The answers in a recording.
fn collect(value: &Value, out: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter() {
                match key {
                    "expect" => out.extend(member.get("body").filter(|body| known(body)).cloned()),
                    _ => collect(member, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        _ => {}
    }
}

/// Whether an object is whole and of a built-in kind.
fn known(object: &Value) -> bool {
    let (api_version, kind) = (object.str_at(&["apiVersion"]).unwrap_or_default(), object.str_at(&["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    definitions().of_kind(group, version, kind.unwrap_or_default()).is_some()
}

/// The object as the server reads it: what is empty and may be left out is.
fn settled(object: &Value) -> Value {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let definition = definitions().of_kind(group, version, text("kind")).unwrap();
    let mut object = kinds::decode(definition, object.clone()).unwrap().object;
    // No items and an empty list of items are one.
    if object.get("items").is_some_and(Value::is_null) {
        object.set_at(&["items"], Value::Array(Vec::new()));
    }
    // Objects within objects have no type in protobuf.
    if let Some(Value::Array(claims)) = object.get_mut("spec").and_then(|s| s.get_mut("volumeClaimTemplates")) {
        for claim in claims {
            claim.remove_at(&["apiVersion"]);
            claim.remove_at(&["kind"]);
        }
    }
    object
}

#[test]
fn what_was_answered_survives_the_way_there_and_back() {
    let mut kinds = BTreeSet::new();
    for object in recorded() {
        let Some(body) = protobuf::write(&object) else { panic!("no form: {}", json::to_string(&object)) };
        let back = protobuf::read(&body).unwrap();
        let (wanted, got) = (settled(&object), settled(&back));
        assert_eq!(json::to_string(&got), json::to_string(&wanted));
        kinds.insert(object.str_at(&["kind"]).unwrap_or_default().to_owned());
    }
    assert!(kinds.len() > 50, "{kinds:?}");
}

/// Where two values differ first.
fn difference(got: &Value, wanted: &Value) -> Option<String> {
    let within = |at: &str, got: Option<&Value>, wanted: Option<&Value>| {
        let null = Value::Null;
        Some(format!("{at}.{}", difference(got.unwrap_or(&null), wanted.unwrap_or(&null))?))
    };
    match (got, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&str> = a.iter().chain(b.iter()).map(|(key, _)| key).collect();
            keys.into_iter().find_map(|key| within(key, a.get(key), b.get(key)))
        }
        (Value::Array(a), Value::Array(b)) => {
            (0..a.len().max(b.len())).find_map(|i| within(&i.to_string(), a.get(i), b.get(i)))
        }
        _ => (got != wanted).then(|| format!(" {} instead of {}", json::to_string(got), json::to_string(wanted))),
    }
}

#[test]
fn every_field_of_every_kind_survives_the_way_there_and_back() {
    let (mut count, mut differences) = (0, BTreeSet::new());
    for definition in definitions().iter() {
        for kind in &definition.kinds {
            let slash = if kind.group.is_empty() { "" } else { "/" };
            let api_version = format!("{}{slash}{}", kind.group, kind.version);
            for seed in 0..4 {
                let object = filled::object(definition, &api_version, kind.kind, seed);
                let Some(body) = protobuf::write(&object) else { panic!("{api_version} {} has no form", kind.kind) };
                let back = protobuf::read(&body).unwrap();
                let (wanted, got) = (settled(&object), settled(&back));
                differences.extend(difference(&got, &wanted).map(|d| format!("{api_version} {}: {d}", kind.kind)));
            }
            count += 1;
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(count > 200, "{count}");
}

#[test]
fn a_failure_is_the_same_to_the_byte_as_upstreams() {
    let status = r#"{"apiVersion":"v1","code":406,"kind":"Status","message":"m","metadata":{},"reason":"NotAcceptable","status":"Failure"}"#;
    let body = protobuf::write(&json::parse(status.as_bytes()).unwrap()).unwrap();
    let expected = b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12\x26\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\x01m\"\x0dNotAcceptable0\x96\x03\x1a\0\"\0";
    assert_eq!(body.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn tables_and_custom_resources_have_no_form() {
    for text in [
        r#"{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[]}"#,
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{}}"#,
        "{}",
        "[]",
    ] {
        assert!(protobuf::write(&json::parse(text.as_bytes()).unwrap()).is_none(), "{text}");
    }
}

#[test]
fn an_event_is_a_frame() {
    let object = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#;
    let object = json::parse(object.as_bytes()).unwrap();
    let frame = protobuf::write_event("ADDED", &object).unwrap();
    let whole = protobuf::write(&object).unwrap();
    let length = u32::from_be_bytes(*frame.first_chunk::<4>().unwrap());
    assert_eq!(length as usize, frame.len() - 4);
    assert!(frame[4..].starts_with(b"\n\x05ADDED\x12"));
    assert!(frame.ends_with(&whole));
}
