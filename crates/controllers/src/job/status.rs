//! The status of a Job.

use crate::pods::seconds;
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value, map};
use std::collections::HashSet;

/// A condition that a Job comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: &'static str,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(kind: &'static str, reason: &str, message: &str) -> Self {
        Condition { kind, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// The same of another type.
    pub fn turned(&self, kind: &'static str) -> Self {
        Condition { kind, ..self.clone() }
    }

    /// Of a type that is here or there in the status.
    pub fn find(status: &Status, kind: &'static str) -> Option<Self> {
        let found = status.conditions.iter().find(|c| c.text("type") == kind && c.text("status") == "True")?;
        Some(Condition::new(kind, found.text("reason"), found.text("message")))
    }

    fn object(&self, holds: bool, now: Timestamp) -> Value {
        let now = seconds(now);
        let mut out = map! {
            "type" => self.kind, "status" => if holds { "True" } else { "False" },
            "lastProbeTime" => now.as_str(), "lastTransitionTime" => now.as_str(),
        };
        for (key, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                out.insert(key, text.as_str());
            }
        }
        out.into()
    }
}

/// The status of a Job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Pods that run or will.
    pub active: i64,
    /// Those of them that are ready.
    pub ready: Option<i64>,
    /// Pods that are being deleted and run still.
    pub terminating: Option<i64>,
    /// Pods that succeeded.
    pub succeeded: i64,
    /// Pods that failed.
    pub failed: i64,
    /// Uids of pods that succeeded and are not yet in the count.
    pub uncounted_succeeded: Vec<String>,
    /// Uids of pods that failed and are not yet in the count.
    pub uncounted_failed: Vec<String>,
    /// The indexes that succeeded.
    pub completed_indexes: String,
    /// The indexes that failed, where indexes fail each for itself.
    pub failed_indexes: Option<String>,
    /// The conditions.
    pub conditions: Vec<Value>,
    /// When it began, or began again.
    pub start_time: Option<String>,
    /// When it succeeded.
    pub completion_time: Option<String>,
}

impl Status {
    /// Reads the status of a Job.
    pub fn of(job: &Value) -> Status {
        let status = job.sub("status");
        let uncounted = status.sub("uncountedTerminatedPods");
        let uids = |key: &str| uncounted.strings(key).into_iter().map(str::to_owned).collect();
        let text = |key: &str| status.get(key).and_then(Value::as_str).map(str::to_owned);
        Status {
            active: status.int("active"),
            ready: status.opt_int("ready"),
            terminating: status.opt_int("terminating"),
            succeeded: status.int("succeeded"),
            failed: status.int("failed"),
            uncounted_succeeded: uids("succeeded"),
            uncounted_failed: uids("failed"),
            completed_indexes: text("completedIndexes").unwrap_or_default(),
            failed_indexes: text("failedIndexes"),
            conditions: status.list("conditions").to_vec(),
            start_time: text("startTime"),
            completion_time: text("completionTime"),
        }
    }

    /// The Job with this status.
    pub fn put_on(&self, job: &Value) -> Value {
        let mut out = Map::new();
        for (key, number) in [("active", self.active), ("succeeded", self.succeeded), ("failed", self.failed)] {
            if number != 0 {
                out.insert(key, number);
            }
        }
        for (key, number) in [("ready", self.ready), ("terminating", self.terminating)] {
            if let Some(number) = number {
                out.insert(key, number);
            }
        }
        let mut uncounted = Map::new();
        for (key, uids) in [("succeeded", &self.uncounted_succeeded), ("failed", &self.uncounted_failed)] {
            if !uids.is_empty() {
                uncounted.insert(key, uids.clone());
            }
        }
        out.insert("uncountedTerminatedPods", uncounted);
        if !self.completed_indexes.is_empty() {
            out.insert("completedIndexes", self.completed_indexes.as_str());
        }
        for (key, text) in [
            ("failedIndexes", &self.failed_indexes),
            ("startTime", &self.start_time),
            ("completionTime", &self.completion_time),
        ] {
            if let Some(text) = text {
                out.insert(key, text.as_str());
            }
        }
        if !self.conditions.is_empty() {
            out.insert("conditions", self.conditions.clone());
        }
        let mut job = job.clone();
        job.set_at(&["status"], out.into());
        job
    }

    /// When it began.
    pub fn started(&self) -> Option<Timestamp> {
        self.start_time.as_deref()?.parse().ok()
    }

    /// Adds a condition that holds.
    pub fn add(&mut self, condition: &Condition, now: Timestamp) {
        self.conditions.push(condition.object(true, now));
    }

    /// Makes a condition hold or not. One that is missing is not added just to say that it does not hold. Tells whether
    /// that changed something.
    pub fn ensure(&mut self, condition: &Condition, holds: bool, now: Timestamp) -> bool {
        let new = condition.object(holds, now);
        match self.conditions.iter_mut().find(|c| c.text("type") == condition.kind) {
            Some(old) => {
                let same = ["status", "reason", "message"].iter().all(|key| old.text(key) == new.text(key));
                if !same {
                    *old = new;
                }
                !same
            }
            None => {
                if holds {
                    self.conditions.push(new);
                }
                holds
            }
        }
    }

    /// Counts the pods that lost their finalizer. Tells whether there were some.
    pub fn count_released(&mut self, with_finalizer: &HashSet<&str>) -> bool {
        let count = |uids: &mut Vec<String>, counter: &mut i64| {
            let before = uids.len();
            uids.retain(|uid| with_finalizer.contains(uid.as_str()));
            *counter = counter.saturating_add((before - uids.len()) as i64);
            before != uids.len()
        };
        let succeeded = count(&mut self.uncounted_succeeded, &mut self.succeeded);
        let failed = count(&mut self.uncounted_failed, &mut self.failed);
        succeeded || failed
    }

    /// How many pods are not yet in the counts.
    pub fn uncounted(&self) -> usize {
        self.uncounted_succeeded.len() + self.uncounted_failed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_status_is_written_as_it_was_read() {
        let text = r#"{"status":{"active":1,"conditions":[{"type":"Suspended"}],"completedIndexes":"0","failed":2,"failedIndexes":"","ready":0,"startTime":"2026-01-01T00:00:00Z","terminating":0,"uncountedTerminatedPods":{"failed":["u"]}}}"#;
        let job = json::parse(text.as_bytes()).unwrap();
        assert_eq!(Status::of(&job).put_on(&job), job);
    }

    #[test]
    fn a_condition_is_changed_only_when_it_differs() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (suspended, resumed) = (Condition::new("Suspended", "a", "b"), Condition::new("Suspended", "c", "d"));
        let mut status = Status::default();
        assert!(!status.ensure(&resumed, false, now));
        assert!(status.ensure(&suspended, true, now));
        assert!(!status.ensure(&suspended, true, now));
        assert!(status.ensure(&resumed, false, now));
        assert_eq!(status.conditions.len(), 1);
    }

    #[test]
    fn released_pods_are_counted() {
        let uids = |uids: &[&str]| uids.iter().map(|u| (*u).to_owned()).collect::<Vec<_>>();
        let mut status =
            Status { uncounted_failed: uids(&["a", "b"]), uncounted_succeeded: uids(&["c"]), ..Status::default() };
        assert!(status.count_released(&HashSet::from(["b", "c"])));
        assert_eq!((status.failed, status.succeeded, status.uncounted()), (1, 0, 2));
        assert!(!status.count_released(&HashSet::from(["b", "c"])));
    }
}
