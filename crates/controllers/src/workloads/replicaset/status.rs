//! What is told of a set of pods.

use super::super::conditions;
use super::super::{meta, pods};
use client::{Api, Error, Result};
use jiff::Timestamp;
use kinds::read::Read;
use object::selector::Labels;
use object::{Value, map};
use std::sync::Arc;

const FAILURE: &str = "ReplicaFailure";

/// The status of a set with these active pods; `failure` is why pods could not be created or deleted.
pub(super) fn status(set: &Value, active: &[Arc<Value>], failure: Option<&Error>, now: Timestamp) -> Value {
    let template = meta::template(set).sub("metadata").sub("labels");
    let labels = Labels::from_object(&map! { "matchLabels" => template.clone() }.into()).unwrap_or_default();
    let min_ready_seconds = meta::min_ready_seconds(set);
    let count = |counts: &dyn Fn(&Value) -> bool| {
        i64::try_from(active.iter().filter(|pod| counts(pod)).count()).unwrap_or_default()
    };
    let mut status = Value::Object(meta::status(set).as_object().cloned().unwrap_or_default());
    match (failure, conditions::find(&status, FAILURE)) {
        (Some(error), None) => {
            let reason = if count(&|_| true) < meta::replicas(set) { "FailedCreate" } else { "FailedDelete" };
            conditions::set(&mut status, conditions::new(FAILURE, "True", reason, &error.to_string(), now, false));
        }
        (None, Some(_)) => conditions::remove(&mut status, FAILURE),
        _ => {}
    }
    if let Some(members) = status.as_object_mut() {
        members.insert("replicas", count(&|_| true));
        meta::set_count(members, "fullyLabeledReplicas", count(&|pod| labels.matches_object(pod)));
        meta::set_count(members, "readyReplicas", count(&pods::is_ready));
        meta::set_count(members, "availableReplicas", count(&|pod| pods::is_available(pod, min_ready_seconds, now)));
    }
    status
}

/// Writes a status, if it says something new. A set that was written meanwhile is tried once more.
pub(super) async fn write(api: &Api, set: &Value, mut status: Value) -> Result<()> {
    if meta::status(set).int("observedGeneration") == meta::generation(set) && *meta::status(set) == status {
        return Ok(());
    }
    if let Some(members) = status.as_object_mut() {
        meta::set_count(members, "observedGeneration", meta::generation(set));
    }
    let with_status = |mut set: Value| {
        set.set_at(&["status"], status.clone());
        set
    };
    if api.update_status(&with_status(set.clone())).await.is_ok() {
        return Ok(());
    }
    let fresh = api.get(set.namespace(), set.name()).await?;
    api.update_status(&with_status(fresh)).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set(status: &str) -> Value {
        value(&format!(
            r#"{{"spec":{{"replicas":3,"template":{{"metadata":{{"labels":{{"a":"b"}}}}}}}},"status":{status}}}"#
        ))
    }

    fn pod(labels: &str, ready: bool) -> Arc<Value> {
        let ready = if ready { "True" } else { "False" };
        Arc::new(value(&format!(
            r#"{{"metadata":{{"labels":{labels}}},"status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        )))
    }

    #[test]
    fn pods_are_counted() {
        let pods = [pod(r#"{"a":"b","c":"d"}"#, true), pod("{}", false)];
        let got = status(&set("{}"), &pods, None, Timestamp::UNIX_EPOCH);
        assert_eq!(got, value(r#"{"replicas":2,"fullyLabeledReplicas":1,"readyReplicas":1,"availableReplicas":1}"#));
        assert_eq!(
            status(&set(r#"{"readyReplicas":4}"#), &[], None, Timestamp::UNIX_EPOCH),
            value(r#"{"replicas":0}"#)
        );
    }

    #[test]
    fn a_failure_is_told_until_it_is_over() {
        let error = Error::Content("no".to_owned());
        let failed = status(&set("{}"), &[], Some(&error), Timestamp::UNIX_EPOCH);
        let condition = conditions::find(&failed, FAILURE).unwrap();
        assert_eq!((condition.text("reason"), condition.text("message")), ("FailedCreate", "no"));
        let text = object::json::to_string(&failed);
        assert_eq!(status(&set(&text), &[], None, Timestamp::UNIX_EPOCH), value(r#"{"replicas":0}"#));
        let many: Vec<_> = (0..4).map(|_| pod("{}", false)).collect();
        let failed = status(&set("{}"), &many, Some(&error), Timestamp::UNIX_EPOCH);
        assert_eq!(conditions::find(&failed, FAILURE).unwrap().text("reason"), "FailedDelete");
    }
}
