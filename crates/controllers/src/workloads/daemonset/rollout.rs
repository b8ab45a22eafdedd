//! The steps of a rolling update of a DaemonSet.

use super::super::{meta, pods};
use super::on_node::{self, fenceposts};
use jiff::Timestamp;
use object::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pods of a DaemonSet by node.
pub(super) type ByNode = BTreeMap<String, Vec<Arc<Value>>>;

/// What a step does.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rollout {
    /// The pods that go.
    pub(super) delete: Vec<Arc<Value>>,
    /// The nodes that get a new pod beside the old one.
    pub(super) create_on: Vec<String>,
}

/// The next step. `should_run` says of a node whether it is to have a pod; `nodes` are those that are.
pub(super) fn next(
    set: &Value,
    by_node: &ByNode,
    nodes: &[&str],
    hash: &str,
    now: Timestamp,
    should_run: impl Fn(&str) -> bool,
) -> Rollout {
    let (surge, unavailable) = fenceposts(set, nodes.len());
    if surge == 0 {
        let missing = nodes.iter().filter(|node| !by_node.contains_key(**node)).count();
        replace(set, by_node, missing, unavailable, hash, now)
    } else {
        add(set, by_node, nodes.len(), surge, hash, now, should_run)
    }
}

/// The new pod and the old one on a node; nothing where there are more than one of either.
struct Pair {
    new: Option<Arc<Value>>,
    old: Option<Arc<Value>>,
}

fn pair(set: &Value, pods: &[Arc<Value>], hash: &str) -> Option<Pair> {
    let mut pair = Pair { new: None, old: None };
    for pod in pods.iter().filter(|pod| !meta::is_deleting(pod)) {
        let place = if on_node::is_updated(set, pod, hash) { &mut pair.new } else { &mut pair.old };
        if place.replace(pod.clone()).is_some() {
            return None;
        }
    }
    Some(pair)
}

/// Without surge: old pods that are not available go, and as many others as may be unavailable.
fn replace(set: &Value, by_node: &ByNode, missing: usize, most: usize, hash: &str, now: Timestamp) -> Rollout {
    let available = |pod: &Value| pods::is_available(pod, meta::min_ready_seconds(set), now);
    let (mut unavailable, mut delete, mut candidates) = (missing, Vec::new(), Vec::new());
    for pods in by_node.values() {
        match pair(set, pods, hash) {
            Some(Pair { new: Some(new), old: None }) => unavailable += usize::from(!available(&new)),
            Some(Pair { new: None, old: Some(old) }) if available(&old) => candidates.push(old),
            Some(Pair { new: None, old: Some(old) }) => {
                delete.push(old);
                unavailable += 1;
            }
            // Others see to these nodes.
            _ => unavailable += 1,
        }
    }
    delete.extend(candidates.into_iter().take(most.saturating_sub(unavailable)));
    Rollout { delete, create_on: Vec::new() }
}

/// With surge: new pods come beside old ones, which go when the new ones are available.
fn add(
    set: &Value,
    by_node: &ByNode,
    desired: usize,
    surge: usize,
    hash: &str,
    now: Timestamp,
    should_run: impl Fn(&str) -> bool,
) -> Rollout {
    let available = |pod: &Value| pods::is_available(pod, meta::min_ready_seconds(set), now);
    let mut rollout = Rollout::default();
    let (mut surging, mut in_service) = (0usize, 0usize);
    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    for (node, pods) in by_node {
        let Some(pair) = pair(set, pods, hash) else {
            surging += 1;
            continue;
        };
        in_service += usize::from(pair.old.as_ref().or(pair.new.as_ref()).is_some_and(|pod| available(pod)));
        match (pair.new, pair.old) {
            (_, None) => {}
            (None, Some(old)) => match (available(&old), should_run(node)) {
                (false, true) => rollout.create_on.push(node.clone()),
                (false, false) => rollout.delete.push(old),
                (true, true) => candidates.push(node.clone()),
                (true, false) => misplaced.push(old),
            },
            (Some(new), Some(_)) if !available(&new) => surging += 1,
            (Some(_), Some(old)) => rollout.delete.push(old),
        }
    }
    // A pod that serves where it should not goes when another serves where it should.
    rollout.delete.extend(misplaced.into_iter().take(in_service.saturating_sub(desired)));
    rollout.create_on.extend(candidates.into_iter().take(surge.saturating_sub(surging)));
    rollout
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set(surge: i64, unavailable: i64) -> Value {
        value(&format!(
            r#"{{"spec":{{"updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}}}}}}}"#
        ))
    }

    /// Pods by node: `n` new and ready, `N` new and not, `o` old and ready, `O` old and not.
    fn by_node(nodes: &[&str]) -> ByNode {
        let pod = |node: usize, c: char| {
            let hash = if c.eq_ignore_ascii_case(&'n') { "new" } else { "old" };
            let ready = if c.is_ascii_lowercase() { "True" } else { "False" };
            Arc::new(value(&format!(
                r#"{{"metadata":{{"name":"{c}{node}","labels":{{"controller-revision-hash":"{hash}"}}}},
                "status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
            )))
        };
        let pods = |i: usize, s: &&str| (i.to_string(), s.chars().map(|c| pod(i, c)).collect());
        nodes.iter().enumerate().map(|(i, s)| pods(i, s)).collect()
    }

    fn told(set: &Value, pods: &[&str], nodes: &[&str]) -> String {
        let next = next(set, &by_node(pods), nodes, "new", Timestamp::UNIX_EPOCH, |node| nodes.contains(&node));
        let gone: Vec<&str> = next.delete.iter().map(|pod| pod.name()).collect();
        format!("-{} +{}", gone.join(","), next.create_on.join(","))
    }

    #[test]
    fn as_many_pods_go_as_may_be_unavailable() {
        for (pods, want) in [
            (&["o", "o", "o"][..], "-o0 +"),
            (&["N", "o", "o"], "- +"),
            (&["n", "o", "o"], "-o1 +"),
            (&["o", "O", "o"], "-O1 +"),
            (&["n", "n", "n"], "- +"),
            (&["no", "o", "o"], "- +"),
            (&["o", "o"], "- +"),
        ] {
            assert_eq!(told(&set(0, 1), pods, &["0", "1", "2"]), want, "{pods:?}");
        }
    }

    #[test]
    fn as_many_new_pods_come_as_surge_allows() {
        for (pods, want) in [
            (&["o", "o", "o"][..], "- +0"),
            (&["oN", "o", "o"], "- +"),
            (&["on", "o", "o"], "-o0 +1"),
            (&["O", "o", "o"], "- +0,1"),
            (&["n", "n", "n"], "- +"),
        ] {
            assert_eq!(told(&set(1, 0), pods, &["0", "1", "2"]), want, "{pods:?}");
        }
        // Node 1 is not to have one any more: its pod goes when others serve.
        assert_eq!(told(&set(1, 0), &["n", "o"], &["0"]), "-o1 +");
        assert_eq!(told(&set(1, 0), &["N", "o"], &["0"]), "- +");
    }
}
