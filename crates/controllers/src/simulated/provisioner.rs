//! Whoever makes volumes: a default storage class, and a volume for each claim that asks for one.

use crate::{Context, Controller, Wiring, pods};
use client::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES};
use client::{Cache, DeleteParams, Result};
use kinds::read::Read;
use object::{Value, map};
use std::sync::Arc;
use std::time::Duration;

/// The provisioner of the default class.
const OWN: &str = "simulated.stanchion.dev/volumes";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The key for the default class.
const CLASS: &str = "";
const VOLUME: &str = "volume:";

/// Makes and deletes volumes.
pub struct Provisioner {
    context: Context,
    claims: Arc<Cache>,
    volumes: Arc<Cache>,
    classes: Arc<Cache>,
}

impl Controller for Provisioner {
    const NAME: &'static str = "simulated-provisioner";

    fn new(wiring: &mut Wiring) -> Self {
        let (claims, volumes) = (wiring.cache(&PERSISTENT_VOLUME_CLAIMS), wiring.cache(&PERSISTENT_VOLUMES));
        let classes = wiring.cache(&STORAGE_CLASSES);
        wiring.queue().add(CLASS.to_owned());
        wiring.on_own(&claims);
        wiring.on(&volumes, |change, queue| queue.add(format!("{VOLUME}{}", change.key())));
        Provisioner { context: wiring.context().clone(), claims, volumes, classes }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        if key == CLASS {
            self.make_class().await?;
        } else if let Some(name) = key.strip_prefix(VOLUME) {
            self.delete(name).await?;
        } else if let Some(claim) = self.claims.get_key(key) {
            self.make(&claim).await?;
        }
        Ok(None)
    }
}

impl Provisioner {
    /// Makes a default storage class if there is none at all.
    async fn make_class(&self) -> Result<()> {
        if !self.classes.is_empty() {
            return Ok(());
        }
        let annotations = map! { "storageclass.kubernetes.io/is-default-class" => "true" };
        let class = map! {
            "apiVersion" => "storage.k8s.io/v1", "kind" => "StorageClass",
            "metadata" => map! { "name" => "standard", "annotations" => annotations },
            "provisioner" => OWN, "reclaimPolicy" => "Delete", "volumeBindingMode" => "Immediate",
        };
        match self.context.api(&STORAGE_CLASSES).create("", &class.into()).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the volume that a claim asks for.
    async fn make(&self, claim: &Value) -> Result<()> {
        let spec = claim.sub("spec");
        let Some(provisioner) = claim.annotation(PROVISIONER) else { return Ok(()) };
        if !spec.text("volumeName").is_empty() || pods::is_deleting(claim) {
            return Ok(());
        }
        let name = format!("pvc-{}", claim.meta_str("uid"));
        if self.volumes.get("", &name).is_some() {
            return Ok(());
        }
        let class = self.classes.get("", spec.text("storageClassName"));
        let policy = class.as_deref().map(|c| c.text("reclaimPolicy")).filter(|p| !p.is_empty()).unwrap_or("Delete");
        let reference = map! {
            "apiVersion" => "v1", "kind" => "PersistentVolumeClaim", "namespace" => claim.namespace(),
            "name" => claim.name(), "uid" => claim.meta_str("uid"),
        };
        let mut volume_spec = map! {
            "accessModes" => spec.sub("accessModes").clone(),
            "capacity" => map! { "storage" => spec.sub("resources").sub("requests").sub("storage").clone() },
            "claimRef" => reference, "persistentVolumeReclaimPolicy" => policy,
            "hostPath" => map! { "path" => format!("/simulated/{name}") },
            "storageClassName" => spec.text("storageClassName"),
        };
        if spec.has("volumeMode") {
            volume_spec.insert("volumeMode", spec.text("volumeMode"));
        }
        let annotations = map! { PROVISIONED_BY => provisioner };
        let volume = map! {
            "apiVersion" => "v1", "kind" => "PersistentVolume",
            "metadata" => map! { "name" => name, "annotations" => annotations }, "spec" => volume_spec,
        };
        match self.context.api(&PERSISTENT_VOLUMES).create("", &volume.into()).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }

    /// Deletes a volume whose claim is gone, if it is to go with it.
    async fn delete(&self, name: &str) -> Result<()> {
        let Some(volume) = self.volumes.get("", name) else { return Ok(()) };
        let over = pods::phase(&volume) == "Released"
            && volume.sub("spec").text("persistentVolumeReclaimPolicy") == "Delete"
            && volume.annotation(PROVISIONED_BY).is_some();
        if !over || pods::is_deleting(&volume) {
            return Ok(());
        }
        match self.context.api(&PERSISTENT_VOLUMES).delete("", name, &DeleteParams::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}
