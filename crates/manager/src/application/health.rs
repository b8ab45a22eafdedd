//! Whether an object does what it is there for.

use crate::tenancy::is_deleted;
use object::Value;

/// What is known of an object's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Whether it does what it is there for.
    pub healthy: bool,
    /// What it says of itself; often empty.
    pub message: String,
}

/// How the message begins where the health cannot be known.
pub const UNKNOWN: &str = "Unknown: ";

impl Health {
    /// Healthy, without more words.
    pub fn good() -> Self {
        Health { healthy: true, message: String::new() }
    }

    /// Not well, and why.
    pub fn bad(why: &str) -> Self {
        Health { healthy: false, message: why.to_owned() }
    }

    /// Not known, and why.
    pub fn unknown(why: &str) -> Self {
        Health { healthy: false, message: format!("{UNKNOWN}{why}") }
    }

    fn when(healthy: bool, message: impl Into<String>) -> Self {
        Health { healthy, message: message.into() }
    }
}

const DISABLED: &str = "app.oam.dev/disable-health-check";

/// The health of a live object by the rules of its kind: those of the built-in workloads, and for any other kind what
/// `observedGeneration` and conditions such as `Ready` say. What says nothing is healthy.
pub fn of(live: &Value) -> Health {
    if live.annotation(DISABLED) == Some("true") {
        return Health::good();
    }
    if is_deleted(live) {
        return Health::when(false, "is being deleted");
    }
    let api_version = live.str_at(&["apiVersion"]).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, live.str_at(&["kind"]).unwrap_or_default()) {
        ("apps", "Deployment") => workload(live, number(live, "spec", "replicas").unwrap_or(1)),
        ("apps", "StatefulSet") => workload(live, number(live, "spec", "replicas").unwrap_or(1)),
        ("apps", "ReplicaSet") => workload(live, number(live, "spec", "replicas").unwrap_or(1)),
        ("apps", "DaemonSet") => daemon_set(live),
        ("batch", "Job") => job(live),
        ("", "Pod") => pod(live),
        ("", "PersistentVolumeClaim") => {
            let phase = live.str_at(&["status", "phase"]).unwrap_or("Pending");
            Health::when(phase == "Bound", if phase == "Bound" { String::new() } else { format!("claim is {phase}") })
        }
        ("", "Service") => service(live),
        ("", "Namespace") => Health::when(live.str_at(&["status", "phase"]) != Some("Terminating"), ""),
        _ => by_conditions(live),
    }
}

fn number(live: &Value, part: &str, field: &str) -> Option<i64> {
    live.at(&[part, field]).and_then(Value::as_int)
}

fn is_observed(live: &Value) -> bool {
    let observed = number(live, "status", "observedGeneration");
    let generation = number(live, "metadata", "generation").unwrap_or_default();
    observed.is_none_or(|observed| observed >= generation)
}

fn workload(live: &Value, wanted: i64) -> Health {
    let count = |field| number(live, "status", field).unwrap_or_default();
    // Not all workloads count what is updated.
    let updated = if live.str_at(&["kind"]) == Some("ReplicaSet") { wanted } else { count("updatedReplicas") };
    let ready = count("readyReplicas");
    let observed = number(live, "status", "observedGeneration").is_some() && is_observed(live);
    let healthy = observed && ready == wanted && updated == wanted && count("replicas") == wanted;
    Health::when(healthy, format!("Ready:{ready}/{wanted}"))
}

fn daemon_set(live: &Value) -> Health {
    let count = |field| number(live, "status", field).unwrap_or_default();
    let wanted = count("desiredNumberScheduled");
    let observed = number(live, "status", "observedGeneration").is_some() && is_observed(live);
    let fields = ["numberReady", "updatedNumberScheduled", "currentNumberScheduled"];
    let healthy = observed && fields.iter().all(|field| count(field) == wanted);
    Health::when(healthy, format!("Ready:{}/{wanted}", count("numberReady")))
}

fn job(live: &Value) -> Health {
    if let Some(failed) = condition(live, "Failed").filter(|failed| failed.get("status") == Some(&"True".into())) {
        return Health::when(false, failed.str_at(&["message"]).unwrap_or("the job failed"));
    }
    let succeeded = number(live, "status", "succeeded").unwrap_or_default();
    let wanted = number(live, "spec", "completions").or(number(live, "spec", "parallelism")).unwrap_or(1);
    Health::when(succeeded >= wanted, format!("Succeeded:{succeeded}/{wanted}"))
}

fn pod(live: &Value) -> Health {
    match live.str_at(&["status", "phase"]).unwrap_or("Pending") {
        "Succeeded" => Health::good(),
        "Running" if condition(live, "Ready").is_some_and(|ready| ready.get("status") == Some(&"True".into())) => {
            Health::good()
        }
        phase => Health::when(false, format!("pod is {phase}")),
    }
}

fn service(live: &Value) -> Health {
    let is_balanced = live.str_at(&["spec", "type"]) == Some("LoadBalancer");
    let has_address = live
        .at(&["status", "loadBalancer", "ingress"])
        .and_then(Value::as_array)
        .is_some_and(|addresses| !addresses.is_empty());
    Health::when(!is_balanced || has_address, if is_balanced && !has_address { "no address yet" } else { "" })
}

/// Conditions that say that all is well, most telling first.
const GOOD: [&str; 5] = ["Ready", "Available", "Healthy", "Established", "Succeeded"];
/// Conditions that say that something is wrong.
const BAD: [&str; 4] = ["Stalled", "Failed", "Degraded", "ReconcileError"];

fn by_conditions(live: &Value) -> Health {
    if !is_observed(live) {
        return Health::when(false, "the controller has not seen the latest change yet");
    }
    let text = |condition: &Value, key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for name in BAD {
        if let Some(bad) = condition(live, name).filter(|bad| text(bad, "status") == "True") {
            return Health::when(false, text(bad, "message"));
        }
    }
    match GOOD.iter().find_map(|name| condition(live, name)) {
        Some(good) => Health::when(text(good, "status") == "True", text(good, "message")),
        None => Health::good(),
    }
}

fn condition<'a>(live: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = live.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn health_follows_the_rules_of_the_kind() {
        for (text, healthy) in [
            (
                r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"updatedReplicas":2}}"#,
                true,
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"updatedReplicas":2}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":2,"updatedReplicas":2}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":1},"spec":{"replicas":0}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"annotations":{"app.oam.dev/disable-health-check":"true"}},"spec":{"replicas":2}}"#,
                true,
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"numberReady":3,"updatedNumberScheduled":3,"currentNumberScheduled":3}}"#,
                true,
            ),
            (r#"{"apiVersion":"batch/v1","kind":"Job","spec":{"parallelism":2},"status":{"succeeded":1}}"#, false),
            (r#"{"apiVersion":"batch/v1","kind":"Job","spec":{"completions":1},"status":{"succeeded":1}}"#, true),
            (r#"{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running"}}"#, false),
            (r#"{"apiVersion":"v1","kind":"ConfigMap"}"#, true),
            (
                r#"{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}}"#,
                false,
            ),
            (r#"{"apiVersion":"x.io/v1","kind":"Foo"}"#, true),
            (
                r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"generation":2},"status":{"observedGeneration":1}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"x.io/v1","kind":"Foo","status":{"conditions":[{"type":"Ready","status":"False","message":"no"}]}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"x.io/v1","kind":"Foo","status":{"conditions":[{"type":"Stalled","status":"True"},{"type":"Ready","status":"True"}]}}"#,
                false,
            ),
            (r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#, false),
        ] {
            assert_eq!(of(&json::parse(text.as_bytes()).unwrap_or_default()).healthy, healthy, "{text}");
        }
    }
}
