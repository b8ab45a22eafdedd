//! The OpenAPI documents: version 3 a document for each group and version, version 2 all in one. Nothing is made before
//! it is asked for, and nothing is kept afterwards.

mod custom;
mod paths;
mod protobuf;
mod v2;
mod v3;

use crate::Server;
use crate::answer::{Body, Response, bytes_of_type, json_value, with_body};
use crate::catalogue::{Catalogue, Group, Resource, Version};
use crate::request::{Query, RequestInfo};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use kinds::definitions::Dialect;
use object::{Map, Value, json, map};
use ring::digest::{Context, SHA512};

/// The answer, if the path is one of these pages.
pub fn respond(server: &Server, info: &RequestInfo, parts: &Parts) -> Option<Response> {
    let path = info.path.trim_end_matches('/').strip_prefix("/openapi/")?;
    let catalogue = server.catalogue();
    Some(match path.split_once('/').map_or((path, ""), |(a, b)| (a, b)) {
        ("v2", "") => version_2(server, &catalogue, parts),
        ("v3", "") => json_value(200, &index(&catalogue, pages(server))),
        ("v3", place) => version_3(server, &catalogue, place, parts),
        _ => return None,
    })
}

/// The pages that are served and are not about a group.
fn pages(server: &Server) -> impl Iterator<Item = &'static str> {
    let identity = server.options.tokens.accounts.iter().flat_map(|_| v3::IDENTITY_PAGES);
    v3::PAGES.into_iter().chain(identity)
}

/// The published schema of a resource's objects, and those that a definition brings along, by name. They refer to others
/// by `#/components/schemas/NAME`; those of the built-in types are in [`kinds::definitions()`].
pub(crate) fn published(resource: &Resource) -> (String, Map) {
    let own = resource.definition.iter();
    let own = own.flat_map(|definition| custom::schemas(definition, resource, Dialect::V3));
    (v3::schema_name(resource), own.collect())
}

/// `/openapi/v3`: where the documents are, each with the hash of its present content.
fn index(catalogue: &Catalogue, pages: impl Iterator<Item = &'static str>) -> Value {
    let entry = |place: &str, hash: &str| {
        let url = format!("/openapi/v3/{place}?hash={hash}");
        (place.to_owned(), Value::Object(map! { "serverRelativeURL" => url }))
    };
    let mut paths: Map = pages.map(|place| entry(place, &built_in_hash(place))).collect();
    for group in catalogue.groups() {
        if !group.name.is_empty() {
            let place = format!("apis/{}", group.name);
            let (place, value) = entry(&place, &built_in_hash(&place));
            paths.insert(place, value);
        }
        for version in &group.versions {
            let (place, value) = entry(&place_of(group, version), &hash(group, version));
            paths.insert(place, value);
        }
    }
    Value::Object(map! { "paths" => paths })
}

fn place_of(group: &Group, version: &Version) -> String {
    match group.name.as_str() {
        "" => format!("api/{}", version.name),
        name => format!("apis/{name}/{}", version.name),
    }
}

/// What names the content of a document. For definitions it is made of their text, so that nothing need be rendered.
fn hash(group: &Group, version: &Version) -> String {
    if !group.custom {
        return built_in_hash(&place_of(group, version));
    }
    let mut context = Context::new(&SHA512);
    context.update(version.name.as_bytes());
    for resource in &version.resources {
        if let Some(definition) = &resource.definition {
            context.update(definition.uid.as_bytes());
            context.update(&definition.generation.to_be_bytes());
        }
    }
    hexadecimal(context)
}

/// The content of a built-in document changes with the program only.
fn built_in_hash(place: &str) -> String {
    let mut context = Context::new(&SHA512);
    context.update(env!("CARGO_PKG_VERSION").as_bytes());
    context.update(place.as_bytes());
    hexadecimal(context)
}

fn hexadecimal(context: Context) -> String {
    context.finish().as_ref().iter().map(|b| format!("{b:02X}")).collect()
}

fn version_3(server: &Server, catalogue: &Catalogue, place: &str, parts: &Parts) -> Response {
    let page = pages(server).find(|page| *page == place);
    let document = match page {
        Some(page) => Some((Box::new(|| v3::page(page)) as Box<dyn FnOnce() -> Value>, built_in_hash(page))),
        None => document(catalogue, place),
    };
    let Some((document, hash)) = document else {
        // A document that is gone, or never was: Go's handler answers with an empty body.
        return with_body(404, "text/plain; charset=utf-8", Body::Whole(Bytes::new()));
    };
    let asked = Query::parse(parts.uri.query());
    let asked = asked.get("hash").unwrap_or_default();
    if !asked.is_empty() && asked != hash {
        let mut response = with_body(301, "text/plain; charset=utf-8", Body::Whole(Bytes::new()));
        if let Ok(place) = HeaderValue::from_str(&format!("/openapi/v3/{place}?hash={hash}")) {
            response.headers_mut().insert(header::LOCATION, place);
        }
        return response;
    }
    let tag = format!("\"{hash}\"");
    let mut response = if parts.headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag.as_bytes()) {
        with_body(304, "application/json", Body::Whole(Bytes::new()))
    } else {
        bytes_of_type(200, "application/json", json::to_vec(&document()))
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if asked.is_empty() {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    } else {
        // The content under a hash never changes.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(header::EXPIRES, HeaderValue::from_static("Fri, 01 Jan 2100 00:00:00 GMT"));
    }
    response
}

/// The document at a place, still to be rendered, and its hash.
fn document<'c>(catalogue: &'c Catalogue, place: &str) -> Option<(Box<dyn FnOnce() -> Value + 'c>, String)> {
    let steps: Vec<&str> = place.split('/').collect();
    let (group, version) = match steps[..] {
        ["api", version] => ("", version),
        ["apis", group, version] => (group, version),
        ["apis", group] => {
            catalogue.group(group)?;
            let (place, group) = (place.to_owned(), group.to_owned());
            let hash = built_in_hash(&place);
            return Some((Box::new(move || v3::group_page(&group)), hash));
        }
        _ => return None,
    };
    let group = catalogue.group(group)?;
    let version = group.version(version)?;
    Some((Box::new(move || v3::document(group, version)), hash(group, version)))
}

fn version_2(server: &Server, catalogue: &Catalogue, parts: &Parts) -> Response {
    let accept = parts.headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    // Older clients write an @ where newer ones write a dot.
    let first = accept.split(',').next().unwrap_or_default();
    let binary = first.contains("proto-openapi.spec.v2") && first.contains("protobuf");
    let mut context = Context::new(&SHA512);
    for group in catalogue.groups() {
        group.versions.iter().for_each(|version| context.update(hash(group, version).as_bytes()));
    }
    let tag = format!("\"{}\"", hexadecimal(context));
    let known = parts.headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == tag.as_bytes());
    let bytes = match (known, binary) {
        (true, _) => Vec::new(),
        (false, true) => protobuf::document(&v2::document(catalogue, pages(server))),
        (false, false) => json::to_vec(&v2::document(catalogue, pages(server))),
    };
    let media_type = if binary { protobuf::MEDIA_TYPE } else { "application/json" };
    let mut response = bytes_of_type(200, media_type, bytes);
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
