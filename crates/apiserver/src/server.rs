//! The server: one store, the catalogue of what is served, and the way of a request.

use crate::admission::plugins::{Plugin, Plugins};
use crate::admission::{Admission, AdmitAll};
use crate::allocation;
use crate::answer::{Body, Failure, Response, Warnings};
use crate::audit;
use crate::auth::{Tokens, UserInfo, impersonation};
use crate::authorize::{self, AlwaysAllow, Attributes, Authorizer, Decision};
use crate::catalogue::{Catalogue, Group, Resource, Version};
use crate::controllers::{definitions, first_objects, lives::Lives, namespaces, others, own_service};
use crate::conversion::{Converter, NoConverter};
use crate::debug::Verbosity;
use crate::handlers;
use crate::limits::{Limits, Seat, Turnstiles};
use crate::metrics::{self, Metrics};
use crate::rbac;
use crate::registry::{BatchKey, Conversions, FrameKey, Frames};
use crate::request::{Query, RequestInfo};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use object::status::Qualified;
use object::{Status, Value, json};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::Store;
use tokio::sync::watch;

/// Tells the time; tests bring their own.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// How a server is to behave.
#[derive(Clone)]
pub struct Options {
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// The tokens that reviews know, and what signs those of service accounts.
    pub tokens: Arc<Tokens>,
    /// The time.
    pub clock: Clock,
    /// Webhooks and policies.
    pub admission: Arc<dyn Admission>,
    /// The built-in admission plugins that are on.
    pub plugins: Plugins,
    /// Where requests are written down.
    pub audit: Option<Arc<audit::Log>>,
    /// What converts custom resources whose definitions ask for a webhook.
    pub converter: Arc<dyn Converter>,
    /// Whether cluster roles are made of those that their `aggregationRule` selects. (Upstream another program does that.)
    pub role_aggregation: bool,
    /// The plurals of built-in resources that are served though they are not by default ([`kinds::optional`]).
    pub optional: Vec<&'static str>,
    /// What changes how much is logged.
    pub verbosity: Option<Verbosity>,
    /// How many requests are handled at the same time.
    pub limits: Limits,
    /// Adds to `/metrics` what others measure in this process.
    pub more_metrics: MoreMetrics,
    /// The address and port by which clients reach the server, for those that ask `/api` for it.
    pub advertised: String,
    /// Whether other servers write to the same store.
    pub shared: bool,
    /// The authorities whose certificates name users, in PEM form; empty where nobody comes with a certificate.
    pub client_ca: String,
}

impl Default for Options {
    /// Everybody may do everything; the time is the system's.
    fn default() -> Self {
        Options {
            authorizer: Arc::new(AlwaysAllow),
            tokens: Arc::default(),
            clock: Arc::new(jiff::Timestamp::now),
            admission: Arc::new(AdmitAll),
            // Nobody makes the accounts that pods would need.
            plugins: Plugins::default().switched(Plugin::ServiceAccount, false),
            audit: None,
            converter: Arc::new(NoConverter),
            role_aggregation: true,
            optional: Vec::new(),
            verbosity: None,
            limits: Limits::default(),
            more_metrics: Arc::new(|_| {}),
            advertised: String::new(),
            shared: false,
            client_ca: String::new(),
        }
    }
}

/// Writes measurements in the Prometheus text form to the end of a text.
pub type MoreMetrics = Arc<dyn Fn(&mut String) + Send + Sync>;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::ReadError),
    /// The objects that every cluster has cannot be made.
    #[error("the first objects cannot be made: {0}")]
    Objects(String),
}

/// An API server without its sockets.
pub struct Server {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Options,
    pub(crate) definitions: tokio::sync::Mutex<definitions::Known>,
    /// The definitions whose instances are being removed.
    pub(crate) emptying: Mutex<HashSet<String>>,
    pub(crate) frames: Frames<FrameKey>,
    pub(crate) batches: Frames<BatchKey>,
    pub(crate) conversions: Conversions,
    pub(crate) metrics: Metrics,
    pub(crate) lives: Lives,
    pub(crate) turnstiles: Turnstiles,
    /// Gives services addresses and ports.
    pub(crate) allocations: allocation::Turnstile,
    /// The addresses that services have, by the services' keys, as long as nobody else writes to the store.
    pub(crate) service_addresses: Mutex<HashMap<store::Key, Vec<String>>>,
    /// Makes cluster roles of others.
    pub(crate) aggregator: tokio::sync::Mutex<rbac::Aggregator>,
    catalogue: ArcSwap<Catalogue>,
    stop: watch::Sender<bool>,
    ending: AtomicBool,
}

impl Server {
    /// Opens a server on a store: reads the definitions that are there, makes the objects that every cluster has, and
    /// starts the controllers.
    pub async fn new(store: Arc<dyn Store>, options: Options) -> Result<Arc<Self>, StartError> {
        let catalogue = crate::builtin::catalogue(&options.optional);
        let server = Arc::new(Server {
            store,
            definitions: tokio::sync::Mutex::default(),
            emptying: Mutex::default(),
            frames: Frames::new(256),
            batches: Frames::new(16),
            conversions: Conversions::default(),
            metrics: Metrics::default(),
            lives: Lives::default(),
            turnstiles: Turnstiles::new(options.limits),
            allocations: Default::default(),
            service_addresses: Mutex::default(),
            options,
            aggregator: tokio::sync::Mutex::default(),
            catalogue: ArcSwap::from_pointee(catalogue),
            stop: watch::channel(false).0,
            ending: AtomicBool::new(false),
        });
        let after = server.store.revision();
        definitions::start(&server).await?;
        let configured = server.options.admission.configure(&server).await;
        configured.map_err(|failure| StartError::Objects(format!("{failure:?}")))?;
        let mut started = namespaces::start(&server).await;
        if started.is_ok() {
            started = rbac::ensure(&server).await;
        }
        if started.is_ok() {
            started = own_service::ensure(&server).await;
        }
        if started.is_ok() {
            started = first_objects::ensure(&server).await;
        }
        started.map_err(|failure| StartError::Objects(format!("{failure:?}")))?;
        if server.options.shared {
            others::follow(&server, after);
        }
        Ok(server)
    }

    /// Answers a request whose body is there in full.
    pub async fn handle(self: &Arc<Self>, request: Request<Bytes>, user: UserInfo) -> http::Response<Body> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);
        let (began, _in_flight) = (Instant::now(), self.metrics.begin(&info));
        let entry = match &self.options.audit {
            // Boxed: requests that are not audited need not carry the room.
            Some(log) => Box::pin(log.begin(&parts, &info, &user, &body)).await,
            None => None,
        };
        let mut response = match entry {
            None => self.answer(&parts, body, &query, &info, user, None).await,
            Some(mut entry) => {
                let acting = Mutex::default();
                let answering = self.answer(&parts, body, &query, &info, user, Some(&acting));
                let mut response = Box::pin(entry.during(answering)).await;
                if let Some(user) = acting.into_inner() {
                    entry.acts_as(&user);
                }
                Box::pin(entry.complete(&mut response)).await;
                response
            }
        };
        let asked = metrics::Asked { info: &info, query: &query, headers: &parts.headers };
        self.metrics.answered(&self.catalogue(), asked, &mut response, began.elapsed());
        response
    }

    /// Answers a request; `acting` is told as whom it acts, if that is somebody else than who sent it.
    async fn answer(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        body: Bytes,
        query: &Query,
        info: &RequestInfo,
        sender: UserInfo,
        acting: Option<&Mutex<Option<UserInfo>>>,
    ) -> http::Response<Body> {
        let (result, warnings) = match self.admit(parts, info, sender, acting).await {
            Err(failure) => (Err(failure), Warnings::default()),
            Ok((user, _seat)) => {
                if info.is_resource {
                    handlers::answer(self, parts, body, query, info, &user).await
                } else {
                    (self.page(parts, info, &body).await, Warnings::default())
                }
            }
        };
        let mut response = match result {
            Ok(response) => response,
            Err(failure) => handlers::refuse(failure, parts, query),
        };
        warnings.write_to(&mut response);
        response
    }

    /// Answers a request for something else than a resource.
    async fn page(&self, parts: &http::request::Parts, info: &RequestInfo, body: &Bytes) -> Result<Response, Failure> {
        let pages = [crate::discovery::respond, crate::openapi::respond, crate::health::respond, crate::auth::respond];
        let page = pages.iter().find_map(|page| page(self, info, parts));
        if let Some(page) = page.or_else(|| crate::debug::respond(self, info, body)) {
            return Ok(page);
        }
        // Boxed: no other request should have room for it.
        Box::pin(crate::metrics::respond(self, info)).await.ok_or_else(Failure::page_not_found)
    }

    /// The user that a request acts as, if that one may do what the request is about, when it is its turn. `acting` is told of one that is
    /// somebody else than who sent it.
    async fn admit(
        &self,
        parts: &http::request::Parts,
        info: &RequestInfo,
        sender: UserInfo,
        acting: Option<&Mutex<Option<UserInfo>>>,
    ) -> Result<(UserInfo, Seat), Failure> {
        let authorizer = &*self.options.authorizer;
        let target = parts.uri.path_and_query().map_or(parts.uri.path(), |t| t.as_str());
        let told = acting.map(|acting| (acting, sender.clone()));
        let user = impersonation::user(authorizer, sender, &parts.headers, target).await?;
        if let Some((acting, sender)) = told
            && sender != user
        {
            *acting.lock() = Some(user.clone());
        }
        let seat = self.turnstiles.enter(info, &user).await.ok_or(Failure::Busy)?;
        self.authorize(info, &user).await?;
        Ok((user, seat))
    }

    async fn authorize(&self, info: &RequestInfo, user: &UserInfo) -> Result<(), Failure> {
        let method = info.method.as_str().to_ascii_lowercase();
        let attributes = attributes(info, user, if info.is_resource { info.verb.name() } else { &method });
        match self.options.authorizer.authorize(attributes).await {
            Decision::Allow(reason) => {
                self.metrics.identity.authorized(true);
                audit::annotate("authorization.k8s.io/decision", || "allow".to_owned());
                audit::annotate("authorization.k8s.io/reason", || reason.to_string());
                Ok(())
            }
            Decision::Deny(reason) => {
                self.metrics.identity.authorized(false);
                audit::annotate("authorization.k8s.io/decision", || "forbid".to_owned());
                audit::annotate("authorization.k8s.io/reason", || reason.clone());
                Err(forbidden(&attributes, &reason).into())
            }
        }
    }

    /// 403 for an update or a patch that would create its object, unless the user may create it.
    pub(crate) async fn check_creates(&self, info: &RequestInfo, user: &UserInfo) -> Result<(), Failure> {
        let attributes = attributes(info, user, "create");
        match self.options.authorizer.authorize(attributes).await {
            Decision::Allow(_) => Ok(()),
            Decision::Deny(reason) => Err(forbidden(&attributes, &reason).into()),
        }
    }

    /// A request of the server to itself, which goes the way of every other. Gives the object of the answer; a failure
    /// is [`Failure::Object`].
    pub(crate) fn own_request<'a>(
        self: &'a Arc<Self>,
        method: http::Method,
        path: &str,
        body: Option<&Value>,
    ) -> Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send + 'a>> {
        let text = body.map(json::to_vec).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::USER_AGENT, "kube-apiserver/v1.33.13")
            .body(Bytes::from(text));
        Box::pin(async move {
            let request = request.map_err(Status::internal)?;
            let response = self.handle(request, UserInfo::server()).await;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
            let object = json::parse(&bytes).map_err(Status::internal)?;
            let code = head.status.as_u16();
            if code < 400 { Ok(object) } else { Err(Failure::Object(code, Box::new(object))) }
        })
    }

    /// What is served now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    /// The address by which clients reach the server.
    pub(crate) fn advertised(&self) -> &str {
        &self.options.advertised
    }

    /// Serves a group as it is now; one without versions is served no more.
    pub(crate) fn serve_group(&self, group: Group) {
        let held = self.catalogue.load();
        // A definition may not hide a built-in group.
        if held.group(&group.name).is_some_and(|g| !g.custom) {
            return;
        }
        let name = group.name.clone();
        let next = held.with_group(group);
        let left = |version: &str| next.group(&name)?.version(version).map(|v| v.resources.len());
        let shrank = |v: &&Version| left(&v.name).unwrap_or(0) < v.resources.len();
        for version in held.group(&name).iter().flat_map(|g| &g.versions).filter(shrank) {
            let is_gone = |r: &&Arc<Resource>| next.resource(&name, &version.name, &r.plural).is_none();
            version.resources.iter().filter(is_gone).for_each(|r| self.metrics.forget(r));
        }
        self.catalogue.store(Arc::new(next));
    }

    /// Becomes true when the server ends.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// The tokens that are accepted, and what signs those of service accounts.
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.options.tokens
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether the server is about to end, so that nobody new should come.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Tells those who ask `/readyz` that the server is about to end. Everything goes on still.
    pub fn announce_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Ends all watches and the controllers. Requests are answered still.
    pub fn shutdown(&self) {
        self.announce_end();
        self.stop.send_replace(true);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl crate::http::Handler for Server {
    type Body = Body;

    async fn handle(self: &Arc<Self>, request: Request<Bytes>, user: UserInfo) -> http::Response<Body> {
        self.metrics.identity.authenticated(&user.name);
        Server::handle(self, request, user).await
    }

    fn certified(&self, end: i64) {
        self.metrics.identity.certified(end - (self.options.clock)().as_second());
    }

    async fn refused(&self, parts: &http::request::Parts) {
        self.metrics.identity.refused(parts.headers.contains_key(http::header::AUTHORIZATION));
        if let Some(log) = &self.options.audit {
            let query = Query::parse(parts.uri.query());
            let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);
            Box::pin(log.unauthenticated(parts, &info)).await;
        }
    }

    fn wants_peers(&self) -> bool {
        self.options.audit.is_some()
    }
}

/// What the authorizer is asked: whether the user may do this with what the path names.
fn attributes<'a>(info: &'a RequestInfo, user: &'a UserInfo, verb: &'a str) -> Attributes<'a> {
    Attributes {
        user,
        verb,
        group: &info.group,
        version: &info.version,
        resource: &info.resource,
        subresource: &info.subresource,
        name: &info.name,
        namespace: &info.namespace,
        path: &info.path,
    }
}

/// 403, as upstream words it.
fn forbidden(attributes: &Attributes<'_>, reason: &str) -> Status {
    let why = authorize::denial(attributes, reason);
    let resource = Qualified { group: attributes.group, name: attributes.resource };
    let mut status = Status::forbidden(resource, attributes.name, &why);
    if attributes.is_page() {
        status.details = Some(Default::default());
    }
    status
}
