//! The recorded cases of a real server against the catalogue: a body is decoded, defaulted, prepared and checked, and
//! what comes out is compared with what the real server answered. Steps that need more of a server are passed over.

#![allow(clippy::unwrap_used)]

use kinds::{Context, Resource, Subresource, Version};
use object::{Value, json};
use std::collections::{BTreeMap, HashMap};

struct Target {
    resource: &'static Resource,
    version: &'static Version,
    subresource: Option<&'static Subresource>,
    namespace: String,
    name: String,
}

fn target(path: &str) -> Option<Target> {
    let path = path.split('?').next()?;
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version) = match parts.first()? {
        &"api" => ("", parts.get(1).copied()?),
        _ => {
            let group = parts.get(1).copied()?;
            parts.remove(0);
            (group, parts.get(1).copied()?)
        }
    };
    let mut rest = &parts[2..];
    let mut namespace = "";
    if rest.first() == Some(&"namespaces") && rest.len() > 2 && !["status", "finalize"].contains(&rest[2]) {
        namespace = rest[1];
        rest = &rest[2..];
    }
    let (resource, version) = kinds::find(group, version, rest.first()?)?;
    let name = rest.get(1).copied().unwrap_or_default();
    let subresource = match rest.get(2) {
        Some(sub) => Some(resource.subresource(sub)?),
        None => None,
    };
    Some(Target { resource, version, subresource, namespace: namespace.to_owned(), name: name.to_owned() })
}

enum Answer {
    Object(Value, Vec<String>),
    Errors(Vec<(String, String, String)>),
    BadRequest(String),
    /// The step is not for this harness.
    Unknown,
}

#[derive(Default)]
struct Server {
    objects: HashMap<String, Value>,
    counter: i64,
}

impl Server {
    fn key(t: &Target) -> String {
        let storage = t.resource.storage.unwrap();
        format!("{}/{}/{}/{}", storage.group, storage.resource, t.namespace, t.name)
    }

    fn decode(&self, t: &Target, body: Value, strict: bool) -> Result<(Value, Vec<String>), Answer> {
        let prefix =
            format!("{} in version {:?} cannot be handled as a {}: ", t.resource.kind, t.version.name, t.resource.kind);
        if !body.str_at(&["kind"]).is_none_or(|k| k == t.resource.kind) {
            return Err(Answer::Unknown);
        }
        let decoded = kinds::decode(t.version.definition().unwrap(), body)
            .map_err(|e| Answer::BadRequest(format!("{prefix}{e}")))?;
        let issues: Vec<String> = decoded.issues.iter().map(ToString::to_string).collect();
        if strict && !issues.is_empty() {
            return Err(Answer::BadRequest(format!("{prefix}strict decoding error: {}", issues.join(", "))));
        }
        let mut object = decoded.object;
        let group = if t.resource.group.is_empty() { String::new() } else { format!("{}/", t.resource.group) };
        object.set_at(&["apiVersion"], format!("{group}{}", t.version.name).into());
        object.set_at(&["kind"], t.resource.kind.into());
        (t.version.default)(&mut object);
        if let Some(convert) = t.version.convert {
            (convert.to_stored)(&mut object);
        }
        Ok((object, issues))
    }

    fn served(&self, t: &Target, mut object: Value, warnings: Vec<String>) -> Answer {
        if let Some(convert) = t.version.convert {
            (convert.from_stored)(&mut object);
        }
        Answer::Object(object, warnings)
    }

    fn step(&mut self, step: &Value) -> Answer {
        let send = step.str_at(&["send"]).unwrap();
        let (verb, path) = send.split_once(' ').unwrap();
        let Some(mut t) = target(path) else { return Answer::Unknown };
        let user = kinds::User {
            name: "admin".into(),
            uid: "admin".into(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
            ..Default::default()
        };
        let context = Context { now: "2025-01-01T00:00:00Z".parse().unwrap(), user: Some(&user) };
        let dry_run = path.contains("dryRun=All");
        let strict = path.contains("fieldValidation=Strict");
        let body = step.get("body").cloned();
        let meta = |key: &str| body.as_ref().and_then(|b| b.str_at(&["metadata", key])).unwrap_or_default().to_owned();
        let group = if t.resource.group.is_empty() { String::new() } else { format!("{}/", t.resource.group) };
        let version = format!("{group}{}", t.version.name);
        // What the server checks before and beside the catalogue.
        let elsewhere = t.resource.storage.is_none()
            || t.resource.group == "apiextensions.k8s.io"
            || step.get("as").is_some()
            || body.as_ref().and_then(|b| b.str_at(&["apiVersion"])).is_some_and(|v| v != version)
            || t.resource.namespaced && t.namespace.is_empty()
            || !t.namespace.is_empty() && !["", t.namespace.as_str()].contains(&meta("namespace").as_str())
            || !t.name.is_empty() && !["", t.name.as_str()].contains(&meta("name").as_str())
            || !meta("generateName").is_empty()
            || step.at(&["expect", "code"]).is_none()
            || step.get("pick").is_some();
        if elsewhere {
            return Answer::Unknown;
        }
        let merge = step.str_at(&["type"]) == Some("merge");
        match (verb, t.subresource) {
            ("POST", None) if t.name.is_empty() => {
                let (mut object, issues) = match self.decode(&t, body.unwrap_or_default(), strict) {
                    Ok(decoded) => decoded,
                    Err(answer) => return answer,
                };
                if !t.namespace.is_empty() {
                    object.metadata_mut().insert("namespace", t.namespace.as_str());
                }
                t.name = object.name().to_owned();
                let key = Self::key(&t);
                if self.objects.contains_key(&key) || path.contains("/validatingadmissionpolicies") && t.name.is_empty()
                {
                    return Answer::Unknown;
                }
                self.counter += 1;
                object.metadata_mut().insert("creationTimestamp", "2025-01-01T00:00:00Z");
                object.metadata_mut().insert("uid", format!("uid-{}", self.counter));
                if let Err(why) = admit(t.resource, &mut object) {
                    return Answer::BadRequest(format!("{} {:?} is forbidden: {why}", t.resource.plural, t.name));
                }
                t.resource.prepare_create(&mut object, &context);
                let errors = t.resource.validate(&object);
                if !errors.is_empty() {
                    return refuse(&errors);
                }
                t.resource.finish(&mut object);
                if !dry_run {
                    object.metadata_mut().insert("resourceVersion", self.counter.to_string());
                    self.objects.insert(key, object.clone());
                }
                let warnings = warnings(&t, &object, None, issues, path);
                self.served(&t, object, warnings)
            }
            ("GET", sub) if !t.name.is_empty() && sub.is_none_or(|s| s.name == "status") => {
                match self.objects.get(&Self::key(&t)) {
                    Some(object) => {
                        self.served(&t, object.clone(), warnings(&t, object, Some(object), Vec::new(), path))
                    }
                    None => Answer::Unknown,
                }
            }
            ("PUT" | "PATCH", sub) if sub.is_none_or(|s| s.name == "status") && (verb == "PUT" || merge) => {
                let Some(old) = self.objects.get(&Self::key(&t)).cloned() else { return Answer::Unknown };
                let mut body = body.unwrap_or_default();
                if verb == "PATCH" {
                    let Answer::Object(mut current, _) = self.served(&t, old.clone(), Vec::new()) else {
                        return Answer::Unknown;
                    };
                    apply_merge(&mut current, body);
                    body = current;
                }
                let (mut object, issues) = match self.decode(&t, body, strict) {
                    Ok(decoded) => decoded,
                    Err(Answer::BadRequest(_)) if verb == "PATCH" => return Answer::Unknown,
                    Err(answer) => return answer,
                };
                let version = object.meta_str("resourceVersion");
                if !version.is_empty() && version != old.meta_str("resourceVersion") {
                    return Answer::Unknown;
                }
                let old_meta = old.metadata().unwrap();
                for key in ["namespace", "uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"] {
                    match (object.metadata().unwrap().get(key).is_none_or(Value::is_null), old_meta.get(key)) {
                        (true, Some(value)) => object.metadata_mut().insert(key, value.clone()),
                        _ => None,
                    };
                }
                let errors = if t.subresource.is_some() {
                    t.resource.prepare_status(&mut object, &old, &context);
                    t.resource.validate_status(&object, &old)
                } else {
                    t.resource.prepare_update(&mut object, &old, &context);
                    t.resource.validate_update(&object, &old)
                };
                if !errors.is_empty() {
                    return refuse(&errors);
                }
                t.resource.finish(&mut object);
                if !dry_run && object != old {
                    self.counter += 1;
                    object.metadata_mut().insert("resourceVersion", self.counter.to_string());
                    self.objects.insert(Self::key(&t), object.clone());
                }
                let warnings = warnings(&t, &object, Some(&old), issues, path);
                self.served(&t, object, warnings)
            }
            _ => Answer::Unknown,
        }
    }
}

/// The `Warning` headers of an answer.
fn warnings(t: &Target, object: &Value, old: Option<&Value>, issues: Vec<String>, path: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    if !path.contains("fieldValidation=Ignore") {
        texts.extend(issues);
    }
    if t.subresource.is_none() && old != Some(object) {
        texts.extend((t.resource.strategy.warnings)(object, old));
    }
    if !t.version.deprecation.is_empty() {
        texts.push(t.version.deprecation.to_owned());
    }
    texts.iter().map(|text| format!("299 - {text:?}")).collect()
}

fn refuse(errors: &[object::field::FieldError]) -> Answer {
    let mut causes: Vec<(String, String, String)> = errors
        .iter()
        .map(|e| (e.field.clone(), e.kind.reason().to_owned(), e.body().replace("0xc000000000", "<ptr>")))
        .collect();
    causes.sort();
    Answer::Errors(causes)
}

fn apply_merge(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    if target.as_object().is_none() {
        *target = Value::Object(object::Map::new());
    }
    for (key, value) in members {
        let target = target.as_object_mut().unwrap();
        if value.is_null() {
            target.remove(&key);
        } else {
            apply_merge(target.get_or_insert(&key, || Value::Null), value);
        }
    }
}

/// Replaces `{{K.a.b}}` by a field of the answer to step K.
fn fill(value: &mut Value, answers: &[Value]) {
    match value {
        Value::String(s) => {
            if let Some(inner) = s.strip_prefix("{{").and_then(|s| s.strip_suffix("}}")) {
                let mut parts = inner.split('.');
                let index: usize = parts.next().unwrap().parse().unwrap();
                let mut at = answers.get(index).cloned().unwrap_or_default();
                for part in parts {
                    at = at.get(part).cloned().unwrap_or_default();
                }
                *value = at;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| fill(v, answers)),
        Value::Object(m) => m.values_mut().for_each(|v| fill(v, answers)),
        _ => {}
    }
}

/// Whether an answer is the recorded one: `<set>` stands for anything, ownership is not compared.
fn same(want: &Value, have: Option<&Value>) -> bool {
    match (want, have) {
        (Value::String(s), Some(have)) if s.starts_with('<') && s.ends_with('>') => !have.is_null(),
        (Value::Object(want), Some(Value::Object(have))) => {
            want.iter().all(|(k, v)| k == "managedFields" || same(v, have.get(k)))
                && have.keys().all(|k| want.contains_key(k) || k == "managedFields")
        }
        (Value::Array(want), Some(Value::Array(have))) => {
            want.len() == have.len() && want.iter().zip(have).all(|(w, h)| same(w, Some(h)))
        }
        (want, have) => Some(want) == have,
    }
}

fn causes(body: &Value) -> Vec<(String, String, String)> {
    let text = |c: &Value, key: &str| c.str_at(&[key]).unwrap_or_default().to_owned();
    let list = body.at(&["details", "causes"]).and_then(Value::as_array).unwrap_or_default();
    let mut out: Vec<_> = list.iter().map(|c| (text(c, "field"), text(c, "reason"), text(c, "message"))).collect();
    out.sort();
    out
}

/// Runs the cases of a theme; gives the failures and how many steps were compared.
fn run(theme: &str, only: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let path = format!("{}/../../compat/golden/{theme}.json", env!("CARGO_MANIFEST_DIR"));
    let document = json::parse(&std::fs::read(path).unwrap()).unwrap();
    let mut failures = Vec::new();
    let mut compared = 0;
    for case in document.get("cases").and_then(Value::as_array).unwrap() {
        let id = case.str_at(&["id"]).unwrap();
        if !only(id) {
            continue;
        }
        let mut server = Server::default();
        let mut answers = Vec::new();
        for (i, step) in case.get("steps").and_then(Value::as_array).unwrap().iter().enumerate() {
            let mut step = step.clone();
            fill(&mut step, &answers);
            let answer = if step.get("send").is_some() { server.step(&step) } else { Answer::Unknown };
            let want = step.at(&["expect", "body"]).cloned().unwrap_or_default();
            let code = step.at(&["expect", "code"]).and_then(Value::as_int).unwrap_or(0);
            let mut recorded = Value::Null;
            let failure = match answer {
                Answer::Unknown => {
                    answers.push(Value::Null);
                    if code < 300 && step.str_at(&["send"]).is_some_and(|s| !s.starts_with("GET")) {
                        break; // The state is no longer the real server's.
                    }
                    continue;
                }
                Answer::Object(object, mut have) => {
                    recorded = object.clone();
                    let mut wanted: Vec<String> = step
                        .at(&["expect", "warnings"])
                        .and_then(Value::as_array)
                        .unwrap_or_default()
                        .iter()
                        .filter_map(|w| w.as_str().map(str::to_owned))
                        .collect();
                    wanted.sort();
                    have.sort();
                    let right = code < 300 && same(&want, Some(&object)) && wanted == have;
                    (!right).then(|| format!("{} {have:?}", json::to_string(&object)))
                }
                Answer::Errors(errors) => (code != 422 || causes(&want) != errors).then(|| format!("{errors:#?}")),
                Answer::BadRequest(message) => (want.str_at(&["message"]) != Some(&message)).then_some(message),
            };
            compared += 1;
            answers.push(recorded);
            if let Some(have) = failure {
                failures.push(format!(
                    "{id}[{i}] {}\n  body {}\n  want {code} {}\n  have {have}",
                    step.str_at(&["send"]).unwrap(),
                    json::to_string(step.get("body").unwrap_or(&Value::Null)),
                    if code == 422 { format!("{:#?}", causes(&want)) } else { json::to_string(&want) }
                ));
                if code < 300 {
                    break;
                }
            }
        }
    }
    (failures, compared)
}

fn by_kind(failures: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for failure in failures {
        *counts.entry(failure.split('[').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts
}

/// Cases that are known to differ, one a line with the reason; the list only shrinks.
const KNOWN: &str = include_str!("recorded.known");

#[test]
fn recorded_cases_come_out_as_recorded() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut failures = Vec::new();
    let mut compared = 0;
    for theme in ["builtin", "managed-fields", "ssa"] {
        let (more, steps) = run(theme, |id| id.starts_with(&only));
        failures.extend(more);
        compared += steps;
    }
    println!("{} of {compared} steps differ\n{}", failures.len(), failures.join("\n"));
    let counts = by_kind(&failures);
    let known: Vec<&str> = KNOWN.lines().filter_map(|l| l.split(' ').next()).collect();
    let unexpected: Vec<_> = counts.iter().filter(|(id, _)| !known.contains(&id.as_str())).collect();
    assert!(unexpected.is_empty(), "{} of {compared} steps differ: {unexpected:?}", failures.len());
    if only.is_empty() {
        let passing: Vec<_> = known.iter().filter(|id| !counts.contains_key(**id)).collect();
        assert!(passing.is_empty(), "these cases pass now, take them off the list: {passing:?}");
    }
}

#[test]
fn columns_are_those_of_a_real_server() {
    let path = format!("{}/../../compat/golden/generic-api.json", env!("CARGO_MANIFEST_DIR"));
    let document = json::parse(&std::fs::read(path).unwrap()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let cases = document.get("cases").and_then(Value::as_array).unwrap();
    for step in cases.iter().flat_map(|c| c.get("steps").and_then(Value::as_array).unwrap()) {
        let Some(target) = step.str_at(&["send"]).and_then(|s| target(s.split_once(' ')?.1)) else { continue };
        let Some(columns) = step.at(&["expect", "body", "columnDefinitions"]).and_then(Value::as_array) else {
            continue;
        };
        let ours: Vec<Value> = target
            .resource
            .columns
            .iter()
            .zip(target.resource.column_descriptions())
            .map(|(c, description)| {
                object::map! {
                    "name" => c.name, "type" => c.ty, "format" => c.format, "priority" => i64::from(c.priority),
                    "description" => description.as_ref(),
                }
                .into()
            })
            .collect();
        assert_eq!(ours, columns, "{}", target.resource.plural);
        seen.insert(target.resource.plural);
    }
    assert!(seen.len() >= 30, "{seen:?}");
}

/// What the plugins add that need to know nothing but the object.
fn admit(resource: &kinds::Resource, object: &mut Value) -> Result<(), String> {
    use kinds::admission::additions;
    match (resource.group, resource.plural) {
        ("", "pods") => {
            additions::tolerate(object);
            if object.str_at(&["spec", "priorityClassName"]).unwrap_or_default().is_empty() {
                return additions::priority(object, None);
            }
        }
        ("", "persistentvolumes") => additions::protect(object, "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") => additions::protect(object, "kubernetes.io/pvc-protection"),
        ("", "nodes") => additions::taint(object),
        _ => {}
    }
    Ok(())
}
