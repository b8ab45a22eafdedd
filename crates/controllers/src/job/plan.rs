//! Which pods a Job makes or deletes.

use super::assess::Assessment;
use super::backoff;
use super::indexes::Indexes;
use super::pod::Pod;
use super::spec::Spec;
use crate::pods;
use jiff::{SignedDuration, Timestamp};
use std::collections::HashSet;

/// The most pods that are made or deleted at once.
const MOST: usize = 500;

/// What to do about a Job's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As many as there should be.
    Nothing,
    /// Delete these, which do not count as failed.
    Delete(Vec<usize>),
    /// Make so many.
    Create(usize),
    /// Make one for each of these indexes.
    CreateIndexes(Vec<i64>),
    /// Make some after this time.
    Wait(SignedDuration),
}

/// Decides what to do about the pods of a Job that goes on.
pub fn plan(spec: &Spec<'_>, pods: &[Pod<'_>], found: &Assessment, now: Timestamp) -> Plan {
    let active = found.active.len() as i64;
    if spec.suspended {
        return Plan::Delete(for_removal(spec, pods, &found.active, found.active.len()));
    }
    let wanted = match spec.completions {
        // Once a pod has succeeded, what runs goes on, and nothing is added.
        None if found.succeeded > 0 => active,
        None => spec.parallelism,
        Some(completions) => completions.saturating_sub(found.succeeded).min(spec.parallelism).max(0),
    };
    let surplus = usize::try_from(active.saturating_sub(wanted)).unwrap_or_default();
    let mut doomed = for_removal(spec, pods, &found.active, surplus);
    doomed.truncate(MOST);
    if !doomed.is_empty() {
        return Plan::Delete(doomed);
    }
    let held = if spec.only_replace_failed { found.terminating } else { 0 };
    let missing = usize::try_from(wanted.saturating_sub(held).saturating_sub(active)).unwrap_or_default().min(MOST);
    if missing == 0 {
        return Plan::Nothing;
    }
    if spec.per_index_limit.is_none() {
        let wait = found.backoff.remaining(now);
        if wait.is_positive() {
            return Plan::Wait(wait);
        }
    }
    if spec.indexed { indexes(spec, pods, found, missing, now) } else { Plan::Create(missing) }
}

/// Which indexes get a pod: the first that have none.
fn indexes(spec: &Spec<'_>, pods: &[Pod<'_>], found: &Assessment, missing: usize, now: Timestamp) -> Plan {
    let of = |wanted: &dyn Fn(&Pod<'_>) -> bool| Indexes::of(pods.iter().filter(|p| wanted(p)).filter_map(|p| p.index));
    let mut taken = found.succeeded_indexes.with(&of(&|p| pods::is_active(p.object)));
    if spec.only_replace_failed {
        taken = taken.with(&of(&|p| pods::is_terminating(p.object)));
    }
    if let Some(failed) = &found.failed_indexes {
        taken = taken.with(failed);
    }
    let chosen = taken.first_missing(missing, spec.index_count());
    if chosen.is_empty() {
        return Plan::Nothing;
    }
    if spec.per_index_limit.is_none() {
        return Plan::CreateIndexes(chosen);
    }
    let wait = |i: &i64| backoff::remaining_of_index(found.delayed.get(i).and_then(|at| pods.get(*at)), now);
    let (ready, waiting): (Vec<i64>, Vec<i64>) = chosen.into_iter().partition(|i| !wait(i).is_positive());
    match waiting.iter().map(wait).min() {
        Some(wait) if ready.is_empty() => Plan::Wait(wait),
        _ => Plan::CreateIndexes(ready),
    }
}

/// The active pods that go: at least so many, and in any case those of an index that another has, or that is none.
fn for_removal(spec: &Spec<'_>, pods: &[Pod<'_>], active: &[usize], at_least: usize) -> Vec<usize> {
    let mut order: Vec<usize> = active.to_vec();
    let object = |i: &usize| pods.get(*i).map(|p| p.object);
    order.sort_by(|a, b| match (object(a), object(b)) {
        (Some(a), Some(b)) => pods::compare_for_removal(a, b),
        _ => a.cmp(b),
    });
    let mut out = Vec::new();
    if spec.indexed {
        // The last of those with the same index stays.
        let mut seen = HashSet::new();
        let mut stays: Vec<usize> = Vec::new();
        for at in order.into_iter().rev() {
            let index = pods.get(at).and_then(|p| p.index).filter(|i| *i < spec.index_count());
            if index.is_some_and(|i| seen.insert(i)) { stays.push(at) } else { out.push(at) }
        }
        stays.reverse();
        order = stays;
    }
    let more = at_least.saturating_sub(out.len());
    out.extend(order.into_iter().take(more));
    out
}
