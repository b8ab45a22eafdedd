//! The aggregated form of discovery (`apidiscovery.k8s.io/v2`).

use super::in_order;
use crate::catalogue::{Catalogue, Group, Resource, Version};
use object::{Map, Value, map};

/// `/api`
pub(super) fn core(catalogue: &Catalogue) -> Value {
    list(catalogue.group("").into_iter().map(|g| group(g)).collect())
}

/// `/apis`
pub(super) fn groups(catalogue: &Catalogue) -> Value {
    list(in_order(catalogue).map(|g| group(g)).collect())
}

fn list(items: Vec<Map>) -> Value {
    Value::Object(map! {
        "apiVersion" => "apidiscovery.k8s.io/v2",
        "kind" => "APIGroupDiscoveryList",
        "metadata" => Map::new(),
        "items" => items,
    })
}

fn group(group: &Group) -> Map {
    let mut metadata = map! { "creationTimestamp" => Value::Null };
    if !group.name.is_empty() {
        metadata.insert("name", group.name.as_str());
    }
    map! { "metadata" => metadata, "versions" => group.versions.iter().map(version).collect::<Vec<Map>>() }
}

fn version(version: &Version) -> Map {
    map! {
        "version" => version.name.as_str(),
        "freshness" => "Current",
        "resources" => version.resources.iter().map(|r| resource(r)).collect::<Vec<Map>>(),
    }
}

fn resource(resource: &Resource) -> Map {
    let mut out = map! {
        "resource" => resource.plural.as_str(),
        "singularResource" => resource.singular.as_str(),
        "responseKind" => kind(resource, &resource.group, &resource.version, &resource.kind),
        "scope" => if resource.namespaced { "Namespaced" } else { "Cluster" },
        "verbs" => resource.verbs.to_vec(),
    };
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            out.insert(key, list.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    let subresources: Vec<Map> = resource
        .subresources
        .iter()
        .map(|sub| {
            map! {
                "subresource" => sub.name.as_str(),
                "responseKind" => kind(resource, &sub.group, &sub.version, &sub.kind),
                "verbs" => sub.verbs.to_vec(),
            }
        })
        .collect();
    if !subresources.is_empty() {
        out.insert("subresources", subresources);
    }
    out
}

/// A kind: built-in resources leave out the group and version that are their own, those of definitions do not.
fn kind(resource: &Resource, group: &str, version: &str, kind: &str) -> Map {
    let own = (group, version) == (resource.group.as_str(), resource.version.as_str());
    let (group, version) = if own && !resource.is_custom() { ("", "") } else { (group, version) };
    map! { "group" => group, "version" => version, "kind" => kind }
}
