//! What is told of a DaemonSet.

use super::super::{meta, pods};
use super::on_node;
use super::rollout::ByNode;
use client::{Api, Result};
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value};

/// The status of a DaemonSet: `nodes` are the cluster's, each with whether it is to have a pod.
pub(super) fn status<'n>(
    set: &Value,
    nodes: impl Iterator<Item = (&'n str, bool)>,
    by_node: &ByNode,
    hash: &str,
    now: Timestamp,
) -> Map {
    let (mut desired, mut current, mut misplaced, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0, 0);
    for (node, should_run) in nodes {
        let oldest = by_node.get(node).and_then(|pods| pods.iter().min_by(|a, b| on_node::by_age(a, b)));
        match (should_run, oldest) {
            (false, Some(_)) => misplaced += 1,
            (false, None) => {}
            (true, None) => desired += 1,
            (true, Some(pod)) => {
                desired += 1;
                current += 1;
                ready += i64::from(pods::is_ready(pod));
                available += i64::from(pods::is_available(pod, meta::min_ready_seconds(set), now));
                updated += i64::from(on_node::is_updated(set, pod, hash));
            }
        }
    }
    let mut status = meta::status(set).as_object().cloned().unwrap_or_default();
    for (key, count) in [
        ("desiredNumberScheduled", desired),
        ("currentNumberScheduled", current),
        ("numberMisscheduled", misplaced),
        ("numberReady", ready),
    ] {
        status.insert(key, count);
    }
    meta::set_count(&mut status, "updatedNumberScheduled", updated);
    meta::set_count(&mut status, "numberAvailable", available);
    meta::set_count(&mut status, "numberUnavailable", desired - available);
    status
}

/// Writes a status, if it says something new; with the generation if the DaemonSet was worked on.
pub(super) async fn write(api: &Api, set: &Value, mut status: Map, worked: bool) -> Result<()> {
    let old = meta::status(set);
    let generation = meta::generation(set);
    let observed = old.int("observedGeneration");
    if observed >= generation && old.as_object() == Some(&status) {
        return Ok(());
    }
    meta::set_count(&mut status, "observedGeneration", if worked { generation } else { observed });
    let mut set = set.clone();
    set.set_at(&["status"], status.clone().into());
    if api.update_status(&set).await.is_ok() {
        return Ok(());
    }
    let mut fresh = api.get(set.namespace(), set.name()).await?;
    fresh.set_at(&["status"], status.into());
    api.update_status(&fresh).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn nodes_are_counted_by_what_their_oldest_pod_is() {
        let pod = |ready: &str| {
            vec![Arc::new(value(&format!(
                r#"{{"metadata":{{"labels":{{"controller-revision-hash":"h"}}}},
                "status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
            )))]
        };
        let by_node: ByNode =
            [("a", pod("True")), ("b", pod("False")), ("d", pod("True"))].map(|(n, p)| (n.to_owned(), p)).into();
        let nodes = [("a", true), ("b", true), ("c", true), ("d", false), ("e", false)];
        let got = status(&value("{}"), nodes.into_iter(), &by_node, "h", Timestamp::UNIX_EPOCH);
        let want = r#"{"desiredNumberScheduled":3,"currentNumberScheduled":2,"numberMisscheduled":1,"numberReady":1,
            "updatedNumberScheduled":2,"numberAvailable":1,"numberUnavailable":2}"#;
        assert_eq!(Value::Object(got), value(want));
    }
}
