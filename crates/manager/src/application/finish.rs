//! The end of things: revisions that are too many, and applications that are deleted.

use std::time::Duration;

use client::events::EventType;
use client::{Error, Patch, PatchParams};
use object::{Value, map};

use super::actor::Actor;
use super::collect::{self, Occasion};
use super::controller::Controller;
use super::declared::depends;
use super::dispatch::Dispatcher;
use super::garbage::SOON;
use super::kinds::{REVISIONS, TRACKERS};
use super::names;
use super::policy::Policies;
use super::revision::Revision;
use super::status::{AppPhase, Status};
use super::tracker::Tracker;
use super::write::Writer;

impl Controller {
    /// Takes away revisions that are too many, with the records that only served them.
    pub(super) async fn collect_revisions(
        &self,
        application: &Value,
        current: &Revision,
        dispatcher: &Dispatcher<'_>,
    ) -> Result<(), Error> {
        let policy = &dispatcher.writer.policies.collect;
        let limit = policy.revision_limit.unwrap_or(self.options.revision_limit);
        let mut names: Vec<String> = self.revisions(application).into_iter().map(|revision| revision.name).collect();
        if !names.contains(&current.name) {
            // It was made a moment ago.
            names.push(current.name.clone());
        }
        let surplus = collect::surplus(&names, limit, &[current.name.as_str()].into());
        for name in surplus {
            let params = client::DeleteParams::default();
            match self.client.api(&REVISIONS).delete(application.namespace(), name, &params).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
            let served = |tracker: &&Tracker| tracker.is_archived() && tracker.label(names::APP_REVISION) == name;
            for tracker in dispatcher.trackers.history.iter().filter(served) {
                let free = Patch::Merge(map! { "metadata" => map! { "finalizers" => Value::Null } }.into());
                let api = self.client.api(&TRACKERS);
                _ = api.patch("", tracker.name(), &free, &PatchParams::default()).await;
                _ = api.delete("", tracker.name(), &client::DeleteParams::default()).await;
            }
        }
        Ok(())
    }

    /// Collects everything that a deleted application has, and then lets it go.
    pub(super) async fn finalize(&self, application: &Value) -> Result<Option<Duration>, Error> {
        let finalizers = application.meta_list("finalizers");
        let orphans = finalizers.contains(&names::ORPHAN_FINALIZER);
        if !orphans && !finalizers.contains(&names::FINALIZER) {
            return Ok(None);
        }
        let key = client::cache::key(application);
        let mut status = Status::of(application, self.now());
        status.phase(AppPhase::Deleting);
        // A policy that cannot be read says nothing about what is to go.
        let policies = Policies::read(application).unwrap_or_default();
        let actor = Actor::of(application);
        let outcome = match self.trackers(application, "", "").await? {
            Err(why) => Err(why),
            Ok(trackers) => {
                self.place(&key, &trackers, &mut status);
                let writer =
                    Writer { fleet: &self.fleet, owner: &key, policies: &policies, orphans, actor: actor.as_ref() };
                let mut dispatcher = Dispatcher { writer, client: &self.client, trackers, is_complete: true };
                dispatcher.collect(Occasion::Deleting, &depends(application)).await
            }
        };
        match outcome {
            Ok(None) => {
                self.fleet.forget(&key);
                // One that was made a moment ago goes by its owner.
                let api = self.client.api(&REVISIONS);
                for revision in self.revisions(application) {
                    match api.delete(application.namespace(), &revision.name, &client::DeleteParams::default()).await {
                        Err(error) if !error.is_not_found() => return Err(error),
                        _ => {}
                    }
                }
                let kept: Vec<&str> = finalizers
                    .into_iter()
                    .filter(|finalizer| ![names::FINALIZER, names::ORPHAN_FINALIZER].contains(finalizer))
                    .collect();
                self.patch(application, map! { "metadata" => map! { "finalizers" => kept } }.into()).await?;
                Ok(None)
            }
            Ok(Some(waiting)) => {
                status.condition("Ready", false, "Deleting", &waiting.message);
                self.write_status(application, status).await?;
                Ok(Some(if waiting.is_away { self.interval(application) } else { SOON }))
            }
            Err(why) => {
                self.tell(application, EventType::Warning, "FailedGC", &why);
                status.condition("Ready", false, "ReconcileError", &why);
                self.write_status(application, status).await?;
                Ok(Some(self.backoff(application, 60)))
            }
        }
    }
}
