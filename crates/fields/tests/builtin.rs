//! The kinds of Kubernetes itself: schemas made from a recorded OpenAPI document, and the recorded cases about them.
//!
//! Defaults are not this library's, so each step starts from the recorded answer to the one before.
#![allow(clippy::unwrap_used)]

use fields::managed::{ConvertError, FieldManager, Kind, VersionConverter, manager_name, remove_managers};
use fields::openapi::{definitions_schema, empty_object};
use fields::path::FieldPath;
use fields::schema::{ListKind, TypeId, TypeSchema};
use fields::set::{FieldFilter, FieldSet};
use object::{Map, Status, Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Cases that cannot be replayed from their answers alone.
const OUTSIDE: &[(&str, &str)] = &[
    ("dep-extensions-group", "a configuration of another kind than the endpoint's"),
    ("cm-binary", "base64 is checked when the object is decoded"),
    ("hpa-two-versions", "needs conversion between versions"),
    ("service", "addresses are allocated after ownership was recorded"),
    ("pod", "admission adds to the object after ownership was recorded"),
    ("lease", "the recording does not keep the times in the object"),
];

/// The definitions of all groups, by name.
fn definitions() -> Option<Map> {
    let shared = std::env::var("STANCHION_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let Ok(file) = std::fs::File::open(shared.join("openapi/openapi-v3.json.gz")) else {
        println!("skipped: no recorded OpenAPI document");
        return None;
    };
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
    let mut out: BTreeMap<String, Value> = BTreeMap::new();
    for (_, document) in json::parse(&text).unwrap().as_object().unwrap().iter() {
        for (name, schema) in
            document.at(&["components", "schemas"]).and_then(Value::as_object).into_iter().flat_map(Map::iter)
        {
            out.insert(name.to_owned(), schema.clone());
        }
    }
    Some(out.into_iter().collect())
}

/// The kind of a definition that is one.
fn kind_of(schema: &Value) -> Option<Kind> {
    let kinds = schema.get("x-kubernetes-group-version-kind")?.as_array()?;
    let text = |key: &str| kinds.first().and_then(|k| k.str_at(&[key])).unwrap_or_default().to_owned();
    (kinds.len() == 1).then(|| Kind { group: text("group"), version: text("version"), kind: text("kind") })
}

struct OneVersion;

impl VersionConverter for OneVersion {
    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

fn endpoint(definitions: &Map, api_version: &str, kind: &str) -> Option<FieldManager> {
    let wanted = |(name, schema): (&str, &Value)| {
        let found = kind_of(schema)?;
        (found.api_version() == api_version && found.kind == kind).then(|| (name.to_owned(), found))
    };
    let (name, kind) = definitions.iter().find_map(wanted)?;
    let schema = Arc::new(definitions_schema(definitions, &name)?);
    let mut empty = empty_object(definitions, &name)?;
    empty.set_at(&["apiVersion"], api_version.into());
    empty.set_at(&["kind"], kind.kind.as_str().into());
    let status = FieldFilter::Exclude(FieldSet::of([&FieldPath::fields(&["status"])]));
    let endpoint = FieldManager::new(kind, [(api_version.to_owned(), schema)], Arc::new(OneVersion));
    Some(endpoint.with_filters([(api_version.to_owned(), status)]).with_empty_object(empty))
}

fn type_at(schema: &TypeSchema, path: &str) -> TypeId {
    path.split('.').fold(schema.root(), |ty, step| {
        let ty = schema.atom(ty).map.as_ref().unwrap().type_of(step).unwrap();
        match schema.atom(ty) {
            atom if atom.map.is_none() && atom.list.is_some() && !path.ends_with(step) => {
                atom.list.as_ref().unwrap().element
            }
            _ => ty,
        }
    })
}

#[test]
fn lists_merge_as_the_document_says() {
    let Some(definitions) = definitions() else { return };
    let endpoint = endpoint(&definitions, "v1", "Pod").unwrap();
    let schema = endpoint.schema().unwrap();
    let keys = |names: &[&str]| ListKind::Map(names.iter().map(|n| (*n).into()).collect());
    for (path, kind) in [
        ("spec.containers", keys(&["name"])),
        ("spec.containers.ports", keys(&["containerPort", "protocol"])),
        ("spec.containers.env", keys(&["name"])),
        ("spec.containers.args", ListKind::Atomic),
        ("spec.tolerations", ListKind::Atomic),
        ("spec.volumes", keys(&["name"])),
        ("spec.imagePullSecrets", keys(&["name"])),
        ("metadata.finalizers", ListKind::Set),
        ("metadata.ownerReferences", keys(&["uid"])),
        ("status.conditions", keys(&["type"])),
    ] {
        assert_eq!(schema.atom(type_at(schema, path)).list.as_ref().unwrap().kind, kind, "{path}");
    }
}

#[test]
fn every_kind_has_a_schema_and_an_empty_object() {
    let Some(definitions) = definitions() else { return };
    let mut kinds = 0;
    for (name, schema) in definitions.iter() {
        if kind_of(schema).is_some() {
            let schema = definitions_schema(&definitions, name).unwrap();
            let empty = empty_object(&definitions, name).unwrap();
            fields::typed::validate(&schema, &empty, fields::typed::Duplicates::Forbid).unwrap();
            kinds += 1;
        }
    }
    assert!(kinds > 100, "{kinds}");
}

#[test]
fn recorded_cases_of_built_in_kinds() {
    let Some(definitions) = definitions() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden");
    let only = std::env::var("CASE").ok();
    let (mut compared, mut failures) = (0, Vec::new());
    let mut endpoints: BTreeMap<(String, String), Option<FieldManager>> = BTreeMap::new();
    for theme in ["ssa", "managed-fields"] {
        let Ok(text) = std::fs::read(folder.join(format!("{theme}.json"))) else {
            println!("skipped: {theme}.json is not there");
            continue;
        };
        for case in json::parse(&text).unwrap().get("cases").and_then(Value::as_array).unwrap() {
            let id = case.str_at(&["id"]).unwrap();
            if only.as_deref().is_some_and(|o| o != id) {
                continue;
            }
            if let Some((_, why)) = OUTSIDE.iter().find(|(outside, _)| *outside == id) {
                println!("skipped: {id}: {why}");
                continue;
            }
            match replay(&definitions, &mut endpoints, case) {
                Ok(steps) => compared += steps,
                Err(what) => failures.push(format!("{id}: {what}")),
            }
        }
    }
    println!("{compared} answers agree");
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

type Endpoints = BTreeMap<(String, String), Option<FieldManager>>;

fn replay(definitions: &Map, endpoints: &mut Endpoints, case: &Value) -> Result<usize, String> {
    let mut live: BTreeMap<String, Option<Value>> = BTreeMap::new();
    let mut compared = 0;
    for (i, step) in case.get("steps").and_then(Value::as_array).unwrap().iter().enumerate() {
        let Some((verb, url)) = step.str_at(&["send"]).and_then(|s| s.split_once(' ')) else { continue };
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (api_version, plural, name) = match parts.as_slice() {
            ["api", v, "namespaces", _, plural, rest @ ..] => ((*v).to_owned(), *plural, rest),
            ["apis", g, v, "namespaces", _, plural, rest @ ..] => (format!("{g}/{v}"), *plural, rest),
            _ => continue,
        };
        if api_version.contains("example.com") {
            continue;
        }
        let body = step.get("body").cloned().unwrap_or_default();
        let expect = step.at(&["expect", "body"]).cloned().unwrap_or_default();
        let code = step.at(&["expect", "code"]).and_then(Value::as_int).unwrap_or(0);
        let name_of = name.first().copied().or_else(|| body.str_at(&["metadata", "name"])).unwrap_or_default();
        let key = format!("{plural}/{name_of}");
        if name.len() > 1 {
            // Subresources have endpoints of their own; what they did to the object is not known before it is read.
            live.insert(key, None);
            continue;
        }
        let option = |key: &str| {
            query.split('&').filter_map(|p| p.split_once('=')).find(|(k, _)| *k == key).map_or("", |(_, v)| v)
        };
        let manager = manager_name(option("fieldManager"), "kcompat");
        let force = !matches!(option("force"), "" | "false" | "0");
        let kind =
            expect.str_at(&["kind"]).filter(|k| *k != "Status").or_else(|| body.str_at(&["kind"])).unwrap_or_default();
        let endpoint = endpoints
            .entry((api_version.clone(), kind.to_owned()))
            .or_insert_with(|| endpoint(definitions, &api_version, kind));
        let Some(endpoint) = endpoint else { continue };
        let before = live.get(&key).cloned();
        let known = !matches!(before, Some(None));
        let before = before.flatten();
        let apply = step.str_at(&["type"]) == Some("apply");
        if code >= 400 {
            let message = expect.str_at(&["message"]).unwrap_or_default();
            let ours = ["Apply failed", "failed to ", "invalid object type"].iter().any(|p| message.starts_with(p));
            if ours && apply && known {
                let error = endpoint.apply(before.as_ref(), &body, &manager, force, 1).err();
                let got = error.map(|e| Status::from(e).message).unwrap_or_default();
                let got = got.split_once(" conflicts:").map_or(got.clone(), |(first, _)| format!("{first} conflicts"));
                if got != message {
                    return Err(format!("step {i}:\n  want {message}\n  got  {got}"));
                }
                compared += 1;
            }
            continue;
        }
        let mut new = expect.clone();
        remove_managers(&mut new);
        let got = match (verb, known) {
            (_, false) | ("GET" | "DELETE", _) => None,
            ("POST", _) => Some(endpoint.on_create(new, &manager, 1)),
            (_, true) if apply => match endpoint.apply(before.as_ref(), &body, &manager, force, 1) {
                Ok(object) => Some(object),
                Err(e) => return Err(format!("step {i}: {e}")),
            },
            (_, true) => before.as_ref().map(|before| endpoint.on_update(before, new, &manager, 1)),
        };
        if let (Some(got), Some(_)) = (got, step.get("keep")) {
            let (want, got) = (entries(&expect), entries(&got));
            if want != got {
                return Err(format!("step {i}:\n  want {want}\n  got  {got}"));
            }
            compared += 1;
        }
        if option("dryRun").is_empty() {
            live.insert(key, Some(expect));
        }
    }
    Ok(compared)
}

/// The entries of an object as text, without times, in one order.
fn entries(object: &Value) -> String {
    let list = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let mut out: Vec<String> = list
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            entry.remove_at(&["time"]);
            json::to_string(&entry)
        })
        .collect();
    out.sort();
    out.join("\n       ")
}
