//! `ephemeral-volume-controller`: makes the claims of volumes that live as long as their pod.

use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use client::{Cache, Error, Result};
use kinds::read::Read;
use object::{Value, go, map};
use std::sync::Arc;
use std::time::Duration;

/// Makes the claims of ephemeral volumes.
pub struct EphemeralVolumes {
    context: Context,
    pods: Arc<Cache>,
    claims: Arc<Cache>,
    recorder: Recorder,
}

impl Controller for EphemeralVolumes {
    const NAME: &'static str = "ephemeral-volume-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (pods, claims) = (wiring.cache(&PODS), wiring.cache(&PERSISTENT_VOLUME_CLAIMS));
        wiring.on(&pods, |change, queue| {
            let wants =
                |pod: &Value| !pods::is_deleting(pod) && pod.sub("spec").list("volumes").iter().any(is_ephemeral);
            if change.old.is_none() && change.new.as_deref().is_some_and(wants) {
                queue.add(change.key());
            }
        });
        // A claim that was deleted is made again.
        let all = pods.clone();
        wiring.on(&claims, move |change, queue| {
            let claim = change.object();
            let owner = pods::controller_of(claim).filter(|owner| owner.text("kind") == "Pod");
            if let Some(owner) = owner.filter(|_| change.is_deletion())
                && let Some(pod) = all.get(claim.namespace(), owner.text("name"))
            {
                queue.add(client::cache::key(&pod));
            }
        });
        let recorder = context.recorder("ephemeral_volume");
        EphemeralVolumes { context, pods, claims, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(pod) = self.pods.get_key(key).filter(|pod| !pods::is_deleting(pod)) else { return Ok(None) };
        for volume in pod.sub("spec").list("volumes").iter().filter(|v| is_ephemeral(v)) {
            if let Err(error) = self.make(&pod, volume).await {
                let name = volume.text("name");
                let message = format!("ephemeral volume {name}: {error}");
                self.recorder.event(&pod, EventType::Warning, "FailedBinding", &message);
                return Err(error);
            }
        }
        Ok(None)
    }
}

fn is_ephemeral(volume: &Value) -> bool {
    volume.has("ephemeral")
}

impl EphemeralVolumes {
    /// Makes the claim of a volume, if it is not there.
    async fn make(&self, pod: &Value, volume: &Value) -> Result<()> {
        let wanted = claim(pod, volume);
        if let Some(there) = self.claims.get(pod.namespace(), wanted.name()) {
            if pods::is_controlled_by(&there, pod.meta_str("uid")) {
                return Ok(());
            }
            let name = go::quote(there.name());
            let why = format!("PVC {name} was not created for pod {} (pod is not owner)", go::quote(pod.name()));
            return Err(Error::Content(why));
        }
        match self.context.api(&PERSISTENT_VOLUME_CLAIMS).create(pod.namespace(), &wanted).await {
            Err(error) if !error.is_already_exists() && !error.is_namespace_terminating() => Err(error),
            _ => Ok(()),
        }
    }
}

/// The claim of a pod's volume.
fn claim(pod: &Value, volume: &Value) -> Value {
    let template = volume.sub("ephemeral").sub("volumeClaimTemplate");
    let mut meta = map! {
        "name" => format!("{}-{}", pod.name(), volume.text("name")), "namespace" => pod.namespace(),
        "ownerReferences" => vec![pods::controller_reference(pod, "v1", "Pod")],
    };
    for field in ["labels", "annotations"] {
        let members = template.sub("metadata").members(field);
        if !members.is_empty() {
            meta.insert(field, members.clone());
        }
    }
    let spec = template.sub("spec").clone();
    map! { "apiVersion" => "v1", "kind" => "PersistentVolumeClaim", "metadata" => meta, "spec" => spec }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_claim_is_made_from_the_template() {
        let pod = json::parse(
            br#"{"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"volumes":[{"name":"v","ephemeral":
            {"volumeClaimTemplate":{"metadata":{"labels":{"a":"b"}},"spec":{"x":1}}}}]}}"#,
        )
        .unwrap();
        let made = claim(&pod, &pod.sub("spec").list("volumes")[0]);
        assert_eq!((made.name(), made.label("a")), ("p-v", Some("b")));
        assert!(pods::is_controlled_by(&made, "u"));
        assert_eq!(made.sub("spec").int("x"), 1);
    }
}
