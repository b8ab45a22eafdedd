//! Volumes and the claims for them.

mod binder;
mod binding;
mod ephemeral;
mod matching;
mod plugins;
mod protection;

pub(crate) use binder::Binder;
pub(crate) use ephemeral::EphemeralVolumes;
pub(crate) use protection::{ClaimProtection, VolumeProtection};

use kinds::read::Read;
use object::Value;

/// The keys of the claims that a pod uses.
pub(crate) fn claims_of_pod(pod: &Value) -> Vec<String> {
    let volumes = pod.sub("spec").list("volumes").iter();
    let names = volumes.filter_map(|volume| {
        if volume.has("persistentVolumeClaim") {
            Some(volume.sub("persistentVolumeClaim").text("claimName").to_owned())
        } else if volume.has("ephemeral") {
            Some(format!("{}-{}", pod.name(), volume.text("name")))
        } else {
            None
        }
    });
    names.map(|name| format!("{}/{name}", pod.namespace())).collect()
}
