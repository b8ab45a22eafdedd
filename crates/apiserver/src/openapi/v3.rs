//! OpenAPI version 3: a document for each group and version.

use super::{custom, paths};
use crate::catalogue::{Group, Resource, Version};
use descriptions::Descriptions;
use kinds::definitions::{Dialect, definitions};
use object::{Map, Value, map};
use std::collections::BTreeSet;

const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
const ABOUT_EVENTS: &str = "The object as the event left it; after a deletion, as it was before; for an error, a Status that says what failed.";
const REFERENCE: &str = "#/components/schemas/";

/// The document of a group in one version.
pub(super) fn document(group: &Group, version: &Version) -> Value {
    let mut all = Map::new();
    let mut schemas = Map::new();
    let texts = descriptions::read();
    for resource in &version.resources {
        let name = schema_name(resource);
        if let Some(definition) = &resource.definition {
            for (name, schema) in custom::schemas(definition, resource, Dialect::V3) {
                schemas.insert(name, schema);
            }
        }
        for (path, item) in paths::of_resource(resource, &name) {
            all.insert(path, item);
        }
    }
    let (path, item) = listing(group, version);
    all.insert(path, item);
    finish(all, schemas, &texts)
}

/// The name of the schema of a resource's objects.
pub(super) fn schema_name(resource: &Resource) -> String {
    if resource.is_custom() {
        return custom::name(&resource.group, &resource.version, &resource.kind);
    }
    let built_in = kinds::find(&resource.group, &resource.version, &resource.plural);
    built_in.map(|(_, version)| version.definition.to_owned()).unwrap_or_default()
}

/// The pages that are not about a group: where their documents stand, and what tokens are checked with.
pub(super) const PAGES: [&str; 3] = ["api", "apis", "version"];
pub(super) const IDENTITY_PAGES: [&str; 2] = [".well-known/openid-configuration", "openid/v1/jwks"];

/// The document of one of the pages.
pub(super) fn page(place: &str) -> Value {
    finish([page_path(place)].into_iter().collect(), Map::new(), &descriptions::read())
}

/// The path of one of the pages.
pub(super) fn page_path(place: &str) -> (String, Value) {
    let text = || map! { "type" => "string" };
    let meta = |kind: &str| reference(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"));
    let item = match place {
        "api" => get("getCoreAPIVersions", meta("APIVersions"), "core", TYPES),
        "apis" => get("getAPIVersions", meta("APIGroupList"), "apis", TYPES),
        ".well-known/openid-configuration" => {
            get("getServiceAccountIssuerOpenIDConfiguration", text(), "WellKnown", &["application/json"])
        }
        "openid/v1/jwks" => get("getServiceAccountIssuerOpenIDKeyset", text(), "openid", &["application/jwk-set+json"]),
        _ => {
            let info = reference("io.k8s.apimachinery.pkg.version.Info");
            get("getCodeVersion", info, "version", &["application/json"])
        }
    };
    (format!("/{place}/"), item)
}

/// `/apis/GROUP`
pub(super) fn group_page(group: &str) -> Value {
    finish([group_path(group)].into_iter().collect(), Map::new(), &descriptions::read())
}

/// The path of `/apis/GROUP`.
pub(super) fn group_path(group: &str) -> (String, Value) {
    let trimmed = group.strip_suffix(".k8s.io").unwrap_or(group);
    let id = format!("get{}APIGroup", paths::word(trimmed, true));
    let schema = reference("io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup");
    (format!("/apis/{group}/"), get(&id, schema, &paths::word(trimmed, false), TYPES))
}

const TYPES: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];

/// The path that lists a version's resources.
pub(super) fn listing(group: &Group, version: &Version) -> (String, Value) {
    let (prefix, name) = match group.name.as_str() {
        "" => ("/api".to_owned(), "core"),
        name => (format!("/apis/{name}"), name),
    };
    let trimmed = name.strip_suffix(".k8s.io").unwrap_or(name);
    let id = format!("get{}{}APIResources", paths::word(trimmed, true), paths::word(&version.name, true));
    let tag = format!("{}_{}", paths::word(trimmed, false), paths::word(&version.name, false));
    let schema = reference("io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList");
    (format!("{prefix}/{}/", version.name), get(&id, schema, &tag, TYPES))
}

fn reference(name: &str) -> Map {
    map! { "$ref" => format!("{REFERENCE}{name}") }
}

fn get(id: &str, schema: Map, tag: &str, types: &[&str]) -> Value {
    let schema = map! { "schema" => schema };
    let content: Map = types.iter().map(|t| (*t, Value::Object(schema.clone()))).collect();
    let responses = map! { "200" => map! { "content" => content }, "401" => Map::new() };
    Value::Object(map! {
        "get" => map! { "operationId" => id, "responses" => responses, "tags" => vec![tag] },
    })
}

/// Puts a document together: the paths, and all schemas that they lead to.
fn finish(paths: Map, mut schemas: Map, texts: &Descriptions) -> Value {
    let mut wanted = Vec::new();
    let paths = Value::Object(paths);
    collect(&paths, &mut wanted);
    schemas.values().for_each(|s| collect(s, &mut wanted));
    for name in closure(wanted) {
        if !schemas.contains_key(&name)
            && let Some(definition) = definitions().get(&name)
        {
            let mut schema = definition.to_openapi(Dialect::V3);
            texts.describe(&name, &mut schema);
            if name == WATCH_EVENT {
                // No client library describes this field.
                schema.set_at(&["properties", "object", "description"], ABOUT_EVENTS.into());
            }
            bare_references(&mut schema);
            schemas.insert(name, schema);
        }
    }
    let scheme = map! { "in" => "header", "name" => "authorization", "type" => "apiKey" };
    let mut components = map! { "securitySchemes" => map! { "BearerToken" => scheme } };
    if !schemas.is_empty() {
        components.insert("schemas", schemas);
    }
    Value::Object(map! {
        "openapi" => "3.0.0",
        "info" => map! { "title" => "Kubernetes", "version" => "1.33" },
        "components" => components,
        "paths" => paths,
    })
}

/// A reference stands in an `allOf` only if something is said beside it.
fn bare_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.len() == 1
                && let Some(Value::Array(all)) = members.get_mut("allOf")
                && let Some(reference) = all.pop_if(|only| only.get("$ref").is_some())
            {
                *schema = reference;
                return;
            }
            members.values_mut().for_each(bare_references);
        }
        Value::Array(items) => items.iter_mut().for_each(bare_references),
        _ => {}
    }
}

/// The names of the schemas that a value refers to.
fn collect(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(target) if key == "$ref" => {
                        out.extend(target.strip_prefix(REFERENCE).map(str::to_owned));
                    }
                    other => collect(other, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        _ => {}
    }
}

/// These definitions and all that they lead to.
pub(super) fn closure(mut wanted: Vec<String>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if let Some(definition) = definitions().get(&name)
            && out.insert(name)
        {
            let mut next = Vec::new();
            definition.references(&mut next);
            wanted.extend(next.into_iter().map(str::to_owned));
        }
    }
    out
}
