//! What controllers are given.

use crate::caches::Caches;
use crate::certificates::Authority;
use crate::in_process::InProcess;
use crate::simulated::Simulated;
use apiserver::{Clock, Server};
use client::cache::Selection;
use client::events::Recorder;
use client::{Api, Cache, Client, Queues, Resource};
use std::sync::Arc;

/// What the controllers need to know of the cluster.
#[derive(Clone)]
pub struct Settings {
    /// The time.
    pub clock: Clock,
    /// The authority of the server's certificate, in PEM form; empty where there is none.
    pub root_ca: String,
    /// The authority that signs what CertificateSigningRequests ask for; without one nothing is signed.
    pub authority: Option<Arc<Authority>>,
    /// What is pretended where workloads are simulated.
    pub simulated: Simulated,
    /// Where the controllers' queues are measured.
    pub queues: Queues,
}

impl Default for Settings {
    /// The system's time, and no authority.
    fn default() -> Self {
        Settings {
            clock: Arc::new(jiff::Timestamp::now),
            root_ca: String::new(),
            authority: None,
            simulated: Simulated::default(),
            queues: Queues::default(),
        }
    }
}

/// What controllers are given. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    server: Arc<Server>,
    client: Client,
    caches: Arc<Caches>,
    settings: Arc<Settings>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// A context for controllers inside this server.
    pub fn new(server: Arc<Server>, settings: Settings) -> Self {
        let client = Client::new(Arc::new(InProcess::controller_manager(server.clone())));
        let client = client.with_user_agent("kube-controller-manager");
        Context { server, client, caches: Arc::default(), settings: Arc::new(settings) }
    }

    /// The server, for controllers that follow its store or its catalogue.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The requests about one resource.
    pub fn api(&self, resource: &Resource) -> Api {
        self.client.api(resource)
    }

    /// The resource of a kind that the server serves now, and whether a definition makes it.
    pub fn served(&self, api_version: &str, kind: &str) -> Option<(Resource, bool)> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let catalogue = self.server.catalogue();
        let found = catalogue.kind(group, version, kind)?;
        Some((resource(found), found.is_custom()))
    }

    /// The cache of all objects of a resource; everybody gets the same. It may not be filled yet.
    pub fn cache(&self, resource: &Resource) -> Arc<Cache> {
        self.cache_of(resource, Selection::default())
    }

    /// The cache of a selection of a resource; everybody gets the same. It may not be filled yet.
    pub fn cache_of(&self, resource: &Resource, selection: Selection) -> Arc<Cache> {
        self.caches.get(&self.client, resource, selection)
    }

    /// A recorder of events from this component, for example `job-controller`.
    pub fn recorder(&self, component: &str) -> Recorder {
        Recorder::new(&self.client, component, self.settings.clock.clone())
    }

    /// The time.
    pub fn now(&self) -> jiff::Timestamp {
        (self.settings.clock)()
    }

    /// The time, to hand on.
    pub fn clock(&self) -> &Clock {
        &self.settings.clock
    }

    /// What is known of the cluster.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// A resource of the catalogue as requests name it.
pub(crate) fn resource(served: &apiserver::catalogue::Resource) -> Resource {
    Resource {
        group: served.group.clone().into(),
        version: served.version.clone().into(),
        plural: served.plural.clone().into(),
        kind: served.kind.clone().into(),
        namespaced: served.namespaced,
    }
}
