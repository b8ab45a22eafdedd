//! In which order a StatefulSet's pods come, go and change.

use super::super::{meta, pods};
use super::identity;
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pods of a set by ordinal.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// Those that the set wants.
    pub(super) wanted: BTreeMap<i64, Arc<Value>>,
    /// Those that are too many, the highest ordinal first.
    pub(super) condemned: Vec<Arc<Value>>,
}

/// Sorts the pods of a set; pods without an ordinal are left out.
pub(super) fn sort(set: &Value, pods: &[Arc<Value>]) -> Pods {
    let ordinals = identity::ordinals(set);
    let mut sorted = Pods::default();
    for pod in pods {
        match identity::ordinal(pod) {
            Some(ordinal) if ordinals.contains(&ordinal) => {
                sorted.wanted.insert(ordinal, pod.clone());
            }
            Some(_) => sorted.condemned.push(pod.clone()),
            None => {}
        }
    }
    sorted.condemned.sort_by_key(|pod| std::cmp::Reverse(identity::ordinal(pod)));
    sorted
}

/// Whether pods come and go one after the other.
pub(super) fn is_monotonic(set: &Value) -> bool {
    meta::spec(set).text("podManagementPolicy") != "Parallel"
}

/// What is done about one pod that is there and wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has ended: it is deleted; another comes in its place when it is gone.
    Replace,
    /// Nothing more is done in this look.
    Wait,
    /// It is as it should be, or is made so; the next pod may be looked at.
    Keep,
}

/// What is done about a wanted pod.
pub(super) fn step(set: &Value, pod: &Value, monotonic: bool, now: Timestamp) -> Step {
    if pods::is_terminal(pod) {
        return if meta::is_deleting(pod) { Step::Wait } else { Step::Replace };
    }
    let usable = !meta::is_deleting(pod)
        && identity::is_running_and_ready(pod)
        && identity::is_running_and_available(set, pod, now);
    if monotonic && !usable { Step::Wait } else { Step::Keep }
}

/// What is done about the condemned pods, the highest first.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Removal {
    /// Those that are deleted now.
    pub(super) delete: Vec<Arc<Value>>,
    /// Whether others must go before anything else is done.
    pub(super) wait: bool,
}

/// Which condemned pods are deleted now. One after the other, a pod that is not available goes only if it is the first
/// such of all.
pub(super) fn removal(set: &Value, sorted: &Pods, monotonic: bool, now: Timestamp) -> Removal {
    if !monotonic {
        let delete = sorted.condemned.iter().filter(|pod| !meta::is_deleting(pod)).cloned().collect();
        return Removal { delete, wait: false };
    }
    let Some(pod) = sorted.condemned.first() else { return Removal::default() };
    let wait = Removal { delete: Vec::new(), wait: true };
    if meta::is_deleting(pod) {
        return wait;
    }
    let usable = identity::is_running_and_ready(pod) && identity::is_running_and_available(set, pod, now);
    if !usable && first_unhealthy(set, sorted).is_none_or(|first| !meta::is_same(first, pod)) {
        return wait;
    }
    Removal { delete: vec![pod.clone()], wait: true }
}

/// The condemned pod that is the first unhealthy one of all; nothing when a wanted pod is unhealthy or missing.
fn first_unhealthy<'p>(set: &Value, sorted: &'p Pods) -> Option<&'p Arc<Value>> {
    let missing = i64::try_from(sorted.wanted.len()).unwrap_or_default() < meta::replicas(set);
    if missing || sorted.wanted.values().any(|pod| !identity::is_healthy(pod)) {
        return None;
    }
    sorted.condemned.iter().rev().find(|pod| !identity::is_healthy(pod))
}

/// The pod that is deleted for the update: the highest without the new revision, if all above it are healthy.
pub(super) fn to_update(set: &Value, wanted: &BTreeMap<i64, Arc<Value>>, update: &str) -> Option<Arc<Value>> {
    if meta::spec(set).sub("updateStrategy").text("type") == "OnDelete" {
        return None;
    }
    let first = identity::start(set).saturating_add(identity::partition(set).unwrap_or_default());
    for (_, pod) in wanted.range(first..).rev() {
        if identity::revision(pod) != update && !meta::is_deleting(pod) {
            return Some(pod.clone());
        }
        if !identity::is_healthy(pod) {
            return None;
        }
    }
    None
}

/// The old revisions that history does not need: those too many of which no pod and no status has the name.
pub(super) fn outdated(set: &Value, revisions: &[Arc<Value>], live: &[&str]) -> Vec<Arc<Value>> {
    let mut history: Vec<Arc<Value>> = revisions.iter().filter(|r| !live.contains(&r.name())).cloned().collect();
    let limit = meta::spec(set).opt_int("revisionHistoryLimit").unwrap_or(10);
    history.truncate(history.len().saturating_sub(usize::try_from(limit).unwrap_or_default()));
    history
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn set(replicas: i64, more: &str) -> Value {
        value(&format!(r#"{{"metadata":{{"name":"db"}},"spec":{{"replicas":{replicas}{more}}}}}"#))
    }

    fn pod(ordinal: i64, revision: &str, ready: bool, more: &str) -> Arc<Value> {
        let ready = if ready { "True" } else { "False" };
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"db-{ordinal}","uid":"{ordinal}","labels":{{"controller-revision-hash":"{revision}"}}{more}}},
            "status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        )))
    }

    const GOING: &str = r#","deletionTimestamp":"t""#;

    #[test]
    fn pods_are_wanted_condemned_or_strangers() {
        let pods = [
            pod(0, "", true, ""),
            pod(5, "", true, ""),
            pod(7, "", true, ""),
            Arc::new(value(r#"{"metadata":{"name":"x"}}"#)),
        ];
        let sorted = sort(&set(2, ""), &pods);
        assert_eq!(sorted.wanted.keys().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(sorted.condemned.iter().map(|p| p.name()).collect::<Vec<_>>(), ["db-7", "db-5"]);
        let sorted = sort(&set(2, r#","ordinals":{"start":5}"#), &pods);
        assert_eq!(sorted.wanted.keys().copied().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn the_next_pod_waits_for_this_one_unless_all_come_at_once() {
        let failed = Arc::new(value(r#"{"status":{"phase":"Failed"}}"#));
        for (pod, monotonic, want) in [
            (pod(0, "", true, ""), true, Step::Keep),
            (pod(0, "", false, ""), true, Step::Wait),
            (pod(0, "", false, ""), false, Step::Keep),
            (pod(0, "", true, GOING), true, Step::Wait),
            (failed.clone(), true, Step::Replace),
            (failed, false, Step::Replace),
        ] {
            assert_eq!(step(&set(1, ""), &pod, monotonic, NOW), want, "{pod:?}");
        }
    }

    #[test]
    fn the_highest_goes_first_and_waits_for_unready_lower_ones() {
        let names = |pods: &[Arc<Value>], replicas: i64, monotonic: bool| {
            let set = set(replicas, "");
            let removal = removal(&set, &sort(&set, pods), monotonic, NOW);
            (removal.delete.iter().map(|p| p.name().to_owned()).collect::<Vec<_>>(), removal.wait)
        };
        let healthy = [pod(0, "", true, ""), pod(1, "", true, ""), pod(2, "", true, "")];
        assert_eq!(names(&healthy, 1, true), (vec!["db-2".to_owned()], true));
        assert_eq!(names(&healthy, 1, false), (vec!["db-2".to_owned(), "db-1".to_owned()], false));
        assert_eq!(names(&healthy, 3, true), (vec![], false));
        let going = [pod(0, "", true, ""), pod(2, "", true, GOING)];
        assert_eq!(names(&going, 1, true), (vec![], true));
        // The highest is unready, and so is a lower one: it waits.
        let sick = [pod(0, "", true, ""), pod(1, "", false, ""), pod(2, "", false, "")];
        assert_eq!(names(&sick, 1, true), (vec![], true));
        assert_eq!(names(&sick[..2], 1, true), (vec!["db-1".to_owned()], true));
    }

    #[test]
    fn updates_go_from_the_highest_down_to_the_partition() {
        let wanted = |pods: &[Arc<Value>], more: &str| {
            let set = set(3, more);
            to_update(&set, &sort(&set, pods).wanted, "b").map(|p| p.name().to_owned())
        };
        let old = [pod(0, "a", true, ""), pod(1, "a", true, ""), pod(2, "a", true, "")];
        assert_eq!(wanted(&old, "").as_deref(), Some("db-2"));
        let half = [pod(0, "a", true, ""), pod(1, "a", true, ""), pod(2, "b", true, "")];
        assert_eq!(wanted(&half, "").as_deref(), Some("db-1"));
        assert_eq!(wanted(&half, r#","updateStrategy":{"rollingUpdate":{"partition":2}}"#), None);
        assert_eq!(wanted(&half, r#","updateStrategy":{"type":"OnDelete"}"#), None);
        let unready = [pod(0, "a", true, ""), pod(1, "a", true, ""), pod(2, "b", false, "")];
        assert_eq!(wanted(&unready, ""), None);
    }

    #[test]
    fn dead_revisions_beyond_the_limit_go() {
        let revision = |name: &str| Arc::new(value(&format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)));
        let revisions = [revision("1"), revision("2"), revision("3"), revision("4")];
        let set = set(1, r#","revisionHistoryLimit":1"#);
        let gone: Vec<_> = outdated(&set, &revisions, &["1", "4"]).iter().map(|r| r.name().to_owned()).collect();
        assert_eq!(gone, ["2"]);
    }
}
