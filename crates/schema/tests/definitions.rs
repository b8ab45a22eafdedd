//! Replays recorded requests about CustomResourceDefinitions without a server.

#![allow(clippy::unwrap_used, reason = "a replay that cannot read its cases has failed")]
#![allow(dead_code, reason = "each replay uses a part of what they share")]

mod common;

use common::{cases, difference, invalid, merge, normalise};
use object::{Value, json};
use schema::crd;
use std::collections::HashMap;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What a replay makes of a step: an answer, or nothing where a server would be needed.
fn answer(step: &Value, stored: &mut HashMap<String, Value>) -> Option<(u16, Value)> {
    let (verb, path) = step.str_at(&["send"])?.split_once(' ')?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let rest = path.strip_prefix(PATH)?;
    let body = match step.get("body") {
        Some(Value::String(text)) => json::parse(text.as_bytes()).ok()?,
        Some(body) => body.clone(),
        None => return None,
    };
    let mut parts = rest.trim_start_matches('/').splitn(2, '/');
    let name = parts.next().unwrap_or_default().to_owned();
    let status = parts.next() == Some("status");
    let old = stored.get(&name).cloned();
    let body = match (verb, step.str_at(&["type"])) {
        ("POST" | "PUT", None) => body,
        ("PATCH", Some("merge")) => {
            let mut new = old.clone()?;
            merge(&mut new, &body);
            new
        }
        _ => return None,
    };
    let decoded = match crd::decode(&body) {
        Ok(decoded) => decoded,
        Err(error) => {
            let kind = "CustomResourceDefinition";
            let message = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {error}");
            return Some((400, object::Status::bad_request(message).to_value()));
        }
    };
    if query.contains("fieldValidation=Strict") && !decoded.unknown.is_empty() {
        let unknown: Vec<String> = decoded.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        let kind = "CustomResourceDefinition";
        let message = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: strict decoding error: {}",
            unknown.join(", ")
        );
        return Some((400, object::Status::bad_request(message).to_value()));
    }
    let mut new = decoded.definition;
    crd::default(&mut new);
    let errors = match &old {
        Some(old) if status => {
            crd::prepare_status_update(&mut new, old);
            crd::validate_status_update(&new, old)
        }
        Some(old) => {
            for key in ["uid", "creationTimestamp"] {
                if let Some(value) = old.at(&["metadata", key]) {
                    new.set_at(&["metadata", key], value.clone());
                }
            }
            crd::prepare_update(&mut new, old);
            crd::validate_update(&new, old)
        }
        None if verb == "POST" => {
            crd::prepare_create(&mut new);
            crd::validate(&new)
        }
        None => return None,
    };
    let name = new.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
    if !errors.is_empty() {
        return Some(invalid("CustomResourceDefinition", "apiextensions.k8s.io", &name, &errors));
    }
    let code = if old.is_some() { 200 } else { 201 };
    if !query.contains("dryRun") {
        let mut kept = new.clone();
        if old.is_none() {
            kept.set_at(&["metadata", "uid"], Value::from("u"));
            kept.set_at(&["metadata", "resourceVersion"], Value::from("1"));
            let established = Value::Object(object::map! { "type" => "Established", "status" => "True" });
            kept.set_at(&["status", "conditions"], Value::Array(vec![established]));
            let names = kept.at(&["spec", "names"]).cloned().unwrap_or_default();
            kept.set_at(&["status", "acceptedNames"], names);
        }
        stored.insert(name, kept);
    }
    Some((code, new))
}

fn replay(theme: &str, known: &[&str]) {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut report = String::new();
    for case in cases(theme) {
        let id = case.str_at(&["id"]).unwrap_or_default().to_owned();
        let mut stored = HashMap::new();
        let mut bad = None;
        for step in case.get("steps").and_then(Value::as_array).unwrap_or_default() {
            let answer = answer(step, &mut stored);
            let Some(want) = step.get("expect") else { continue };
            let code = want.at(&["code"]).and_then(Value::as_int).unwrap_or_default();
            let Some((got_code, got)) = answer.filter(|_| matches!(code, 200 | 201 | 400 | 422)) else {
                skipped += 1;
                continue;
            };
            let (want, got) = (normalise(want.get("body").unwrap()), normalise(&got));
            if i64::from(got_code) != code || want != got {
                bad = Some(format!("{id}: want {code}, got {got_code}\n{}", difference(&want, &got)));
                break;
            }
        }
        match bad {
            Some(text) if !known.iter().any(|k| id.ends_with(k)) => {
                failed += 1;
                if failed <= 40 {
                    report.push_str(&text);
                }
            }
            Some(_) => skipped += 1,
            None => passed += 1,
        }
    }
    println!("{theme}: {passed} cases passed, {failed} failed, {skipped} steps need a server");
    assert_eq!(failed, 0, "{theme}:\n{report}");
}

/// Answers that are made before a definition is looked at.
const SERVER: [&str; 6] =
    ["envelope-kind", "envelope-version", "unknown-field-badparam", "body-dup-key", "put-no-rv", "put-other-name"];

#[test]
fn definitions_are_judged_as_upstream() {
    replay("crd-schema", &SERVER);
}

#[test]
fn rules_compile_as_upstream() {
    replay("cel-compile", &[]);
}

#[test]
fn rules_are_priced_as_upstream() {
    replay("cel-cost", &[]);
}

#[test]
fn versions_and_conversions_are_judged_as_upstream() {
    replay("storage-versions", &["delete-twice", "crd-update-conflict", "crd-v1beta1"]);
    // The bundle of certificates is filled in by the tool that runs the webhooks.
    replay("conversion-webhooks", &["config-client"]);
}
