//! Keeps the webhooks' certificate and their registrations as they should be.

use super::bundle::Bundle;
use super::webhooks::{Place, Served};
use crate::cluster::Failure;
use client::cache::Selection;
use client::resources::{NAMESPACES, SECRETS};
use client::{Cache, Client, Patch, PatchParams, Resource};
use manager::admission::registration::{Endpoint, MUTATING, NAME, VALIDATING, is_as_wanted, registrations};
use manager::kinds::MANAGER;
use object::map;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::Notify;

/// How often everything is looked at, changed or not.
const ROUND: Duration = Duration::from_secs(60);
/// How long to wait after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// How often a write that others overtook is tried.
const TRIES: usize = 10;

/// What is to be kept.
pub struct Registrar {
    client: Client,
    secret: Place,
    endpoint: Endpoint,
    names: Vec<String>,
    served: Arc<Served>,
    /// Whether it is written down who declares Applications.
    authenticates: bool,
    /// What was found last, for when it is gone.
    last: Mutex<Option<Bundle>>,
}

impl Registrar {
    /// A certificate for `names` in a Secret, served as `served`; API servers reach the webhooks at `endpoint`.
    pub fn new(client: &Client, secret: Place, endpoint: Endpoint, names: Vec<String>, served: Arc<Served>) -> Self {
        Registrar {
            client: client.clone(),
            secret,
            endpoint,
            names,
            served,
            authenticates: false,
            last: Mutex::default(),
        }
    }

    /// Whether it is written down who declares Applications; it is not by default.
    pub fn authenticating(self, authenticates: bool) -> Self {
        Registrar { authenticates, ..self }
    }

    /// Sees to it that there is a certificate, and serves it. Replicas that do so at once agree on one.
    pub async fn certificate(&self) -> Result<Bundle, Failure> {
        let api = self.client.api(&SECRETS);
        let Place { namespace, name } = &self.secret;
        for _ in 0..TRIES {
            let found = api.find(namespace, name).await?;
            let now = OffsetDateTime::now_utc();
            let known = found.as_ref().and_then(Bundle::read);
            let last = self.last.lock().clone();
            let next = match (&known, last) {
                (Some(known), _) => known.renewed(&self.names, now)?,
                (None, Some(last)) => Some(last.successor(now)?),
                (None, None) => Some(Bundle::new(&self.names, now)?),
            };
            let Some(next) = next else {
                let Some(known) = known else { continue };
                self.served.set(&known)?;
                *self.last.lock() = Some(known.clone());
                return Ok(known);
            };
            let version = found.as_ref().map_or("", |found| found.meta_str("resourceVersion"));
            let secret = next.secret(namespace, name, version);
            let written =
                if found.is_some() { api.update(&secret).await } else { api.create(namespace, &secret).await };
            match written {
                Ok(_) => {}
                Err(error) if error.is_conflict() || error.is_already_exists() => {}
                Err(error) if error.is_not_found() => self.namespace().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(format!("the secret {namespace}/{name} is written by others again and again").into())
    }

    async fn namespace(&self) -> Result<(), Failure> {
        let namespace = map! {
            "apiVersion" => "v1", "kind" => "Namespace",
            "metadata" => map! { "name" => self.secret.namespace.as_str() },
        };
        match self.client.api(&NAMESPACES).create("", &namespace.into()).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn registrations(&self, bundle: &Bundle, user: &str) -> Result<(), Failure> {
        for (resource, wanted) in registrations(&self.endpoint, &bundle.authorities, user, self.authenticates) {
            let api = self.client.api(&resource);
            if api.find("", NAME).await?.is_some_and(|live| is_as_wanted(&live, &wanted)) {
                continue;
            }
            let apply = Patch::Apply { object: wanted, manager: MANAGER.to_owned(), force: true };
            api.patch("", NAME, &apply, &PatchParams::default()).await?;
        }
        Ok(())
    }

    /// Keeps everything as it should be, for ever; what others change is put back at once.
    pub async fn keep(self, client: Client, user: String) {
        let changed = Arc::new(Notify::new());
        let own = |name: &str| format!("metadata.name={name}");
        let watched: [(&Resource, Selection); 3] = [
            (&MUTATING, Selection { field_selector: own(NAME), ..Selection::default() }),
            (&VALIDATING, Selection { field_selector: own(NAME), ..Selection::default() }),
            (
                &SECRETS,
                Selection {
                    namespace: self.secret.namespace.clone(),
                    field_selector: own(&self.secret.name),
                    ..Selection::default()
                },
            ),
        ];
        let _caches: Vec<Arc<Cache>> = watched
            .into_iter()
            .map(|(resource, selection)| {
                let cache = Cache::open(client.api(resource), selection);
                let changed = changed.clone();
                cache.subscribe(move |_| changed.notify_one());
                cache
            })
            .collect();
        loop {
            let outcome = async { self.registrations(&self.certificate().await?, &user).await };
            let wait = match outcome.await {
                Ok(()) => ROUND,
                Err(error) => {
                    tracing::warn!(%error, "the webhooks cannot be registered");
                    AGAIN
                }
            };
            let _ = tokio::time::timeout(wait, changed.notified()).await;
        }
    }
}
