//! StatefulSets: pods with names and claims of their own, in order.

mod claims;
mod identity;
mod order;
mod retention;
mod status;
mod update;

use super::claim::Claimer;
use super::{meta, owned, pods, revisions};
use crate::{Context, Controller, Wiring};
use client::events::Recorder;
use client::resources::{CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS};
use client::{Cache, DeleteParams, Result};
use kinds::read::Read;
use object::Value;
use object::selector::Labels;
use std::sync::Arc;
use std::time::Duration;
use update::Update;

/// `statefulset-controller`
pub(crate) struct StatefulSets {
    context: Context,
    recorder: Recorder,
    sets: Arc<Cache>,
    pods: Arc<Cache>,
    claims: Arc<Cache>,
    revisions: Arc<Cache>,
}

impl Controller for StatefulSets {
    const NAME: &'static str = "statefulset-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let sets = wiring.cache(&STATEFUL_SETS);
        let pods = wiring.cache(&PODS);
        let claims = wiring.cache(&PERSISTENT_VOLUME_CLAIMS);
        let revisions = wiring.cache(&CONTROLLER_REVISIONS);
        wiring.on_own(&sets);
        owned::watch(wiring, &pods, &sets, &STATEFUL_SETS, owned::selector, None);
        owned::index(&revisions);
        // A pod waits until the claim that goes with a former one of its name is gone.
        wiring.on(&claims, |change, queue| {
            let claim = change.object();
            let owner = crate::controller_of(claim).filter(|r| change.is_deletion() && r.text("kind") == PODS.kind);
            if let Some((set, _)) = owner.and_then(|r| identity::parent_and_ordinal(r.text("name"))) {
                queue.add(format!("{}/{set}", claim.namespace()));
            }
        });
        let context = wiring.context().clone();
        let recorder = context.recorder("statefulset-controller");
        StatefulSets { context, recorder, sets, pods, claims, revisions }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(set) = self.sets.get_key(key) else { return Ok(None) };
        let Some(selector) = owned::selector(&set) else { return Ok(None) };
        let revisions = self.revisions_of(&set, &selector).await?;
        let claimer = Claimer::new(&set, self.context.api(&STATEFUL_SETS), self.context.api(&PODS));
        let candidates = owned::candidates(&self.pods, &set);
        let is_mine = |pod: &Value| identity::is_member(&set, pod) && selector.matches_object(pod);
        let pods = claimer.claim(candidates, is_mine).await?;
        let (current, update, collisions) = self.current_and_update(&set, &revisions).await?;
        let work = Update::new(self, &set, &current, &update, collisions);
        let (status, outcome) = work.run(&pods).await;
        let written = status::write(&self.context.api(&STATEFUL_SETS), &set, status).await;
        let mut live: Vec<&str> = pods.iter().map(|pod| identity::revision(pod)).collect();
        live.extend([current.name(), update.name()]);
        let cleaned = self.clean_up(&set, &revisions, &live).await;
        outcome.and(written).and(cleaned)?;
        let min_ready_seconds = meta::min_ready_seconds(&set);
        Ok(pods::next_available(pods.iter().map(|pod| &**pod), min_ready_seconds, self.context.now()))
    }
}

impl StatefulSets {
    /// The revisions of a set, the oldest first. Those without an owner become the set's.
    async fn revisions_of(&self, set: &Value, selector: &Labels) -> Result<Vec<Arc<Value>>> {
        let mut revisions = owned::candidates(&self.revisions, set);
        revisions.retain(|revision| selector.matches_object(revision));
        let claimer = Claimer::new(set, self.context.api(&STATEFUL_SETS), self.context.api(&CONTROLLER_REVISIONS));
        for orphan in revisions.iter().filter(|r| crate::controller_of(r).is_none()) {
            claimer.adopt(orphan).await?;
        }
        revisions.sort_by(|a, b| revisions::by_number(a, b));
        Ok(revisions)
    }

    /// The revision that all pods had when the last update was over, the one that they shall have, which is made if it is
    /// not there, and how often its name was taken.
    async fn current_and_update(&self, set: &Value, revisions: &[Arc<Value>]) -> Result<(Arc<Value>, Arc<Value>, i64)> {
        let api = self.context.api(&CONTROLLER_REVISIONS);
        let mut collisions = meta::status(set).int("collisionCount");
        let number = revisions.last().map_or(1, |last| revisions::number(last).saturating_add(1));
        let labels = identity::template_labels(set).clone();
        let new = revisions::new(set, &STATEFUL_SETS, labels, revisions::data(set), number);
        let equal = revisions.iter().rfind(|revision| revisions::is_equal(revision, &new));
        let update = match equal {
            Some(equal) if revisions.last().is_some_and(|last| revisions::is_equal(last, equal)) => {
                revisions.last().unwrap_or(equal).clone()
            }
            Some(equal) => revisions::renumber(&api, equal, number).await?,
            None => {
                let (created, count) = revisions::create(&api, set, new, collisions).await?;
                collisions = count;
                Arc::new(created)
            }
        };
        let named = meta::status(set).text("currentRevision");
        let current = revisions.iter().find(|r| r.name() == named).unwrap_or(&update).clone();
        Ok((current, update, collisions))
    }

    async fn clean_up(&self, set: &Value, revisions: &[Arc<Value>], live: &[&str]) -> Result<()> {
        let api = self.context.api(&CONTROLLER_REVISIONS);
        for revision in order::outdated(set, revisions, live) {
            match api.delete(revision.namespace(), revision.name(), &DeleteParams::default()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
