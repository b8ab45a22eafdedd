//! The definitions by which an application is rendered, fetched before it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use client::cache::Selection;
use client::cache::key;
use client::{Cache, Client, Error, ListParams, Resource};
use object::{Map, Value, map};
use parking_lot::Mutex;

use super::declared::{self, Component, bare, texts, versioned};
use super::definition_kinds::DefinitionKind;
use super::definition_revisions;
use super::kinds::{
    COMPONENT_DEFINITIONS, DEFINITION_REVISIONS, POLICIES, POLICY_DEFINITIONS, TRAIT_DEFINITIONS,
    WORKFLOW_STEP_DEFINITIONS, WORKFLOWS,
};
use super::render::Definitions;
use super::workflow::Plan;
use super::{builtin, digest, library, refer};

/// The namespace of definitions for everybody.
pub const SYSTEM_NAMESPACE: &str = "vela-system";

/// Types of components that need no definition.
const BUILT_IN: [&str; 2] = ["k8s-objects", "ref-objects"];
/// Types of steps that have none.
const BUILT_IN_STEPS: [&str; 4] = ["apply-component", "deploy", "step-group", "suspend"];

/// What applications name that is outside of them.
const OUTSIDE: [&Resource; 2] = [&WORKFLOWS, &POLICIES];

/// The definitions of a cluster.
pub(super) struct Catalogue {
    client: Client,
    components: Arc<Cache>,
    traits: Arc<Cache>,
    policies: Arc<Cache>,
    steps: Arc<Cache>,
    /// Workflows and policies outside of applications.
    outside: [(&'static Resource, Arc<Cache>); 2],
    changes: Arc<AtomicU64>,
    /// What versions were found to be, and after how many changes: any change may make others of them.
    versions: Mutex<(u64, HashMap<Version, Arc<Value>>)>,
}

/// A version of a definition as somebody calls it, and from which namespace.
type Version = (&'static str, String, String);

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
        let (policies, steps) = (open(&POLICY_DEFINITIONS), open(&WORKFLOW_STEP_DEFINITIONS));
        let outside = OUTSIDE.map(|resource| (resource, open(resource)));
        let versions = Mutex::default();
        Catalogue { client: client.clone(), components, traits, policies, steps, outside, changes, versions }
    }

    /// Waits until the definitions are known.
    pub async fn synced(&self) {
        for of in DefinitionKind::ALL {
            self.cache(of).synced().await;
        }
        for (_, cache) in &self.outside {
            cache.synced().await;
        }
    }

    /// Tells of each change of something outside of applications that they may name.
    pub fn follow_outside(&self, tell: &Arc<dyn Fn() + Send + Sync>) {
        for (_, cache) in &self.outside {
            let tell = tell.clone();
            cache.subscribe(move |_| tell());
        }
    }

    /// A Workflow or a Policy outside of applications. What was made a moment ago is asked for.
    ///
    /// # Errors
    ///
    /// If the server cannot tell.
    pub async fn outside(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Value>>, String> {
        let cache = self.outside.iter().find(|(known, _)| known.kind == resource.kind).map(|(_, cache)| cache);
        if let Some(known) = cache.and_then(|cache| cache.get(namespace, name)) {
            return Ok(Some(known));
        }
        let found = self.client.api(resource).find(namespace, name).await;
        Ok(found.map_err(|error| error.to_string())?.map(Arc::new))
    }

    /// The policies outside of an application that its `deploy` steps name, by name; those of `workflow`, which is
    /// outside, too.
    ///
    /// # Errors
    ///
    /// If the server cannot tell. What is missing is missing.
    pub async fn policies_of(&self, application: &Value, workflow: Option<&Value>) -> Result<Map, String> {
        let mut found = Map::new();
        for name in outside_policies(application, workflow) {
            if let Some(policy) = self.outside(&POLICIES, application.namespace(), &name).await? {
                found.insert(name, Value::clone(&policy));
            }
        }
        Ok(found)
    }

    /// The definitions of one kind.
    pub fn cache(&self, of: DefinitionKind) -> &Arc<Cache> {
        match of {
            DefinitionKind::Component => &self.components,
            DefinitionKind::Trait => &self.traits,
            DefinitionKind::Policy => &self.policies,
            DefinitionKind::WorkflowStep => &self.steps,
        }
    }

    /// How often any definition changed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The definitions of policies that change applications themselves, with their namespaces.
    pub fn shaping(&self) -> Vec<Arc<Value>> {
        self.policies.list().into_iter().filter(|policy| is_shaping(policy)).collect()
    }

    /// The definition that an application of a namespace means by `kind`: one of its namespace, the system's, or one that
    /// comes with the program; of the version that may be named. What was made a moment ago is asked for, unless it would
    /// only take the place of one that comes with the program; then, too, if `is_new` says that nothing is rendered by it yet.
    pub async fn find(
        &self,
        of: DefinitionKind,
        namespace: &str,
        kind: &str,
        is_new: bool,
    ) -> Result<Option<Arc<Value>>, Error> {
        let (name, version) = versioned(kind);
        if let Some(version) = version {
            return self.version(of, namespace, name, version).await;
        }
        let cache = self.cache(of);
        if let Some(found) = cache.get(namespace, name).or_else(|| cache.get(SYSTEM_NAMESPACE, name)) {
            return Ok(Some(found));
        }
        let own = library::find(of, name).cloned();
        if own.is_none() || is_new {
            for place in [namespace, SYSTEM_NAMESPACE] {
                if let Some(found) = self.client.api(&of.resource()).find(place, name).await? {
                    return Ok(Some(Arc::new(found)));
                }
            }
        }
        Ok(own)
    }

    /// A version of a definition: the revision of that name, or the newest of a range such as `1.2`.
    async fn version(
        &self,
        of: DefinitionKind,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Result<Option<Arc<Value>>, Error> {
        let changes = self.changes();
        let key = (of.name(), namespace.to_owned(), format!("{name}@{version}"));
        {
            let mut versions = self.versions.lock();
            if versions.0 != changes {
                *versions = (changes, HashMap::new());
            }
            if let Some(known) = versions.1.get(&key) {
                return Ok(Some(known.clone()));
            }
        }
        let Some(found) = self.fetch_version(of, namespace, name, version).await? else { return Ok(None) };
        let found = Arc::new(found);
        let mut versions = self.versions.lock();
        if versions.0 == changes {
            versions.1.insert(key, found.clone());
        }
        Ok(Some(found))
    }

    async fn fetch_version(
        &self,
        of: DefinitionKind,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Result<Option<Value>, Error> {
        let api = self.client.api(&DEFINITION_REVISIONS);
        for place in [namespace, SYSTEM_NAMESPACE] {
            let exact = api.find(place, &definition_revisions::revision_name(name, version)).await?;
            if let Some(held) = exact.and_then(|revision| of.held(&revision)) {
                return Ok(Some(held));
            }
            let params = ListParams { label_selector: format!("{}={name}", of.label()), ..ListParams::default() };
            let all = api.list(place, &params).await?.items;
            let names: Vec<&str> = all.iter().map(Value::name).collect();
            let newest = definition_revisions::newest_in_range(name, version, &names);
            let newest = all.iter().find(|revision| Some(revision.name()) == newest);
            if let Some(held) = newest.and_then(|revision| of.held(revision)) {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }
}

/// Whether the policies of a definition change applications themselves.
pub(super) fn is_shaping(definition: &Value) -> bool {
    definition.str_at(&["spec", "scope"]) == Some("Application")
}

/// Definitions that were found.
#[derive(Clone, Debug, Default)]
pub struct Known {
    components: BTreeMap<String, Arc<Value>>,
    traits: BTreeMap<String, Arc<Value>>,
    steps: BTreeMap<String, Arc<Value>>,
    referred: BTreeMap<String, Vec<Value>>,
    /// Policies outside of the application, by name.
    policies: Map,
    /// The Workflow outside of the application.
    workflow: Option<Value>,
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
    /// With what the application names that is outside of it: policies by name, and the Workflow.
    #[must_use]
    pub fn with(self, policies: Map, workflow: Option<&Value>) -> Self {
        Known { policies, workflow: workflow.cloned(), ..self }
    }

    /// The policies outside of the application, by name.
    pub fn policies(&self) -> &Map {
        &self.policies
    }

    /// The Workflow outside of the application.
    pub fn workflow(&self) -> Option<&Value> {
        self.workflow.as_ref()
    }

    /// Finds what components need, in the application's namespace or the system's. What is missing is missing.
    ///
    /// # Errors
    ///
    /// If the server cannot tell.
    pub(super) async fn find(catalogue: &Catalogue, namespace: &str, components: &[Component]) -> Result<Self, String> {
        Known::find_for(&Finding { catalogue, namespace, is_new: false }, components).await
    }

    async fn find_for(finding: &Finding<'_>, components: &[Component]) -> Result<Self, String> {
        let mut known = Known::default();
        for component in components {
            // An override need not say of which type.
            if !component.kind.is_empty() && !BUILT_IN.contains(&bare(&component.kind)) {
                finding.add(DefinitionKind::Component, &component.kind, &mut known.components).await?;
            }
            for attached in &component.traits {
                finding.add(DefinitionKind::Trait, &attached.kind, &mut known.traits).await?;
            }
        }
        Ok(known)
    }

    /// Finds also what is only needed to carry a plan out: the definitions of its steps, and the objects to which
    /// components refer, as far as `reader` may read them. What `overriding` components need may be missing.
    ///
    /// # Errors
    ///
    /// If the server cannot tell, or a definition or a referred object does not exist.
    pub(super) async fn fetch(
        catalogue: &Catalogue,
        reader: &Client,
        namespace: &str,
        (components, overriding): (&[Component], &[Component]),
        plan: &Plan,
    ) -> Result<Self, String> {
        let finding = Finding { catalogue, namespace, is_new: true };
        let mut known = Known::find_for(&finding, &[components, overriding].concat()).await?;
        for component in components.iter().filter(|component| bare(&component.kind) == "ref-objects") {
            let objects = refer::referred(reader, namespace, component).await?;
            known.referred.insert(component.name.clone(), objects);
        }
        for step in plan.all() {
            if !BUILT_IN_STEPS.contains(&bare(&step.kind)) {
                finding.add(DefinitionKind::WorkflowStep, &step.kind, &mut known.steps).await?;
            }
        }
        known.complete(components, plan)?;
        Ok(known)
    }

    /// Whether there is a definition for everything.
    fn complete(&self, components: &[Component], plan: &Plan) -> Result<(), String> {
        for component in components {
            let of =
                |kind: &str, what: &str| format!("component {}: {what} definition {kind} not found", component.name);
            if !BUILT_IN.contains(&bare(&component.kind)) && !self.components.contains_key(&component.kind) {
                return Err(of(&component.kind, "component"));
            }
            if let Some(attached) = component.traits.iter().find(|attached| !self.traits.contains_key(&attached.kind)) {
                return Err(of(&attached.kind, "trait"));
            }
        }
        for step in plan.all().filter(|step| !BUILT_IN_STEPS.contains(&bare(&step.kind))) {
            builtin::check(step, self.steps.get(&step.kind).map(Arc::as_ref))?;
        }
        Ok(())
    }

    /// A digest of what the definitions say.
    pub fn digest(&self) -> String {
        let of = |all: &BTreeMap<String, Arc<Value>>| -> Map {
            let specs = all.iter().map(|(name, one)| (name.as_str(), one.get("spec").cloned().unwrap_or_default()));
            specs.collect()
        };
        digest::hex(&map! { "components" => of(&self.components), "traits" => of(&self.traits) }.into())
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
        let mut known = Known {
            components: shared("componentDefinitions"),
            traits: shared("traitDefinitions"),
            steps: shared("workflowStepDefinitions"),
            referred: referred.collect(),
            // They are noted as `NAMESPACE/NAME`.
            policies: map("policies").into_iter().map(|(key, policy)| (bare_name(&key).to_owned(), policy)).collect(),
            workflow: revision.at(&["spec", "workflow"]).filter(|workflow| !workflow.is_null()).cloned(),
        };
        // KubeVela notes definitions without the version by which they were called.
        let declared = revision.at(&["spec", "application"]).and_then(|app| declared::components(app).ok());
        for component in declared.unwrap_or_default() {
            alias(&mut known.components, &component.kind);
            component.traits.iter().for_each(|attached| alias(&mut known.traits, &attached.kind));
        }
        known
    }

    /// As a revision holds them.
    pub fn to_map(&self) -> Map {
        let of = |definitions: &BTreeMap<String, Arc<Value>>| -> Map {
            definitions.iter().map(|(name, definition)| (name.as_str(), trimmed(definition))).collect()
        };
        let referred: Map =
            self.referred.iter().map(|(name, objects)| (name.as_str(), Value::Array(objects.clone()))).collect();
        let parts = [
            ("componentDefinitions", of(&self.components)),
            ("traitDefinitions", of(&self.traits)),
            ("workflowStepDefinitions", of(&self.steps)),
            ("referredObjects", referred),
            ("policies", self.policies.iter().map(|(_, policy)| (key(policy), trimmed(policy))).collect()),
        ];
        let parts = parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(key, part)| (key, Value::from(part)));
        parts.chain(self.workflow.iter().map(|workflow| ("workflow", trimmed(workflow)))).collect()
    }
}

/// An object without what nobody needs to know of it later.
fn trimmed(object: &Value) -> Value {
    let mut object = object.clone();
    object.remove_at(&["metadata", "managedFields"]);
    object
}

fn bare_name(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// The names of the policies that `deploy` steps name and that the application does not have itself, each once.
fn outside_policies(application: &Value, workflow: Option<&Value>) -> BTreeSet<String> {
    let own = application.at(&["spec", "policies"]).and_then(Value::as_array).unwrap_or_default();
    let inline = application.at(&["spec", "workflow", "steps"]);
    let steps = [inline, workflow.and_then(|workflow| workflow.get("steps"))];
    let steps = steps.into_iter().flatten().filter_map(Value::as_array).flatten();
    let steps = steps.flat_map(|step| {
        let parts = step.get("subSteps").and_then(Value::as_array).unwrap_or_default();
        [step].into_iter().chain(parts)
    });
    let deploys = steps.filter(|step| bare(step.str_at(&["type"]).unwrap_or_default()) == "deploy");
    let named = deploys.filter_map(|step| step.get("properties")).flat_map(|properties| texts(properties, "policies"));
    named.filter(|name| own.iter().all(|policy| policy.str_at(&["name"]) != Some(name.as_str()))).collect()
}

/// Lets a definition be known by a name with a version, too.
fn alias(known: &mut BTreeMap<String, Arc<Value>>, kind: &str) {
    if !known.contains_key(kind)
        && let Some(found) = known.get(bare(kind)).cloned()
    {
        known.insert(kind.to_owned(), found);
    }
}

/// Where definitions are looked for.
struct Finding<'a> {
    catalogue: &'a Catalogue,
    namespace: &'a str,
    /// Whether something is rendered by them that was not before.
    is_new: bool,
}

impl Finding<'_> {
    /// Adds the definition of a kind to those that are known, if there is one.
    async fn add(
        &self,
        of: DefinitionKind,
        kind: &str,
        known: &mut BTreeMap<String, Arc<Value>>,
    ) -> Result<(), String> {
        if !known.contains_key(kind) {
            let found = self.catalogue.find(of, self.namespace, kind, self.is_new).await;
            known.extend(found.map_err(|error| error.to_string())?.map(|found| (kind.to_owned(), found)));
        }
        Ok(())
    }
}
