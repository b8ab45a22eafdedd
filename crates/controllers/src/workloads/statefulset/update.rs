//! One look at one StatefulSet: what is done for its pods.

use super::order::{self, Pods, Step};
use super::status::Revisions;
use super::{StatefulSets, identity, status};
use crate::workloads::batches::slow_start;
use crate::workloads::{meta, pods, revisions};
use client::events::EventType;
use client::resources::PODS;
use client::{DeleteParams, Error, Result};
use jiff::Timestamp;
use object::{Map, Value};
use std::sync::Arc;

/// The most pods that are made in one look.
const BURST: usize = 500;

/// A set with the templates of its revisions.
pub(super) struct Update<'s> {
    pub(super) controller: &'s StatefulSets,
    pub(super) set: &'s Value,
    /// The set with the template of the current revision.
    pub(super) current: Value,
    /// The set with the template of the updated revision.
    pub(super) updated: Value,
    pub(super) names: Revisions,
    pub(super) now: Timestamp,
}

impl<'s> Update<'s> {
    pub(super) fn new(
        controller: &'s StatefulSets,
        set: &'s Value,
        current: &Value,
        update: &Value,
        collisions: i64,
    ) -> Self {
        let names = Revisions { current: current.name().to_owned(), update: update.name().to_owned(), collisions };
        let (current, updated) = (revisions::restore(set, current), revisions::restore(set, update));
        Update { controller, set, current, updated, names, now: controller.context.now() }
    }

    /// Does what there is to do for these pods; gives the status, and what failed.
    pub(super) async fn run(&self, pods: &[Arc<Value>]) -> (Map, Result<()>) {
        if meta::is_deleting(self.set) {
            return (status::status(self.set, &self.names, pods.iter(), self.now), Ok(()));
        }
        let mut sorted = order::sort(self.set, pods);
        let monotonic = order::is_monotonic(self.set);
        // Pods that are made in this look do not count yet.
        let count = |sorted: &Pods| {
            let all = sorted.wanted.values().chain(&sorted.condemned);
            status::status(self.set, &self.names, all, self.now)
        };
        let counted = count(&sorted);
        let grown = if monotonic { self.one_by_one(&sorted).await } else { self.all_at_once(&mut sorted).await };
        match grown {
            Ok(true) => {}
            stopped => return (counted, stopped.map(|_| ())),
        }
        for pod in &sorted.condemned {
            if !self.controller.claims_are_right(&self.updated, pod)
                && let Err(error) = self.controller.correct_claims(&self.updated, pod).await
            {
                return (counted, Err(error));
            }
        }
        let removal = order::removal(self.set, &sorted, monotonic, self.now);
        for pod in &removal.delete {
            if let Err(error) = self.delete(pod).await {
                return (counted, Err(error));
            }
        }
        if removal.wait {
            return (counted, Ok(()));
        }
        let mut counted = counted;
        let Some(pod) = order::to_update(self.set, &sorted.wanted, &self.names.update) else {
            return (counted, Ok(()));
        };
        let outcome = self.delete(&pod).await;
        if outcome.as_ref().err().is_none_or(Error::is_not_found) {
            let left = counted.get("currentReplicas").and_then(Value::as_int).unwrap_or_default() - 1;
            meta::set_count(&mut counted, "currentReplicas", left);
        }
        (counted, outcome)
    }

    /// Looks at the wanted pods in order until one has to be waited for; says whether none had to be.
    async fn one_by_one(&self, sorted: &Pods) -> Result<bool> {
        let mut next = identity::start(self.set);
        for (ordinal, pod) in &sorted.wanted {
            if *ordinal != next {
                break;
            }
            if !self.settle(pod, true).await? {
                return Ok(false);
            }
            next += 1;
        }
        if identity::ordinals(self.set).contains(&next) {
            self.create(&self.new_pod(next)).await?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Looks at all wanted pods, and makes those that are missing; says whether all were looked at.
    async fn all_at_once(&self, sorted: &mut Pods) -> Result<bool> {
        let missing = identity::ordinals(self.set).filter(|ordinal| !sorted.wanted.contains_key(ordinal));
        let new: Vec<Value> = missing.take(BURST + 1).map(|ordinal| self.new_pod(ordinal)).collect();
        let there: Vec<&Arc<Value>> = sorted.wanted.values().collect();
        let act = |i: usize| {
            let (there, new) = (&there, &new);
            async move {
                match there.get(i) {
                    Some(pod) => self.settle(pod, false).await.map(|_| ()),
                    None => match new.get(i - there.len()) {
                        Some(pod) => self.create(pod).await.map(|_| ()),
                        None => Ok(()),
                    },
                }
            }
        };
        slow_start(there.len() + new.len().min(BURST), act).await.1?;
        if new.len() > BURST {
            return Ok(false);
        }
        for pod in new {
            if let Some(ordinal) = identity::ordinal(&pod) {
                sorted.wanted.insert(ordinal, Arc::new(pod));
            }
        }
        Ok(true)
    }

    fn new_pod(&self, ordinal: i64) -> Value {
        if identity::is_current(&self.current, ordinal) {
            identity::new_pod(&self.current, ordinal, &self.names.current)
        } else {
            identity::new_pod(&self.updated, ordinal, &self.names.update)
        }
    }

    /// Looks at a wanted pod that is there; says whether the next one may be looked at.
    async fn settle(&self, pod: &Value, monotonic: bool) -> Result<bool> {
        let step = order::step(self.set, pod, monotonic, self.now);
        if step == Step::Replace {
            self.delete(pod).await?;
            return Ok(false);
        }
        if pods::phase(pod) == "Pending" {
            self.controller.create_claims(self.set, pod).await?;
            self.controller.correct_claims(self.set, pod).await?;
        }
        if step == Step::Wait {
            return Ok(false);
        }
        let right = identity::has_identity(self.set, pod)
            && identity::has_storage(self.set, pod)
            && self.controller.claims_are_right(&self.updated, pod);
        if !right {
            self.correct(pod.clone()).await?;
        }
        Ok(true)
    }

    /// Makes a missing pod, its claims first; while a claim waits to go with a former pod nothing is made.
    async fn create(&self, pod: &Value) -> Result<()> {
        if self.controller.has_stale_claim(self.set, pod) {
            return Ok(());
        }
        if let Err(error) = self.controller.create_claims(self.set, pod).await {
            self.tell("create", pod, Some(&error));
            return Err(error);
        }
        let outcome = self.controller.context.api(&PODS).create(self.set.namespace(), pod).await;
        if outcome.as_ref().err().is_some_and(Error::is_already_exists) {
            return outcome.map(|_| ());
        }
        if let Err(error) = self.controller.correct_claims(self.set, pod).await {
            self.tell("update", pod, Some(&error));
            return Err(error);
        }
        self.tell("create", pod, outcome.as_ref().err());
        outcome.map(|_| ())
    }

    /// Gives a pod its identity, its storage and its claims their owners.
    async fn correct(&self, mut pod: Value) -> Result<()> {
        let set = &self.updated;
        let mut outcome = Ok(());
        for _ in 0..5 {
            let Some(ordinal) = identity::ordinal(&pod) else { return Ok(()) };
            let mut right = true;
            if !identity::has_identity(set, &pod) {
                identity::set_identity(set, &mut pod, ordinal);
                right = false;
            }
            if !identity::has_storage(set, &pod) {
                identity::set_storage(set, &mut pod, ordinal);
                self.controller.create_claims(set, &pod).await.inspect_err(|e| self.tell("update", &pod, Some(e)))?;
                right = false;
            }
            if !self.controller.claims_are_right(set, &pod) {
                self.controller.correct_claims(set, &pod).await.inspect_err(|e| self.tell("update", &pod, Some(e)))?;
                right = false;
            }
            if right {
                return Ok(());
            }
            let api = self.controller.context.api(&PODS);
            outcome = api.update(&pod).await.map(|_| ());
            match &outcome {
                Err(error) if error.is_conflict() => pod = api.get(pod.namespace(), pod.name()).await?,
                _ => break,
            }
        }
        self.tell("update", &pod, outcome.as_ref().err());
        outcome
    }

    async fn delete(&self, pod: &Value) -> Result<()> {
        let api = self.controller.context.api(&PODS);
        let outcome = api.delete(pod.namespace(), pod.name(), &DeleteParams::default()).await;
        self.tell("delete", pod, outcome.as_ref().err());
        outcome.map(|_| ())
    }

    /// Tells what was done with a pod.
    fn tell(&self, verb: &str, pod: &Value, error: Option<&Error>) {
        let (pod, set) = (pod.name(), self.set.name());
        let title = match verb {
            "create" => "Create",
            "delete" => "Delete",
            _ => "Update",
        };
        let recorder = &self.controller.recorder;
        match error {
            None => {
                let message = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                recorder.event(self.set, EventType::Normal, &format!("Successful{title}"), &message);
            }
            Some(error) => {
                let message = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
                recorder.event(self.set, EventType::Warning, &format!("Failed{title}"), &message);
            }
        }
    }
}
