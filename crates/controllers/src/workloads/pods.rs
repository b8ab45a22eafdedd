//! Pods as controllers see them: what state they are in, how they are made from a template and deleted.

use super::meta;
use client::events::{EventType, Recorder};
use client::{Api, DeleteParams, Error, Resource, Result};
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::{Map, Value, names};
use std::time::Duration;

/// Whether a pod has not ended and nobody wants its end.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_terminal(pod) && !meta::is_deleting(pod)
}

/// Whether a pod has ended, well or not.
pub(crate) fn is_terminal(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// `status.phase`.
pub(crate) fn phase(pod: &Value) -> &str {
    meta::status(pod).text("phase")
}

/// `spec.nodeName`; empty while the pod has no node.
pub(crate) fn node(pod: &Value) -> &str {
    meta::spec(pod).text("nodeName")
}

/// Whether a pod says that it is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    ready_condition(pod).is_some_and(|c| c.text("status") == "True")
}

/// Since when a pod is ready.
pub(crate) fn ready_since(pod: &Value) -> Option<Timestamp> {
    let condition = ready_condition(pod).filter(|c| c.text("status") == "True")?;
    meta::time(condition.text("lastTransitionTime"))
}

fn ready_condition(pod: &Value) -> Option<&Value> {
    super::conditions::find(meta::status(pod), "Ready")
}

/// Whether a pod has been ready for so long.
pub(crate) fn is_available(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> bool {
    is_ready(pod) && until_available(pod, min_ready_seconds, now).is_some_and(|wait| wait.is_zero())
}

/// How long a ready pod must stay so until it is available; nothing for one that is not ready.
pub(crate) fn until_available(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready_seconds <= 0 {
        return Some(Duration::ZERO);
    }
    let since = ready_since(pod)?;
    let left = SignedDuration::from_secs(min_ready_seconds).checked_sub(now.duration_since(since))?;
    Some(Duration::try_from(left).unwrap_or_default())
}

/// When the first of these pods that are not available yet will be.
pub(crate) fn next_available<'p>(
    pods: impl IntoIterator<Item = &'p Value>,
    min_ready_seconds: i64,
    now: Timestamp,
) -> Option<Duration> {
    let waits = pods.into_iter().filter_map(|pod| until_available(pod, min_ready_seconds, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

/// A pod of a template, controlled by an owner. Its name is generated, beginning with the owner's.
pub(crate) fn from_template(template: &Value, owner: &Value, resource: &Resource) -> Value {
    let mut metadata = Map::new();
    let given = template.sub("metadata");
    for key in ["labels", "annotations", "finalizers"] {
        if let Some(value) = given.get(key).filter(|v| !v.is_null()) {
            metadata.insert(key, value.clone());
        }
    }
    let mut prefix = format!("{}-", owner.name());
    if !names::generate_name(&prefix, names::dns1123_subdomain).is_empty() {
        prefix = owner.name().to_owned();
    }
    metadata.insert("generateName", prefix);
    metadata.insert("ownerReferences", vec![meta::controlled_by(owner, resource)]);
    let pod = object::map! {
        "apiVersion" => "v1", "kind" => "Pod", "metadata" => metadata, "spec" => template.sub("spec").clone(),
    };
    pod.into()
}

/// Creates and deletes pods for their owners, with the events that tell of it.
#[derive(Clone, Debug)]
pub(crate) struct PodControl {
    /// The requests about pods.
    pub(crate) api: Api,
    /// Where events go.
    pub(crate) recorder: Recorder,
    /// What the owners are.
    pub(crate) owners: Resource,
}

impl PodControl {
    /// Creates a pod of a template.
    pub(crate) async fn create(&self, owner: &Value, template: &Value) -> Result<()> {
        let pod = from_template(template, owner, &self.owners);
        if meta::labels(&pod).is_empty() {
            return Err(Error::Content("unable to create pods, no labels".to_owned()));
        }
        match self.api.create(owner.namespace(), &pod).await {
            Ok(created) => {
                let message = format!("Created pod: {}", created.name());
                self.recorder.event(owner, EventType::Normal, "SuccessfulCreate", &message);
                Ok(())
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    let message = format!("Error creating: {error}");
                    self.recorder.event(owner, EventType::Warning, "FailedCreate", &message);
                }
                Err(error)
            }
        }
    }

    /// Deletes a pod.
    pub(crate) async fn delete(&self, owner: &Value, name: &str) -> Result<()> {
        match self.api.delete(owner.namespace(), name, &DeleteParams::default()).await {
            Ok(_) => {
                self.recorder.event(owner, EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}"));
                Ok(())
            }
            Err(error) if error.is_not_found() => Err(error),
            Err(error) => {
                let message = format!("Error deleting: {error}");
                self.recorder.event(owner, EventType::Warning, "FailedDelete", &message);
                Err(Error::Content(format!("unable to delete pods: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    fn ready(since: &str) -> Value {
        value(&format!(
            r#"{{"status":{{"conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"{since}"}}]}}}}"#
        ))
    }

    #[test]
    fn a_pod_is_available_when_it_was_ready_long_enough() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let pod = ready("2026-01-01T00:00:04Z");
        for (seconds, available, wait) in [(0, true, Some(0)), (6, true, Some(0)), (8, false, Some(2))] {
            assert_eq!(is_available(&pod, seconds, now), available, "{seconds}");
            assert_eq!(until_available(&pod, seconds, now).map(|d| d.as_secs()), wait, "{seconds}");
        }
        assert!(!is_available(&ready("nonsense"), 1, now));
        assert!(!is_available(&value("{}"), 0, now));
        assert_eq!(next_available([&pod, &ready("2026-01-01T00:00:09Z")], 8, now).map(|d| d.as_secs()), Some(2));
    }

    #[test]
    fn pods_are_made_from_templates() {
        let owner = value(r#"{"metadata":{"name":"web","uid":"u"}}"#);
        let template = value(r#"{"metadata":{"labels":{"a":"b"},"name":"ignored"},"spec":{"nodeName":"n"}}"#);
        let pod = from_template(&template, &owner, &client::resources::REPLICA_SETS);
        let want = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","labels":{"a":"b"},"ownerReferences":
            [{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}]},
            "spec":{"nodeName":"n"}}"#;
        assert_eq!(pod, value(want));
    }

    #[test]
    fn ended_and_terminating_pods_are_not_active() {
        for (text, active) in [
            (r#"{"status":{"phase":"Running"}}"#, true),
            ("{}", true),
            (r#"{"status":{"phase":"Failed"}}"#, false),
            (r#"{"status":{"phase":"Succeeded"}}"#, false),
            (r#"{"metadata":{"deletionTimestamp":"x"}}"#, false),
        ] {
            assert_eq!(is_active(&value(text)), active, "{text}");
        }
    }
}
