//! `endpoints-controller`: keeps the Endpoints object of each Service that selects pods.

use super::address;
use super::selected::concerned;
use super::subsets::{OVER_CAPACITY, comparable, subsets, truncate};
use super::triggers::{Triggers, annotate};
use crate::written::{SOON, Written};
use crate::{Context, Controller, Wiring};
use client::events::{EventType, Recorder};
use client::resources::{ENDPOINTS, PODS, SERVICES};
use client::{Cache, DeleteParams, Result};
use kinds::read::Read;
use object::{Map, Value, map};
use std::sync::Arc;
use std::time::Duration;

const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// Keeps Endpoints objects.
pub struct EndpointsController {
    context: Context,
    services: Arc<Cache>,
    pods: Arc<Cache>,
    endpoints: Arc<Cache>,
    triggers: Triggers,
    written: Arc<Written>,
    recorder: Recorder,
}

impl Controller for EndpointsController {
    const NAME: &'static str = "endpoints-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (services, pods) = (wiring.cache(&SERVICES), wiring.cache(&PODS));
        let endpoints = wiring.cache(&ENDPOINTS);
        wiring.on_own(&services);
        let all = services.clone();
        wiring.on(&pods, move |change, queue| concerned(change, &all).into_iter().for_each(|key| queue.add(key)));
        // Only deleted ones are made again; changed ones stay as they are until the Service or a pod changes.
        let written = Arc::new(Written::default());
        let log = written.clone();
        wiring.on(&endpoints, move |change, queue| {
            log.observe(change);
            if change.is_deletion() {
                queue.add(change.key());
            }
        });
        let recorder = context.recorder("endpoint-controller");
        EndpointsController { context, services, pods, endpoints, triggers: Triggers::default(), written, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(service) = self.services.get_key(key) else {
            self.triggers.forget(key);
            self.written.forget(key);
            return self.remove(key).await;
        };
        let Some(selector) = address::selector(&service) else { return Ok(None) };
        if !self.written.is_shown(key, &self.endpoints) {
            return Ok(Some(SOON));
        }
        let in_namespace = self.pods.in_namespace(service.namespace());
        let pods: Vec<&Value> = in_namespace.iter().map(|p| &**p).filter(|p| address::selects(selector, p)).collect();
        let trigger = self.triggers.newest(&service, pods.iter().copied());
        let mut subsets = subsets(&service, &pods);
        let current = self.endpoints.get_key(key);
        let over = truncate(&mut subsets);
        if current.as_deref().is_some_and(|current| is_same(current, &service, &subsets, over)) {
            self.triggers.told(key);
            return Ok(None);
        }
        let mut new = wanted(current.as_deref(), &service, subsets);
        annotate(&mut new, trigger);
        if over {
            new.metadata_mut().object_entry("annotations").insert(OVER_CAPACITY, "truncated");
        } else {
            new.remove_at(&["metadata", "annotations", OVER_CAPACITY]);
        }
        self.write(&service, &new, current.is_some()).await?;
        self.triggers.told(key);
        Ok(None)
    }
}

impl EndpointsController {
    /// The Service is gone: so are its endpoints.
    async fn remove(&self, key: &str) -> Result<Option<Duration>> {
        let Some(endpoints) = self.endpoints.get_key(key) else { return Ok(None) };
        let api = self.context.api(&ENDPOINTS);
        match api.delete(endpoints.namespace(), endpoints.name(), &DeleteParams::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(None),
        }
    }

    async fn write(&self, service: &Value, new: &Value, is_update: bool) -> Result<()> {
        let api = self.context.api(&ENDPOINTS);
        let (namespace, name) = (service.namespace(), service.name());
        let result = if is_update { api.update(new).await } else { api.create(namespace, new).await };
        let error = match result {
            Ok(written) => {
                self.written.wrote(&client::cache::key(service), &written);
                return Ok(());
            }
            Err(error) => error,
        };
        if error.is_namespace_terminating() {
            return Ok(());
        }
        let (reason, message) = if is_update {
            ("FailedToUpdateEndpoint", format!("Failed to update endpoint {namespace}/{name}: {error}"))
        } else {
            ("FailedToCreateEndpoint", format!("Failed to create endpoint for service {namespace}/{name}: {error}"))
        };
        self.recorder.event(new, EventType::Warning, reason, &message);
        Err(error)
    }
}

/// Whether the endpoints are as they should be.
fn is_same(current: &Value, service: &Value, subsets: &[Value], over: bool) -> bool {
    let mut labels = current.sub("metadata").members("labels").clone();
    labels.remove(HEADLESS);
    labels.remove(MANAGED_BY);
    comparable(current.list("subsets")) == comparable(subsets)
        && &labels == service.sub("metadata").members("labels")
        && current.annotation(OVER_CAPACITY).is_some() == over
}

/// The endpoints as they should be.
fn wanted(current: Option<&Value>, service: &Value, subsets: Vec<Value>) -> Value {
    let mut labels: Map = service.sub("metadata").members("labels").clone();
    labels.remove(HEADLESS);
    if !address::has_cluster_address(service) {
        labels.insert(HEADLESS, "");
    }
    labels.insert(MANAGED_BY, "endpoint-controller");
    let mut new = current.cloned().unwrap_or_else(|| {
        let meta = map! { "name" => service.name(), "namespace" => service.namespace() };
        map! { "apiVersion" => "v1", "kind" => "Endpoints", "metadata" => meta }.into()
    });
    new.set_at(&["metadata", "labels"], labels.into());
    if subsets.is_empty() {
        new.remove_at(&["subsets"]);
    } else {
        new.set_at(&["subsets"], subsets.into());
    }
    new
}
