//! `endpointslice-controller`: keeps the EndpointSlices of each Service that selects pods.

use super::address::{self, Family};
use super::reconcile::{Changes, Frame, reconcile};
use super::selected::concerned;
use super::slice::{MANAGED_BY, SERVICE_NAME, desired, labels};
use super::triggers::{Triggers, annotate};
use crate::written::{SOON, Written};
use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{ENDPOINT_SLICES, NODES, PODS, SERVICES};
use client::{Cache, Change, DeleteParams, Error, Queue, Result};
use jiff::Timestamp;
use kinds::read::Read;
use object::Value;
use std::sync::Arc;
use std::time::Duration;

const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The most endpoints of a slice.
const MOST: usize = 100;
const BY_SERVICE: &str = "service";

/// Keeps EndpointSlices.
pub struct EndpointSlices {
    context: Context,
    services: Arc<Cache>,
    pods: Arc<Cache>,
    nodes: Arc<Cache>,
    slices: Slices,
    triggers: Triggers,
    recorder: Recorder,
}

impl Controller for EndpointSlices {
    const NAME: &'static str = "endpointslice-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (services, pods) = (wiring.cache(&SERVICES), wiring.cache(&PODS));
        let nodes = wiring.cache(&NODES);
        wiring.on_own(&services);
        let all = services.clone();
        wiring.on(&pods, move |change, queue| concerned(change, &all).into_iter().for_each(|key| queue.add(key)));
        let slices = Slices::new(wiring, MANAGER);
        let recorder = context.recorder("endpoint-slice-controller");
        EndpointSlices { context, services, pods, nodes, slices, triggers: Triggers::default(), recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(service) = self.services.get_key(key) else {
            self.triggers.forget(key);
            self.slices.written.forget(key);
            return Ok(None);
        };
        let Some(selector) = address::selector(&service) else { return Ok(None) };
        let Some(existing) = self.slices.of(key) else { return Ok(Some(SOON)) };
        let in_namespace = self.pods.in_namespace(service.namespace());
        let pods: Vec<&Value> = in_namespace.iter().map(|p| &**p).filter(|p| address::selects(selector, p)).collect();
        let trigger = self.triggers.newest(&service, pods.iter().copied());
        let (changes, without_node) = self.changes(&service, &pods, &existing);
        let result = self.slices.apply(&self.context, &service, changes, trigger).await;
        if result.is_ok() {
            self.triggers.told(key);
        }
        let result = result.and_then(|()| match without_node.first() {
            // Tried again: the node may come, or the pod go.
            Some(why) => Err(Error::Content(why.clone())),
            None => Ok(None),
        });
        if let Err(error) = &result {
            let (namespace, name) = (service.namespace(), service.name());
            let message = format!("Error updating Endpoint Slices for Service {namespace}/{name}: {error}");
            self.recorder.event(&service, EventType::Warning, "FailedToUpdateEndpointSlices", &message);
        }
        result
    }
}

impl EndpointSlices {
    /// What has to be done, and why pods are left out.
    fn changes(&self, service: &Value, pods: &[&Value], existing: &[Arc<Value>]) -> (Changes, Vec<String>) {
        let frame =
            Frame { owner: service, kind: "Service", labels: labels(service, MANAGER), annotations: None, most: MOST };
        let mut all = Changes::default();
        let mut without_node = Vec::new();
        let families = address::families(service);
        for family in &families {
            let held: Vec<&Value> = of_family(existing, *family).collect();
            let desired = desired(service, pods, *family, &self.nodes);
            all.append(reconcile(&frame, family.name(), &held, desired.groups, true));
            without_node.extend(desired.without_node);
        }
        let known = |slice: &Value| families.iter().any(|f| f.name() == slice.text("addressType"));
        all.delete.extend(existing.iter().filter(|s| !known(s)).map(|s| (**s).clone()));
        let (namespace, name) = (service.namespace(), service.name());
        let why = without_node.into_iter().map(|pod| {
            let node = self.pods.get(namespace, &pod).map(|p| p.sub("spec").text("nodeName").to_owned());
            let node = node.unwrap_or_default();
            format!("skipping Pod {pod} for Service {namespace}/{name}: Node {node} Not Found")
        });
        (all, why.collect())
    }
}

fn of_family(slices: &[Arc<Value>], family: Family) -> impl Iterator<Item = &Value> {
    slices.iter().map(|s| &**s).filter(move |s| s.text("addressType") == family.name())
}

impl Changes {
    fn append(&mut self, mut other: Changes) {
        self.create.append(&mut other.create);
        self.update.append(&mut other.update);
        self.delete.append(&mut other.delete);
    }
}

/// The slices that a controller keeps, by the Service that they are for.
pub(super) struct Slices {
    manager: &'static str,
    cache: Arc<Cache>,
    written: Arc<Written>,
}

impl Slices {
    /// Those whose label names this manager. What others do to them means work for the Service's key.
    pub(super) fn new(wiring: &mut Wiring, manager: &'static str) -> Self {
        let cache = wiring.cache(&ENDPOINT_SLICES);
        cache.index(BY_SERVICE, |slice| match slice.label(SERVICE_NAME) {
            Some(name) => vec![format!("{}/{name}", slice.namespace())],
            None => Vec::new(),
        });
        let written = Arc::new(Written::default());
        let log = written.clone();
        wiring.on(&cache, move |change, queue| {
            log.observe(change);
            for object in [&change.old, &change.new].into_iter().flatten() {
                if object.label(MANAGED_BY) == Some(manager) {
                    add_service(object, queue);
                }
            }
        });
        Slices { manager, cache, written }
    }

    /// The slices of a Service; nothing while the cache does not show what was written.
    pub(super) fn of(&self, key: &str) -> Option<Vec<Arc<Value>>> {
        if !self.written.is_shown(key, &self.cache) {
            return None;
        }
        let mut slices = self.cache.indexed(BY_SERVICE, key);
        slices.retain(|s| s.label(MANAGED_BY) == Some(self.manager) && !pods::is_deleting(s));
        Some(slices)
    }

    /// Makes the changes.
    pub(super) async fn apply(
        &self,
        context: &Context,
        owner: &Value,
        changes: Changes,
        trigger: Option<Timestamp>,
    ) -> Result<()> {
        let (api, key) = (context.api(&ENDPOINT_SLICES), client::cache::key(owner));
        // While the owner goes away, its slices do too.
        let create = if pods::is_deleting(owner) { Vec::new() } else { changes.create };
        for mut slice in create {
            annotate(&mut slice, trigger);
            match api.create(owner.namespace(), &slice).await {
                Ok(created) => self.written.wrote(&key, &created),
                Err(error) if error.is_namespace_terminating() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        for mut slice in changes.update {
            annotate(&mut slice, trigger);
            self.written.wrote(&key, &api.update(&slice).await?);
        }
        for slice in changes.delete {
            match api.delete(slice.namespace(), slice.name(), &DeleteParams::default()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => self.written.deleted(&key, &slice),
            }
        }
        Ok(())
    }
}

fn add_service(slice: &Value, queue: &Queue) {
    if let Some(name) = slice.label(SERVICE_NAME) {
        queue.add(format!("{}/{name}", slice.namespace()));
    }
}

/// A change as its key.
pub(super) fn own_key(change: &Change, queue: &Queue) {
    queue.add(change.key());
}
