//! `persistentvolume-binder-controller`: binds claims to volumes.

use super::binding::{claim_bound, claim_status, volume_bound, volume_phase, volume_unbound};
use super::matching::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, class, find, has_class, is_for, mismatch,
    mode_differs,
};
use super::plugins::{self, Deletion};
use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES};
use client::{Api, Cache, DeleteParams, Error, Queue, Result};
use kinds::read::Read;
use object::{Value, go};
use std::sync::Arc;
use std::time::Duration;

/// How often what is not bound is tried again.
const PERIOD: Duration = Duration::from_secs(15);
/// Marks the keys of claims; other keys are volumes.
const CLAIM: &str = "claim:";
const BY_CLAIM: &str = "claim";

/// Binds claims to volumes.
pub struct Binder {
    context: Context,
    queue: Queue,
    claims: Arc<Cache>,
    volumes: Arc<Cache>,
    classes: Arc<Cache>,
    pods: Arc<Cache>,
    recorder: Recorder,
}

fn claim_key(claim: &Value) -> String {
    format!("{CLAIM}{}", client::cache::key(claim))
}

impl Controller for Binder {
    const NAME: &'static str = "persistentvolume-binder-controller";
    /// One after the other, so that no volume is given twice.
    const WORKERS: usize = 1;

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (claims, volumes) = (wiring.cache(&PERSISTENT_VOLUME_CLAIMS), wiring.cache(&PERSISTENT_VOLUMES));
        let (classes, pods) = (wiring.cache(&STORAGE_CLASSES), wiring.cache(&PODS));
        pods.index(BY_CLAIM, super::claims_of_pod);
        wiring.on(&claims, |change, queue| {
            let claim = change.object();
            queue.add(claim_key(claim));
            let volume = claim.sub("spec").text("volumeName");
            if change.is_deletion() && !volume.is_empty() {
                queue.add(volume.to_owned());
            }
        });
        let pending = claims.clone();
        wiring.on(&classes, move |_, queue| {
            let waits = |claim: &Value| claim.annotation(BIND_COMPLETED).is_none();
            pending.list().iter().filter(|c| waits(c)).for_each(|claim| queue.add(claim_key(claim)));
        });
        let pending = claims.clone();
        wiring.on(&volumes, move |change, queue| volume_change(change, queue, &pending));
        let (queue, recorder) = (wiring.queue().clone(), context.recorder("persistentvolume-controller"));
        Binder { context, queue, claims, volumes, classes, pods, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        match key.strip_prefix(CLAIM) {
            Some(key) => {
                let Some(claim) = self.claims.get_key(key) else { return Ok(None) };
                self.sync_claim(&claim).await?;
                let bound = claim.annotation(BIND_COMPLETED).is_some();
                Ok((!bound).then_some(PERIOD))
            }
            None => match self.volumes.get_key(key) {
                Some(volume) => self.sync_volume(&volume).await,
                None => Ok(None),
            },
        }
    }
}

/// A changed volume is looked at, and its claim; one that becomes available is for the claims that wait.
fn volume_change(change: &client::Change, queue: &Queue, claims: &Cache) {
    let volume = change.object();
    if !change.is_deletion() {
        queue.add(volume.name().to_owned());
    }
    let reference = volume.sub("spec").sub("claimRef");
    if change.is_deletion() && !reference.is_null() {
        queue.add(format!("{CLAIM}{}/{}", reference.text("namespace"), reference.text("name")));
    }
    let was = change.old.as_deref().is_some_and(|old| pods::phase(old) == "Available");
    if change.new.is_some() && pods::phase(volume) == "Available" && !was {
        let waits = |claim: &Value| claim.annotation(BIND_COMPLETED).is_none() && class(claim) == class(volume);
        claims.list().iter().filter(|c| waits(c)).for_each(|claim| queue.add(claim_key(claim)));
    }
}

impl Binder {
    fn tell(&self, object: &Value, ty: EventType, reason: &str, message: &str) {
        self.recorder.event(object, ty, reason, message);
    }

    fn claims_api(&self) -> Api {
        self.context.api(&PERSISTENT_VOLUME_CLAIMS)
    }

    fn volumes_api(&self) -> Api {
        self.context.api(&PERSISTENT_VOLUMES)
    }

    async fn sync_claim(&self, claim: &Value) -> Result<()> {
        if claim.annotation(BIND_COMPLETED).is_some() {
            return self.sync_bound_claim(claim).await;
        }
        let named = claim.sub("spec").text("volumeName");
        if named.is_empty() { self.choose(claim).await } else { self.take(claim, named).await }
    }

    /// The user did not care which volume.
    async fn choose(&self, claim: &Value) -> Result<()> {
        let class_object = self.classes.get("", class(claim)).filter(|_| !class(claim).is_empty());
        let delayed = match class_object.as_deref().map(|c| c.sub("volumeBindingMode")) {
            None => false,
            Some(Value::String(mode)) => mode == "WaitForFirstConsumer",
            Some(_) => {
                let name = go::quote(class(claim));
                return Err(Error::Content(format!("VolumeBindingMode not set for StorageClass {name}")));
            }
        };
        let all = self.volumes.list();
        let all: Vec<&Value> = all.iter().map(|v| &**v).collect();
        if let Some(volume) = find(claim, &all, delayed) {
            return self.bind(volume, claim).await;
        }
        if !has_class(claim)
            && let Some(default) = self.default_class()
        {
            let mut new = claim.clone();
            new.set_at(&["spec", "storageClassName"], default.into());
            return self.claims_api().update(&new).await.map(|_| ());
        }
        if delayed && claim.annotation(SELECTED_NODE).is_none() {
            let (reason, message) = self.why_delayed(claim);
            self.tell(claim, EventType::Normal, reason, &message);
        } else if class(claim).is_empty() {
            let message = "no persistent volumes available for this claim and no storage class is set";
            self.tell(claim, EventType::Normal, "FailedBinding", message);
        } else {
            return self.provision(claim, class_object.as_deref()).await;
        }
        self.claim_status(claim, "Pending", None).await.map(|_| ())
    }

    /// The newest of the classes that are the default.
    fn default_class(&self) -> Option<String> {
        const DEFAULT: [&str; 2] =
            ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
        let all = self.classes.list();
        let defaults = all.iter().filter(|c| DEFAULT.iter().any(|a| c.annotation(a) == Some("true")));
        let newest = defaults.max_by(|a, b| {
            let created = |c: &Value| pods::time(c.sub("metadata"), "creationTimestamp");
            created(a).cmp(&created(b)).then_with(|| b.name().cmp(a.name()))
        });
        newest.map(|c| c.name().to_owned())
    }

    fn why_delayed(&self, claim: &Value) -> (&'static str, String) {
        let using = self.pods.indexed(BY_CLAIM, &client::cache::key(claim));
        let waiting = using.iter().filter(|p| !pods::is_terminal(p) && p.sub("spec").text("nodeName").is_empty());
        let names: Vec<&str> = waiting.map(|p| p.name()).collect();
        match names.as_slice() {
            [] => ("WaitForFirstConsumer", "waiting for first consumer to be created before binding".to_owned()),
            [name] => ("WaitForPodScheduled", format!("waiting for pod {name} to be scheduled")),
            names => ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", names.join(","))),
        }
    }

    /// Asks whoever makes volumes of a class for one.
    async fn provision(&self, claim: &Value, class_object: Option<&Value>) -> Result<()> {
        let why = match class_object {
            None => Err(format!("storageclass.storage.k8s.io {} not found", go::quote(class(claim)))),
            Some(class) => plugins::provisioner(class),
        };
        let provisioner = match why {
            Ok(provisioner) => provisioner,
            Err(why) => {
                self.tell(claim, EventType::Warning, "ProvisioningFailed", &why);
                return Ok(());
            }
        };
        if let Some(new) = plugins::with_provisioner(claim, &provisioner) {
            self.claims_api().update(&new).await?;
        }
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
             system administrator. If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered."
        );
        self.tell(claim, EventType::Normal, "ExternalProvisioning", &message);
        Ok(())
    }

    /// The user asked for this volume.
    async fn take(&self, claim: &Value, name: &str) -> Result<()> {
        let Some(volume) = self.volumes.get("", name) else {
            return self.claim_status(claim, "Pending", None).await.map(|_| ());
        };
        if !volume.sub("spec").has("claimRef") {
            let Some(why) = mismatch(&volume, claim) else { return self.bind(&volume, claim).await };
            let message = format!("Cannot bind to requested volume {}: {why}", go::quote(name));
            self.tell(claim, EventType::Warning, "VolumeMismatch", &message);
        } else if is_for(&volume, claim) {
            return self.bind(&volume, claim).await;
        } else {
            let message = format!("volume {} already bound to a different claim.", go::quote(name));
            self.tell(claim, EventType::Warning, "FailedBinding", &message);
            if claim.annotation(BOUND_BY_CONTROLLER).is_some() {
                let reference = volume.sub("spec").sub("claimRef");
                let other = go::quote(&format!("{}/{}", reference.text("namespace"), reference.text("name")));
                let (claim, name) = (go::quote(&client::cache::key(claim)), go::quote(name));
                let why =
                    format!("Invalid binding of claim {claim} to volume {name}: volume already claimed by {other}");
                return Err(Error::Content(why));
            }
        }
        self.claim_status(claim, "Pending", None).await.map(|_| ())
    }

    async fn sync_bound_claim(&self, claim: &Value) -> Result<()> {
        let name = claim.sub("spec").text("volumeName");
        if name.is_empty() {
            let message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
            return self.lose(claim, "ClaimLost", message).await;
        }
        let Some(volume) = self.volumes.get("", name) else {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            return self.lose(claim, "ClaimLost", message).await;
        };
        let reference = volume.sub("spec").sub("claimRef");
        if reference.is_null() || reference.text("uid") == claim.meta_str("uid") {
            return self.bind(&volume, claim).await;
        }
        let message = "Two claims are bound to the same volume, this one is bound incorrectly";
        self.lose(claim, "ClaimMisbound", message).await
    }

    async fn lose(&self, claim: &Value, reason: &str, message: &str) -> Result<()> {
        if pods::phase(claim) == "Lost" {
            return Ok(());
        }
        let new = self.claim_status(claim, "Lost", None).await?;
        self.tell(&new, EventType::Warning, reason, message);
        Ok(())
    }

    /// Binds both sides, the volume first.
    async fn bind(&self, volume: &Value, claim: &Value) -> Result<()> {
        let bound = match volume_bound(volume, claim) {
            Some(new) => self.volumes_api().update(&new).await?,
            None => volume.clone(),
        };
        let bound = self.volume_phase(&bound, "Bound").await?;
        let claim = match claim_bound(claim, &bound) {
            Some(new) => self.claims_api().update(&new).await?,
            None => claim.clone(),
        };
        self.claim_status(&claim, "Bound", Some(&bound)).await.map(|_| ())
    }

    async fn claim_status(&self, claim: &Value, phase: &str, volume: Option<&Value>) -> Result<Value> {
        match claim_status(claim, phase, volume).map_err(Error::Content)? {
            Some(new) => self.claims_api().update_status(&new).await,
            None => Ok(claim.clone()),
        }
    }

    async fn volume_phase(&self, volume: &Value, phase: &str) -> Result<Value> {
        match volume_phase(volume, phase) {
            Some(new) => self.volumes_api().update_status(&new).await,
            None => Ok(volume.clone()),
        }
    }

    async fn sync_volume(&self, volume: &Value) -> Result<Option<Duration>> {
        let reference = volume.sub("spec").sub("claimRef");
        if reference.text("uid").is_empty() {
            self.volume_phase(volume, "Available").await?;
            return Ok(None);
        }
        let (namespace, name) = (reference.text("namespace"), reference.text("name"));
        let mut claim = self.claims.get(namespace, name);
        if claim.is_none() && !is_over(volume) {
            claim = self.claims_api().find(namespace, name).await?.map(Arc::new);
        }
        let claim = claim.filter(|c| c.meta_str("uid") == reference.text("uid"));
        let Some(claim) = claim else {
            return self.give_back(volume).await;
        };
        match claim.sub("spec").text("volumeName") {
            "" if mode_differs(volume, &claim) => {
                let message = format!(
                    "Cannot bind PersistentVolume to requested PersistentVolumeClaim {} due to incompatible volumeMode.",
                    go::quote(claim.name())
                );
                self.tell(volume, EventType::Warning, "VolumeMismatch", &message);
                let message = format!(
                    "Cannot bind PersistentVolume {} to requested PersistentVolumeClaim due to incompatible volumeMode.",
                    go::quote(volume.name())
                );
                self.tell(&claim, EventType::Warning, "VolumeMismatch", &message);
            }
            "" => self.queue.add(claim_key(&claim)),
            named if named == volume.name() => {
                self.volume_phase(volume, "Bound").await?;
            }
            // The claim got another volume.
            _ if volume.annotation(PROVISIONED_BY).is_some() && policy(volume) == "Delete" => {
                return self.give_back(volume).await;
            }
            _ => {
                let free = self.volumes_api().update(&volume_unbound(volume)).await?;
                self.volume_phase(&free, "Available").await?;
            }
        }
        Ok(None)
    }

    /// The claim is gone: the volume is kept, or goes too.
    async fn give_back(&self, volume: &Value) -> Result<Option<Duration>> {
        let mut volume = volume.clone();
        if !is_over(&volume) {
            volume = self.volume_phase(&volume, "Released").await?;
        }
        let failure = match policy(&volume) {
            "Retain" => None,
            "Delete" if pods::is_deleting(&volume) => None,
            "Delete" => match plugins::deletion(&volume) {
                Deletion::ByOthers => None,
                Deletion::Now => {
                    let deleted = self.volumes_api().delete("", volume.name(), &DeleteParams::default()).await;
                    return match deleted {
                        Err(error) if !error.is_not_found() => Err(error),
                        _ => Ok(None),
                    };
                }
                Deletion::Impossible(why) => Some(("VolumeFailedDelete", why)),
            },
            "Recycle" if plugins::is_recyclable(&volume) => None,
            "Recycle" => Some(("VolumeFailedRecycle", "No recycler plugin found for the volume!".to_owned())),
            _ => {
                let message = "Volume has unrecognized PersistentVolumeReclaimPolicy".to_owned();
                Some(("VolumeUnknownReclaimPolicy", message))
            }
        };
        if let Some((reason, message)) = failure
            && let Some(mut failed) = volume_phase(&volume, "Failed")
        {
            failed.object_entry("status").insert("message", message.as_str());
            let failed = self.volumes_api().update_status(&failed).await?;
            self.tell(&failed, EventType::Warning, reason, &message);
        }
        Ok(None)
    }
}

fn policy(volume: &Value) -> &str {
    volume.sub("spec").text("persistentVolumeReclaimPolicy")
}

/// Whether the claim's end is known.
fn is_over(volume: &Value) -> bool {
    matches!(pods::phase(volume), "Released" | "Failed")
}
