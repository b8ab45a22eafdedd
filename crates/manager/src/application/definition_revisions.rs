//! Revisions of definitions: what each version of a definition was, for Applications that name one (`web@v2`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use client::{DeleteParams, Error, ListParams, Patch, PatchParams, Resource};
use object::{Value, map};

use super::controller::Controller;
use super::declared::{components, text, versioned};
use super::digest;
use super::kinds::{
    COMPONENT_DEFINITIONS, DEFINITION_REVISIONS, POLICY_DEFINITIONS, TRAIT_DEFINITIONS, WORKFLOW_STEP_DEFINITIONS,
};
use super::names;
use crate::runner::Reconciler;
use crate::tenancy::is_deleted;

/// A kind of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of components.
    Component,
    /// Of traits.
    Trait,
    /// Of policies.
    Policy,
    /// Of steps.
    WorkflowStep,
}

impl Of {
    /// All of them.
    pub const ALL: [Of; 4] = [Of::Component, Of::Trait, Of::Policy, Of::WorkflowStep];

    /// The `definitionType` of its revisions.
    pub fn name(self) -> &'static str {
        match self {
            Of::Component => "Component",
            Of::Trait => "Trait",
            Of::Policy => "Policy",
            Of::WorkflowStep => "WorkflowStep",
        }
    }

    /// The definitions.
    pub fn resource(self) -> Resource {
        match self {
            Of::Component => COMPONENT_DEFINITIONS,
            Of::Trait => TRAIT_DEFINITIONS,
            Of::Policy => POLICY_DEFINITIONS,
            Of::WorkflowStep => WORKFLOW_STEP_DEFINITIONS,
        }
    }

    /// The member of a revision's specification that holds the definition.
    fn member(self) -> &'static str {
        match self {
            Of::Component => "componentDefinition",
            Of::Trait => "traitDefinition",
            Of::Policy => "policyDefinition",
            Of::WorkflowStep => "workflowStepDefinition",
        }
    }

    /// The label of a revision that names its definition, as KubeVela calls it.
    pub fn label(self) -> &'static str {
        match self {
            Of::Component => "componentdefinition.oam.dev/name",
            Of::Trait => "trait.oam.dev/name",
            Of::Policy => "policydefinition.oam.dev/name",
            Of::WorkflowStep => "workflowstepdefinition.oam.dev/name",
        }
    }

    /// The definition that a revision holds.
    pub fn held(self, revision: &Value) -> Option<Value> {
        let is_meant = revision.str_at(&["spec", "definitionType"]) == Some(self.name());
        revision.at(&["spec", self.member()]).filter(|_| is_meant).cloned()
    }
}

/// A DefinitionRevision, as far as it counts here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its number: the later, the higher.
    pub number: i64,
    /// A digest of the definition's specification.
    pub hash: String,
}

impl Known {
    fn read(revision: &Value) -> Self {
        Known {
            name: revision.name().to_owned(),
            number: revision.at(&["spec", "revision"]).and_then(Value::as_int).unwrap_or_default(),
            hash: revision.str_at(&["spec", "revisionHash"]).unwrap_or_default().to_owned(),
        }
    }
}

/// Which revision a definition is: a known one, or a new one that has to be made. A definition that names its version
/// (`spec.version`, or the annotation) is the revision of that version; any other is the latest revision, or a new one if
/// that holds something else.
///
/// # Errors
///
/// If the version that the definition names holds something else, or it names two.
pub fn revision_of(definition: &Value, known: &[Known]) -> Result<(Known, bool), String> {
    let hash = digest::hex(definition.get("spec").unwrap_or(&Value::Null));
    let named = definition.annotation(names::DEFINITION_REVISION).filter(|name| !name.is_empty());
    let version = definition.str_at(&["spec", "version"]).filter(|version| !version.is_empty());
    let version = match (named, version) {
        (Some(_), Some(_)) => {
            return Err(format!("spec.version and the annotation {} exclude each other", names::DEFINITION_REVISION));
        }
        (named, version) => named.or(version),
    };
    let next = known.iter().map(|known| known.number).max().unwrap_or_default() + 1;
    let Some(version) = version else {
        return Ok(match known.iter().max_by_key(|known| known.number) {
            Some(latest) if latest.hash == hash => (latest.clone(), false),
            _ => (Known { name: format!("{}-v{next}", definition.name()), number: next, hash }, true),
        });
    };
    let name = revision_name(definition.name(), version);
    match known.iter().find(|known| known.name == name) {
        Some(same) if same.hash == hash => Ok((same.clone(), false)),
        Some(_) => Err(format!(
            "DefinitionRevision {name} exists and holds something else; give what was changed a version of its own"
        )),
        None => Ok((Known { name, number: next, hash }, true)),
    }
}

/// The name of a definition's revision, for a version with or without the leading `v`.
pub fn revision_name(definition: &str, version: &str) -> String {
    format!("{definition}-v{}", version.strip_prefix('v').unwrap_or(version))
}

/// The name of the newest of a definition's revisions whose version (`1.2.3`) begins with another (`1`, or `v1.2`).
pub fn newest_in_range<'a>(definition: &str, version: &str, names: &[&'a str]) -> Option<&'a str> {
    let numbers = |version: &str| -> Option<Vec<u64>> { version.split('.').map(|part| part.parse().ok()).collect() };
    let wanted = numbers(version.strip_prefix('v').unwrap_or(version))?;
    let prefix = revision_name(definition, "");
    let version_of = |name: &&str| numbers(name.strip_prefix(prefix.as_str())?).filter(|version| version.len() == 3);
    let fits = |name: &&&str| version_of(name).is_some_and(|version| version.starts_with(&wanted));
    names.iter().filter(fits).max_by_key(|name| version_of(name)).copied()
}

/// The revisions that are too many: the oldest that are neither the current one nor used.
pub fn surplus<'a>(known: &'a [Known], current: &str, limit: usize, used: &BTreeSet<String>) -> Vec<&'a str> {
    let mut spare: Vec<&Known> =
        known.iter().filter(|known| known.name != current && !used.contains(&known.name)).collect();
    spare.sort_by_key(|known| known.number);
    let excess = spare.len().saturating_sub(limit);
    spare.into_iter().take(excess).map(|known| known.name.as_str()).collect()
}

fn new(of: Of, definition: &Value, revision: &Known) -> Value {
    let mut held = definition.clone();
    held.remove_at(&["status"]);
    for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
        held.remove_at(&["metadata", field]);
    }
    let resource = of.resource();
    let owner = map! {
        "apiVersion" => resource.api_version(),
        "kind" => resource.kind.to_string(),
        "name" => definition.name(),
        "uid" => definition.meta_str("uid"),
        "controller" => true,
    };
    map! {
        "apiVersion" => DEFINITION_REVISIONS.api_version(),
        "kind" => DEFINITION_REVISIONS.kind.to_string(),
        "metadata" => map! {
            "name" => revision.name.as_str(),
            "namespace" => definition.namespace(),
            "labels" => map! { of.label() => definition.name() },
            "ownerReferences" => vec![owner],
        },
        "spec" => map! {
            "revision" => revision.number,
            "revisionHash" => revision.hash.as_str(),
            "definitionType" => of.name(),
            of.member() => held,
        },
    }
    .into()
}

/// Makes a revision of each version of each definition.
pub(super) struct Revisions(pub Arc<Controller>);

impl Revisions {
    /// The revisions that applications name, in the form in which they are called.
    fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let mut add = |kind: &str| {
            if let (name, Some(version)) = versioned(kind) {
                used.insert(revision_name(name, version));
            }
        };
        for application in self.0.declared_applications() {
            for component in components(&application).unwrap_or_default() {
                add(&component.kind);
                component.traits.iter().for_each(|attached| add(&attached.kind));
            }
            for part in [&["spec", "policies"][..], &["spec", "workflow", "steps"]] {
                let all = application.at(part).and_then(Value::as_array).unwrap_or_default();
                all.iter().for_each(|one| add(&text(one, "type")));
            }
        }
        used
    }

    async fn look(&self, of: Of, definition: &Value) -> Result<(), Error> {
        let client = &self.0.client;
        let (namespace, name) = (definition.namespace(), definition.name());
        let api = client.api(&DEFINITION_REVISIONS);
        let params = ListParams { label_selector: format!("{}={name}", of.label()), ..ListParams::default() };
        let known: Vec<Known> = api.list(namespace, &params).await?.items.iter().map(Known::read).collect();
        let patch = match revision_of(definition, &known) {
            Ok((revision, is_new)) => {
                if is_new {
                    match api.create(namespace, &new(of, definition, &revision)).await {
                        // Another definition of that name, but of another kind, has it.
                        Err(error) if error.is_already_exists() => {
                            return self.say(of, definition, condition(false, &error.to_string())).await;
                        }
                        made => drop(made?),
                    }
                }
                for surplus in surplus(&known, &revision.name, self.0.options.definition_revision_limit, &self.used()) {
                    match api.delete(namespace, surplus, &DeleteParams::default()).await {
                        Err(error) if !error.is_not_found() => return Err(error),
                        _ => {}
                    }
                }
                let latest = map! {
                    "name" => revision.name.as_str(),
                    "revision" => revision.number,
                    "revisionHash" => revision.hash.as_str(),
                };
                let mut status = condition(true, "");
                status.insert("latestRevision", latest);
                status
            }
            Err(why) => condition(false, &why),
        };
        self.say(of, definition, patch).await
    }

    /// Writes what is new in a definition's status.
    async fn say(&self, of: Of, definition: &Value, mut status: object::Map) -> Result<(), Error> {
        let said = |key: &str| definition.at(&["status", key]);
        let is_said = |key: &str, value: &Value| match key {
            // The time is when it became so.
            "conditions" => said(key).is_some_and(|known| timeless(known) == *value),
            _ => said(key) == Some(value),
        };
        status.retain(|key, value| !is_said(key, value));
        if status.is_empty() {
            return Ok(());
        }
        if let Some(condition) = status.get_mut("conditions").and_then(Value::as_array_mut).and_then(|c| c.first_mut())
        {
            let now = jiff::Timestamp::from_second(self.0.now().as_second()).unwrap_or_default();
            condition.set_at(&["lastTransitionTime"], now.to_string().into());
        }
        let patch = Patch::Merge(map! { "status" => status }.into());
        let api = self.0.client.api(&of.resource());
        match api.patch(definition.namespace(), definition.name(), &patch, &PatchParams::status()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

fn condition(is_good: bool, message: &str) -> object::Map {
    let reason = if is_good { "ReconcileSuccess" } else { "ReconcileError" };
    let mut condition =
        map! { "type" => "Synced", "status" => if is_good { "True" } else { "False" }, "reason" => reason };
    if !message.is_empty() {
        condition.insert("message", message);
    }
    map! { "conditions" => vec![condition] }
}

fn timeless(conditions: &Value) -> Value {
    let mut conditions = conditions.clone();
    for condition in conditions.as_array_mut().into_iter().flatten() {
        condition.remove_at(&["lastTransitionTime"]);
    }
    conditions
}

impl Reconciler for Revisions {
    const NAME: &'static str = "definition";

    /// The key is `TYPE/NAMESPACE/NAME`.
    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let (kind, object) = key.split_once('/').unwrap_or_default();
        let of = Of::ALL.into_iter().find(|of| of.name() == kind);
        let definition = of.and_then(|of| Some((of, self.0.catalogue.cache(of).get_key(object)?)));
        if let Some((of, definition)) = definition
            && !is_deleted(&definition)
        {
            self.look(of, &definition).await?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn definition(metadata: &str, spec: &str) -> Value {
        let text = format!(r#"{{"metadata":{{"name":"web"{metadata}}},"spec":{spec}}}"#);
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    fn known(name: &str, number: i64, spec: &str) -> Known {
        let spec = json::parse(spec.as_bytes()).unwrap_or_default();
        Known { name: name.to_owned(), number, hash: digest::hex(&spec) }
    }

    #[test]
    fn a_definition_is_the_revision_that_holds_it() {
        let annotated = r#","annotations":{"definitionrevision.oam.dev/name":"stable"}"#;
        let versioned = r#"{"a":1,"version":"1.0.0"}"#;
        let all = [
            known("web-v1", 1, r#"{"a":1}"#),
            known("web-v2", 2, r#"{"a":2}"#),
            known("web-vstable", 3, r#"{"a":1}"#),
            known("web-v1.0.0", 4, r#"{"a":0,"version":"1.0.0"}"#),
        ];
        for (metadata, spec, count, expected) in [
            ("", r#"{"a":1}"#, 0, Ok(("web-v1", true))),
            ("", r#"{"a":2}"#, 2, Ok(("web-v2", false))),
            // There and back again is a new version: the latest is what counts.
            ("", r#"{"a":1}"#, 2, Ok(("web-v3", true))),
            (annotated, r#"{"a":1}"#, 2, Ok(("web-vstable", true))),
            (annotated, r#"{"a":1}"#, 3, Ok(("web-vstable", false))),
            (annotated, r#"{"a":2}"#, 3, Err("DefinitionRevision web-vstable exists and holds something else")),
            ("", versioned, 2, Ok(("web-v1.0.0", true))),
            ("", versioned, 4, Err("DefinitionRevision web-v1.0.0 exists and holds something else")),
            (annotated, versioned, 0, Err("spec.version and the annotation")),
        ] {
            let found = revision_of(&definition(metadata, spec), &all[..count]);
            match expected {
                Ok((name, is_new)) => {
                    let found = found.as_ref().map(|(revision, is_new)| (revision.name.as_str(), *is_new));
                    assert_eq!(found, Ok((name, is_new)), "{metadata} {spec} {count}");
                }
                Err(why) => assert!(found.is_err_and(|error| error.starts_with(why)), "{metadata} {spec} {count}"),
            }
        }
    }

    #[test]
    fn a_range_is_its_newest_version() {
        let names = ["web-v1", "web-v1.2.0", "web-v1.10.0", "web-v2.0.1", "web-vstable", "website-v1.99.0"];
        for (version, expected) in [
            ("1", Some("web-v1.10.0")),
            ("v1", Some("web-v1.10.0")),
            ("1.2", Some("web-v1.2.0")),
            ("v2", Some("web-v2.0.1")),
            ("3", None),
            ("stable", None),
            ("", None),
        ] {
            assert_eq!(newest_in_range("web", version, &names), expected, "{version}");
        }
    }

    #[test]
    fn what_is_used_stays() {
        let all: Vec<Known> = (1..=5).map(|number| known(&format!("web-v{number}"), number, "{}")).collect();
        let used = BTreeSet::from(["web-v1".to_owned()]);
        assert_eq!(surplus(&all, "web-v5", 1, &used), ["web-v2", "web-v3"]);
        assert_eq!(surplus(&all, "web-v5", 20, &used), Vec::<&str>::new());
    }
}
