//! What the job controller reads of a pod.

use super::policy::{self, Action};
use crate::pods;
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::Value;

/// The finalizer that keeps a pod until the Job's status accounts for it.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label with the completion index.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the pods of an index failed before this one.
pub const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often they failed without counting.
pub const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A pod of a Job, with what is asked again and again.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// The object.
    pub object: &'a Value,
    /// Whether it has the tracking finalizer.
    pub tracked: bool,
    /// Its completion index.
    pub index: Option<i64>,
}

impl<'a> Pod<'a> {
    /// Reads a pod.
    pub fn new(object: &'a Value) -> Self {
        Pod { object, tracked: object.meta_list("finalizers").contains(&TRACKING), index: count(object, INDEX) }
    }

    /// The uid.
    pub fn uid(&self) -> &'a str {
        self.object.meta_str("uid")
    }

    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        pods::phase(self.object) == "Succeeded"
    }

    /// Whether it counts as failed. A pod that is being deleted does, unless only failed pods are replaced.
    pub fn failed(&self, only_replace_failed: bool) -> bool {
        match pods::phase(self.object) {
            "Failed" => true,
            "Succeeded" => false,
            _ => !only_replace_failed && pods::is_deleting(self.object),
        }
    }

    /// Whether its index is one of the Job's.
    pub fn has_index_below(&self, completions: i64) -> bool {
        self.index.is_some_and(|i| i < completions)
    }

    /// How often the pods of its index failed before it: counted, not counted.
    pub fn failures_before(&self) -> (i64, i64) {
        (count(self.object, FAILURES).unwrap_or_default(), count(self.object, IGNORED_FAILURES).unwrap_or_default())
    }

    /// The failures that its replacement takes over.
    pub fn failures_with_it(&self, failure_policy: &Value) -> (i64, i64) {
        let (counted, ignored) = self.failures_before();
        match policy::match_failure(failure_policy, self.object).map(|m| m.action) {
            Some(Action::Ignore) => (counted, ignored.saturating_add(1)),
            _ => (counted.saturating_add(1), ignored),
        }
    }

    /// When it ended, as well as can be told.
    pub fn finished_at(&self) -> Timestamp {
        let meta = self.object.sub("metadata");
        let unready = || {
            let ready = pods::condition(self.object, "Ready").filter(|c| c.text("status") == "False")?;
            pods::time(ready, "lastTransitionTime")
        };
        let deleted = || {
            let grace = SignedDuration::from_secs(meta.int("deletionGracePeriodSeconds"));
            pods::time(meta, "deletionTimestamp")?.checked_sub(grace).ok()
        };
        let known = self.containers_finished_at().or_else(unready).or_else(deleted);
        known.or_else(|| pods::time(meta, "creationTimestamp")).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn containers_finished_at(&self) -> Option<Timestamp> {
        let mut last = None;
        for container in self.object.sub("status").list("containerStatuses") {
            let time = pods::time(container.sub("state").sub("terminated"), "finishedAt")?;
            last = last.max(Some(time));
        }
        last
    }
}

/// A number in an annotation that is not negative.
fn count(object: &Value, annotation: &str) -> Option<i64> {
    object.annotation(annotation)?.parse().ok().filter(|n| *n >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn finished_at(text: &str) -> String {
        Pod::new(&json::parse(text.as_bytes()).unwrap()).finished_at().to_string()
    }

    #[test]
    fn the_end_is_taken_from_what_is_known() {
        let meta = r#""metadata":{"creationTimestamp":"2026-01-01T00:00:00Z""#;
        for (pod, time) in [
            (format!("{{{meta}}}}}"), "2026-01-01T00:00:00Z"),
            (
                format!(r#"{{{meta},"deletionTimestamp":"2026-01-01T00:00:40Z","deletionGracePeriodSeconds":30}}}}"#),
                "2026-01-01T00:00:10Z",
            ),
            (
                format!(
                    r#"{{{meta}}},"status":{{"conditions":[{{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:05Z"}}]}}}}"#
                ),
                "2026-01-01T00:00:05Z",
            ),
            (
                format!(
                    r#"{{{meta}}},"status":{{"containerStatuses":[{{"state":{{"terminated":{{"finishedAt":"2026-01-01T00:00:07Z"}}}}}}]}}}}"#
                ),
                "2026-01-01T00:00:07Z",
            ),
            (
                format!(
                    r#"{{{meta}}},"status":{{"containerStatuses":[{{"state":{{"running":{{}}}}}},{{"state":{{"terminated":{{"finishedAt":"2026-01-01T00:00:07Z"}}}}}}]}}}}"#
                ),
                "2026-01-01T00:00:00Z",
            ),
        ] {
            assert_eq!(finished_at(&pod), time, "{pod}");
        }
    }

    #[test]
    fn a_deleted_pod_has_failed_unless_only_failed_ones_are_replaced() {
        let pod =
            json::parse(br#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}}"#);
        let pod = pod.unwrap();
        assert!(Pod::new(&pod).failed(false));
        assert!(!Pod::new(&pod).failed(true));
    }
}
