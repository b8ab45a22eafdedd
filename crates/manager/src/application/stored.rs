//! What the controller reads and writes of applications themselves.

use client::{Error, Patch, PatchParams};
use object::Value;

use super::controller::Controller;
use super::kinds::{APPLICATIONS, TRACKERS};
use super::status::Status;
use super::tracker::{Tracker, Trackers};

impl Controller {
    /// Changes the application's metadata.
    pub(super) async fn patch(&self, application: &Value, patch: Value) -> Result<(), Error> {
        let api = self.client.api(&APPLICATIONS);
        let (namespace, name) = (application.namespace(), application.name());
        let changed = api.patch(namespace, name, &Patch::Merge(patch), &PatchParams::default()).await;
        match changed {
            Ok(changed) => {
                self.wrote(&changed);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn write_status(&self, application: &Value, status: Status) -> Result<(), Error> {
        let Some(patch) = status.patch(application) else { return Ok(()) };
        let api = self.client.api(&APPLICATIONS);
        let (namespace, name) = (application.namespace(), application.name());
        match api.patch(namespace, name, &Patch::Merge(patch), &PatchParams::status()).await {
            Ok(changed) => {
                self.wrote(&changed);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The trackers of an application, sorted; or why they cannot be used.
    pub(super) async fn trackers(
        &self,
        application: &Value,
        revision: &str,
        publish_version: &str,
    ) -> Result<Result<Trackers, String>, Error> {
        let mut all = Vec::new();
        for name in self.tracker_names(&client::cache::key(application)) {
            if let Some(object) = self.client.api(&TRACKERS).find("", &name).await? {
                match Tracker::read(&object) {
                    Ok(mut tracker) => {
                        // Clusters may have been renamed since.
                        for entry in &mut tracker.entries {
                            entry.cluster = self.fleet.name_now(&entry.cluster);
                        }
                        all.push(tracker);
                    }
                    Err(why) => return Ok(Err(format!("resourcetracker {name}: {why}"))),
                }
            }
        }
        Ok(Trackers::classify(all, application.meta_str("uid"), revision, publish_version))
    }
}
