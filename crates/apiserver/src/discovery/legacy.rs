//! The old form of discovery: versions, groups, and a document for each group and version.

use super::{in_order, storage_version_hash};
use crate::Server;
use crate::catalogue::{Catalogue, Group, Resource, Version, api_version};
use object::{Map, Value, map};

/// `/api`
pub(super) fn versions(server: &Server) -> Value {
    let address = map! { "clientCIDR" => "0.0.0.0/0", "serverAddress" => server.advertised() };
    Value::Object(map! {
        "kind" => "APIVersions",
        "versions" => vec!["v1"],
        "serverAddressByClientCIDRs" => vec![address],
    })
}

/// `/apis`
pub(super) fn groups(catalogue: &Catalogue) -> Value {
    let groups: Vec<Value> = in_order(catalogue).map(|g| group(g, false)).collect();
    Value::Object(map! { "apiVersion" => "v1", "kind" => "APIGroupList", "groups" => groups })
}

/// `/apis/GROUP`, or its entry in the list of groups.
pub(super) fn group(group: &Group, alone: bool) -> Value {
    let version =
        |v: &Version| map! { "groupVersion" => api_version(&group.name, &v.name), "version" => v.name.as_str() };
    let mut out = map! {
        "name" => group.name.as_str(),
        "versions" => group.versions.iter().map(version).collect::<Vec<Map>>(),
    };
    if let Some(preferred) = group.versions.first() {
        out.insert("preferredVersion", version(preferred));
    }
    if alone {
        out.insert("apiVersion", "v1");
        out.insert("kind", "APIGroup");
    }
    Value::Object(out)
}

/// `/apis/GROUP/VERSION`
pub(super) fn resources(group: &Group, version: &Version) -> Value {
    let mut out = map! {
        "kind" => "APIResourceList",
        "groupVersion" => api_version(&group.name, &version.name),
        "resources" => version.resources.iter().flat_map(|r| entries(r)).collect::<Vec<Map>>(),
    };
    if !group.name.is_empty() {
        out.insert("apiVersion", "v1");
    }
    Value::Object(out)
}

/// A resource's entry and those of its subresources.
fn entries(resource: &Resource) -> Vec<Map> {
    let mut own = map! {
        "name" => resource.plural.as_str(),
        "singularName" => resource.singular.as_str(),
        "namespaced" => resource.namespaced,
        "kind" => resource.kind.as_str(),
        "verbs" => resource.verbs.to_vec(),
    };
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            own.insert(key, list.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    if let Some(hash) = storage_version_hash(resource) {
        own.insert("storageVersionHash", hash);
    }
    let subresources = resource.subresources.iter().map(|sub| {
        let mut entry = map! {
            "name" => format!("{}/{}", resource.plural, sub.name),
            "singularName" => "",
            "namespaced" => resource.namespaced,
            "kind" => sub.kind.as_str(),
            "verbs" => sub.verbs.to_vec(),
        };
        if (&sub.group, &sub.version) != (&resource.group, &resource.version) {
            entry.insert("group", sub.group.as_str());
            entry.insert("version", sub.version.as_str());
        }
        entry
    });
    std::iter::once(own).chain(subresources).collect()
}
