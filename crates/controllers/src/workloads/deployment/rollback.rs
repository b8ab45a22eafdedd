//! Going back to a former revision by an annotation, from before `kubectl rollout undo` did that by itself.

use super::super::meta;
use super::revision;
use super::work::Work;
use client::Result;
use client::events::EventType;
use client::resources::DEPLOYMENTS;
use object::Value;

impl Work<'_> {
    /// Whether the Deployment is to go back to a revision.
    pub(super) fn wants_rollback(&self) -> bool {
        self.rollback_to().is_some()
    }

    fn rollback_to(&self) -> Option<i64> {
        meta::annotation(&self.deployment, revision::ROLLBACK)?.parse().ok()
    }

    /// Takes the template of the revision asked for, 0 for the one before; the next look rolls it out.
    pub(super) async fn roll_back(&mut self) -> Result<()> {
        let found = self.find(true).await?;
        let all = found.all();
        let wanted = match self.rollback_to().unwrap_or_default() {
            0 => revision::last(&all),
            number => number,
        };
        let set = all.iter().find(|set| wanted != 0 && revision::of(set) == Some(wanted));
        match set {
            None => {
                let message = if wanted == 0 {
                    "Unable to find last revision."
                } else {
                    "Unable to find the revision to rollback to."
                };
                self.event(EventType::Warning, "DeploymentRollbackRevisionNotFound", message);
                self.clear_rollback().await
            }
            Some(set) if revision::is_same_template(meta::template(set), meta::template(&self.deployment)) => {
                let name = object::go::quote(self.deployment.name());
                let message = format!("The rollback revision contains the same template as current deployment {name}");
                self.event(EventType::Warning, "DeploymentRollbackTemplateUnchanged", &message);
                self.clear_rollback().await
            }
            Some(set) => {
                let mut template: Value = meta::template(set).clone();
                template.remove_at(&["metadata", "labels", revision::HASH]);
                revision::take_annotations(&mut self.deployment, set);
                self.deployment.set_at(&["spec", "template"], template);
                self.clear_rollback().await?;
                let name = object::go::quote(self.deployment.name());
                let message = format!("Rolled back deployment {name} to revision {wanted}");
                self.event(EventType::Normal, "DeploymentRollback", &message);
                Ok(())
            }
        }
    }

    async fn clear_rollback(&mut self) -> Result<()> {
        self.deployment.remove_at(&["metadata", "annotations", revision::ROLLBACK]);
        self.controller.context.api(&DEPLOYMENTS).update(&self.deployment).await.map(|_| ())
    }
}
