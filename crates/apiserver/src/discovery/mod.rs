//! The discovery documents: what is served, for clients that look before they ask. The old form is a document a group
//! and version, the aggregated form tells everything at once.

mod aggregated;
mod legacy;

use crate::Server;
use crate::answer::{Body, Failure, Response, bytes_of_type, json_value};
use crate::catalogue::{Catalogue, Group, Resource};
use crate::request::RequestInfo;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use object::Status;
use ring::digest::{SHA256, SHA512, digest};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

/// The media type of the aggregated form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The aggregated documents of one catalogue, made when first asked for.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    core: OnceLock<Page>,
    groups: OnceLock<Page>,
}

/// A document as it is sent, with its entity tag.
#[derive(Clone, Debug)]
struct Page {
    bytes: Bytes,
    tag: String,
}

/// The answer, if the path is one of these pages. Every method gets it, as upstream's router has it.
pub fn respond(server: &Server, info: &RequestInfo, parts: &Parts) -> Option<Response> {
    let path = info.path.trim_end_matches('/');
    let steps: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let catalogue = server.catalogue();
    let answer = match steps[..] {
        ["api"] => root(&catalogue, parts, &catalogue.pages().core, aggregated::core, |_| legacy::versions(server)),
        ["apis"] => root(&catalogue, parts, &catalogue.pages().groups, aggregated::groups, legacy::groups),
        ["api", version] => resources(&catalogue, "", version),
        ["apis", group] => match catalogue.group(group) {
            Some(group) => Ok(json_value(200, &legacy::group(group, true))),
            None => Err(Failure::page_not_found()),
        },
        ["apis", group, version] => resources(&catalogue, group, version),
        _ => return None,
    };
    Some(answer.unwrap_or_else(Failure::into_response))
}

fn resources(catalogue: &Catalogue, group: &str, version: &str) -> Result<Response, Failure> {
    let Some(group) = catalogue.group(group) else { return Err(Failure::page_not_found()) };
    match group.version(version) {
        Some(found) => Ok(json_value(200, &legacy::resources(group, found))),
        None if group.custom => Err(Failure::page_not_found()),
        None => Err(Failure::no_such_resource()),
    }
}

/// `/api` and `/apis`: in the form that the client prefers.
fn root(
    catalogue: &Catalogue,
    parts: &Parts,
    page: &OnceLock<Page>,
    aggregated: fn(&Catalogue) -> object::Value,
    legacy: impl Fn(&Catalogue) -> object::Value,
) -> Result<Response, Failure> {
    if !prefers_aggregated(&parts.headers)? {
        return Ok(json_value(200, &legacy(catalogue)));
    }
    let page = page.get_or_init(|| {
        let bytes = Bytes::from(object::json::to_vec(&aggregated(catalogue)));
        let tag = format!("\"{}\"", hexadecimal(digest(&SHA512, &bytes).as_ref()));
        Page { bytes, tag }
    });
    let known = parts.headers.get(header::IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == page.tag.as_bytes());
    let mut response = bytes_of_type(200, AGGREGATED, if known { Bytes::new() } else { page.bytes.clone() });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::Whole(Bytes::new());
    }
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&page.tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    Ok(response)
}

/// Whether the first form that the client takes, and that there is, is the aggregated one.
fn prefers_aggregated(headers: &HeaderMap) -> Result<bool, Status> {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let accept = accept.join(",");
    if accept.trim().is_empty() {
        return Ok(false);
    }
    for clause in accept.split(',') {
        let mut words = clause.split(';').map(str::trim);
        let media_type = words.next().unwrap_or_default();
        let parameters: Vec<&str> = words.filter(|w| !w.starts_with("q=")).collect();
        let is = |wanted: &str| parameters.contains(&wanted);
        match media_type {
            "application/json" if is("g=apidiscovery.k8s.io") && is("v=v2") && is("as=APIGroupDiscoveryList") => {
                return Ok(true);
            }
            "application/json" | "application/*" | "*/*" if !parameters.iter().any(|p| p.starts_with("as=")) => {
                return Ok(false);
            }
            _ => {}
        }
    }
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    Err(Status::new(406, "NotAcceptable", format!("only the following media types are accepted: {types}")))
}

/// The hash by which migrators see that the stored form of a resource changed: of its group, version and kind. Nothing
/// for resources that are not stored.
fn storage_version_hash(resource: &Resource) -> Option<String> {
    let (group, version) = if resource.is_custom() {
        (resource.group.as_str(), resource.storage.version.as_str())
    } else {
        let (built_in, _) = kinds::find(&resource.group, &resource.version, &resource.plural)?;
        let storage = built_in.storage?;
        (storage.group, storage.version)
    };
    // Definitions and these networking kinds are stored by a real 1.33 server in their first, older version.
    let version = match (group, resource.plural.as_str()) {
        ("apiextensions.k8s.io", _) | ("networking.k8s.io", "ipaddresses" | "servicecidrs") => "v1beta1",
        _ => version,
    };
    let hash = digest(&SHA256, format!("{group}/{version}/{}", resource.kind).as_bytes());
    Some(STANDARD.encode(&hash.as_ref()[..8]))
}

/// The groups as clients see them: built-in ones in the order of their priority, then those of definitions by name.
fn in_order(catalogue: &Catalogue) -> impl Iterator<Item = &Arc<Group>> {
    let built_in = kinds::groups().filter(|g| !g.is_empty()).filter_map(|g| catalogue.group(g));
    let custom = catalogue.groups().filter(|g| g.custom && !kinds::groups().any(|b| b == g.name));
    built_in.chain(custom)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02X}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefers(accept: &'static str) -> Option<bool> {
        prefers_aggregated(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))])).ok()
    }

    #[test]
    fn the_form_is_the_first_one_that_there_is() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        assert_eq!(prefers(v2), Some(true));
        assert_eq!(prefers("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"), None);
        assert_eq!(
            prefers("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"),
            Some(false)
        );
        assert_eq!(prefers("*/*"), Some(false));
        assert_eq!(prefers("text/html"), None);
    }
}
