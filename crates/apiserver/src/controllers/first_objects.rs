//! Objects that programs find in every cluster, beside namespaces, roles and the service `kubernetes`: priority levels and
//! flow schemas, the classes of system pods, the APIServices of what the server serves, and the ConfigMap that says by
//! which authority clients are known.

use crate::Server;
use crate::answer::Failure;
use crate::handlers::time;
use crate::registry::{self, Stored};
use object::{Map, Value, map};
use std::sync::Arc;
use store::{Expect, Write};

const FLOW: &str = "flowcontrol.apiserver.k8s.io";
/// Says whether the server may bring a specification back to what it was.
const AUTOUPDATE: [&str; 3] = ["metadata", "annotations", "apf.kubernetes.io/autoupdate-spec"];
const CLIENT_CA: [&str; 2] = ["data", "client-ca-file"];

/// How the specifications of local APIServices order groups and versions: group, version, the two numbers.
const PRIORITIES: [(&str, &str, i64, i64); 22] = [
    ("", "v1", 18_000, 1),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16_700, 12),
    ("admissionregistration.k8s.io", "v1alpha1", 16_700, 9),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("apps", "v1", 17_800, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    (FLOW, "v1", 16_100, 21),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
];

/// An object that is to be there.
struct First {
    group: &'static str,
    plural: &'static str,
    /// With name, and namespace where there is one.
    object: Value,
    /// What the server says of it; null where there is nothing to say.
    status: Value,
    /// Who owns its fields.
    manager: &'static str,
}

/// Makes what is missing and brings back what must be as it was, in one trip.
pub(crate) async fn ensure(server: &Arc<Server>) -> Result<(), Failure> {
    let catalogue = server.catalogue();
    let mut writes = Vec::new();
    for First { group, plural, mut object, status, manager } in wanted(server) {
        let Some(resource) = catalogue.resource(group, "v1", plural) else { continue };
        let key = registry::key(resource, object.namespace(), object.name());
        // What the replica does not know yet only lets a write fail that another server was faster with.
        let there = server.store.replica().get(&key, None).map_err(registry::read_failure)?;
        let expect = match there {
            None => {
                if matches!(group, FLOW | "scheduling.k8s.io") {
                    object.metadata_mut().insert("generation", 1);
                }
                object = server.new_object(resource, object, manager)?;
                if !status.is_null() {
                    object.set_at(&["status"], status);
                }
                Expect::Absent
            }
            Some(entry) => {
                let live = registry::stored(&entry)?.value(0);
                let Some(mended) = mended(group, live, &object) else { continue };
                object = mended;
                Expect::Revision(entry.mod_revision)
            }
        };
        let stored = Stored::new(&object, resource.strategy.fingerprint());
        writes.push(Write::put(key, expect, stored.raw().clone()));
    }
    server.write_first(writes).await
}

/// What is there as it has to be; nothing when it is so, or somebody else's.
fn mended(group: &str, live: Value, wanted: &Value) -> Option<Value> {
    let mut live = live;
    match group {
        FLOW => {
            let mandatory = matches!(live.name(), "exempt" | "catch-all");
            let kept = mandatory || live.str_at(&AUTOUPDATE) == Some("true");
            let mut spec = wanted.get("spec").cloned().unwrap_or_default();
            // How much is lent is for administrators to say.
            if let Some(exempt) = live.at(&["spec", "exempt"]) {
                spec.set_at(&["exempt"], exempt.clone());
            }
            if !kept || live.get("spec") == Some(&spec) {
                return None;
            }
            live.set_at(&["spec"], spec);
            let generation = live.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0);
            live.metadata_mut().insert("generation", generation + 1);
        }
        "" => {
            // Other servers may know clients by other authorities.
            let own = wanted.str_at(&CLIENT_CA).unwrap_or_default();
            let held = live.str_at(&CLIENT_CA).unwrap_or_default();
            if held.contains(own.trim()) {
                return None;
            }
            let held = held.trim_end();
            let both = if held.is_empty() { own.to_owned() } else { format!("{held}\n{own}") };
            live.set_at(&CLIENT_CA, both.into());
        }
        _ => return None,
    }
    Some(live)
}

fn wanted(server: &Server) -> Vec<First> {
    let now = time((server.options.clock)());
    let mut all = Vec::new();
    const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
    for object in kinds::priority_levels() {
        let plural = "prioritylevelconfigurations";
        all.push(First { group: FLOW, plural, object, status: Value::Null, manager: PRODUCER });
    }
    for object in kinds::flow_schemas() {
        let level = object.str_at(&["spec", "priorityLevelConfiguration", "name"]).unwrap_or_default();
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} and it exists");
        let found = condition("Dangling", "False", "Found", &message, &now);
        all.push(First { group: FLOW, plural: "flowschemas", object, status: found, manager: PRODUCER });
    }
    const SELF: &str = "kube-apiserver";
    for (name, value, description) in [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ] {
        let content = map! {
            "value" => value, "description" => description, "preemptionPolicy" => "PreemptLowerPriority",
        };
        let object = object("scheduling.k8s.io/v1", "PriorityClass", map! { "name" => name }, content);
        let (group, plural) = ("scheduling.k8s.io", "priorityclasses");
        all.push(First { group, plural, object, status: Value::Null, manager: SELF });
    }
    all.extend(services(server, &now));
    if !server.options.client_ca.is_empty() {
        let meta = map! { "name" => "extension-apiserver-authentication", "namespace" => "kube-system" };
        let data = map! { "client-ca-file" => server.options.client_ca.as_str() };
        let object = object("v1", "ConfigMap", meta, map! { "data" => data });
        all.push(First { group: "", plural: "configmaps", object, status: Value::Null, manager: SELF });
    }
    all
}

/// The APIServices of the built-in groups.
fn services(server: &Server, now: &str) -> Vec<First> {
    let catalogue = server.catalogue();
    let served =
        |group: &str, version: &str| catalogue.group(group).is_some_and(|g| !g.custom && g.version(version).is_some());
    let mut all = Vec::new();
    for (group, version, minimum, priority) in PRIORITIES.into_iter().filter(|(g, v, ..)| served(g, v)) {
        let mut spec = map! { "version" => version, "groupPriorityMinimum" => minimum, "versionPriority" => priority };
        if !group.is_empty() {
            spec.insert("group", group);
        }
        let labels = map! { "kube-aggregator.kubernetes.io/automanaged" => "onstart" };
        let meta = map! { "name" => format!("{version}.{group}"), "labels" => labels };
        let object = object("apiregistration.k8s.io/v1", "APIService", meta, map! { "spec" => spec });
        let status = condition("Available", "True", "Local", "Local APIServices are always available", now);
        let (group, plural, manager) = ("apiregistration.k8s.io", "apiservices", "kube-apiserver");
        all.push(First { group, plural, object, status, manager });
    }
    all
}

fn object(api_version: &str, kind: &str, metadata: Map, content: Map) -> Value {
    let mut object = content;
    object.insert("apiVersion", api_version);
    object.insert("kind", kind);
    object.insert("metadata", metadata);
    Value::Object(object)
}

/// A status with one condition.
fn condition(ty: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    let condition = map! {
        "type" => ty, "status" => status, "reason" => reason, "message" => message, "lastTransitionTime" => now,
    };
    Value::Object(map! { "conditions" => vec![condition] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_added_on_lines_of_their_own() {
        let with = |authorities: &str| Value::Object(map! { "data" => map! { "client-ca-file" => authorities } });
        for (held, expected) in [
            ("A", Some("A\nB\n")),
            ("A\n", Some("A\nB\n")),
            ("A\n\n", Some("A\nB\n")),
            ("", Some("B\n")),
            ("A\nB", None),
        ] {
            let mended = mended("", with(held), &with("B\n"));
            assert_eq!(mended.as_ref().and_then(|m| m.str_at(&CLIENT_CA)), expected, "{held:?}");
        }
    }
}
