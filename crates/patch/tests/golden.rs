//! The patches of the recorded cases, laid over the recorded objects, give what the real server stored.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::path::PathBuf;

use object::{Map, Value, json};
use patch::json_patch::JsonPatch;
use patch::strategic::{Error, Member, Schema, Shape};

/// The lists that are merged, as far as the cases go: the member, its merge key, its strategy.
const MERGED: [(&str, &str, &str); 8] = [
    ("containers", "name", "merge"),
    ("env", "name", "merge"),
    ("ports", "containerPort", "merge"),
    ("volumes", "name", "merge,retainKeys"),
    ("conditions", "type", "merge"),
    ("ownerReferences", "uid", "merge"),
    ("finalizers", "", "merge"),
    ("secrets", "name", "merge"),
];

/// A type that knows members by name only.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Service,
    Other,
}

impl Schema for Type {
    fn member(&self, name: &str, shape: Shape) -> Result<Member<Self>, Error> {
        let merged = MERGED.iter().find(|(member, ..)| *member == name).filter(|_| shape == Shape::List);
        let (_, key, strategy) = merged.copied().unwrap_or_default();
        let key = if *self == Type::Service && name == "ports" { "port" } else { key };
        Ok(Member { schema: *self, strategy: strategy.into(), merge_key: key.into() })
    }

    fn go_kind(&self) -> &str {
        "struct"
    }
}

/// The object a step was answered with.
fn object(step: &Value) -> Option<Map> {
    let body = step.at(&["expect", "body"])?;
    if step.at(&["expect", "code"])?.as_int()? >= 300 || body.str_at(&["kind"])? == "Status" {
        return None;
    }
    body.as_object().cloned()
}

/// Whether all of `ours` is in `theirs`, lists item by item: the server adds defaults and drops nulls and what is
/// empty.
fn is_within(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => ours.iter().all(|(key, ours)| match theirs.get(key) {
            Some(theirs) => is_within(ours, theirs),
            None => match ours {
                Value::Null => true,
                Value::Object(members) => members.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            },
        }),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_within(ours, theirs))
        }
        (Value::String(_), Value::String(theirs)) if theirs.starts_with('<') => true,
        (ours, theirs) => ours == theirs,
    }
}

fn patched(kind: &str, before: Map, patch: Value) -> Option<(usize, Value)> {
    match (kind, patch) {
        ("json", patch) => Some((0, JsonPatch::read(patch).unwrap().apply(before.into()).unwrap())),
        ("merge", patch) => Some((1, patch::merge::apply(before.into(), patch))),
        ("strategic", Value::Object(patch)) => {
            let is_service = before.get("kind").and_then(Value::as_str) == Some("Service");
            let schema = if is_service { Type::Service } else { Type::Other };
            Some((2, patch::strategic::apply(before, patch, &schema).unwrap().into()))
        }
        _ => None,
    }
}

#[test]
fn recorded_patches_give_the_recorded_objects() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden");
    let (mut counts, mut failures) = ([0; 3], Vec::new());
    let text = std::fs::read(golden.join("generic-api.json")).unwrap();
    let file = json::parse(&text).unwrap();
    // The cases about patching; in others the server also does much else.
    let excepted = [
        // Unknown members are dropped.
        "json-bad-paths",
        // `stringData` moves to `data`.
        "strategic-secret",
        // The key of the list is hidden in the recording.
        "strategic-owner-references",
        // A subresource: only a part of the patch counts.
        "strategic-status-conditions",
    ];
    let is_about_patches = |id: &str| {
        !excepted.contains(&id)
            && ["json-", "merge-", "strategic-", "cm-json", "cm-merge", "client-"]
                .iter()
                .any(|about| id.starts_with(about))
    };
    let cases = file.get("cases").and_then(Value::as_array).unwrap().iter();
    for case in cases.filter(|case| case.str_at(&["id"]).is_some_and(is_about_patches)) {
        let mut last: Option<(String, Map)> = None;
        for step in case.get("steps").and_then(Value::as_array).unwrap_or_default() {
            let Some(after) = object(step) else { continue };
            let path = step.str_at(&["send"]).and_then(|send| send.split(' ').nth(1)).unwrap_or_default();
            let target = path.split('?').next().unwrap_or_default().to_owned();
            // Only the same object in the same version, and no subresource, which takes only a part.
            let name = |map: &Map| Value::Object(map.clone()).str_at(&["metadata", "name"]).map(str::to_owned);
            let before = last.as_ref().filter(|(known, before)| {
                (*known == target || target == format!("{known}/{}", name(before).unwrap_or_default()))
                    && before.get("apiVersion") == after.get("apiVersion")
                    && before.get("kind") == after.get("kind")
                    && name(before) == name(&after)
            });
            if let (Some((_, before)), Some(kind), Some(patch)) =
                    (before, step.str_at(&["type"]), step.get("body").cloned())
                    // Templates that refer to earlier answers.
                    && !json::to_string(&patch).contains("{{")
                    && let Some((slot, mut ours)) = patched(kind, before.clone(), patch.clone())
            {
                // What changes at every write.
                for member in ["resourceVersion", "generation"] {
                    ours.remove_at(&["metadata", member]);
                }
                counts[slot] += 1;
                if !is_within(&ours, &Value::Object(after.clone())) {
                    let id = case.str_at(&["id"]).unwrap_or_default();
                    let texts = [&patch, &ours, &Value::Object(after.clone())].map(json::to_string);
                    failures.push(format!("{id}: {}", texts.join("\n    ")));
                }
            }
            if !path.contains("dryRun") {
                last = Some((target, after));
            }
        }
    }
    println!("{} JSON patches, {} merge patches, {} strategic merge patches", counts[0], counts[1], counts[2]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}
