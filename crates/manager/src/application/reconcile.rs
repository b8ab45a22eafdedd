//! One look at one application: what it declares is brought about, what it has is kept, what is garbage goes.

use std::time::Duration;

use client::Error;
use client::events::EventType;
use object::Value;

use super::actor::Actor;
use super::controller::Controller;
use super::dispatch::Dispatcher;
use super::names;
use super::policy::Policies;
use super::status::{AppPhase, Status};
use super::write::Writer;

impl Controller {
    /// Looks at an application; after which time to look again.
    pub(super) async fn reconcile(&self, application: &Value) -> Result<Option<Duration>, Error> {
        let key = client::cache::key(application);
        let (clusters, definitions) = (self.fleet.generation(), self.catalogue.changes());
        let now = self.now();
        let mut status = Status::of(application, now);
        let declared = self.declared(application).await;
        let carried = declared.as_ref().map_or(application, |declared| &declared.application);
        let policies = match Policies::read(carried) {
            Ok(policies) => policies,
            Err(why) => {
                status.phase(AppPhase::Starting);
                status.failed("Parsed", &why);
                self.tell(application, EventType::Warning, "FailedParse", &why);
                self.write_status(application, status).await?;
                return Ok(Some(self.interval(application)));
            }
        };
        let known = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default().to_owned();
        let revision = declared.as_ref().map_or(known.as_str(), |declared| declared.revision.name.as_str());
        let publish_version = application.annotation(names::PUBLISH_VERSION).unwrap_or_default();
        let trackers = match self.trackers(application, revision, publish_version).await? {
            Ok(trackers) => trackers,
            Err(why) => {
                status.phase(AppPhase::Starting);
                status.condition("Ready", false, "ReconcileError", &why);
                self.write_status(application, status).await?;
                return Ok(Some(self.interval(application)));
            }
        };
        let actor = Actor::of(application);
        let writer =
            Writer { fleet: &self.fleet, owner: &key, policies: &policies, orphans: false, actor: actor.as_ref() };
        let is_complete = application.str_at(&["status", "workflow", "status"]) == Some("succeeded");
        let mut dispatcher = Dispatcher { writer, client: &self.client, trackers, is_complete };
        let mut objects = None;
        let again = match declared {
            Ok(declared) => self.carry_out(application, &declared, &mut dispatcher, &mut status, &mut objects).await?,
            Err(stopped) => {
                // What cannot be read or rendered any more is kept as it was.
                status.failed(stopped.stage, &stopped.why);
                status.phase(AppPhase::Rendering);
                let reason = if stopped.stage == "Parsed" { "Parse" } else { stopped.stage };
                self.tell(application, EventType::Warning, &format!("Failed{reason}"), &stopped.why);
                self.keep(application, &mut dispatcher, &mut status).await;
                Some(self.interval(application))
            }
        };
        self.remember(&key, &dispatcher.trackers);
        self.place(&key, &dispatcher.trackers, &mut status);
        let is_steady = is_steady(&status);
        self.write_status(application, status).await?;
        // Clusters that came or went meanwhile have not been looked at.
        if is_steady && clusters == self.fleet.generation() {
            self.note_steady(application, definitions, objects);
        }
        Ok(again)
    }
}

/// Whether nothing is left to do, and no time will change that: the workflow is over, everything is kept, and no garbage
/// is waited for.
fn is_steady(status: &Status) -> bool {
    let conditions = status.fields.get("conditions").and_then(Value::as_array).unwrap_or_default();
    let is_ready = |condition: &Value| {
        condition.str_at(&["type"]) == Some("Ready") && condition.str_at(&["status"]) == Some("True")
    };
    let is_kept = conditions.iter().all(|condition| condition.str_at(&["type"]) != Some("StateKeep"));
    is_kept && conditions.iter().any(is_ready)
}
