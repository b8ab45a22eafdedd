//! The server: one store, the catalogue of what is served, and the way of a request.

use crate::answer::{Body, Failure, Response, Warnings};
use crate::auth::UserInfo;
use crate::authorize::{AlwaysAllow, Attributes, Authorizer, Decision};
use crate::catalogue::Catalogue;
use crate::request::{Query, RequestInfo};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Request;
use object::Status;
use object::status::Qualified;
use std::sync::Arc;
use store::Store;
use tokio::sync::watch;

/// Tells the time; tests bring their own.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// How a server is to behave.
#[derive(Clone)]
pub struct Options {
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// The time.
    pub clock: Clock,
    /// The address and port by which clients reach the server, for those that ask `/api` for it.
    pub advertised: String,
}

impl Default for Options {
    /// Everybody may do everything; the time is the system's.
    fn default() -> Self {
        Options { authorizer: Arc::new(AlwaysAllow), clock: Arc::new(jiff::Timestamp::now), advertised: String::new() }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Write(#[from] store::WriteError),
}

/// An API server without its sockets.
pub struct Server {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Options,
    catalogue: ArcSwap<Catalogue>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Opens a server on a store: reads the definitions that are there, makes the objects that every cluster has, and
    /// starts the controllers.
    pub async fn new(store: Arc<dyn Store>, options: Options) -> Result<Arc<Self>, StartError> {
        let catalogue = ArcSwap::from_pointee(Catalogue::default());
        Ok(Arc::new(Server { store, options, catalogue, stop: watch::channel(false).0 }))
    }

    /// Answers a request whose body is there in full.
    pub async fn handle(self: &Arc<Self>, request: Request<Bytes>, user: UserInfo) -> http::Response<Body> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);
        let mut warnings = Warnings::default();
        let result = self.route(&parts, body, &query, &info, &user, &mut warnings).await;
        let mut response = result.unwrap_or_else(Failure::into_response);
        warnings.write_to(&mut response);
        response
    }

    async fn route(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        _body: Bytes,
        _query: &Query,
        info: &RequestInfo,
        user: &UserInfo,
        _warnings: &mut Warnings,
    ) -> Result<Response, Failure> {
        self.authorize(info, user).await?;
        if !info.is_resource {
            let pages =
                [crate::discovery::respond, crate::openapi::respond, crate::health::respond, crate::metrics::respond];
            return pages.iter().find_map(|page| page(self, info, parts)).ok_or_else(Failure::page_not_found);
        }
        Err(Failure::no_such_resource())
    }

    async fn authorize(&self, info: &RequestInfo, user: &UserInfo) -> Result<(), Failure> {
        let method = info.method.as_str().to_ascii_lowercase();
        let attributes = Attributes {
            user,
            verb: if info.is_resource { info.verb.name() } else { &method },
            group: &info.group,
            version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            name: &info.name,
            namespace: &info.namespace,
            path: &info.path,
        };
        match self.options.authorizer.authorize(attributes).await {
            Decision::Allow(_) => Ok(()),
            Decision::Deny(reason) => Err(forbidden(&attributes, info.is_resource, &reason).into()),
        }
    }

    /// What is served now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    /// The address by which clients reach the server.
    pub(crate) fn advertised(&self) -> &str {
        &self.options.advertised
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether the server was told to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Ends all watches and the controllers. Requests are answered still.
    pub fn shutdown(&self) {
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
        Server::handle(self, request, user).await
    }
}

/// 403, as upstream words it.
fn forbidden(attributes: &Attributes<'_>, is_resource: bool, reason: &str) -> Status {
    let user = object::go::quote(&attributes.user.name);
    let mut why = if is_resource {
        let mut resource = attributes.resource.to_owned();
        if !attributes.subresource.is_empty() {
            resource = format!("{resource}/{}", attributes.subresource);
        }
        let place = match attributes.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", object::go::quote(namespace)),
        };
        format!(
            "User {user} cannot {} resource {} in API group {} {place}",
            attributes.verb,
            object::go::quote(&resource),
            object::go::quote(attributes.group)
        )
    } else {
        format!("User {user} cannot {} path {}", attributes.verb, object::go::quote(attributes.path))
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let resource = if is_resource { attributes.resource } else { "" };
    let mut status = Status::forbidden(Qualified { group: attributes.group, name: resource }, attributes.name, &why);
    if !is_resource {
        status.details = Some(Default::default());
    }
    status
}
