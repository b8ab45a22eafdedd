//! The claims of a StatefulSet's pods: made, and owned as the set's policy wants.

use super::{StatefulSets, identity, retention};
use client::events::EventType;
use client::resources::PERSISTENT_VOLUME_CLAIMS;
use client::{Error, Result};
use object::Value;
use std::sync::Arc;

impl StatefulSets {
    fn claim(&self, set: &Value, template: &Value, ordinal: i64) -> Option<Arc<Value>> {
        self.claims.get(set.namespace(), &identity::claim_name(set, template, ordinal))
    }

    /// The claims of a pod that are there.
    fn claims_of(&self, set: &Value, pod: &Value) -> Vec<Arc<Value>> {
        let Some(ordinal) = identity::ordinal(pod) else { return Vec::new() };
        let templates = identity::claim_templates(set).iter();
        templates.filter_map(|template| self.claim(set, template, ordinal)).collect()
    }

    /// Makes the claims of a pod that are not there.
    pub(super) async fn create_claims(&self, set: &Value, pod: &Value) -> Result<()> {
        let Some(ordinal) = identity::ordinal(pod) else { return Ok(()) };
        let mut failures: Vec<String> = Vec::new();
        for claim in identity::claims(set, ordinal) {
            match self.claims.get(set.namespace(), claim.name()) {
                Some(there) if super::meta::is_deleting(&there) => {
                    failures.push(format!("pvc {} is being deleted", claim.name()));
                }
                Some(_) => {}
                None => {
                    let outcome = self.context.api(&PERSISTENT_VOLUME_CLAIMS).create(set.namespace(), &claim).await;
                    if outcome.as_ref().err().is_none_or(|error| !error.is_already_exists()) {
                        self.tell_claim(set, pod, &claim, outcome.as_ref().err());
                    }
                    if let Err(error) = outcome {
                        failures.push(format!("failed to create PVC {}: {error}", claim.name()));
                    }
                }
            }
        }
        match failures.len() {
            0 => Ok(()),
            1 => Err(Error::Content(failures.concat())),
            _ => Err(Error::Content(format!("[{}]", failures.join(", ")))),
        }
    }

    fn tell_claim(&self, set: &Value, pod: &Value, claim: &Value, error: Option<&Error>) {
        let (claim, pod, name) = (claim.name(), pod.name(), set.name());
        match error {
            None => {
                let message = format!("create Claim {claim} Pod {pod} in StatefulSet {name} success");
                self.recorder.event(set, EventType::Normal, "SuccessfulCreate", &message);
            }
            Some(error) => {
                let message = format!("create Claim {claim} for Pod {pod} in StatefulSet {name} failed error: {error}");
                self.recorder.event(set, EventType::Warning, "FailedCreate", &message);
            }
        }
    }

    /// Whether a claim of a pod still waits to go with a former pod of that name.
    pub(super) fn has_stale_claim(&self, set: &Value, pod: &Value) -> bool {
        !retention::keeps_scaled(set)
            && self.claims_of(set, pod).iter().any(|claim| retention::is_of_former_pod(claim, pod))
    }

    /// Whether the claims of a pod are owned as the set's policy wants.
    pub(super) fn claims_are_right(&self, set: &Value, pod: &Value) -> bool {
        self.claims_of(set, pod).iter().all(|claim| retention::is_right(claim, set, pod))
    }

    /// Makes the claims of a pod owned as the set's policy wants.
    pub(super) async fn correct_claims(&self, set: &Value, pod: &Value) -> Result<()> {
        for claim in self.claims_of(set, pod) {
            if retention::has_other_controller(&claim, set, pod) {
                let message = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a managing controller, \
                     the retention policy is ignored for this claim",
                    claim.name()
                );
                self.recorder.event(set, EventType::Warning, "ConflictingController", &message);
            }
            if retention::is_right(&claim, set, pod) {
                continue;
            }
            let mut changed = (*claim).clone();
            retention::set_owners(&mut changed, set, pod);
            self.context.api(&PERSISTENT_VOLUME_CLAIMS).update(&changed).await.map_err(|error| {
                let name = claim.name();
                Error::Content(format!("could not update claim {name} for delete policy ownerRefs: {error}"))
            })?;
        }
        Ok(())
    }
}
