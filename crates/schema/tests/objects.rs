//! Replays recorded requests about custom objects without a server.

#![allow(clippy::unwrap_used, reason = "a replay that cannot read its cases has failed")]
#![allow(dead_code, reason = "each replay uses a part of what they share")]

mod common;

use common::{cases, difference, invalid, merge, normalise};
use object::{Value, json};
use schema::{Version, crd};
use std::collections::HashMap;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[derive(Default)]
struct Server {
    definitions: HashMap<String, Value>,
    objects: HashMap<String, Value>,
    revision: i64,
}

/// A request's path to an object: `/apis/G/V/[namespaces/N/]PLURAL[/NAME[/SUB]]`.
struct Target {
    group: String,
    version: String,
    namespace: String,
    plural: String,
    name: String,
    subresource: String,
}

fn target(path: &str) -> Option<Target> {
    let mut parts: Vec<&str> = path.strip_prefix("/apis/")?.split('/').collect();
    let (group, version) = (parts.remove(0).to_owned(), parts.remove(0).to_owned());
    let mut namespace = String::new();
    if parts.first() == Some(&"namespaces") {
        namespace = (*parts.get(1)?).to_owned();
        parts.drain(..2);
    }
    let part = |i: usize| parts.get(i).map(|p| (*p).to_owned()).unwrap_or_default();
    Some(Target { group, version, namespace, plural: part(0), name: part(1), subresource: part(2) })
}

impl Server {
    fn define(&mut self, verb: &str, path: &str, step: &Value) -> Option<(u16, Value)> {
        let name = path.strip_prefix(DEFINITIONS)?.trim_start_matches('/').to_owned();
        let old = self.definitions.get(&name).cloned();
        let mut body = step.get("body")?.clone();
        match (verb, step.str_at(&["type"])) {
            ("POST" | "PUT", _) => {}
            ("PATCH", Some("merge")) => {
                let mut new = old.clone()?;
                merge(&mut new, &body);
                body = new;
            }
            ("PATCH", Some("json")) => {
                let mut new = old.clone()?;
                json_patch(&mut new, &body)?;
                body = new;
            }
            _ => return None,
        }
        let mut new = crd::decode(&body).ok()?.definition;
        crd::default(&mut new);
        let errors = match &old {
            None => {
                crd::prepare_create(&mut new);
                crd::validate(&new)
            }
            Some(old) => {
                crd::prepare_update(&mut new, old);
                crd::validate_update(&new, old)
            }
        };
        let name = new.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        if !errors.is_empty() {
            return Some(invalid("CustomResourceDefinition", "apiextensions.k8s.io", &name, &errors));
        }
        new.set_at(&["metadata", "uid"], Value::from("u"));
        new.set_at(&["metadata", "resourceVersion"], Value::from("1"));
        self.definitions.insert(name, new.clone());
        Some((if old.is_some() { 200 } else { 201 }, new))
    }

    /// `Err` where the replay cannot follow the server any more.
    fn answer(&mut self, step: &Value) -> Result<Option<(u16, Value, Vec<String>)>, ()> {
        let Some((verb, path)) = step.str_at(&["send"]).and_then(|s| s.split_once(' ')) else { return Ok(None) };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path.contains("{{") || step.get("body").is_some_and(|b| json::to_string(b).contains("{{")) {
            return Err(());
        }
        if path.starts_with(DEFINITIONS) {
            if verb == "GET" {
                return Ok(None);
            }
            return match self.define(verb, path, step) {
                Some((code, body)) => Ok(Some((code, body, Vec::new()))),
                None => Err(()),
            };
        }
        let target = target(path).ok_or(())?;
        let definition = self.definitions.get(&format!("{}.{}", target.plural, target.group)).cloned().ok_or(())?;
        let version = Version::new(&definition, &target.version).map_err(drop)?.ok_or(())?;
        let key = format!("{}/{}/{}", target.plural, target.namespace, target.name);
        if verb == "GET" && target.subresource.is_empty() && !target.name.is_empty() {
            let Some(mut object) = self.objects.get(&key).cloned() else { return Ok(None) };
            object.set_at(&["apiVersion"], Value::from(format!("{}/{}", target.group, target.version)));
            version.restore(&mut object);
            return Ok(Some((200, object, Vec::new())));
        }
        if !matches!(verb, "POST" | "PUT" | "PATCH") || !matches!(target.subresource.as_str(), "" | "status") {
            return if verb == "GET" { Ok(None) } else { Err(()) };
        }
        let body = match step.get("body") {
            Some(Value::String(text)) => json::parse(text.as_bytes()).map_err(drop)?,
            Some(body) => body.clone(),
            None => return Err(()),
        };
        if step.str_at(&["type"]).is_some_and(|t| !matches!(t, "merge" | "json" | "application/json")) {
            return Err(());
        }
        let status = target.subresource == "status";
        let mut old = self.objects.get(&key).cloned();
        if let Some(old) = &mut old {
            old.set_at(&["apiVersion"], Value::from(format!("{}/{}", target.group, target.version)));
            version.restore(old);
        }
        let mut new = body;
        if verb == "PATCH" {
            let mut patched = old.clone().ok_or(())?;
            match step.str_at(&["type"]) {
                Some("merge") => merge(&mut patched, &new),
                _ => json_patch(&mut patched, &new).ok_or(())?,
            }
            new = patched;
        }
        if verb != "POST" && old.is_none() || new.as_object().is_none() {
            return Err(());
        }
        let strict = query.contains("fieldValidation=Strict");
        let ignore = query.contains("fieldValidation=Ignore");
        let kind = version.kind.clone();
        let unknown = match version.receive(&mut new, true) {
            Ok(unknown) => unknown,
            Err(error) => {
                let message =
                    format!("{kind} in version \"{}\" cannot be handled as a {kind}: {error}", target.version);
                return Ok(Some((400, object::Status::bad_request(message).to_value(), Vec::new())));
            }
        };
        if strict && !unknown.is_empty() {
            return Err(());
        }
        let mut warnings: Vec<String> = Vec::new();
        if !ignore {
            warnings.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
        }
        let outcome = match &old {
            None => {
                if !target.namespace.is_empty() {
                    new.set_at(&["metadata", "namespace"], Value::from(target.namespace.as_str()));
                }
                if version.status {
                    new.remove_at(&["status"]);
                }
                new.set_at(&["metadata", "generation"], Value::Int(1));
                for key in ["uid", "creationTimestamp", "selfLink", "deletionTimestamp", "managedFields"] {
                    new.remove_at(&["metadata", key]);
                }
                version.validate(&new)
            }
            Some(old) => {
                for key in ["uid", "creationTimestamp", "resourceVersion", "generation", "namespace"] {
                    if let Some(value) = old.at(&["metadata", key]) {
                        new.set_at(&["metadata", key], value.clone());
                    }
                }
                if status {
                    let mut whole = old.clone();
                    whole.remove_at(&["status"]);
                    if let Some(value) = new.get("status") {
                        whole.set_at(&["status"], value.clone());
                    }
                    new = whole;
                    version.validate_status_update(&new, old)
                } else {
                    if version.status {
                        new.remove_at(&["status"]);
                        if let Some(value) = old.get("status") {
                            new.set_at(&["status"], value.clone());
                        }
                    }
                    let spec = |v: &Value| {
                        let mut v = v.clone();
                        v.remove_at(&["metadata"]);
                        if version.status {
                            v.remove_at(&["status"]);
                        }
                        v
                    };
                    if spec(&new) != spec(old) {
                        let generation = old.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
                        new.set_at(&["metadata", "generation"], Value::Int(generation + 1));
                    }
                    version.validate_update(&new, old)
                }
            }
        };
        warnings.extend(outcome.warnings);
        let name = new.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        if !outcome.errors.is_empty() {
            let (code, body) = invalid(&kind, &target.group, &name, &outcome.errors);
            return Ok(Some((code, body, warnings)));
        }
        if !query.contains("dryRun") {
            self.revision += 1;
            let mut kept = new.clone();
            kept.set_at(&["metadata", "uid"], Value::from("u"));
            kept.set_at(&["metadata", "resourceVersion"], Value::from(self.revision.to_string()));
            self.objects.insert(format!("{}/{}/{name}", target.plural, target.namespace), kept);
        }
        Ok(Some((if old.is_some() { 200 } else { 201 }, new, warnings)))
    }
}

/// RFC 6902, as far as the cases use it.
fn json_patch(target: &mut Value, patch: &Value) -> Option<()> {
    for op in patch.as_array()? {
        let path: Vec<String> =
            op.str_at(&["path"])?.split('/').skip(1).map(|p| p.replace("~1", "/").replace("~0", "~")).collect();
        let (last, parents) = path.split_last()?;
        let mut at = &mut *target;
        for step in parents {
            at = match at {
                Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
                other => other.get_mut(step)?,
            };
        }
        let value = || op.get("value").cloned();
        match (op.str_at(&["op"])?, at) {
            ("add" | "replace", Value::Object(members)) => {
                members.insert(last.as_str(), value()?);
            }
            ("remove", Value::Object(members)) => {
                members.remove(last)?;
            }
            ("add", Value::Array(items)) if last == "-" => items.push(value()?),
            ("add", Value::Array(items)) => items.insert(last.parse().ok()?, value()?),
            ("replace", Value::Array(items)) => *items.get_mut(last.parse::<usize>().ok()?)? = value()?,
            ("remove", Value::Array(items)) => {
                items.remove(last.parse().ok()?);
            }
            _ => return None,
        }
    }
    Some(())
}

/// Cases about what a server does around the schema: duplicate owners, names of resources, options, versions that are
/// stored in another one.
const SERVER: [&str; 12] = [
    "cr-validate-137",
    "cr-validate-138",
    "cr-validate-141",
    "cr-validate-144",
    "cr-validate-145",
    "cr-validate-155",
    "cr-validate-163",
    "cr-validate-166",
    "cr-validate-rv-001",
    "cr-validate-rv-002",
    "prune-default-087",
    "ratchet-110",
];

fn replay(theme: &str, known: &[&str]) {
    let (mut passed, mut failed, mut cut, mut steps, mut wrong) = (0, 0, 0, 0, 0);
    let mut report = String::new();
    for case in cases(theme) {
        let id = case.str_at(&["id"]).unwrap_or_default().to_owned();
        let mut server = Server::default();
        let (mut bad, mut was_cut) = (false, false);
        for (i, step) in case.get("steps").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
            let answer = match server.answer(step) {
                Ok(answer) => answer,
                Err(()) => {
                    // Reads and refusals leave no trace; after another request nothing is certain.
                    let code = step.at(&["expect", "code"]).and_then(Value::as_int).unwrap_or(0);
                    if (200..300).contains(&code) {
                        was_cut = true;
                        break;
                    }
                    continue;
                }
            };
            let (Some(want), Some((got_code, got, warnings))) = (step.get("expect"), answer) else { continue };
            if step.get("pick").is_some() {
                continue;
            }
            steps += 1;
            let code = want.at(&["code"]).and_then(Value::as_int).unwrap_or_default();
            let want_warnings: Vec<String> = want
                .get("warnings")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_str)
                .map(|w| w.replace("\\\"", "\"").trim_start_matches("299 - \"").trim_end_matches('"').to_owned())
                .collect();
            let mut got_warnings: Vec<String> = warnings.iter().map(|w| w.trim_end_matches('"').to_owned()).collect();
            got_warnings.sort();
            let mut want_warnings = want_warnings;
            want_warnings.retain(|w| !w.contains("finalizer") && !w.contains("duplicate"));
            want_warnings.sort();
            let (want, got) = (normalise(want.get("body").unwrap()), normalise(&got));
            let same_code = i64::from(got_code) == code;
            if (!same_code || want != got || want_warnings != got_warnings) && known.contains(&id.as_str()) {
                was_cut = true;
                break;
            }
            if !same_code || want != got || want_warnings != got_warnings {
                wrong += 1;
                bad = true;
                report.push_str(&format!(
                    "{id} step {i}: want {code}, got {got_code}: {}\n{}",
                    step.str_at(&["send"]).unwrap(),
                    difference(&want, &got)
                ));
                if want_warnings != got_warnings {
                    report.push_str(&format!("  want {want_warnings:?}\n  got  {got_warnings:?}\n"));
                }
                if !same_code {
                    break;
                }
            }
        }
        if bad {
            failed += 1;
        } else if was_cut {
            cut += 1;
        } else {
            passed += 1;
        }
    }
    println!("{theme}: {passed} cases passed, {failed} failed, {cut} cut short; {wrong} of {steps} answers differ");
    assert_eq!(failed, 0, "{theme}:\n{report}");
}

#[test]
fn objects_are_validated_as_upstream() {
    replay("cr-validate", &SERVER);
}

#[test]
fn objects_are_pruned_and_defaulted_as_upstream() {
    replay("prune-default", &SERVER);
}

#[test]
fn unchanged_errors_are_let_pass_as_upstream() {
    replay("ratchet", &SERVER);
}

#[test]
fn rules_run_as_upstream() {
    replay("cel-eval", &SERVER);
}
