//! One look at one Deployment: what is done for it.

use super::super::meta;
use super::numbers::{self, Strategy};
use super::scale::Plan;
use super::{Deployments, revision, rolling, scale, sets, status};
use client::events::EventType;
use client::resources::{DEPLOYMENTS, REPLICA_SETS};
use client::{DeleteParams, Error, Result};
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// When a Deployment is looked at again whose new set has no pods yet, unless the set tells of some before.
const AWAITED: Duration = Duration::from_secs(1);

/// A Deployment and its sets, as far as this look knows.
pub(super) struct Work<'c> {
    pub(super) controller: &'c Deployments,
    pub(super) deployment: Value,
    pub(super) sets: Vec<Arc<Value>>,
    pub(super) now: Timestamp,
}

/// The new set and the old ones.
pub(super) struct Found {
    pub(super) new: Option<Arc<Value>>,
    pub(super) old: Vec<Arc<Value>>,
}

impl Found {
    /// All sets, the new one last.
    pub(super) fn all(&self) -> Vec<Arc<Value>> {
        self.old.iter().chain(&self.new).cloned().collect()
    }
}

impl<'c> Work<'c> {
    pub(super) fn new(controller: &'c Deployments, deployment: Value, sets: Vec<Arc<Value>>) -> Self {
        Work { controller, deployment, sets, now: controller.context.now() }
    }

    /// Does what there is to do; gives when to look again.
    pub(super) async fn run(mut self) -> Result<Option<Duration>> {
        if meta::is_deleting(&self.deployment) {
            let found = self.find(false).await?;
            return self.write_counts(&found).await;
        }
        if let Some(condition) = status::pausing(&self.deployment, self.now) {
            status::set(&mut self.deployment, condition);
            self.write_status().await?;
        }
        if meta::spec(&self.deployment).flag("paused") {
            return self.resize().await;
        }
        if self.wants_rollback() {
            return self.roll_back().await.map(|()| None);
        }
        let found = self.find(false).await?;
        if scale::is_needed(&self.deployment, found.all()) {
            return self.resize().await;
        }
        match numbers::strategy(&self.deployment) {
            Strategy::Rolling => self.roll().await,
            Strategy::Recreate => self.recreate().await,
            Strategy::Unknown => {
                let ty = meta::spec(&self.deployment).sub("strategy").text("type");
                Err(Error::Content(format!("unexpected deployment strategy type: {ty}")))
            }
        }
    }

    /// A change of size, or a paused Deployment: no rollout.
    async fn resize(&mut self) -> Result<Option<Duration>> {
        let found = self.find(false).await?;
        let Plan { resizes, only_changes } = scale::plan(&self.deployment, found.new.as_ref(), &found.old);
        for (set, size) in resizes {
            if !only_changes || meta::replicas(&set) != size {
                self.scale(&set, size).await?;
            }
        }
        if meta::spec(&self.deployment).flag("paused") && !self.wants_rollback() {
            self.clean_up(&found).await?;
        }
        self.write_counts(&found).await
    }

    async fn roll(&mut self) -> Result<Option<Duration>> {
        let known = revision::new_set(&self.deployment, &self.sets);
        if status::awaits_pods(&self.deployment, &self.sets, known.as_ref(), self.now) {
            return Ok(Some(AWAITED));
        }
        let found = self.find(true).await?;
        let Some(new) = found.new.clone() else { return Ok(None) };
        if let Some(size) = rolling::of_new(&self.deployment, &new, &found.all()) {
            self.scale(&new, size).await?;
            return self.write_rollout(&found).await;
        }
        let active = numbers::active(found.old.iter().cloned());
        let resizes = rolling::of_old(&self.deployment, &new, &found.all(), &active);
        if !resizes.is_empty() {
            for (set, size) in resizes {
                // A failure is met again at the next look, which the change that caused it brings.
                if let Err(error) = self.scale(&set, size).await {
                    tracing::debug!(%error, "an old set cannot be scaled");
                    break;
                }
            }
            return self.write_rollout(&found).await;
        }
        self.finish(&found).await
    }

    async fn recreate(&mut self) -> Result<Option<Duration>> {
        let mut found = self.find(false).await?;
        let active = numbers::active(found.old.iter().cloned());
        if !active.is_empty() {
            for set in active {
                self.scale(&set, 0).await?;
            }
            return self.write_rollout(&found).await;
        }
        if self.controller.old_pods_run(&self.sets, found.new.as_ref(), &found.old) {
            return self.write_rollout(&found).await;
        }
        if found.new.is_none() {
            found = self.find(true).await?;
        }
        let wanted = meta::replicas(&self.deployment);
        if let Some(new) = found.new.clone().filter(|new| meta::replicas(new) != wanted) {
            self.scale(&new, wanted).await?;
        }
        self.finish(&found).await
    }

    /// Nothing is left to scale: what a complete rollout leaves is cleaned up.
    async fn finish(&mut self, found: &Found) -> Result<Option<Duration>> {
        if status::is_complete(&self.deployment, meta::status(&self.deployment)) {
            self.clean_up(found).await?;
        }
        self.write_rollout(found).await
    }

    /// The new set and the old ones; the new one gets its revision, and is made if that is asked for.
    pub(super) async fn find(&mut self, create: bool) -> Result<Found> {
        let new = revision::new_set(&self.deployment, &self.sets);
        let is_new = |set: &Value| new.as_ref().is_some_and(|new| meta::is_same(new, set));
        let mut old: Vec<Arc<Value>> = self.sets.iter().filter(|set| !is_new(set)).cloned().collect();
        old.sort_by(|a, b| meta::by_age(a, b));
        let number = revision::highest(&old).saturating_add(1);
        let new = match new {
            Some(new) => Some(self.adjust(new, number).await?),
            None if create => Some(self.create(&old, number).await?),
            None => None,
        };
        Ok(Found { new, old })
    }

    /// Brings the new set's annotations up to date, or the Deployment's.
    async fn adjust(&mut self, set: Arc<Value>, number: i64) -> Result<Arc<Value>> {
        let mut changed = (*set).clone();
        let min_ready_seconds = meta::min_ready_seconds(&self.deployment);
        let annotated = revision::annotate(&self.deployment, &mut changed, number, true);
        if annotated || meta::min_ready_seconds(&set) != min_ready_seconds {
            meta::set_count(changed.object_entry("spec"), "minReadySeconds", min_ready_seconds);
            return self.write_set(&changed).await;
        }
        let own = meta::annotation(&set, revision::REVISION).unwrap_or_default();
        let mut changed = revision::set_on_deployment(&mut self.deployment, own);
        let told = status::progressing(&self.deployment).is_some();
        if numbers::progress_deadline(&self.deployment).is_some() && !told {
            let message = format!("Found new replica set {}", object::go::quote(set.name()));
            self.tell_progress("True", "FoundNewReplicaSet", &message);
            changed = true;
        }
        if changed {
            self.write_status().await?;
        }
        Ok(set)
    }

    /// Makes the new set.
    async fn create(&mut self, old: &[Arc<Value>], number: i64) -> Result<Arc<Value>> {
        let set = sets::for_template(&self.deployment, old, number);
        let deadline = numbers::progress_deadline(&self.deployment).is_some();
        let (created, is_mine) = match self.controller.context.api(&REPLICA_SETS).create(set.namespace(), &set).await {
            Ok(created) => (Arc::new(created), true),
            Err(error) if error.is_already_exists() => (self.existing(&set, error).await?, false),
            Err(error) if error.is_namespace_terminating() => return Err(error),
            Err(error) => {
                let name = object::go::quote(set.name());
                let message = format!("Failed to create new replica set {name}: {error}");
                if deadline {
                    self.tell_progress("False", "ReplicaSetCreateError", &message);
                    // The failure that counts is that of the set.
                    let _ = self.write_status().await;
                }
                self.event(EventType::Warning, "ReplicaSetCreateError", &message);
                return Err(error);
            }
        };
        if is_mine && meta::replicas(&set) > 0 {
            let message = format!("Scaled up replica set {} from 0 to {}", created.name(), meta::replicas(&set));
            self.event(EventType::Normal, "ScalingReplicaSet", &message);
        }
        let mut changed = revision::set_on_deployment(&mut self.deployment, &number.to_string());
        if is_mine && deadline {
            let message = format!("Created new replica set {}", object::go::quote(created.name()));
            self.tell_progress("True", status::CREATED, &message);
            changed = true;
        }
        self.sets.push(created.clone());
        if changed {
            self.write_status().await?;
        }
        Ok(created)
    }

    /// The set that is there in place of the new one, if it is as good. Else the hash collides: the next look tries
    /// another one.
    async fn existing(&mut self, wanted: &Value, error: Error) -> Result<Arc<Value>> {
        let set = self.controller.sets.get(wanted.namespace(), wanted.name());
        let set = set.ok_or_else(|| error.clone())?;
        let mine = meta::controller_uid(&set) == meta::uid(&self.deployment);
        if mine && revision::is_same_template(meta::template(&self.deployment), meta::template(&set)) {
            return Ok(set);
        }
        let collisions = meta::status(&self.deployment).int("collisionCount").wrapping_add(1);
        self.deployment.set_at(&["status", "collisionCount"], collisions.into());
        self.write_status().await?;
        Err(error)
    }

    /// Gives a set a size, and the notes that belong to it.
    async fn scale(&mut self, set: &Arc<Value>, size: i64) -> Result<()> {
        // A set may have been written in this look before.
        let known = self.sets.iter().find(|known| meta::is_same(known, set)).unwrap_or(set);
        let before = meta::replicas(known);
        let mut changed = (**known).clone();
        let noted = revision::note_replicas(&self.deployment, &mut changed);
        if before == size && !noted {
            return Ok(());
        }
        changed.set_at(&["spec", "replicas"], size.into());
        let written = self.write_set(&changed).await?;
        if before != size {
            let direction = if before < size { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {} from {before} to {size}", written.name());
            self.event(EventType::Normal, "ScalingReplicaSet", &message);
        }
        Ok(())
    }

    async fn clean_up(&self, found: &Found) -> Result<()> {
        let api = self.controller.context.api(&REPLICA_SETS);
        for set in rolling::outdated(&self.deployment, &found.old) {
            match api.delete(set.namespace(), set.name(), &DeleteParams::default()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn write_set(&mut self, set: &Value) -> Result<Arc<Value>> {
        let written = Arc::new(self.controller.context.api(&REPLICA_SETS).update(set).await?);
        if let Some(known) = self.sets.iter_mut().find(|known| meta::is_same(known, set)) {
            *known = written.clone();
        }
        Ok(written)
    }

    /// Writes the Deployment's status, and goes on with the version that it has then.
    async fn write_status(&mut self) -> Result<()> {
        let written = self.controller.context.api(&DEPLOYMENTS).update_status(&self.deployment).await?;
        self.deployment.metadata_mut().insert("resourceVersion", written.meta_str("resourceVersion"));
        Ok(())
    }

    async fn write_counts(&mut self, found: &Found) -> Result<Option<Duration>> {
        let new = status::counts(&self.deployment, &found.all(), found.new.as_ref(), self.now);
        if new != *meta::status(&self.deployment) {
            self.deployment.set_at(&["status"], new);
            self.write_status().await?;
        }
        Ok(None)
    }

    async fn write_rollout(&mut self, found: &Found) -> Result<Option<Duration>> {
        if status::awaits_pods(&self.deployment, &found.all(), found.new.as_ref(), self.now) {
            return Ok(Some(AWAITED));
        }
        let new = status::rollout(&self.deployment, &found.all(), found.new.as_ref(), self.now);
        if new == *meta::status(&self.deployment) {
            return Ok(status::check_after(&self.deployment, &new, self.now));
        }
        self.deployment.set_at(&["status"], new);
        self.write_status().await?;
        Ok(status::check_after(&self.deployment, meta::status(&self.deployment), self.now))
    }

    fn tell_progress(&mut self, value: &str, reason: &str, message: &str) {
        let condition: Map = status::new_progressing(value, reason, message, self.now);
        status::set(&mut self.deployment, condition);
    }

    pub(super) fn event(&self, ty: EventType, reason: &str, message: &str) {
        self.controller.recorder.event(&self.deployment, ty, reason, message);
    }
}
