//! Resources of definitions: what the catalogue says of an established one.

use super::naming;
use crate::catalogue::{Definition, Group, Resource, Storage, Subresource, Version, version_order};
use crate::conversion::Converter;
use crate::ownership::Kind;
use crate::registry::Stored;
use crate::strategy::{Custom, storage_version};
use object::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A number that no other resource has.
pub(crate) fn serial() -> u64 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// The order is discovery's.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const TERMINATING_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// The resources of the served versions of a definition; none while it is not established. `about` is what is kept of
/// it, `stored` its stored form; `converter` is asked where it wants a webhook to convert.
pub(super) fn resources(
    definition: &Value,
    about: &Arc<Value>,
    stored: Stored,
    converter: &Arc<dyn Converter>,
) -> Vec<Arc<Resource>> {
    let conditions = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    if !naming::holds(conditions, "Established") {
        return Vec::new();
    }
    let text = |path: &[&str]| definition.str_at(path).unwrap_or_default();
    let group = text(&["spec", "group"]);
    let about = Arc::new(Definition::new(definition, about.clone(), stored));
    let terminating = about.terminating;
    let names = definition.at(&["status", "acceptedNames"]);
    let name = |key: &str| names.and_then(|n| n.str_at(&[key])).unwrap_or_default().to_owned();
    let list = |key: &str| -> Vec<String> {
        let items = names.and_then(|n| n.get(key)).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let plural = name("plural");
    let storage = Arc::new(Storage {
        prefix: format!("/registry/{group}/{plural}/"),
        version: storage_version(definition).to_owned(),
        group: group.to_owned(),
    });
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let served = versions.iter().filter(|v| v.get("served").and_then(Value::as_bool) == Some(true));
    served
        .filter_map(|v| {
            let version = v.str_at(&["name"])?;
            let ownership = Kind::custom(about.clone(), version, converter.clone());
            Some(Arc::new(Resource {
                serial: serial(),
                group: group.to_owned(),
                version: version.to_owned(),
                plural: plural.clone(),
                singular: name("singular"),
                kind: name("kind"),
                list_kind: name("listKind"),
                namespaced: text(&["spec", "scope"]) == "Namespaced",
                short_names: list("shortNames"),
                categories: list("categories"),
                verbs: if terminating { TERMINATING_VERBS } else { VERBS },
                subresources: subresources(v, group, version, &name("kind")),
                deprecation: deprecation(definition, v),
                storage: storage.clone(),
                strategy: Arc::new(Custom::new(about.clone(), version, ownership)),
                definition: Some(about.clone()),
            }))
        })
        .collect()
}

fn subresources(version: &Value, group: &str, name: &str, kind: &str) -> Vec<Subresource> {
    let has = |key: &str| version.at(&["subresources", key]).is_some_and(|s| !s.is_null());
    let subresource = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: SUBRESOURCE_VERBS,
    };
    let mut out = Vec::new();
    if has("status") {
        out.push(subresource("status", group, name, kind));
    }
    if has("scale") {
        out.push(subresource("scale", "autoscaling", "v1", "Scale"));
    }
    out
}

/// What a client of a deprecated version is told; empty for others.
fn deprecation(definition: &Value, version: &Value) -> String {
    let flag = |v: &Value, key: &str| v.get(key).and_then(Value::as_bool) == Some(true);
    if !flag(version, "deprecated") {
        return String::new();
    }
    if let Some(text) = version.str_at(&["deprecationWarning"]) {
        return text.to_owned();
    }
    let group = definition.str_at(&["spec", "group"]).unwrap_or_default();
    let kind = definition.str_at(&["spec", "names", "kind"]).unwrap_or_default();
    let name = version.str_at(&["name"]).unwrap_or_default();
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let better = versions.iter().filter(|v| flag(v, "served") && !flag(v, "deprecated"));
    let better = better.filter_map(|v| v.str_at(&["name"])).filter(|v| version_order(v) < version_order(name));
    match better.min_by_key(|v| version_order(v)) {
        Some(better) => format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}"),
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

/// A group of these resources: its versions in order of preference, resources by name.
pub(super) fn group(name: &str, resources: impl Iterator<Item = Arc<Resource>>) -> Group {
    let mut versions: BTreeMap<String, Vec<Arc<Resource>>> = BTreeMap::new();
    for resource in resources {
        versions.entry(resource.version.clone()).or_default().push(resource);
    }
    let mut versions: Vec<Version> = versions
        .into_iter()
        .map(|(name, mut resources)| {
            resources.sort_by(|a, b| a.plural.cmp(&b.plural));
            Version::new(name, resources)
        })
        .collect();
    versions.sort_by_cached_key(|v| version_order(&v.name));
    Group { name: name.to_owned(), custom: true, versions }
}
