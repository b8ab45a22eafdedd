//! Components of type `ref-objects`: objects that live already, which the application takes over elsewhere.

use client::{Client, ListParams, Resource};
use object::{Map, Value};

use super::declared::{Component, text};

/// The objects that a `ref-objects` component names, without what is particular to where they are.
///
/// # Errors
///
/// If one does not exist, may not be read, or is named in a way that is not supported.
pub(super) async fn referred(client: &Client, namespace: &str, component: &Component) -> Result<Vec<Value>, String> {
    let told = |why: &dyn std::fmt::Display| format!("component {}: {why}", component.name);
    if component.properties.get("urls").is_some() {
        return Err(told(
            &"properties.urls: objects are not fetched from addresses; list them in a component of type k8s-objects",
        ));
    }
    let wanted = component.properties.get("objects").and_then(Value::as_array).unwrap_or_default();
    let mut found = Vec::new();
    for one in wanted {
        if !["", "local"].contains(&text(one, "cluster").as_str()) {
            return Err(told(&"properties.objects: only objects of the cluster of the application can be referred to"));
        }
        let resource = resource_of(client, one).await.map_err(|why| told(&why))?;
        let of = |why: &dyn std::fmt::Display| told(&format!("{}: {why}", resource.kind));
        let given = text(one, "namespace");
        let namespace = if given.is_empty() { namespace } else { &given };
        let namespace = if resource.namespaced { namespace } else { "" };
        let api = client.api(&resource);
        match one.get("labelSelector").and_then(Value::as_object) {
            Some(labels) => {
                let terms: Vec<String> =
                    labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
                let params = ListParams { label_selector: terms.join(","), ..ListParams::default() };
                found.extend(api.list(namespace, &params).await.map_err(|error| of(&error))?.items);
            }
            None => {
                let name = text(one, "name");
                let name = if name.is_empty() { &component.name } else { &name };
                found.push(api.get(namespace, name).await.map_err(|error| of(&error))?);
            }
        }
    }
    found.iter_mut().for_each(strip);
    Ok(found)
}

/// The resource of a reference: by `apiVersion` and `kind`, or by the name of the `resource` and perhaps its `group`.
async fn resource_of(client: &Client, one: &Value) -> Result<Resource, String> {
    let (api_version, mut kind) = (text(one, "apiVersion"), text(one, "kind"));
    let name = text(one, "resource");
    let versions = match (name.as_str(), text(one, "group")) {
        ("", _) => vec![api_version.clone()],
        (_, group) => versions(client, &group).await?,
    };
    for version in versions {
        if !name.is_empty() {
            let Some(known) = kind_of(client, &version, &name).await? else { continue };
            kind = known;
        }
        let resource = client.resource_of(&version, &kind).await.map_err(|error| format!("{kind}: {error}"))?;
        if let Some(resource) = resource {
            return Ok(resource);
        }
    }
    match name.as_str() {
        "" => Err(format!("{kind}: no matches for kind in version {api_version:?}")),
        name => Err(format!("the server serves no resource {name:?}")),
    }
}

/// The versions in which resources are looked for: those that the server prefers, of one group or of all.
async fn versions(client: &Client, group: &str) -> Result<Vec<String>, String> {
    let groups = client.get_path("/apis").await.map_err(|error| error.to_string())?;
    let groups = groups.get("groups").and_then(Value::as_array).unwrap_or_default();
    let groups = groups.iter().filter(|known| group.is_empty() || known.str_at(&["name"]) == Some(group));
    let preferred = groups.filter_map(|group| group.str_at(&["preferredVersion", "groupVersion"]).map(str::to_owned));
    let core = group.is_empty().then(|| "v1".to_owned());
    Ok(core.into_iter().chain(preferred).collect())
}

/// The kind of a resource that somebody calls by its plural, its singular or a short name.
async fn kind_of(client: &Client, version: &str, name: &str) -> Result<Option<String>, String> {
    let path = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    let served = client.get_path(&path).await.map_err(|error| error.to_string())?;
    let served = served.get("resources").and_then(Value::as_array).unwrap_or_default();
    let is_meant = |resource: &&Value| {
        let short = resource.get("shortNames").and_then(Value::as_array).unwrap_or_default();
        let kind = text(resource, "kind").to_lowercase();
        [text(resource, "name"), text(resource, "singularName"), kind].iter().any(|known| known == name)
            || short.iter().any(|short| short.as_str() == Some(name))
    };
    Ok(served.iter().find(is_meant).map(|resource| text(resource, "kind")))
}

/// Takes away what an object has because of where it is.
fn strip(object: &mut Value) {
    object.remove_at(&["status"]);
    let mut metadata = Map::new();
    for key in ["name", "labels", "annotations"] {
        if let Some(value) = object.at(&["metadata", key]) {
            metadata.insert(key, value.clone());
        }
    }
    metadata.object_entry("annotations").remove("kubectl.kubernetes.io/last-applied-configuration");
    object.set_at(&["metadata"], metadata.into());
}
