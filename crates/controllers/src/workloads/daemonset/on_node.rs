//! What is done about a DaemonSet's pods on one node.

use super::super::{meta, pods, revisions, share};
use super::placement::Fit;
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// The annotation with the generation of a DaemonSet's template, from before there were revisions.
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// The label of pods with it.
pub(super) const POD_GENERATION: &str = "pod-template-generation";

/// What is done about the pods on one node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Work {
    /// A pod is made.
    pub(super) create: bool,
    /// Pods that go because they are too many or may not stay.
    pub(super) delete: Vec<Arc<Value>>,
    /// Pods that go because they failed, but not too often in a short time.
    pub(super) failed: Vec<Arc<Value>>,
    /// Pods that go because they ended.
    pub(super) succeeded: Vec<Arc<Value>>,
}

/// The generation of a DaemonSet's template, where it is known.
pub(super) fn generation(set: &Value) -> Option<i64> {
    meta::annotation(set, GENERATION)?.parse().ok()
}

/// Whether a pod has the set's template.
pub(super) fn is_updated(set: &Value, pod: &Value, hash: &str) -> bool {
    let same = |generation: i64| meta::label(pod, POD_GENERATION) == generation.to_string();
    generation(set).is_some_and(same) || !hash.is_empty() && meta::label(pod, revisions::POD_REVISION) == hash
}

/// Pods with a node first, then older ones.
pub(super) fn by_age(a: &Value, b: &Value) -> Ordering {
    let homeless = |pod: &Value| pods::node(pod).is_empty();
    homeless(a).cmp(&homeless(b)).then_with(|| meta::by_age(a, b))
}

fn rolling(set: &Value) -> &Value {
    meta::spec(set).sub("updateStrategy").sub("rollingUpdate")
}

/// Whether a new pod may run beside the old one.
pub(super) fn allows_surge(set: &Value) -> bool {
    meta::spec(set).sub("updateStrategy").text("type") == "RollingUpdate"
        && share::of(rolling(set).sub("maxSurge"), 100, true) > 0
}

/// How many pods more than nodes there may be, and how many fewer may be available, on so many nodes.
pub(super) fn fenceposts(set: &Value, nodes: usize) -> (usize, usize) {
    let nodes = i64::try_from(nodes).unwrap_or(i64::MAX);
    let of = |key: &str| usize::try_from(share::of(rolling(set).sub(key), nodes, true)).unwrap_or_default();
    match (of("maxSurge"), of("maxUnavailable")) {
        (0, 0) if nodes > 0 => (0, 1),
        fenceposts => fenceposts,
    }
}

/// What is done about these pods on a node; nothing is known of pods that are on none.
pub(super) fn work(set: &Value, fit: Fit, pods: Option<&[Arc<Value>]>, hash: &str, now: Timestamp) -> Work {
    let mut work = Work::default();
    match (fit, pods) {
        (Fit { should_run: true, .. }, None) => work.create = true,
        (Fit { may_stay: true, .. }, pods) => keep(set, fit, pods.unwrap_or_default(), hash, now, &mut work),
        (_, Some(pods)) => work.delete = pods.iter().filter(|pod| !meta::is_deleting(pod)).cloned().collect(),
        (_, None) => {}
    }
    work
}

/// What is done about pods that may stay.
fn keep(set: &Value, fit: Fit, pods: &[Arc<Value>], hash: &str, now: Timestamp, work: &mut Work) {
    let mut running: Vec<Arc<Value>> = Vec::new();
    for pod in pods.iter().filter(|pod| !meta::is_deleting(pod)) {
        let list = match pods::phase(pod) {
            "Failed" => &mut work.failed,
            "Succeeded" => &mut work.succeeded,
            _ => &mut running,
        };
        list.push(pod.clone());
    }
    running.sort_by(|a, b| by_age(a, b));
    if !allows_surge(set) {
        work.delete.extend(running.into_iter().skip(1));
        return;
    }
    if running.len() <= 1 {
        work.create = running.is_empty() && fit.should_run;
        return;
    }
    // Two pods may stay: the oldest old one as long as it is ready and the oldest new one is not available.
    let (mut new, mut old) = (None, None);
    for pod in running {
        let place = if meta::label(&pod, revisions::POD_REVISION) == hash { &mut new } else { &mut old };
        match place {
            None => *place = Some(pod),
            Some(_) => work.delete.push(pod),
        }
    }
    if let (Some(new), Some(old)) = (new, old)
        && (!pods::is_ready(&old) || pods::is_available(&new, meta::min_ready_seconds(set), now))
    {
        work.delete.push(old);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const RUN: Fit = Fit { should_run: true, may_stay: true };
    const STAY: Fit = Fit { should_run: false, may_stay: true };
    const GO: Fit = Fit { should_run: false, may_stay: false };

    fn set(surge: i64) -> Value {
        value(&format!(
            r#"{{"spec":{{"updateStrategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":"50%"}}}}}}}}"#
        ))
    }

    fn pod(name: &str, phase: &str, hash: &str, ready: bool) -> Arc<Value> {
        let ready = if ready { "True" } else { "False" };
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"controller-revision-hash":"{hash}"}}}},
            "status":{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        )))
    }

    /// `+` for a new pod, then the names of those that go.
    fn told(surge: i64, fit: Fit, pods: Option<&[Arc<Value>]>) -> String {
        let work = work(&set(surge), fit, pods, "new", NOW);
        let names = work.delete.iter().chain(&work.failed).chain(&work.succeeded).map(|p| p.name().to_owned());
        let plus = work.create.then(|| "+".to_owned());
        plus.into_iter().chain(names).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_node_has_one_pod() {
        let two = [pod("b", "Running", "new", true), pod("a", "Running", "old", true)];
        let ended = [pod("f", "Failed", "", false), pod("s", "Succeeded", "", false)];
        for (fit, pods, want) in [
            (RUN, None, "+"),
            (STAY, None, ""),
            (GO, None, ""),
            (RUN, Some(&two[..1]), ""),
            (RUN, Some(&two[..]), "b"),
            (STAY, Some(&two[..1]), ""),
            (GO, Some(&two[..]), "b a"),
            (RUN, Some(&ended[..]), "f s"),
        ] {
            assert_eq!(told(0, fit, pods), want, "{fit:?} {pods:?}");
        }
    }

    #[test]
    fn with_surge_old_and_new_stay_until_the_new_one_is_available() {
        let old = pod("old", "Running", "old", true);
        let sick = pod("sick", "Running", "old", false);
        let (young, new) = (pod("young", "Running", "new", false), pod("new", "Running", "new", true));
        for (pods, want) in [
            (vec![], "+"),
            (vec![old.clone()], ""),
            (vec![old.clone(), young.clone()], ""),
            (vec![old.clone(), new], "old"),
            (vec![sick, young], "sick"),
        ] {
            assert_eq!(told(1, RUN, Some(&pods)), want, "{pods:?}");
        }
        assert_eq!(told(1, STAY, Some(&[])), "");
    }

    #[test]
    fn a_pod_is_updated_by_hash_or_generation() {
        let set = value(r#"{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"2"}}}"#);
        assert!(is_updated(&set, &pod("a", "", "h", true), "h"));
        assert!(is_updated(&set, &value(r#"{"metadata":{"labels":{"pod-template-generation":"2"}}}"#), "h"));
        assert!(!is_updated(&set, &pod("a", "", "", true), ""));
    }

    #[test]
    fn something_is_always_allowed() {
        assert_eq!(fenceposts(&set(0), 3), (0, 2));
        assert_eq!(fenceposts(&value("{}"), 3), (0, 1));
        assert_eq!(fenceposts(&value("{}"), 0), (0, 0));
    }
}
