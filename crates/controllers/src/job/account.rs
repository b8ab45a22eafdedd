//! How ended pods come into a Job's status: first by uid, then, when they have lost their finalizer, as a number.

use super::assess::Assessment;
use super::pod::Pod;
use super::policy::{self, Action};
use super::spec::Spec;
use super::status::{Condition, Status};
use crate::pods::seconds;
use jiff::Timestamp;
use std::collections::HashSet;

/// The most uids that a status holds.
const MOST: usize = 500;

/// What is done about ended pods.
#[derive(Clone, Debug, Default)]
pub struct Accounting<'a> {
    /// The pods that lose their finalizer.
    pub release: Vec<usize>,
    /// Whether the status has to be written first.
    pub changed: bool,
    /// Whether there are more pods than a status holds.
    pub full: bool,
    /// The condition that ends the Job.
    pub finished: Option<Condition>,
    /// The uids of the pods that have the finalizer.
    pub with_finalizer: HashSet<&'a str>,
}

/// Puts what ended into the status.
pub fn account<'a>(
    spec: &Spec<'_>,
    deleting: bool,
    pods: &[Pod<'a>],
    found: &Assessment,
    status: &mut Status,
    released: &HashSet<String>,
    now: Timestamp,
) -> Accounting<'a> {
    let tracked = |p: &Pod<'_>| p.tracked && !released.contains(p.uid());
    let mut out = Accounting {
        with_finalizer: pods.iter().filter(|p| tracked(p)).map(Pod::uid).collect(),
        finished: found.finished.clone(),
        ..Accounting::default()
    };
    let uncounted = |uids: &[String]| uids.iter().cloned().collect::<HashSet<String>>();
    let (known_succeeded, known_failed) = (uncounted(&status.uncounted_succeeded), uncounted(&status.uncounted_failed));
    out.changed = status.count_released(&out.with_finalizer);
    let fails = out.finished.as_ref().is_some_and(|c| c.kind != "SuccessCriteriaMet");
    let mut new_indexes = 0;
    for (at, pod) in pods.iter().enumerate().filter(|(_, p)| tracked(p)) {
        let failed = pod.failed(spec.only_replace_failed);
        let any = deleting || out.finished.is_some() || pod.succeeded();
        let waits = spec.per_index_limit.is_some() && pod.index.is_some_and(|i| found.delayed.get(&i) == Some(&at));
        if !any && (!failed || waits) {
            continue;
        }
        out.release.push(at);
        let valid = !spec.indexed || pod.has_index_below(spec.index_count());
        if pod.succeeded() && !known_failed.contains(pod.uid()) {
            if spec.indexed {
                if valid && pod.index.is_some_and(|i| !found.known_indexes.has(i)) {
                    new_indexes += 1;
                    out.changed = true;
                }
            } else if !known_succeeded.contains(pod.uid()) {
                status.uncounted_succeeded.push(pod.uid().to_owned());
                out.changed = true;
            }
        } else if (failed || fails) && valid && !known_failed.contains(pod.uid()) {
            let matched = policy::match_failure(spec.failure_policy, pod.object);
            if matched.is_none_or(|m| m.action != Action::Ignore) {
                status.uncounted_failed.push(pod.uid().to_owned());
                out.changed = true;
            }
        }
        if new_indexes + status.uncounted() >= MOST {
            out.full = true;
            break;
        }
    }
    if spec.indexed {
        let completed = found.succeeded_indexes.to_string();
        let failed = found.failed_indexes.as_ref().map(ToString::to_string);
        out.changed |= completed != status.completed_indexes || failed != status.failed_indexes;
        status.succeeded = found.succeeded_indexes.len();
        status.completed_indexes = completed;
        status.failed_indexes = failed;
    }
    announce(&mut out, status, now);
    out
}

/// Tells the end to come in a condition of its own; the last one follows when all pods are counted.
fn announce(out: &mut Accounting<'_>, status: &mut Status, now: Timestamp) {
    let Some(condition) = &out.finished else { return };
    let last = match condition.kind {
        "FailureTarget" => "Failed",
        "SuccessCriteriaMet" => "Complete",
        _ => return,
    };
    if Condition::find(status, condition.kind).is_none() {
        status.add(condition, now);
        out.changed = true;
    }
    out.finished = Some(condition.turned(last));
}

/// Ends the Job if all its pods are counted and gone. Tells whether it has ended.
pub fn finish(finished: Option<&Condition>, terminating: i64, status: &mut Status, now: Timestamp) -> bool {
    let Some(condition) = finished else { return false };
    if status.uncounted() > 0 || terminating > 0 {
        return false;
    }
    status.ensure(condition, true, now);
    if condition.kind == "Complete" {
        status.completion_time = Some(seconds(now));
    }
    true
}
