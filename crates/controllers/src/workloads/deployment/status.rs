//! What is told of a Deployment: counts, availability, and whether the rollout gets on.

use super::super::{conditions, meta};
use super::numbers;
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
/// The rollout is over.
const COMPLETE: &str = "NewReplicaSetAvailable";
/// The rollout did not get on within its deadline.
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
/// The new set was just made.
pub(super) const CREATED: &str = "NewReplicaSetCreated";
/// How long the pods of a new set are waited for before they count as missing.
const GRACE: SignedDuration = SignedDuration::from_secs(2);

/// The condition that tells of progress.
pub(super) fn progressing(deployment: &Value) -> Option<&Value> {
    conditions::find(meta::status(deployment), PROGRESSING)
}

/// A new condition that tells of progress.
pub(super) fn new_progressing(status: &str, reason: &str, message: &str, now: Timestamp) -> Map {
    conditions::new(PROGRESSING, status, reason, message, now, true)
}

/// Puts a condition into the status of a Deployment.
pub(super) fn set(deployment: &mut Value, condition: Map) {
    let mut status = Value::Object(meta::status(deployment).as_object().cloned().unwrap_or_default());
    conditions::set(&mut status, condition);
    deployment.set_at(&["status"], status);
}

/// The condition that a Deployment gets when it is paused or resumed.
pub(super) fn pausing(deployment: &Value, now: Timestamp) -> Option<Map> {
    numbers::progress_deadline(deployment)?;
    let reason = progressing(deployment).map(|c| c.text("reason")).unwrap_or_default();
    match (meta::spec(deployment).flag("paused"), reason) {
        // What did not get on is told, paused or not.
        (_, TIMED_OUT) | (true, PAUSED) => None,
        (true, _) => Some(new_progressing("Unknown", PAUSED, "Deployment is paused", now)),
        (false, PAUSED) => Some(new_progressing("Unknown", "DeploymentResumed", "Deployment is resumed", now)),
        (false, _) => None,
    }
}

/// The status by these sets: counts and availability.
pub(super) fn counts(deployment: &Value, all: &[Arc<Value>], new: Option<&Arc<Value>>, now: Timestamp) -> Value {
    let old = meta::status(deployment);
    let available = numbers::counted(all, "availableReplicas");
    let mut status = Map::new();
    for (key, count) in [
        ("observedGeneration", meta::generation(deployment)),
        ("replicas", numbers::counted(all, "replicas")),
        ("updatedReplicas", numbers::counted(new.map(std::slice::from_ref).unwrap_or_default(), "replicas")),
        ("readyReplicas", numbers::counted(all, "readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (numbers::wanted(all) - available).max(0)),
    ] {
        meta::set_count(&mut status, key, count);
    }
    for key in ["collisionCount", "conditions"] {
        if let Some(value) = old.get(key).filter(|v| !v.is_null()) {
            status.insert(key, value.clone());
        }
    }
    let mut status = status.into();
    let enough = available >= meta::replicas(deployment) - numbers::max_unavailable(deployment);
    let (value, reason, message) = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    conditions::set(&mut status, conditions::new(AVAILABLE, value, reason, message, now, true));
    status
}

/// The status by these sets during a rollout: [`counts`], progress and failures.
pub(super) fn rollout(deployment: &Value, all: &[Arc<Value>], new: Option<&Arc<Value>>, now: Timestamp) -> Value {
    let mut status = counts(deployment, all, new, now);
    let current = progressing(deployment);
    match numbers::progress_deadline(deployment) {
        None => conditions::remove(&mut status, PROGRESSING),
        Some(deadline) => {
            let over = status.int("replicas") == status.int("updatedReplicas")
                && current.is_some_and(|c| c.text("reason") == COMPLETE);
            if !over {
                progress(deployment, new, &mut status, deadline, now);
            }
        }
    }
    match failure(all, new) {
        Some(condition) => conditions::set(&mut status, condition),
        None => conditions::remove(&mut status, FAILURE),
    }
    status
}

fn progress(deployment: &Value, new: Option<&Arc<Value>>, status: &mut Value, deadline: i64, now: Timestamp) {
    let who = match new {
        Some(new) => format!("ReplicaSet {}", object::go::quote(new.name())),
        None => format!("Deployment {}", object::go::quote(deployment.name())),
    };
    if is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        conditions::set(status, new_progressing("True", COMPLETE, &message, now));
    } else if gets_on(deployment, status) {
        let mut condition = new_progressing("True", "ReplicaSetUpdated", &format!("{who} is progressing."), now);
        // The time of the update is that of the last step, whatever was there before.
        if let Some(current) = progressing(deployment).filter(|c| c.text("status") == "True") {
            condition.insert("lastTransitionTime", current.text("lastTransitionTime"));
        }
        conditions::remove(status, PROGRESSING);
        conditions::set(status, condition);
    } else if is_timed_out(status, deadline, now) {
        let message = format!("{who} has timed out progressing.");
        conditions::set(status, new_progressing("False", TIMED_OUT, &message, now));
    }
}

/// Whether all pods are new and available, by a status.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let wanted = meta::replicas(deployment);
    ["updatedReplicas", "replicas", "availableReplicas"].iter().all(|key| status.int(key) == wanted)
        && status.int("observedGeneration") >= meta::generation(deployment)
}

/// Whether a status is nearer to the end than that of the Deployment.
fn gets_on(deployment: &Value, status: &Value) -> bool {
    let before = meta::status(deployment);
    let old = |s: &Value| s.int("replicas") - s.int("updatedReplicas");
    let grows = |key: &str| status.int(key) > before.int(key);
    grows("updatedReplicas") || old(status) < old(before) || grows("readyReplicas") || grows("availableReplicas")
}

fn is_timed_out(status: &Value, deadline: i64, now: Timestamp) -> bool {
    let Some(condition) = conditions::find(status, PROGRESSING) else { return false };
    match condition.text("reason") {
        COMPLETE => false,
        TIMED_OUT => true,
        _ => left(condition, deadline, now).is_some_and(|left| left.is_negative()),
    }
}

/// How long a rollout may still take that last got on when the condition says; negative when that time is over.
fn left(condition: &Value, deadline: i64, now: Timestamp) -> Option<SignedDuration> {
    let since = meta::time(condition.text("lastUpdateTime"))?;
    SignedDuration::from_secs(deadline).checked_sub(now.duration_since(since))
}

/// When the rollout has to be looked at again, lest it be stuck without being told so.
pub(super) fn check_after(deployment: &Value, status: &Value, now: Timestamp) -> Option<Duration> {
    let deadline = numbers::progress_deadline(deployment)?;
    let condition = progressing(deployment)?;
    if is_complete(deployment, status) || condition.text("reason") == TIMED_OUT {
        return None;
    }
    let left = Duration::try_from(left(condition, deadline, now)?).unwrap_or_default();
    // A second more, as times have no fractions.
    Some(left.saturating_add(Duration::from_secs(1)))
}

/// Whether the new set was made so lately that its pods are still to come, beside those of others. The rollout waits for
/// them: else the first pod would pass for progress over none. Upstream's controller comes to the same, as its requests
/// are few a second.
pub(super) fn awaits_pods(deployment: &Value, all: &[Arc<Value>], new: Option<&Arc<Value>>, now: Timestamp) -> bool {
    let since = progressing(deployment).filter(|c| c.text("reason") == CREATED);
    let since = since.and_then(|c| meta::time(c.text("lastUpdateTime")));
    let coming = new.is_some_and(|new| {
        let status = meta::status(new);
        status.int("replicas") < meta::replicas(new)
            && numbers::counted(all, "replicas") > status.int("replicas")
            && conditions::find(status, FAILURE).is_none()
    });
    coming && since.is_some_and(|since| now.duration_since(since) < GRACE)
}

/// What a set tells of a failure, the new one first, as a condition of the Deployment.
fn failure(all: &[Arc<Value>], new: Option<&Arc<Value>>) -> Option<Map> {
    let condition = new.into_iter().chain(all).find_map(|set| conditions::find(meta::status(set), FAILURE))?;
    let mut condition = condition.as_object()?.clone();
    let time = condition.get("lastTransitionTime").cloned().unwrap_or_default();
    condition.insert("lastUpdateTime", time);
    Some(condition)
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn set(name: &str, replicas: i64, available: i64) -> Arc<Value> {
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"replicas":{replicas}}},"status":
            {{"replicas":{replicas},"readyReplicas":{available},"availableReplicas":{available}}}}}"#
        )))
    }

    fn deployment(status: &str) -> Value {
        value(&format!(
            r#"{{"metadata":{{"name":"web","generation":2}},"spec":{{"replicas":2,"progressDeadlineSeconds":60,
            "strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":1,"maxUnavailable":0}}}}}},"status":{status}}}"#
        ))
    }

    fn progress_of(status: &Value) -> (&str, &str) {
        conditions::find(status, PROGRESSING).map_or(("", ""), |c| (c.text("status"), c.text("reason")))
    }

    #[test]
    fn counts_come_from_the_sets() {
        let (new, old) = (set("new", 1, 0), set("old", 2, 2));
        let all = [old, new.clone()];
        let mut got = counts(&deployment(r#"{"collisionCount":1}"#), &all, Some(&new), NOW.parse().unwrap());
        conditions::remove(&mut got, AVAILABLE);
        let want = r#"{"observedGeneration":2,"replicas":3,"updatedReplicas":1,"readyReplicas":2,"availableReplicas":2,
            "unavailableReplicas":1,"collisionCount":1}"#;
        assert_eq!(got, value(want));
    }

    #[test]
    fn a_rollout_gets_on_completes_or_times_out() {
        let with = |time: &str, reason: &str| {
            format!(
                r#"{{"replicas":2,"updatedReplicas":1,"conditions":[
                {{"type":"Progressing","status":"True","reason":"{reason}","lastUpdateTime":"{time}","lastTransitionTime":"{time}"}}]}}"#
            )
        };
        let cases = [
            ("{}", 1, 0, ("True", "ReplicaSetUpdated")),
            ("{}", 2, 2, ("True", COMPLETE)),
            (&with("2026-01-01T00:09:30Z", "ReplicaSetUpdated"), 1, 0, ("True", "ReplicaSetUpdated")),
            (&with("2026-01-01T00:08:30Z", "ReplicaSetUpdated"), 1, 0, ("False", TIMED_OUT)),
            (&with("2026-01-01T00:08:30Z", COMPLETE), 1, 0, ("True", COMPLETE)),
        ];
        for (status, replicas, available, want) in cases {
            let new = set("new", replicas, available);
            let all = [set("old", 2 - replicas, 0), new.clone()];
            let got = rollout(&deployment(status), &all, Some(&new), NOW.parse().unwrap());
            assert_eq!(progress_of(&got), want, "{status}");
        }
    }

    #[test]
    fn a_new_sets_pods_are_waited_for_a_moment() {
        let status = r#"{"conditions":[{"type":"Progressing","reason":"NewReplicaSetCreated","lastUpdateTime":"2026-01-01T00:09:59Z"}]}"#;
        let pending = Arc::new(value(r#"{"spec":{"replicas":1},"status":{"replicas":0}}"#));
        let failing = value(r#"{"spec":{"replicas":1},"status":{"conditions":[{"type":"ReplicaFailure"}]}}"#);
        let all = [set("old", 2, 2)];
        let awaits =
            |new: &Arc<Value>, now: &str| awaits_pods(&deployment(status), &all, Some(new), now.parse().unwrap());
        assert!(awaits(&pending, NOW));
        assert!(!awaits(&pending, "2026-01-01T00:10:02Z"));
        assert!(!awaits(&set("new", 1, 0), NOW));
        assert!(!awaits(&Arc::new(failing), NOW));
        assert!(!awaits_pods(&deployment("{}"), &all, Some(&pending), NOW.parse().unwrap()));
        assert!(!awaits_pods(&deployment(status), &[], Some(&pending), NOW.parse().unwrap()));
    }

    #[test]
    fn pausing_and_resuming_are_told_unless_the_deadline_passed() {
        let told = |paused: bool, reason: &str| {
            let status = format!(r#"{{"conditions":[{{"type":"Progressing","reason":"{reason}"}}]}}"#);
            let mut d = deployment(&status);
            d.set_at(&["spec", "paused"], paused.into());
            pausing(&d, NOW.parse().unwrap()).map(|c| c.get("reason").and_then(Value::as_str).unwrap().to_owned())
        };
        assert_eq!(told(true, "x").as_deref(), Some(PAUSED));
        assert_eq!(told(true, PAUSED), None);
        assert_eq!(told(false, PAUSED).as_deref(), Some("DeploymentResumed"));
        assert_eq!(told(false, "x"), None);
        assert_eq!(told(true, TIMED_OUT), None);
    }

    #[test]
    fn failures_of_sets_are_told() {
        let mut failing = (*set("old", 1, 0)).clone();
        let condition =
            r#"[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","lastTransitionTime":"t"}]"#;
        failing.set_at(&["status", "conditions"], value(condition));
        let got = rollout(&deployment("{}"), &[Arc::new(failing)], None, NOW.parse().unwrap());
        let condition = conditions::find(&got, FAILURE).unwrap();
        assert_eq!((condition.text("reason"), condition.text("lastUpdateTime")), ("FailedCreate", "t"));
    }
}
