//! Which pods go first when there are too many.

use super::{meta, pods};
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// How much a pod's end would cost, by its owner's account.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Of these pods the `count` whose end hurts least. `related` are all pods of the same application: of two equal pods
/// that goes which has more of them on its node.
pub(crate) fn to_delete(pods: &[Arc<Value>], related: &[Arc<Value>], count: usize, now: Timestamp) -> Vec<Arc<Value>> {
    if count >= pods.len() {
        return pods.to_vec();
    }
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| pods::is_active(pod)) {
        *on_node.entry(pods::node(pod)).or_default() += 1;
    }
    let crowd = |pod: &Value| on_node.get(pods::node(pod)).copied().unwrap_or_default();
    let mut sorted = pods.to_vec();
    sorted.sort_by_cached_key(|pod| rank(pod, crowd(pod), now));
    sorted.truncate(count);
    sorted
}

/// What decides when a pod goes, the weightiest first; lower goes first. Upstream lets the uid decide between two ages of
/// the same power before it looks at restarts, which is no order; here it comes last.
fn rank(pod: &Value, crowd: usize, now: Timestamp) -> impl Ord + use<> {
    let phase = match pods::phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    };
    let ready = pods::is_ready(pod);
    let ready_since = if ready { pods::ready_since(pod) } else { None };
    (
        (!pods::node(pod).is_empty(), phase, ready, cost(pod), Reverse(crowd)),
        age(ready_since, now),
        restarts(pod),
        age(meta::time(pod.meta_str("creationTimestamp")), now),
        meta::uid(pod).to_owned(),
    )
}

fn cost(pod: &Value) -> i32 {
    meta::annotation(pod, COST).and_then(|c| c.parse().ok()).unwrap_or_default()
}

/// The power of two of an age: ages of about the same length count as equal, so that not always the same pods go.
fn age(since: Option<Timestamp>, now: Timestamp) -> i64 {
    let Some(since) = since else { return -2 };
    let nanoseconds = u128::try_from(now.duration_since(since).as_nanos()).unwrap_or_default();
    nanoseconds.checked_ilog2().map_or(-1, i64::from)
}

/// The most restarts of a container, and of a sidecar; more go first.
fn restarts(pod: &Value) -> Reverse<(i64, i64)> {
    let most = |containers: &[Value], counts: &dyn Fn(&str) -> bool| {
        let restarts = containers.iter().filter(|c| counts(c.text("name"))).map(|c| c.int("restartCount"));
        restarts.max().unwrap_or_default().max(0)
    };
    let status = meta::status(pod);
    let sidecars = meta::spec(pod).list("initContainers").iter().filter(|c| c.text("restartPolicy") == "Always");
    let sidecars: Vec<&str> = sidecars.map(|c| c.text("name")).collect();
    Reverse((
        most(status.list("containerStatuses"), &|_| true),
        most(status.list("initContainerStatuses"), &|name| sidecars.contains(&name)),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    fn pod(name: &str, node: &str, phase: &str, ready_since: &str, more: &str) -> Arc<Value> {
        let condition = match ready_since {
            "" => String::new(),
            time => format!(r#"{{"type":"Ready","status":"True","lastTransitionTime":"{time}"}}"#),
        };
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{name}","creationTimestamp":"2026-01-01T00:00:00Z"{more}}},
               "spec":{{"nodeName":"{node}"}},"status":{{"phase":"{phase}","conditions":[{condition}]}}}}"#
        )))
    }

    #[test]
    fn pods_that_help_least_go_first() {
        let (early, late) = ("2026-01-01T00:00:10Z", "2026-01-02T00:00:00Z");
        let order = [
            pod("no-node", "", "Pending", "", ""),
            pod("pending", "n", "Pending", "", ""),
            pod("not-ready", "n", "Running", "", ""),
            pod(
                "cheap",
                "n",
                "Running",
                early,
                r#","annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}"#,
            ),
            pod("young", "n", "Running", late, ""),
            pod("old", "n", "Running", early, ""),
        ];
        let mut mixed = order.to_vec();
        mixed.reverse();
        let now = "2026-01-02T00:00:30Z".parse().unwrap();
        for count in 0..=order.len() {
            let mut gone: Vec<String> =
                to_delete(&mixed, &mixed, count, now).iter().map(|p| p.name().to_owned()).collect();
            let mut want: Vec<String> = order[..count].iter().map(|p| p.name().to_owned()).collect();
            gone.sort();
            want.sort();
            assert_eq!(gone, want);
        }
    }

    #[test]
    fn pods_on_crowded_nodes_go_first_and_the_powers_of_ages_count() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let (a, b) = (
            pod("a", "n", "Running", "2026-01-01T00:00:00Z", ""),
            pod("b", "m", "Running", "2026-01-01T00:00:01Z", ""),
        );
        assert!(rank(&a, 1, now) > rank(&b, 2, now));
        // Nearly the same age: the uid decides.
        assert!(rank(&a, 1, now) < rank(&b, 1, now));
    }
}
