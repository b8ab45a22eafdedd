//! Pods of workloads: since when they are available, and how they are made from a template.

use super::meta;
use crate::pod_control::PodControl;
use client::{Error, Resource, Result};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::Value;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use crate::pods::{is_active, is_ready, is_terminal, phase, ready_since};

/// `spec.nodeName`; empty while the pod has no node.
pub(crate) fn node(pod: &Value) -> &str {
    meta::spec(pod).text("nodeName")
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
    let prefix = crate::pods::name_prefix(owner.name());
    crate::pods::from_template(template, owner.namespace(), &prefix, meta::controlled_by(owner, resource))
}

/// Creates a pod of a template for its owner.
pub(crate) async fn create(control: &PodControl, owner: &Value, resource: &Resource, template: &Value) -> Result<()> {
    let pod = from_template(template, owner, resource);
    if meta::labels(&pod).is_empty() {
        return Err(Error::Content("unable to create pods, no labels".to_owned()));
    }
    control.create(owner, &pod).await.map(|_| ())
}

/// Deletes pods of an owner, side by side; `missed` is told the keys of those whose deletion nobody will see. Gives the
/// first failure.
pub(crate) async fn delete(
    control: &PodControl,
    owner: &Value,
    pods: &[Arc<Value>],
    missed: impl Fn(&str),
) -> Result<()> {
    let outcomes = join_all(pods.iter().map(|pod| control.delete(owner, pod))).await;
    let mut failure = None;
    for (pod, outcome) in pods.iter().zip(outcomes) {
        if !matches!(outcome, Ok(true)) {
            missed(&client::cache::key(pod));
        }
        if let Err(error) = outcome {
            failure.get_or_insert(Error::Content(format!("unable to delete pods: {error}")));
        }
    }
    failure.map_or(Ok(()), Err)
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
        let owner = value(r#"{"metadata":{"name":"web","namespace":"n","uid":"u"}}"#);
        let template = value(r#"{"metadata":{"labels":{"a":"b"},"name":"ignored"},"spec":{"nodeName":"n"}}"#);
        let pod = from_template(&template, &owner, &client::resources::REPLICA_SETS);
        let want = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","generateName":"web-","labels":{"a":"b"},"ownerReferences":
            [{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}]},
            "spec":{"nodeName":"n"}}"#;
        assert_eq!(pod, value(want));
    }
}
