//! What is told of a StatefulSet.

use super::super::{meta, pods};
use super::identity;
use client::{Api, Result};
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value, map};
use std::sync::Arc;

/// The names of the two revisions of a set, and how often the name of a revision was taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revisions {
    /// The revision that all pods had when the last update was over.
    pub(super) current: String,
    /// The revision that pods shall have.
    pub(super) update: String,
    /// Collisions of names.
    pub(super) collisions: i64,
}

/// The status of a set with these pods.
pub(super) fn status<'p>(
    set: &Value,
    revisions: &Revisions,
    pods: impl Iterator<Item = &'p Arc<Value>> + Clone,
    now: Timestamp,
) -> Map {
    let count = |counts: &dyn Fn(&Value) -> bool| {
        i64::try_from(pods.clone().filter(|pod| !pods::phase(pod).is_empty() && counts(pod)).count())
            .unwrap_or_default()
    };
    let of = |name: &str| count(&|pod| !meta::is_deleting(pod) && identity::revision(pod) == name);
    let mut status = map! {
        "replicas" => count(&|_| true),
        "availableReplicas" => count(&|pod| identity::is_running_and_available(set, pod, now)),
        "currentRevision" => revisions.current.as_str(),
        "updateRevision" => revisions.update.as_str(),
        "collisionCount" => revisions.collisions,
    };
    for (key, count) in [
        ("observedGeneration", meta::generation(set)),
        ("readyReplicas", count(&identity::is_running_and_ready)),
        ("currentReplicas", of(&revisions.current)),
        ("updatedReplicas", of(&revisions.update)),
    ] {
        meta::set_count(&mut status, key, count);
    }
    status
}

/// Makes the updated revision the current one when all pods have it and are ready.
fn complete(set: &Value, status: &mut Map) {
    let count = |key: &str| status.get(key).and_then(Value::as_int).unwrap_or_default();
    let wanted = meta::replicas(set);
    let rolling = meta::spec(set).sub("updateStrategy").text("type") == "RollingUpdate";
    if rolling && ["updatedReplicas", "readyReplicas", "replicas"].iter().all(|key| count(key) == wanted) {
        let (updated, revision) = (count("updatedReplicas"), status.get("updateRevision").cloned());
        meta::set_count(status, "currentReplicas", updated);
        status.insert("currentRevision", revision);
    }
}

/// Whether a status says something new.
fn differs(set: &Value, status: &Map) -> bool {
    let old = meta::status(set);
    let count = |key: &str| status.get(key).and_then(Value::as_int).unwrap_or_default();
    count("observedGeneration") > old.int("observedGeneration")
        || ["replicas", "currentReplicas", "readyReplicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .any(|key| count(key) != old.int(key))
        || ["currentRevision", "updateRevision"]
            .iter()
            .any(|key| status.get(key).and_then(Value::as_str).unwrap_or_default() != old.text(key))
}

/// Writes a status, if it says something new.
pub(super) async fn write(api: &Api, set: &Value, mut status: Map) -> Result<()> {
    complete(set, &mut status);
    if !differs(set, &status) {
        return Ok(());
    }
    let mut set = set.clone();
    for _ in 0..5 {
        set.set_at(&["status"], status.clone().into());
        match api.update_status(&set).await {
            Err(error) if error.is_conflict() => set = api.get(set.namespace(), set.name()).await?,
            outcome => return outcome.map(|_| ()),
        }
    }
    api.update_status(&set).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn pod(revision: &str, phase: &str, ready: &str) -> Arc<Value> {
        Arc::new(value(&format!(
            r#"{{"metadata":{{"labels":{{"controller-revision-hash":"{revision}"}}}},
            "status":{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        )))
    }

    fn set() -> Value {
        value(r#"{"metadata":{"generation":3},"spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate"}}}"#)
    }

    fn revisions() -> Revisions {
        Revisions { current: "a".to_owned(), update: "b".to_owned(), collisions: 0 }
    }

    #[test]
    fn pods_are_counted_by_state_and_revision() {
        let pods = [pod("a", "Running", "True"), pod("b", "Pending", "False"), pod("b", "", "")];
        let got = status(&set(), &revisions(), pods.iter(), Timestamp::UNIX_EPOCH);
        let want = r#"{"observedGeneration":3,"replicas":2,"readyReplicas":1,"availableReplicas":1,"currentReplicas":1,
            "updatedReplicas":1,"currentRevision":"a","updateRevision":"b","collisionCount":0}"#;
        assert_eq!(Value::Object(got.clone()), value(want));
        assert!(differs(&set(), &got));
        let mut same = set();
        same.set_at(&["status"], got.clone().into());
        assert!(!differs(&same, &got));
    }

    #[test]
    fn an_update_is_over_when_all_pods_have_it_and_are_ready() {
        let pods = [pod("b", "Running", "True"), pod("b", "Running", "True")];
        let mut done = status(&set(), &revisions(), pods.iter(), Timestamp::UNIX_EPOCH);
        complete(&set(), &mut done);
        assert_eq!(done.get("currentRevision").and_then(Value::as_str), Some("b"));
        assert_eq!(done.get("currentReplicas").and_then(Value::as_int), Some(2));
        let mut open = status(&set(), &revisions(), pods[..1].iter(), Timestamp::UNIX_EPOCH);
        complete(&set(), &mut open);
        assert_eq!(open.get("currentRevision").and_then(Value::as_str), Some("a"));
    }
}
