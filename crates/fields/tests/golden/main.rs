//! Replays the recorded cases of server-side apply and managed fields against the library alone: objects live in
//! memory, and only what the library decides is compared.

mod patches;
mod schemas;
mod server;

use object::{Value, json};
use server::Server;
use std::path::Path;

#[test]
fn recorded_cases_of_custom_resources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden");
    let only = std::env::var("CASE").ok();
    let (mut cases, mut compared, mut failures, mut skipped) = (0, 0, Vec::new(), Vec::new());
    for theme in ["ssa", "managed-fields"] {
        let Ok(text) = std::fs::read(folder.join(format!("{theme}.json"))) else {
            println!("skipped: {theme}.json is not there");
            continue;
        };
        let file = json::parse(&text).expect("the recording is JSON");
        for case in file.get("cases").and_then(Value::as_array).expect("cases") {
            let id = case.str_at(&["id"]).expect("id");
            if only.as_deref().is_some_and(|o| o != id) {
                continue;
            }
            match replay(case, only.is_some()) {
                Ok(steps) => {
                    cases += 1;
                    compared += steps;
                }
                Err(Stop::Outside(why)) => skipped.push(format!("{id}: {why}")),
                Err(Stop::Differs(what)) => failures.push(format!("{id}: {what}")),
            }
        }
    }
    println!("{cases} cases agree in {compared} answers; {} skipped:", skipped.len());
    skipped.iter().for_each(|s| println!("  {s}"));
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

enum Stop {
    Outside(String),
    Differs(String),
}

fn replay(case: &Value, show: bool) -> Result<usize, Stop> {
    let mut server = Server::default();
    let mut answers: Vec<Value> = Vec::new();
    let mut compared = 0;
    for (i, step) in case.get("steps").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
        if step.get("sleep").is_some() {
            server.now += 1;
            answers.push(Value::Null);
            continue;
        }
        let expect = step.get("expect");
        let code = expect.and_then(|e| e.get("code")).and_then(Value::as_int).unwrap_or(200);
        let message = expect.and_then(|e| e.str_at(&["body", "message"])).unwrap_or_default();
        if code >= 400 && !decided_here(step, message) {
            answers.push(Value::Null);
            continue;
        }
        let mut request = step.clone();
        fill_in(&mut request, &answers);
        let (got_code, got) = match server.handle(&request) {
            Ok(answer) => answer,
            Err(why) => return Err(Stop::Outside(why)),
        };
        if show {
            println!(
                "step {i}: {} {}\n  -> {got_code} {}",
                step.str_at(&["send"]).unwrap_or(""),
                json::to_string(step.get("body").unwrap_or(&Value::Null)),
                json::to_string(&got)
            );
        }
        answers.push(got.clone());
        if let (Some(expect), None) = (expect, step.get("quiet")) {
            let keep = step.get("keep").is_some();
            let (want, got) = (normal(expect.get("body").cloned().unwrap_or_default(), keep), normal(got, keep));
            let same_code = code == got_code || code / 100 == 2 && got_code / 100 == 2;
            let (want, got) = (scrub(json::to_string(&want)), scrub(json::to_string(&got)));
            if !same_code || want != got {
                return Err(Stop::Differs(format!("step {i}:\n  want {code} {want}\n  got  {got_code} {got}")));
            }
            compared += 1;
        }
    }
    if compared == 0 { Err(Stop::Outside("nothing of it is decided here".to_owned())) } else { Ok(compared) }
}

/// Whether an error is the library's to find.
fn decided_here(step: &Value, message: &str) -> bool {
    let stale = message.starts_with("Operation cannot be fulfilled") && step.str_at(&["type"]) == Some("merge");
    let prefixes = [
        "Apply failed",
        "failed to ",
        "invalid object type",
        "metadata.managedFields must be nil",
        "request to convert",
    ];
    stale || prefixes.iter().any(|p| message.starts_with(p))
}

/// Puts values of earlier answers in the place of `{{STEP.path}}`.
fn fill_in(value: &mut Value, answers: &[Value]) {
    match value {
        Value::String(s) if s.contains("{{") => {
            let text = s.to_string();
            if let Some(path) = text.strip_prefix("{{").and_then(|t| t.strip_suffix("}}")) {
                *value = lookup(path, answers).unwrap_or_default();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| fill_in(v, answers)),
        Value::Object(members) => members.values_mut().for_each(|v| fill_in(v, answers)),
        _ => {}
    }
}

fn lookup(path: &str, answers: &[Value]) -> Option<Value> {
    let mut parts = path.split('.');
    let step = parts.next().and_then(|i| i.parse::<usize>().ok()).and_then(|i| answers.get(i));
    let found = parts.try_fold(step?, |v, key| match v {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        v => v.get(key),
    });
    found.cloned()
}

/// The text without uids, which the recordings do not keep in most places.
fn scrub(text: String) -> String {
    let text = text.replace("\\\\u003cuid\\\\u003e", "UID").replace("\\u003cuid\\u003e", "UID");
    let groups = [8, 4, 4, 4, 12];
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let uid = rest.get(..36).is_some_and(|t| {
            let mut parts = t.split('-');
            groups
                .iter()
                .all(|n| parts.next().is_some_and(|p| p.len() == *n && p.chars().all(|c| c.is_ascii_hexdigit())))
        });
        let (taken, shown) = if uid { (36, "UID") } else { (c.len_utf8(), &rest[..c.len_utf8()]) };
        out.push_str(shown);
        rest = &rest[taken..];
    }
    out
}

/// What is compared of an answer.
fn normal(mut body: Value, keep: bool) -> Value {
    if body.str_at(&["kind"]) == Some("Status") {
        let causes = body.at(&["details", "causes"]).cloned().unwrap_or_default();
        let mut causes: Vec<String> = causes.as_array().unwrap_or_default().iter().map(json::to_string).collect();
        causes.sort();
        // The recordings have the first line only of messages about several conflicts.
        let message = body.str_at(&["message"]).unwrap_or_default();
        let message = match message.split_once(" conflicts:") {
            Some((first, _)) => format!("{first} conflicts"),
            None => message.to_owned(),
        };
        return Value::Object(object::map! {
            "code" => body.get("code").cloned(), "message" => message, "causes" => causes,
        });
    }
    if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            meta.remove(field);
        }
        match meta.get_mut("managedFields") {
            Some(Value::Array(entries)) if keep => {
                for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                    entry.remove("time");
                }
                entries.sort_by_key(|e| {
                    let text = |k: &str| e.get(k).cloned().unwrap_or_default();
                    json::to_string(&Value::Array(vec![
                        text("manager"),
                        text("operation"),
                        text("apiVersion"),
                        text("subresource"),
                    ]))
                });
            }
            _ => {
                meta.remove("managedFields");
            }
        }
    }
    body
}
