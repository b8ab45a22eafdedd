//! The definitions by which an application is rendered, fetched before it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use client::cache::Selection;
use client::{Cache, Client, Error, ListParams, Resource};
use object::{Map, Value};

use super::declared::{Component, bare, text};
use super::kinds::{COMPONENT_DEFINITIONS, POLICY_DEFINITIONS, TRAIT_DEFINITIONS, WORKFLOW_STEP_DEFINITIONS};
use super::render::Definitions;
use super::workflow::Plan;

/// The namespace of definitions for everybody.
pub const SYSTEM_NAMESPACE: &str = "vela-system";

/// Types of components that need no definition.
const BUILT_IN: [&str; 2] = ["k8s-objects", "ref-objects"];
/// Types of steps that need none.
const BUILT_IN_STEPS: [&str; 4] = ["apply-component", "deploy", "step-group", "suspend"];

/// The definitions of a cluster.
pub(super) struct Catalogue {
    client: Client,
    components: Arc<Cache>,
    traits: Arc<Cache>,
    policies: Arc<Cache>,
    changes: Arc<AtomicU64>,
}

impl Catalogue {
    /// The definitions, as a client sees them.
    pub fn open(client: &Client) -> Self {
        let changes: Arc<AtomicU64> = Arc::default();
        let open = |resource: &Resource| {
            let cache = Cache::open(client.api(resource), Selection::default());
            let changes = changes.clone();
            cache.subscribe(move |_| {
                changes.fetch_add(1, Ordering::Relaxed);
            });
            cache
        };
        let (components, traits) = (open(&COMPONENT_DEFINITIONS), open(&TRAIT_DEFINITIONS));
        let policies = open(&POLICY_DEFINITIONS);
        Catalogue { client: client.clone(), components, traits, policies, changes }
    }

    /// Waits until the definitions are known.
    pub async fn synced(&self) {
        for cache in [&self.components, &self.traits, &self.policies] {
            cache.synced().await;
        }
    }

    /// How often any definition changed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The definitions of policies that change applications themselves, with their namespaces.
    pub fn shaping(&self) -> Vec<Arc<Value>> {
        let is_shaping = |policy: &Arc<Value>| policy.str_at(&["spec", "scope"]) == Some("Application");
        self.policies.list().into_iter().filter(is_shaping).collect()
    }

    /// A definition of the application's namespace, or the system's. What was made a moment ago is asked for.
    async fn find(
        &self,
        cache: &Cache,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Value>>, Error> {
        let cached = cache.get(namespace, name).or_else(|| cache.get(SYSTEM_NAMESPACE, name));
        match cached {
            Some(found) => Ok(Some(found)),
            None => Ok(find(&self.client, resource, namespace, name).await?.map(Arc::new)),
        }
    }
}

/// Definitions that were found.
#[derive(Clone, Debug, Default)]
pub struct Known {
    components: BTreeMap<String, Arc<Value>>,
    traits: BTreeMap<String, Arc<Value>>,
    steps: BTreeMap<String, Arc<Value>>,
    referred: BTreeMap<String, Vec<Value>>,
}

impl Definitions for Known {
    fn component(&self, name: &str) -> Option<&Value> {
        self.components.get(name).map(Arc::as_ref)
    }

    fn of_trait(&self, name: &str) -> Option<&Value> {
        self.traits.get(name).map(Arc::as_ref)
    }

    fn step(&self, name: &str) -> Option<&Value> {
        self.steps.get(name).map(Arc::as_ref)
    }

    fn referred(&self, component: &str) -> &[Value] {
        self.referred.get(component).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Known {
    /// Finds what components need, in the application's namespace or the system's. What is missing is missing.
    ///
    /// # Errors
    ///
    /// If the server cannot tell.
    pub(super) async fn find(catalogue: &Catalogue, namespace: &str, components: &[Component]) -> Result<Self, String> {
        let mut known = Known::default();
        for component in components {
            let kind = bare(&component.kind);
            if !BUILT_IN.contains(&kind) && !known.components.contains_key(kind) {
                let found = catalogue.find(&catalogue.components, &COMPONENT_DEFINITIONS, namespace, kind).await;
                known.components.extend(found.map_err(|e| e.to_string())?.map(|found| (kind.to_owned(), found)));
            }
            for attached in &component.traits {
                let kind = bare(&attached.kind);
                if !known.traits.contains_key(kind) {
                    let found = catalogue.find(&catalogue.traits, &TRAIT_DEFINITIONS, namespace, kind).await;
                    known.traits.extend(found.map_err(|e| e.to_string())?.map(|found| (kind.to_owned(), found)));
                }
            }
        }
        Ok(known)
    }

    /// Finds also what is only needed to carry a plan out: the definitions of its steps, and the objects to which
    /// components refer.
    ///
    /// # Errors
    ///
    /// If the server cannot tell, or a referred object does not exist.
    pub(super) async fn fetch(
        catalogue: &Catalogue,
        namespace: &str,
        components: &[Component],
        plan: &Plan,
    ) -> Result<Self, String> {
        let mut known = Known::find(catalogue, namespace, components).await?;
        for component in components.iter().filter(|component| bare(&component.kind) == "ref-objects") {
            let objects = referred(&catalogue.client, namespace, component).await?;
            known.referred.insert(component.name.clone(), objects);
        }
        for kind in plan.all().map(|step| bare(&step.kind)) {
            if !BUILT_IN_STEPS.contains(&kind) && !known.steps.contains_key(kind) {
                let found = find(&catalogue.client, &WORKFLOW_STEP_DEFINITIONS, namespace, kind).await;
                known.steps.extend(found.map_err(|e| e.to_string())?.map(|found| (kind.to_owned(), Arc::new(found))));
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
        let shared = |key| map(key).into_iter().map(|(name, value)| (name, Arc::new(value))).collect();
        let referred = map("referredObjects")
            .into_iter()
            .map(|(name, objects)| (name, objects.as_array().unwrap_or_default().to_vec()));
        Known {
            components: shared("componentDefinitions"),
            traits: shared("traitDefinitions"),
            steps: shared("workflowStepDefinitions"),
            referred: referred.collect(),
        }
    }

    /// As a revision holds them.
    pub fn to_map(&self) -> Map {
        let of = |definitions: &BTreeMap<String, Arc<Value>>| -> Map {
            let trimmed = definitions.iter().map(|(name, definition)| {
                let mut definition = Value::clone(definition);
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
            ("workflowStepDefinitions", of(&self.steps)),
            ("referredObjects", referred),
        ];
        parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(key, part)| (key, Value::from(part))).collect()
    }
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
