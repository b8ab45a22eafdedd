//! The work on one Job.

use super::account::{account, finish};
use super::assess::{Assessment, Input, assess};
use super::plan::{Plan, plan};
use super::pod::{Pod, TRACKING};
use super::spec::Spec;
use super::status::{Condition, Status};
use super::template::{self, Place};
use super::{BATCH, Jobs};
use crate::pod_control::keep_first;
use crate::pods;
use client::events::EventType;
use client::resources::JOBS;
use client::{Error, Result};
use futures_util::future::join_all;
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use std::collections::HashSet;
use std::time::Duration;

/// A Job while it is worked on.
struct Work<'a> {
    controller: &'a Jobs,
    key: &'a str,
    job: Value,
    spec: &'a Spec<'a>,
    pods: &'a [Pod<'a>],
    found: Assessment,
    status: Status,
    /// How many pods are active after what was done.
    active: i64,
    now: Timestamp,
}

impl Jobs {
    /// Counts the pods of a Job, makes or deletes some, and writes what came of it.
    pub(super) async fn sync_job(&self, key: &str, job: &Value) -> Result<()> {
        let mode = job.sub("spec").text("completionMode");
        if !matches!(mode, "" | "NonIndexed" | "Indexed") {
            let message = "Skipped Job sync because completion mode is unknown";
            self.recorder.event(job, EventType::Warning, "UnknownCompletionMode", message);
            return Ok(());
        }
        // Looked at before the pods are: what comes meanwhile is only counted later.
        let shown = self.written.is_shown(key, &self.pods);
        let objects = self.claim(job).await?;
        let mut pods: Vec<Pod<'_>> = objects.iter().map(|pod| Pod::new(pod)).collect();
        let spec = Spec::of(job);
        if spec.indexed {
            pods.sort_by_key(|pod| pod.index);
        }
        let mut memory = self.memory.lock().get(key).cloned().unwrap_or_default();
        memory.released.retain(|uid| pods.iter().any(|pod| pod.tracked && pod.uid() == uid));
        let (mut status, now) = (Status::of(job), self.context.now());
        if status.start_time.is_none() && !spec.suspended {
            status.start_time = Some(pods::seconds(now));
        }
        let backoff = memory.backoff;
        let found =
            assess(&Input { spec: &spec, pods: &pods, status: &status, released: &memory.released, backoff, now });
        if let Some(wait) = found.deadline_in {
            self.queue.after(key.to_owned(), wait.try_into().unwrap_or_default());
        }
        self.memory.lock().entry(key.to_owned()).or_default().released = memory.released;
        let active = found.active.len() as i64;
        let mut work =
            Work { controller: self, key, job: job.clone(), spec: &spec, pods: &pods, found, status, active, now };
        let (outcome, changed) = work.act(shown).await;
        work.write(changed).await?;
        outcome
    }
}

impl Work<'_> {
    fn tell(&self, ty: EventType, reason: &str, message: &str) {
        self.controller.recorder.event(&self.job, ty, reason, message);
    }

    fn pod(&self, at: usize) -> Option<&Pod<'_>> {
        self.pods.get(at)
    }

    /// Makes or deletes pods. Gives how that went, and whether the status has to be written for it.
    async fn act(&mut self, shown: bool) -> (Result<()>, bool) {
        if self.found.finished.is_some() {
            let doomed = self.found.active.clone();
            let before = self.active;
            let outcome = self.delete(&doomed, false).await;
            if self.active > 0 || before != doomed.len() as i64 || !shown {
                // There may be pods left, or some that the cache does not show.
                self.found.finished = None;
            }
            return (outcome, false);
        }
        let manage = shown && !pods::is_deleting(&self.job);
        let outcome = if manage { self.manage().await } else { Ok(()) };
        let complete = match self.spec.completions {
            None => self.found.succeeded > 0,
            Some(wanted) => self.found.succeeded >= wanted,
        };
        if complete && self.active == 0 {
            let message = "Reached expected number of succeeded pods";
            self.found.finished = Some(Condition::new("SuccessCriteriaMet", "CompletionsReached", message));
            return (outcome, false);
        }
        (outcome, manage && self.note_suspension())
    }

    /// Says in the status whether the Job is suspended. Tells whether that is new.
    fn note_suspension(&mut self) -> bool {
        let suspended = self.spec.suspended;
        let (reason, message) =
            if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        let changed = self.status.ensure(&Condition::new("Suspended", reason, message), suspended, self.now);
        if changed {
            self.tell(EventType::Normal, if suspended { "Suspended" } else { "Resumed" }, message);
            if !suspended {
                // The time that the deadline counts from.
                self.status.start_time = Some(pods::seconds(self.now));
            }
        }
        changed
    }

    async fn manage(&mut self) -> Result<()> {
        match plan(self.spec, self.pods, &self.found, self.now) {
            Plan::Nothing => Ok(()),
            Plan::Delete(doomed) => self.delete(&doomed, true).await,
            Plan::Wait(wait) => {
                let wait: Duration = wait.try_into().unwrap_or_default();
                self.controller.queue.after(self.key.to_owned(), wait.max(BATCH));
                self.active = 0;
                Ok(())
            }
            Plan::Create(count) => self.create(vec![None; count]).await,
            Plan::CreateIndexes(indexes) => {
                let place = |index: i64| {
                    let failures = self.spec.per_index_limit.map(|_| {
                        let before = self.found.delayed.get(&index).and_then(|at| self.pod(*at));
                        before.map_or((0, 0), |pod| pod.failures_with_it(self.spec.failure_policy))
                    });
                    Some(Place { index, failures })
                };
                self.create(indexes.into_iter().map(place).collect()).await
            }
        }
    }

    /// Creates pods, few at first: what fails for one fails for all.
    async fn create(&mut self, places: Vec<Option<Place>>) -> Result<()> {
        let mut failure = None;
        let (mut left, mut size) = (places.as_slice(), 1);
        while !left.is_empty() && failure.is_none() {
            let (now, later) = left.split_at(size.min(left.len()));
            let pods: Vec<Value> = now.iter().map(|place| template::pod(&self.job, *place)).collect();
            let control = &self.controller.control;
            for made in join_all(pods.iter().map(|pod| control.create(&self.job, pod))).await {
                match made {
                    Ok(pod) => {
                        self.controller.written.wrote(self.key, &pod);
                        self.active += 1;
                    }
                    // All that is tried later would fail, too.
                    Err(error) if error.is_namespace_terminating() => self.active += 1,
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            (left, size) = (later, size * 2);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Deletes pods; with `release` they are let go before, so that they do not count.
    async fn delete(&mut self, doomed: &[usize], release: bool) -> Result<()> {
        let control = &self.controller.control;
        let delete = |at: usize| {
            let (pod, job) = (self.pod(at).copied(), &self.job);
            async move {
                let Some(pod) = pod else { return (false, Ok(())) };
                if release && pod.tracked {
                    match control.release(pod.object, TRACKING).await {
                        Ok(Some(_)) => {}
                        Ok(None) => return (false, Ok(())),
                        Err(error) => return (false, Err(error)),
                    }
                }
                let result = control.delete(job, pod.object).await.map(|_| ());
                (pods::is_ready(pod.object), result)
            }
        };
        let outcomes = join_all(doomed.iter().map(|at| delete(*at))).await;
        let mut failure: Option<Error> = None;
        for (at, (ready, result)) in doomed.iter().zip(outcomes) {
            if result.is_ok() {
                if let Some(pod) = self.pods.get(*at) {
                    self.controller.written.deleted(self.key, pod.object);
                }
                self.active -= 1;
                self.found.terminating += 1;
            }
            self.found.ready -= i64::from(ready);
            keep_first(&mut failure, result);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Puts ended pods into the status, takes their finalizers off, counts them, and ends the Job if that was all.
    async fn write(&mut self, mut changed: bool) -> Result<()> {
        let (ready, terminating) = (Some(self.found.ready), Some(self.found.terminating));
        changed |=
            self.status.active != self.active || self.status.ready != ready || self.status.terminating != terminating;
        (self.status.active, self.status.ready, self.status.terminating) = (self.active, ready, terminating);
        let released: HashSet<String> =
            self.controller.memory.lock().get(self.key).map(|m| m.released.clone()).unwrap_or_default();
        let deleting = pods::is_deleting(&self.job);
        let accounting = account(self.spec, deleting, self.pods, &self.found, &mut self.status, &released, self.now);
        if changed || accounting.changed {
            self.put_status().await?;
            self.controller.memory.lock().entry(self.key.to_owned()).or_default().backoff = self.found.backoff;
        }
        let mut with_finalizer = accounting.with_finalizer;
        let failure = self.release(&accounting.release, &mut with_finalizer).await;
        let mut changed = self.status.count_released(&with_finalizer);
        if let Some(error) = failure {
            if changed {
                self.put_status().await?;
            }
            return Err(error);
        }
        let ended = !accounting.full
            && finish(accounting.finished.as_ref(), self.found.terminating, &mut self.status, self.now);
        changed |= ended;
        if changed {
            self.put_status().await?;
        }
        if let Some(condition) = accounting.finished.filter(|_| ended) {
            self.tell_end(&condition);
        }
        Ok(())
    }

    /// Takes the finalizer off pods. Gives the first failure.
    async fn release(&self, pods: &[usize], with_finalizer: &mut HashSet<&str>) -> Option<Error> {
        let pods: Vec<&Pod<'_>> = pods.iter().filter_map(|at| self.pods.get(*at)).collect();
        let remember = |uid: &str, released: bool| {
            let mut memory = self.controller.memory.lock();
            let known = &mut memory.entry(self.key.to_owned()).or_default().released;
            if released { known.insert(uid.to_owned()) } else { known.remove(uid) }
        };
        pods.iter().for_each(|pod| {
            remember(pod.uid(), true);
        });
        let outcomes = join_all(pods.iter().map(|pod| self.controller.control.release(pod.object, TRACKING))).await;
        let mut failure = None;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            if outcome.is_ok() {
                with_finalizer.remove(pod.uid());
            } else {
                remember(pod.uid(), false);
            }
            keep_first(&mut failure, outcome.map(|_| ()));
        }
        failure
    }

    async fn put_status(&mut self) -> Result<()> {
        let new = self.status.put_on(&self.job);
        self.job = self.controller.context.api(&JOBS).update_status(&new).await?;
        Ok(())
    }

    fn tell_end(&self, condition: &Condition) {
        if condition.kind != "Complete" {
            return self.tell(EventType::Warning, &condition.reason, &condition.message);
        }
        if self.spec.completions.is_some_and(|wanted| self.status.succeeded > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            self.tell(EventType::Warning, "TooManySucceededPods", message);
        }
        self.tell(EventType::Normal, "Completed", "Job completed");
    }
}
