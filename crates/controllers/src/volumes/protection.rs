//! `persistentvolumeclaim-protection-controller` and `persistentvolume-protection-controller`: hold what is in use.

use super::claims_of_pod;
use crate::{Context, Controller, Wiring, pods};
use client::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS};
use client::{Cache, ListParams, Resource, Result};
use kinds::read::Read;
use object::Value;
use std::sync::Arc;
use std::time::Duration;

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
const BY_CLAIM: &str = "claim";

/// Holds claims that pods use.
pub struct ClaimProtection {
    context: Context,
    claims: Arc<Cache>,
    pods: Arc<Cache>,
}

impl Controller for ClaimProtection {
    const NAME: &'static str = "persistentvolumeclaim-protection-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (claims, pods) = (wiring.cache(&PERSISTENT_VOLUME_CLAIMS), wiring.cache(&PODS));
        pods.index(BY_CLAIM, claims_of_pod);
        wiring.on_own(&claims);
        wiring.on(&pods, |change, queue| {
            let gone = change.is_deletion() || change.new.as_deref().is_some_and(pods::is_terminal);
            let replaced = match (&change.old, &change.new) {
                (Some(old), Some(new)) => old.meta_str("uid") != new.meta_str("uid"),
                _ => false,
            };
            if gone || replaced {
                let before = change.old.as_deref().map(claims_of_pod).unwrap_or_default();
                let after = change.new.as_deref().map(claims_of_pod).unwrap_or_default();
                before.into_iter().chain(after).for_each(|key| queue.add(key));
            }
        });
        ClaimProtection { context, claims, pods }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(claim) = self.claims.get_key(key) else { return Ok(None) };
        let in_use = !needs_release(&claim, CLAIM_FINALIZER) || self.is_used(&claim).await?;
        protect(&self.context, &PERSISTENT_VOLUME_CLAIMS, &claim, CLAIM_FINALIZER, in_use).await
    }
}

impl ClaimProtection {
    /// Whether a pod that has a node uses a claim: by the cache, and, if not, by the server.
    async fn is_used(&self, claim: &Value) -> Result<bool> {
        let key = client::cache::key(claim);
        let uses = |pod: &Value| !pod.sub("spec").text("nodeName").is_empty() && claims_of_pod(pod).contains(&key);
        if self.pods.indexed(BY_CLAIM, &key).iter().any(|pod| uses(pod)) {
            return Ok(true);
        }
        let all = self.context.api(&PODS).list(claim.namespace(), &ListParams::default()).await?;
        Ok(all.items.iter().any(uses))
    }
}

/// Holds volumes that are bound.
pub struct VolumeProtection {
    context: Context,
    volumes: Arc<Cache>,
}

impl Controller for VolumeProtection {
    const NAME: &'static str = "persistentvolume-protection-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let volumes = wiring.cache(&PERSISTENT_VOLUMES);
        wiring.on_own(&volumes);
        VolumeProtection { context: wiring.context().clone(), volumes }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(volume) = self.volumes.get_key(key) else { return Ok(None) };
        let in_use = pods::phase(&volume) == "Bound";
        protect(&self.context, &PERSISTENT_VOLUMES, &volume, VOLUME_FINALIZER, in_use).await
    }
}

fn needs_release(object: &Value, finalizer: &str) -> bool {
    pods::is_deleting(object) && object.meta_list("finalizers").contains(&finalizer)
}

/// Puts a finalizer on an object, or takes it off one that is deleted and not in use.
async fn protect(
    context: &Context,
    resource: &Resource,
    object: &Value,
    finalizer: &str,
    in_use: bool,
) -> Result<Option<Duration>> {
    let mut finalizers = object.meta_list("finalizers");
    let held = finalizers.contains(&finalizer);
    match (pods::is_deleting(object), held) {
        (true, true) if !in_use => finalizers.retain(|f| *f != finalizer),
        (false, false) => finalizers.push(finalizer),
        _ => return Ok(None),
    }
    let mut new = object.clone();
    new.set_at(&["metadata", "finalizers"], finalizers.into());
    context.api(resource).update(&new).await?;
    Ok(None)
}
