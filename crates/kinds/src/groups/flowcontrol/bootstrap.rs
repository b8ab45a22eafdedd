//! The priority levels and flow schemas that every cluster has (1.33). Those called `exempt` and `catch-all` must be what
//! they are; the others are proposals that administrators may change.

use object::{Map, Value, map};

/// Who keeps an object: the server brings it back as long as this says so.
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// The objects whose specifications are fixed.
pub(super) const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// All PriorityLevelConfigurations, as they are stored but for what the server adds to `metadata`.
pub fn priority_levels() -> Vec<Value> {
    // Name, shares, percentage that may be lent, and queues, hand and length of a queue.
    const LIMITED: [(&str, i64, i64, Option<[i64; 3]>); 7] = [
        ("catch-all", 5, 0, None),
        ("global-default", 20, 50, Some([128, 6, 50])),
        ("leader-election", 10, 0, Some([16, 4, 50])),
        ("node-high", 40, 25, Some([64, 6, 50])),
        ("system", 30, 33, Some([64, 6, 50])),
        ("workload-high", 40, 50, Some([128, 6, 50])),
        ("workload-low", 100, 90, Some([128, 6, 50])),
    ];
    let exempt = map! { "nominalConcurrencyShares" => 0i64, "lendablePercent" => 0i64 };
    let exempt = object("PriorityLevelConfiguration", "exempt", map! { "type" => "Exempt", "exempt" => exempt });
    let limited = LIMITED.into_iter().map(|(name, shares, lendable, queuing)| {
        let response = match queuing {
            None => map! { "type" => "Reject" },
            Some([queues, hand, length]) => {
                let queuing = map! { "queues" => queues, "handSize" => hand, "queueLengthLimit" => length };
                map! { "type" => "Queue", "queuing" => queuing }
            }
        };
        let limited = map! {
            "nominalConcurrencyShares" => shares, "lendablePercent" => lendable, "limitResponse" => response,
        };
        object("PriorityLevelConfiguration", name, map! { "type" => "Limited", "limited" => limited })
    });
    std::iter::once(exempt).chain(limited).collect()
}

/// All FlowSchemas, like [`priority_levels`].
pub fn flow_schemas() -> Vec<Value> {
    let everybody = || groups(&["system:unauthenticated", "system:authenticated"]);
    let (controllers, scheduler) = ("system:kube-controller-manager", "system:kube-scheduler");
    let leases = || resources(&["get", "create", "update"], "coordination.k8s.io", &["leases"], false);
    let leading = [users(&[controllers, scheduler]), accounts(&["*"])].concat();
    let endpoints = resources(&["get", "create", "update"], "", &["endpoints"], false);
    let endpoint_makers =
        [users(&[controllers]), accounts(&["endpoint-controller", "endpointslicemirroring-controller"])].concat();
    let node_rules = [
        resources(&["*"], "", &["nodes", "nodes/status"], true),
        resources(&["*"], "coordination.k8s.io", &["leases"], false),
    ];
    let probes = pages(&["get"], &["/healthz", "/readyz", "/livez"]);
    vec![
        schema("exempt", "exempt", 1, "", everything(groups(&["system:masters"]))),
        schema("probes", "exempt", 2, "", rules(everybody(), vec![], vec![probes])),
        schema("system-leader-election", "leader-election", 100, "ByUser", rules(leading, vec![leases()], vec![])),
        schema("endpoint-controller", "workload-high", 150, "ByUser", rules(endpoint_makers, vec![endpoints], vec![])),
        schema(
            "workload-leader-election",
            "leader-election",
            200,
            "ByUser",
            rules(accounts(&["*"]), vec![leases()], vec![]),
        ),
        schema(
            "system-node-high",
            "node-high",
            400,
            "ByUser",
            rules(groups(&["system:nodes"]), node_rules.to_vec(), vec![]),
        ),
        schema("system-nodes", "system", 500, "ByUser", everything(groups(&["system:nodes"]))),
        schema("kube-controller-manager", "workload-high", 800, "ByNamespace", everything(users(&[controllers]))),
        schema("kube-scheduler", "workload-high", 800, "ByNamespace", everything(users(&[scheduler]))),
        schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", everything(accounts(&["*"]))),
        schema("service-accounts", "workload-low", 9000, "ByUser", everything(groups(&["system:serviceaccounts"]))),
        schema("global-default", "global-default", 9900, "ByUser", everything(everybody())),
        schema("catch-all", "catch-all", 10_000, "ByUser", everything(everybody())),
    ]
}

fn object(kind: &str, name: &str, spec: Map) -> Value {
    let annotations = map! { AUTOUPDATE => "true" };
    Value::Object(map! {
        "apiVersion" => API_VERSION,
        "kind" => kind,
        "metadata" => map! { "name" => name, "annotations" => annotations },
        "spec" => spec,
    })
}

fn schema(name: &str, level: &str, precedence: i64, method: &str, rules: Map) -> Value {
    let mut spec = map! {
        "priorityLevelConfiguration" => map! { "name" => level },
        "matchingPrecedence" => precedence,
        "rules" => vec![rules],
    };
    if !method.is_empty() {
        spec.insert("distinguisherMethod", map! { "type" => method });
    }
    object("FlowSchema", name, spec)
}

fn rules(subjects: Vec<Map>, resources: Vec<Map>, pages: Vec<Map>) -> Map {
    let mut rules = map! { "subjects" => subjects };
    for (key, list) in [("resourceRules", resources), ("nonResourceRules", pages)] {
        if !list.is_empty() {
            rules.insert(key, list);
        }
    }
    rules
}

/// All requests of some.
fn everything(subjects: Vec<Map>) -> Map {
    rules(subjects, vec![resources(&["*"], "*", &["*"], true)], vec![pages(&["*"], &["*"])])
}

fn resources(verbs: &[&str], group: &str, resources: &[&str], of_cluster: bool) -> Map {
    let mut rule = map! {
        "verbs" => verbs.to_vec(), "apiGroups" => vec![group], "resources" => resources.to_vec(),
        "namespaces" => vec!["*"],
    };
    if of_cluster {
        rule.insert("clusterScope", true);
    }
    rule
}

fn pages(verbs: &[&str], urls: &[&str]) -> Map {
    map! { "verbs" => verbs.to_vec(), "nonResourceURLs" => urls.to_vec() }
}

fn groups(names: &[&str]) -> Vec<Map> {
    names.iter().map(|name| map! { "kind" => "Group", "group" => map! { "name" => *name } }).collect()
}

fn users(names: &[&str]) -> Vec<Map> {
    names.iter().map(|name| map! { "kind" => "User", "user" => map! { "name" => *name } }).collect()
}

/// Service accounts of `kube-system`.
fn accounts(names: &[&str]) -> Vec<Map> {
    let account = |name: &&str| map! { "name" => *name, "namespace" => "kube-system" };
    names.iter().map(|name| map! { "kind" => "ServiceAccount", "serviceAccount" => account(name) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Read;

    #[test]
    fn what_every_cluster_has_is_valid_and_complete() {
        let levels = priority_levels();
        for (plural, objects) in [("flowschemas", flow_schemas()), ("prioritylevelconfigurations", levels.clone())] {
            let (resource, version) = crate::find("flowcontrol.apiserver.k8s.io", "v1", plural).unwrap();
            for object in &objects {
                assert_eq!(resource.validate(object), [], "{}", object.name());
                let mut defaulted = object.clone();
                (version.default)(&mut defaulted);
                assert_eq!(defaulted, *object, "{}", object.name());
            }
        }
        for schema in flow_schemas() {
            let level = schema.sub("spec").sub("priorityLevelConfiguration").text("name").to_owned();
            assert!(levels.iter().any(|l| l.name() == level), "{level}");
        }
    }
}
