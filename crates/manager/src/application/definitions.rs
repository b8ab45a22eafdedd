//! The definitions by which an application is rendered, fetched before it is.

use std::collections::BTreeMap;

use client::{Client, Error, ListParams, Resource};
use object::{Map, Value};

use super::declared::{Component, text};
use super::kinds::{COMPONENT_DEFINITIONS, TRAIT_DEFINITIONS};
use super::render::Definitions;

/// The namespace of definitions for everybody.
pub const SYSTEM_NAMESPACE: &str = "vela-system";

/// Types of components that need no definition.
const BUILT_IN: [&str; 2] = ["k8s-objects", "ref-objects"];

/// Definitions that were found.
#[derive(Clone, Debug, Default)]
pub struct Known {
    components: BTreeMap<String, Value>,
    traits: BTreeMap<String, Value>,
    referred: BTreeMap<String, Vec<Value>>,
}

impl Definitions for Known {
    fn component(&self, name: &str) -> Option<&Value> {
        self.components.get(name)
    }

    fn of_trait(&self, name: &str) -> Option<&Value> {
        self.traits.get(name)
    }

    fn referred(&self, component: &str) -> &[Value] {
        self.referred.get(component).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Known {
    /// Fetches what components need, from the application's namespace or the system's. What is missing is missing.
    ///
    /// # Errors
    ///
    /// If the server cannot tell, or a referred object does not exist.
    pub async fn fetch(client: &Client, namespace: &str, components: &[Component]) -> Result<Self, String> {
        let mut known = Known::default();
        for component in components {
            let kind = bare(&component.kind);
            if kind == "ref-objects" {
                let objects = referred(client, namespace, component).await?;
                known.referred.insert(component.name.clone(), objects);
            } else if !BUILT_IN.contains(&kind) && !known.components.contains_key(kind) {
                let found = find(client, &COMPONENT_DEFINITIONS, namespace, kind).await.map_err(|e| e.to_string())?;
                known.components.extend(found.map(|found| (kind.to_owned(), found)));
            }
            for attached in &component.traits {
                let kind = bare(&attached.kind);
                if !known.traits.contains_key(kind) {
                    let found = find(client, &TRAIT_DEFINITIONS, namespace, kind).await.map_err(|e| e.to_string())?;
                    known.traits.extend(found.map(|found| (kind.to_owned(), found)));
                }
            }
        }
        Ok(known)
    }

    /// Reads what a revision holds.
    pub fn read(revision: &Value) -> Self {
        let map = |key: &str| -> BTreeMap<String, Value> {
            let members = revision.at(&["spec", key]).and_then(Value::as_object);
            members.into_iter().flat_map(Map::iter).map(|(name, value)| (name.to_owned(), value.clone())).collect()
        };
        let referred = map("referredObjects")
            .into_iter()
            .map(|(name, objects)| (name, objects.as_array().unwrap_or_default().to_vec()));
        Known { components: map("componentDefinitions"), traits: map("traitDefinitions"), referred: referred.collect() }
    }

    /// As a revision holds them.
    pub fn to_map(&self) -> Map {
        let of = |definitions: &BTreeMap<String, Value>| -> Map {
            let trimmed = definitions.iter().map(|(name, definition)| {
                let mut definition = definition.clone();
                definition.remove_at(&["metadata", "managedFields"]);
                (name.as_str(), definition)
            });
            trimmed.collect()
        };
        let referred: Map =
            self.referred.iter().map(|(name, objects)| (name.as_str(), Value::Array(objects.clone()))).collect();
        let parts = [
            ("componentDefinitions", of(&self.components)),
            ("traitDefinitions", of(&self.traits)),
            ("referredObjects", referred),
        ];
        parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(key, part)| (key, Value::from(part))).collect()
    }
}

fn bare(kind: &str) -> &str {
    kind.split('@').next().unwrap_or_default()
}

async fn find(client: &Client, resource: &Resource, namespace: &str, name: &str) -> Result<Option<Value>, Error> {
    let api = client.api(resource);
    match api.find(namespace, name).await? {
        Some(found) => Ok(Some(found)),
        None => api.find(SYSTEM_NAMESPACE, name).await,
    }
}

/// The objects that a `ref-objects` component names, without what is particular to where they are.
async fn referred(client: &Client, namespace: &str, component: &Component) -> Result<Vec<Value>, String> {
    let wanted = component.properties.get("objects").and_then(Value::as_array).unwrap_or_default();
    let mut found = Vec::new();
    for one in wanted {
        let (api_version, kind) = (text(one, "apiVersion"), text(one, "kind"));
        let of = |why: &dyn std::fmt::Display| format!("component {}: {kind}: {why}", component.name);
        let resource = client.resource_of(&api_version, &kind).await.map_err(|error| of(&error))?;
        let resource = resource.ok_or_else(|| of(&format!("no matches for kind in version {api_version:?}")))?;
        let given = text(one, "namespace");
        let namespace = if given.is_empty() { namespace } else { &given };
        let api = client.api(&resource);
        let labels = one.get("labelSelector").and_then(Value::as_object);
        match labels {
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
    for object in &mut found {
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
    Ok(found)
}
