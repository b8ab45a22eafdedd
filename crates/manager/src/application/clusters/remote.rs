//! A cluster that is asked through a circuit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, DeleteParams, Error, List, Patch, PatchParams, WriteParams};
use keeper::{Answer, Cluster, Deleted, Events, Identity, Kind, Scope};
use object::Value;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::circuit::Circuit;

/// How long requests may take, by what they do; upstream's.
const READ: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(15);
const LIST: Duration = Duration::from_secs(30);
/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(5);

/// A cluster. The first request that gets no answer opens its circuit: from then on requests fail at once, until
/// [`Remote::recovered`] has found that it answers again.
pub struct Remote {
    name: String,
    client: Client,
    circuit: Arc<Mutex<Circuit>>,
    /// Whether the circuit is open.
    open: Arc<watch::Sender<bool>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.name)
            .field("circuit", &*self.circuit.lock())
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// The cluster of a client, not asked yet. `name` is for texts.
    pub fn new(name: &str, client: Client) -> Self {
        let open = Arc::new(watch::Sender::new(false));
        Remote { name: name.to_owned(), client, circuit: Arc::default(), open }
    }

    /// The same cluster, asked through the same circuit as somebody else.
    #[must_use]
    pub fn acting_as(&self, user: &str, groups: &[&str]) -> Self {
        Remote {
            name: self.name.clone(),
            client: self.client.acting_as(user, groups),
            circuit: self.circuit.clone(),
            open: self.open.clone(),
        }
    }

    /// Why the cluster cannot be asked now; nothing if it can, as far as is known.
    pub fn trouble(&self) -> Option<String> {
        self.circuit.lock().why().map(|why| unreachable_text(&self.name, why))
    }

    /// Waits until the cluster is unreachable.
    pub async fn lost(&self) {
        // The sender lives as long as this borrow of it.
        _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    /// Probes the cluster until it answers.
    pub async fn recovered(&self) {
        loop {
            let mut random = [0_u8];
            // Without randomness all wait for the same time, which is harmless.
            _ = getrandom::fill(&mut random);
            let wait = self.circuit.lock().wait(f64::from(random[0]) / 255.0);
            tokio::time::sleep(wait).await;
            match tokio::time::timeout(PROBE, self.client.get_path("/version")).await {
                Ok(outcome) if self.note(&outcome) => return,
                Ok(_) => {}
                Err(_) => self.failed(&silence(PROBE)),
            }
        }
    }

    /// Notes what became of a request; whether there was an answer.
    fn note<T>(&self, outcome: &Result<T, Error>) -> bool {
        if let Err(Error::Transport(why)) = outcome {
            self.failed(why);
            return false;
        }
        if self.circuit.lock().answered() {
            tracing::info!(cluster = self.name, "a cluster is reachable again");
            self.open.send_replace(false);
        }
        true
    }

    fn failed(&self, why: &str) {
        if self.circuit.lock().failed(why) {
            tracing::warn!(cluster = self.name, why, "a cluster is unreachable");
            self.open.send_replace(true);
        }
    }

    /// A request that waits no longer than it may, and not at all while the cluster is known to be unreachable.
    async fn ask<T>(&self, limit: Duration, work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        if let Some(why) = self.trouble() {
            return Err(Error::Transport(why));
        }
        let outcome = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(Error::Transport(silence(limit))));
        self.note(&outcome);
        outcome.map_err(|error| match error {
            Error::Transport(why) => Error::Transport(unreachable_text(&self.name, &why)),
            other => other,
        })
    }
}

fn unreachable_text(name: &str, why: &str) -> String {
    format!("cluster {name} is unreachable: {why}")
}

fn silence(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

impl Cluster for Remote {
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>> {
        Box::pin(self.ask(READ, Cluster::scope(&self.client, kind)))
    }

    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>> {
        Box::pin(self.ask(READ, Cluster::get(&self.client, id)))
    }

    fn create<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(self.ask(WRITE, Cluster::create(&self.client, id, object, params)))
    }

    fn replace<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(self.ask(WRITE, Cluster::replace(&self.client, id, object, params)))
    }

    fn patch<'a>(&'a self, id: &'a Identity, patch: &'a Patch, params: &'a PatchParams) -> Answer<'a, Value> {
        Box::pin(self.ask(WRITE, Cluster::patch(&self.client, id, patch, params)))
    }

    fn delete<'a>(&'a self, id: &'a Identity, params: &'a DeleteParams) -> Answer<'a, Deleted> {
        Box::pin(self.ask(WRITE, Cluster::delete(&self.client, id, params)))
    }

    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, token: &'a str) -> Answer<'a, List> {
        Box::pin(self.ask(LIST, Cluster::list_metadata(&self.client, kind, selector, token)))
    }

    fn watch_metadata<'a>(
        &'a self,
        kind: &'a Kind,
        selector: &'a str,
        resource_version: &'a str,
    ) -> Answer<'a, Events> {
        Box::pin(self.ask(READ, Cluster::watch_metadata(&self.client, kind, selector, resource_version)))
    }
}
