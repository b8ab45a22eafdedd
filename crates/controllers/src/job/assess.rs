//! How a Job stands: its pods counted, and whether that ends it.

use super::backoff::Backoff;
use super::indexes::Indexes;
use super::pod::Pod;
use super::policy::{self, Action};
use super::spec::Spec;
use super::status::{Condition, Status};
use crate::pods;
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use std::collections::{HashMap, HashSet};

/// What is known of a Job when its turn comes.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What it wants.
    pub spec: &'a Spec<'a>,
    /// Its pods; those of an indexed Job by index.
    pub pods: &'a [Pod<'a>],
    /// The status as it was.
    pub status: &'a Status,
    /// Pods whose finalizer was taken off, though they still show it.
    pub released: &'a HashSet<String>,
    /// Earlier failures.
    pub backoff: Backoff,
    /// The present time.
    pub now: Timestamp,
}

/// How a Job stands.
#[derive(Clone, Debug, Default)]
pub struct Assessment {
    /// The active pods, as positions in the input.
    pub active: Vec<usize>,
    /// How many of them are ready.
    pub ready: i64,
    /// How many pods are being deleted and run still.
    pub terminating: i64,
    /// How many succeeded, those not yet counted too.
    pub succeeded: i64,
    /// The failures so far.
    pub backoff: Backoff,
    /// What ends the Job.
    pub finished: Option<Condition>,
    /// The indexes that the status knows to have succeeded.
    pub known_indexes: Indexes,
    /// All indexes that succeeded.
    pub succeeded_indexes: Indexes,
    /// The indexes that failed, where indexes fail each for itself.
    pub failed_indexes: Option<Indexes>,
    /// The failed pods that stay until there is a replacement that takes over their failures, by index.
    pub delayed: HashMap<i64, usize>,
    /// When the deadline has to be looked at.
    pub deadline_in: Option<SignedDuration>,
}

/// Finds out how a Job stands.
pub fn assess(input: &Input<'_>) -> Assessment {
    let Input { spec, pods, status, now, .. } = *input;
    let active: Vec<usize> = positions(pods, |p| pods::is_active(p.object));
    let ready = active.iter().filter(|i| pods.get(**i).is_some_and(|p| pods::is_ready(p.object))).count() as i64;
    let terminating = pods.iter().filter(|p| pods::is_terminating(p.object)).count() as i64;

    let failed_pod = |p: &Pod<'_>| p.failed(spec.only_replace_failed);
    let new_succeeded = new_pods(input, &status.uncounted_succeeded, Pod::succeeded);
    let new_failed = new_pods(input, &status.uncounted_failed, failed_pod);
    let counts =
        |p: &&Pod<'_>| policy::match_failure(spec.failure_policy, p.object).is_none_or(|m| m.action != Action::Ignore);
    let failed_now = new_failed.iter().filter(counts).count() + status.uncounted_failed.len();
    let failed = status.failed.saturating_add(failed_now as i64);

    let mut out = Assessment {
        ready,
        terminating,
        succeeded: status.succeeded.saturating_add((new_succeeded.len() + status.uncounted_succeeded.len()) as i64),
        backoff: input.backoff.with(&new_succeeded, &new_failed),
        finished: decided(input),
        ..Assessment::default()
    };
    if out.finished.is_none() {
        let started = status.started();
        let passed = started.map(|start| now.duration_since(start).as_secs());
        let deadline = spec.deadline.filter(|_| !spec.suspended);
        if failed > spec.backoff_limit || too_many_restarts(spec, pods) {
            out.finished = failure("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        } else if let (Some(deadline), Some(passed)) = (deadline, passed) {
            if passed >= deadline {
                out.finished = failure("DeadlineExceeded", "Job was active longer than specified deadline");
            } else {
                let end = started.unwrap_or(now).saturating_add(SignedDuration::from_secs(deadline));
                out.deadline_in = end.ok().map(|end| end.duration_since(now));
            }
        }
    }
    if spec.indexed {
        assess_indexes(input, &active, &mut out);
    }
    out.active = active;
    out
}

/// The end that was decided before, or that a failed pod brings by the failure policy.
fn decided(input: &Input<'_>) -> Option<Condition> {
    let spec = input.spec;
    if let Some(met) = Condition::find(input.status, "SuccessCriteriaMet") {
        return Some(met);
    }
    if let Some(target) = Condition::find(input.status, "FailureTarget") {
        return Some(target.turned("Failed"));
    }
    let failing =
        input.pods.iter().filter(|p| p.failed(spec.only_replace_failed)).find_map(|p| {
            policy::match_failure(spec.failure_policy, p.object).filter(|m| m.action == Action::FailJob)
        })?;
    Some(Condition::new("FailureTarget", "PodFailurePolicy", &failing.message))
}

fn failure(reason: &str, message: &str) -> Option<Condition> {
    Some(Condition::new("FailureTarget", reason, message))
}

fn assess_indexes(input: &Input<'_>, active: &[usize], out: &mut Assessment) {
    let Input { spec, pods, status, .. } = *input;
    let completions = spec.index_count();
    let with = |known: &Indexes, new: &dyn Fn(&Pod<'_>) -> bool| {
        let found = pods.iter().filter(|p| p.tracked && p.has_index_below(completions) && new(p));
        known.with(&Indexes::of(found.filter_map(|p| p.index)))
    };
    out.known_indexes = Indexes::parse(&status.completed_indexes, completions);
    out.succeeded_indexes = with(&out.known_indexes, &|p| p.succeeded());
    out.succeeded = out.succeeded_indexes.len();
    if let Some(limit) = spec.per_index_limit {
        let known = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
        let failed = with(&known, &|p| index_fails(spec, p, limit));
        if out.finished.is_none() {
            if spec.max_failed_indexes.is_some_and(|max| failed.len() > max) {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                out.finished = failure("MaxFailedIndexesExceeded", message);
            } else if !failed.is_empty() && failed.len().saturating_add(out.succeeded_indexes.len()) >= completions {
                out.finished = failure("FailedIndexes", "Job has failed indexes");
            }
        }
        out.delayed = delayed(input, active, &out.succeeded_indexes, &failed);
        out.failed_indexes = Some(failed);
    }
    if out.finished.is_none()
        && let Some(message) = policy::match_success(spec.success_policy, completions, &out.succeeded_indexes)
    {
        out.finished = Some(Condition::new("SuccessCriteriaMet", "SuccessPolicy", &message));
    }
}

/// Whether a pod's end means that its index has failed for good.
fn index_fails(spec: &Spec<'_>, pod: &Pod<'_>, limit: i64) -> bool {
    if !pod.failed(spec.only_replace_failed) {
        return false;
    }
    match policy::match_failure(spec.failure_policy, pod.object).map(|m| m.action) {
        Some(Action::FailIndex) => true,
        Some(Action::Ignore) => false,
        _ => pod.failures_before().0 >= limit,
    }
}

/// The failed pods that wait for their replacement: of each index the one that failed last.
fn delayed(input: &Input<'_>, active: &[usize], succeeded: &Indexes, failed: &Indexes) -> HashMap<i64, usize> {
    let Input { spec, pods, released, .. } = *input;
    let running: HashSet<i64> = active.iter().filter_map(|i| pods.get(*i)?.index).collect();
    let mut out: HashMap<i64, usize> = HashMap::new();
    for (at, pod) in pods.iter().enumerate() {
        let Some(index) = pod.index.filter(|i| *i < spec.index_count()) else { continue };
        let known = !pod.tracked || released.contains(pod.uid());
        let over = running.contains(&index) || succeeded.has(index) || failed.has(index);
        if known || over || !pod.failed(spec.only_replace_failed) {
            continue;
        }
        let total = |p: &Pod<'_>| {
            let (counted, ignored) = p.failures_before();
            counted.saturating_add(ignored)
        };
        let last = out.get(&index).and_then(|i| pods.get(*i));
        if last.is_none_or(|last| total(last) <= total(pod) && pod.finished_at() >= last.finished_at()) {
            out.insert(index, at);
        }
    }
    out
}

/// The pods that ended in this way and that the status does not know of.
fn new_pods<'a>(input: &Input<'a>, uncounted: &[String], ended: impl Fn(&Pod<'a>) -> bool) -> Vec<Pod<'a>> {
    let spec = input.spec;
    let uncounted: HashSet<&str> = uncounted.iter().map(String::as_str).collect();
    let new = |p: &&Pod<'a>| {
        p.tracked
            && !uncounted.contains(p.uid())
            && !input.released.contains(p.uid())
            && (!spec.indexed || p.has_index_below(spec.index_count()))
            && ended(p)
    };
    input.pods.iter().filter(new).copied().collect()
}

fn positions<'a>(pods: &[Pod<'a>], which: impl Fn(&Pod<'a>) -> bool) -> Vec<usize> {
    pods.iter().enumerate().filter(|(_, p)| which(p)).map(|(i, _)| i).collect()
}

/// Whether the containers of pods that restart them were started again too often.
fn too_many_restarts(spec: &Spec<'_>, pods: &[Pod<'_>]) -> bool {
    if !spec.restarts_containers {
        return false;
    }
    let alive = pods.iter().filter(|p| matches!(pods::phase(p.object), "Running" | "Pending"));
    let restarts: i64 = alive
        .flat_map(|p| {
            let status = p.object.sub("status");
            status.list("initContainerStatuses").iter().chain(status.list("containerStatuses"))
        })
        .map(|c| c.int("restartCount"))
        .fold(0, i64::saturating_add);
    if spec.backoff_limit == 0 { restarts > 0 } else { restarts >= spec.backoff_limit }
}
