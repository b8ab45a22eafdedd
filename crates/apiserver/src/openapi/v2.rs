//! OpenAPI version 2: one document of everything, made from the version 3 paths.

use super::{custom, paths, v3};
use crate::catalogue::{Catalogue, Resource};
use kinds::definitions::{Dialect, definitions};
use object::{Map, Value, map};
use std::sync::Arc;

/// The order of media types; those of patches are apart.
const TYPES: [&str; 10] = [
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The document. `pages` are those of [`v3::PAGES`] that are served.
pub(super) fn document(catalogue: &Catalogue, pages: impl Iterator<Item = &'static str>) -> Value {
    let mut all = Map::new();
    let texts = descriptions::read();
    let is_optional = |r: &Arc<Resource>| kinds::optional().iter().any(|o| o.group == r.group && o.plural == r.plural);
    let optional = catalogue.resources().any(is_optional);
    let described = definitions().iter().filter(|d| optional || !d.is_optional()).map(|d| {
        let mut schema = d.to_openapi(Dialect::V2);
        texts.describe(d.name, &mut schema);
        (d.name, schema)
    });
    let mut schemas: Map = described.collect();
    for resource in catalogue.resources() {
        let name = v3::schema_name(resource);
        if let Some(definition) = &resource.definition {
            for (name, schema) in custom::schemas(definition, resource, Dialect::V2) {
                schemas.insert(name, schema);
            }
        }
        for (path, item) in paths::of_resource(resource, &name) {
            all.insert(path, path_item(item));
        }
    }
    let groups = || catalogue.groups();
    let named = groups().filter(|g| !g.custom && !g.name.is_empty()).map(|g| v3::group_path(&g.name));
    let listings = groups().flat_map(|g| g.versions.iter().map(|version| v3::listing(g, version)));
    for (path, item) in pages.map(v3::page_path).chain(named).chain(listings) {
        all.insert(path, path_item(item));
    }
    let scheme = map! { "in" => "header", "name" => "authorization", "type" => "apiKey" };
    Value::Object(map! {
        "swagger" => "2.0",
        "info" => map! { "title" => "Kubernetes", "version" => "1.33" },
        "definitions" => schemas,
        "paths" => all,
        "security" => vec![map! { "BearerToken" => Value::Array(Vec::new()) }],
        "securityDefinitions" => map! { "BearerToken" => scheme },
    })
}

fn path_item(item: Value) -> Value {
    let Value::Object(members) = item else { return item };
    let convert = |(key, value): (compact_str::CompactString, Value)| {
        let value = if key == "parameters" { parameters(value, None) } else { operation(value) };
        (key, value)
    };
    Value::Object(members.into_iter().map(convert).collect())
}

fn operation(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    let body = members.remove("requestBody");
    let own = members.remove("parameters").unwrap_or(Value::Array(Vec::new()));
    let parameters = parameters(own, body.as_ref());
    if parameters.as_array().is_some_and(|p| !p.is_empty()) {
        members.insert("parameters", parameters);
    }
    let is_page = !members.contains_key("x-kubernetes-action");
    let mut is_text = false;
    let mut produced: Vec<String> = Vec::new();
    for response in members.get_mut("responses").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        let Some(Value::Object(content)) = response.remove_at(&["content"]) else { continue };
        if produced.is_empty() {
            produced = media_types(&content);
        }
        if let Some(schema) = content.values().next().and_then(|c| c.get("schema")) {
            is_text = schema.get("$ref").is_none();
            response.set_at(&["schema"], reference(schema.clone()));
        }
    }
    match body.as_ref().and_then(|b| b.get("content")).and_then(Value::as_object) {
        Some(content) => drop(members.insert("consumes", media_types(content))),
        None if !is_page => drop(members.insert("consumes", vec!["*/*"])),
        None if !is_text => drop(members.insert("consumes", produced.clone())),
        None => {}
    }
    members.insert("produces", produced);
    members.insert("schemes", vec!["https"]);
    Value::Object(members)
}

/// The media types of a content in the order of version 2.
fn media_types(content: &Map) -> Vec<String> {
    let mut types: Vec<String> = content.keys().map(str::to_owned).collect();
    types.sort_by_key(|ty| TYPES.iter().position(|known| known == ty));
    types
}

/// Parameters with their type beside their name, the body among them.
fn parameters(value: Value, body: Option<&Value>) -> Value {
    let Value::Array(items) = value else { return value };
    let mut out: Vec<Value> = Vec::new();
    if let Some(body) = body {
        let schema = body.get("content").and_then(Value::as_object).and_then(|c| c.values().next()?.get("schema"));
        let mut parameter = map! { "in" => "body", "name" => "body" };
        parameter.insert("schema", reference(schema.cloned().unwrap_or_default()));
        if body.get("required").and_then(Value::as_bool) == Some(true) {
            parameter.insert("required", true);
        }
        out.push(Value::Object(parameter));
    }
    for mut item in items {
        if let Some(Value::Object(schema)) = item.remove_at(&["schema"])
            && let Some(item) = item.as_object_mut()
        {
            schema.into_iter().for_each(|(key, value)| {
                item.insert(key, value);
            });
        }
        out.push(item);
    }
    Value::Array(out)
}

fn reference(schema: Value) -> Value {
    match schema.str_at(&["$ref"]).and_then(|r| r.rsplit('/').next()) {
        Some(name) => Value::Object(map! { "$ref" => format!("#/definitions/{name}") }),
        None => schema,
    }
}
