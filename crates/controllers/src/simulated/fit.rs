//! Which nodes a pod can have.

use super::requests::{Amounts, Ledger, of_node};
use crate::fit::{is_selected, tolerates};
use kinds::read::Read;
use object::{Value, map};
use std::collections::BTreeMap;

/// Why a pod cannot have a node; nothing if it can.
pub fn obstacles(pod: &Value, asked: &Amounts, node: &Value, ledger: &Ledger) -> Vec<String> {
    if let Some(taint) = untolerated(pod, node) {
        let (key, value) = (taint.text("key"), taint.text("value"));
        return vec![format!("node(s) had untolerated taint {{{key}: {value}}}")];
    }
    let unschedulable = map! { "key" => "node.kubernetes.io/unschedulable", "effect" => "NoSchedule" }.into();
    if node.sub("spec").flag("unschedulable") && !bears(pod, &unschedulable) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if !is_selected(pod.sub("spec"), node) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    let has = of_node(node);
    let left = |name: &str| has.get(name).copied().unwrap_or_default() - ledger.taken(node.name(), name);
    let mut out = Vec::new();
    if has.contains_key("pods") && left("pods") < 1000 {
        out.push("Too many pods".to_owned());
    }
    for (name, amount) in asked {
        if *amount > 0 && left(name) < *amount {
            out.push(format!("Insufficient {name}"));
        }
    }
    out
}

/// The first taint of a node that keeps a pod away.
fn untolerated<'n>(pod: &Value, node: &'n Value) -> Option<&'n Value> {
    node.sub("spec")
        .list("taints")
        .iter()
        .find(|taint| matches!(taint.text("effect"), "NoSchedule" | "NoExecute") && !bears(pod, taint))
}

/// Whether a pod bears a taint.
fn bears(pod: &Value, taint: &Value) -> bool {
    pod.sub("spec").list("tolerations").iter().any(|toleration| tolerates(toleration, taint))
}

/// Why no node fits, as the scheduler tells it: each obstacle with the number of nodes that have it.
pub fn complaint(nodes: usize, obstacles: &[Vec<String>]) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    obstacles.iter().flatten().for_each(|why| *counts.entry(why).or_default() += 1);
    let mut parts: Vec<String> = counts.iter().map(|(why, count)| format!("{count} {why}")).collect();
    parts.sort();
    let helpful =
        obstacles.iter().filter(|all| all.iter().all(|w| w.starts_with("Insufficient") || w.starts_with("Too")));
    let (full, other) = (helpful.count(), obstacles.len());
    let mut preemption = Vec::new();
    if full > 0 {
        preemption.push(format!("{full} No preemption victims found for incoming pod"));
    }
    if other > full {
        preemption.push(format!("{} Preemption is not helpful for scheduling", other - full));
    }
    format!(
        "0/{nodes} nodes are available: {}. preemption: 0/{nodes} nodes are available: {}.",
        parts.join(", "),
        preemption.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::requests::of_pod;
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn nodes_have_to_fit() {
        let node = parse(
            r#"{"metadata":{"name":"n","labels":{"zone":"a","size":"5"}},"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"},{"key":"soft","effect":"PreferNoSchedule"}]},
            "status":{"allocatable":{"cpu":"1","pods":"10"}}}"#,
        );
        let tolerant = r#""tolerations":[{"key":"k","value":"v"}]"#;
        let affinity = |term: &str| {
            format!(
                r#"{{{tolerant},"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{term}]}}}}}}}}"#
            )
        };
        for (spec, expected) in [
            ("{}".to_owned(), Some("node(s) had untolerated taint {k: v}")),
            (format!("{{{tolerant}}}"), None),
            (r#"{"tolerations":[{"operator":"Exists"}]}"#.to_owned(), None),
            (
                r#"{"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute"}]}"#.to_owned(),
                Some("node(s) had untolerated taint {k: v}"),
            ),
            (
                format!(r#"{{{tolerant},"nodeSelector":{{"zone":"b"}}}}"#),
                Some("node(s) didn't match Pod's node affinity/selector"),
            ),
            (
                format!(r#"{{{tolerant},"containers":[{{"resources":{{"requests":{{"cpu":"2"}}}}}}]}}"#),
                Some("Insufficient cpu"),
            ),
            (affinity(r#"{"matchExpressions":[{"key":"size","operator":"Gt","values":["4"]}]}"#), None),
            (
                affinity(r#"{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}"#),
                Some("node(s) didn't match Pod's node affinity/selector"),
            ),
            (affinity(r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}"#), None),
            (affinity("{}"), Some("node(s) didn't match Pod's node affinity/selector")),
        ] {
            let pod = parse(&format!(r#"{{"spec":{spec}}}"#));
            let found = obstacles(&pod, &of_pod(&pod), &node, &Ledger::default());
            assert_eq!(found.first().map(String::as_str), expected, "{spec}");
        }
    }

    #[test]
    fn obstacles_are_counted() {
        let all = [
            vec!["Insufficient cpu".to_owned()],
            vec!["Insufficient cpu".to_owned()],
            vec!["node(s) were unschedulable".to_owned()],
        ];
        assert_eq!(
            complaint(3, &all),
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/3 nodes are available: \
             2 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        );
        assert_eq!(complaint(0, &[]), "no nodes available to schedule pods");
    }
}
