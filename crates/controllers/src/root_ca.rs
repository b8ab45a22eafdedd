//! `root-ca-certificate-publisher-controller`: every namespace has the authority of the server's certificate.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use crate::service_accounts::is_active;
use client::cache::Selection;
use client::resources::{CONFIG_MAPS, NAMESPACES};
use client::{Cache, Result};
use object::{Map, Value, map};
use std::sync::Arc;
use std::time::Duration;

/// The ConfigMap that has the authority.
const NAME: &str = "kube-root-ca.crt";
/// The key of the certificate in it.
const KEY: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIPTION_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Keeps the ConfigMap in every namespace; the keys are namespaces.
pub struct RootCa {
    context: Context,
    namespaces: Arc<Cache>,
    maps: Arc<Cache>,
}

impl Controller for RootCa {
    const NAME: &'static str = "root-ca-certificate-publisher-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let namespaces = wiring.cache(&NAMESPACES);
        let named = Selection { field_selector: format!("metadata.name={NAME}"), ..Selection::default() };
        let maps = wiring.cache_of(&CONFIG_MAPS, named);
        wiring.on(&namespaces, |change, queue| {
            if !change.is_deletion() {
                queue.add(change.object().name().to_owned());
            }
        });
        wiring.on(&maps, |change, queue| {
            if change.old.is_some() {
                queue.add(change.object().namespace().to_owned());
            }
        });
        RootCa { context: wiring.context().clone(), namespaces, maps }
    }

    async fn sync(&self, namespace: &str) -> Result<Option<Duration>> {
        let certificate = self.context.settings().root_ca.as_str();
        let api = self.context.api(&CONFIG_MAPS);
        if certificate.is_empty() || !self.namespaces.get("", namespace).is_some_and(|n| is_active(&n)) {
            return Ok(None);
        }
        let outcome = match self.maps.get(namespace, NAME) {
            None => api.create(namespace, &wanted(certificate)).await,
            Some(held) if is_right(&held, certificate) => return Ok(None),
            Some(held) => {
                let mut new = (*held).clone();
                new.set_at(&["data"], Value::Object(data(certificate)));
                new.set_at(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT.into());
                api.update(&new).await
            }
        };
        match outcome {
            Err(error) if error.is_already_exists() || error.is_namespace_terminating() || error.is_not_found() => {
                Ok(None)
            }
            outcome => outcome.map(|_| None),
        }
    }
}

fn data(certificate: &str) -> Map {
    map! { KEY => certificate }
}

fn wanted(certificate: &str) -> Value {
    let annotations = map! { DESCRIPTION => DESCRIPTION_TEXT };
    Value::Object(
        map! { "metadata" => map! { "name" => NAME, "annotations" => annotations }, "data" => data(certificate) },
    )
}

/// Whether the ConfigMap says what it should, and nothing else.
fn is_right(held: &Value, certificate: &str) -> bool {
    held.get("data").and_then(Value::as_object) == Some(&data(certificate))
        && held.annotation(DESCRIPTION) == Some(DESCRIPTION_TEXT)
}
