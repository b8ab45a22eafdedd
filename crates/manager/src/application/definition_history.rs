//! Makes DefinitionRevisions as definitions change, and takes away those that are too many.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use client::{DeleteParams, Error, ListParams, Patch, PatchParams};
use object::{Value, map};

use super::controller::Controller;
use super::declared::{components, text, versioned};
use super::definition_kinds::DefinitionKind;
use super::definition_revisions::{DefinitionRevision, new, revision_name, revision_of, surplus};
use super::kinds::DEFINITION_REVISIONS;
use crate::runner::Reconciler;
use crate::tenancy::is_deleted;

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

    async fn look(&self, of: DefinitionKind, definition: &Value) -> Result<(), Error> {
        let client = &self.0.client;
        let (namespace, name) = (definition.namespace(), definition.name());
        let api = client.api(&DEFINITION_REVISIONS);
        let params = ListParams { label_selector: format!("{}={name}", of.label()), ..ListParams::default() };
        let known: Vec<DefinitionRevision> =
            api.list(namespace, &params).await?.items.iter().map(DefinitionRevision::read).collect();
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
    async fn say(&self, of: DefinitionKind, definition: &Value, mut status: object::Map) -> Result<(), Error> {
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
        let of = DefinitionKind::ALL.into_iter().find(|of| of.name() == kind);
        let definition = of.and_then(|of| Some((of, self.0.catalogue.cache(of).get_key(object)?)));
        if let Some((of, definition)) = definition
            && !is_deleted(&definition)
        {
            self.look(of, &definition).await?;
        }
        Ok(None)
    }
}
