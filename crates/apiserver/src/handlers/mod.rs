//! What each verb does, the same way for every kind.

mod binding;
mod components;
mod connect;
mod create;
mod delete;
mod eviction;
mod get;
mod incoming;
mod list;
mod own_kind;
mod patch;
mod present;
mod proxy;
mod review_checks;
mod reviews;
mod scale;
mod strategic;
mod streams;
mod token_request;
mod update;
mod watch;
mod write;

pub(crate) use create::{random_suffix, time, uid};

use crate::Server;
use crate::answer::{Failure, Outcome, Response, Warnings};
use crate::auth::UserInfo;
use crate::catalogue::{Catalogue, Resource};
use crate::ownership::Conversions;
use crate::request::{Form, Offer, Query, RequestInfo, Verb, negotiate};
use crate::strategy::Part;
use bytes::Bytes;
use http::request::Parts;
use jiff::Timestamp;
use object::Status;
use std::sync::Arc;

/// A request that names a resource.
pub(crate) struct Request<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// The head.
    pub parts: &'a Parts,
    /// The body.
    pub body: Bytes,
    /// The parameters.
    pub query: &'a Query,
    /// What the path says.
    pub info: &'a RequestInfo,
    /// Who asks.
    pub user: &'a UserInfo,
    /// What is served.
    pub catalogue: Arc<Catalogue>,
    /// The resource.
    pub resource: Arc<Resource>,
    /// The form of the answer.
    pub form: Form,
    /// What the client is to be warned of.
    pub warnings: Warnings,
    /// The time of the request.
    pub now: Timestamp,
    /// What field ownership needs of the definition's webhook.
    pub conversions: Option<Arc<Conversions>>,
}

impl Request<'_> {
    /// The key of the object that the path names.
    pub fn key(&self) -> String {
        crate::registry::key(&self.resource, &self.info.namespace, &self.info.name)
    }

    /// Has the definition's webhook convert what field ownership missed; false if it missed nothing.
    pub async fn convert_missing(&self) -> bool {
        self.server.convert_missing(&self.resource, self.conversions.as_deref()).await
    }

    /// 404 for the object that the path names.
    pub fn not_found(&self) -> Failure {
        Status::not_found(self.resource.qualified(), &self.info.name).into()
    }

    /// The name under which the writer owns fields.
    pub fn manager(&self, option: &str) -> String {
        let agent = self.parts.headers.get(http::header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        crate::ownership::manager_name(option, agent)
    }

    /// The kind that goes in and out: that of the object, or of a subresource.
    pub fn part_kind(&self) -> &str {
        self.resource.subresource(&self.info.subresource).map_or(&self.resource.kind, |s| &s.kind)
    }

    /// A parameter's text.
    pub fn text(&self, key: &str) -> &str {
        self.query.get(key).unwrap_or_default()
    }
}

/// Answers a request that names a resource. Gives the warnings too.
pub(crate) async fn answer(
    server: &Arc<Server>,
    parts: &Parts,
    body: Bytes,
    query: &Query,
    info: &RequestInfo,
    user: &UserInfo,
) -> (Outcome<Response>, Warnings) {
    let catalogue = server.catalogue();
    let resource = match find(&catalogue, info) {
        Ok(resource) => resource,
        Err(failure) => return (Err(failure), Warnings::default()),
    };
    let custom = resource.is_custom();
    let offer = Offer { custom, watch: info.verb == Verb::Watch, protobuf: !custom };
    let form = match negotiate(&parts.headers, query, offer) {
        Ok(form) => form,
        Err(failure) => return (Err(failure), Warnings::default()),
    };
    let changes = matches!(info.verb, Verb::Update | Verb::Patch);
    let conversions = if changes { resource.strategy.ownership().conversions() } else { None };
    let mut request = Request {
        server,
        parts,
        body,
        query,
        info,
        user,
        catalogue,
        resource,
        form,
        warnings: Warnings::default(),
        now: (server.options.clock)(),
        conversions,
    };
    if !request.resource.deprecation.is_empty() {
        server.metrics.deprecated(&request.resource, known_subresource(&request));
        request.warnings.add(request.resource.deprecation.clone());
    }
    let outcome = dispatch(&mut request).await;
    (outcome, request.warnings)
}

/// The subresource that is asked for, if there is such a one.
fn known_subresource<'r>(request: &'r Request<'_>) -> &'r str {
    request.resource.subresource(&request.info.subresource).map_or("", |subresource| subresource.name.as_str())
}

/// A failure as an answer, in the encoding that the client asks for.
pub(crate) fn refuse(failure: Failure, parts: &Parts, query: &Query) -> Response {
    let Failure::Status(status) = failure else { return failure.into_response() };
    match negotiate(&parts.headers, query, Offer { custom: true, watch: false, protobuf: true }) {
        Ok(form) => present::status(form, &status),
        Err(_) => Failure::Status(status).into_response(),
    }
}

/// The resource that a path names, as far as its method can be there at all.
fn find(catalogue: &Catalogue, info: &RequestInfo) -> Outcome<Arc<Resource>> {
    let group = catalogue.group(&info.group);
    let builtin = group.is_some_and(|g| !g.custom);
    let resource = group.and_then(|g| g.version(&info.version)).and_then(|v| v.resource(&info.resource));
    let Some(resource) = resource else {
        return Err(if builtin { Failure::no_such_resource() } else { Failure::page_not_found() });
    };
    let named = info.names_object;
    if resource.is_custom() {
        let placed = !info.namespace.is_empty() || !resource.namespaced;
        // Across namespaces there is only reading.
        let across = matches!(info.verb, Verb::List | Verb::Watch) && !named;
        if (resource.namespaced && !placed && !across) || (!resource.namespaced && !info.namespace.is_empty()) {
            return Err(Failure::page_not_found());
        }
        return Ok(resource.clone());
    }
    check_builtin(resource, info, named)?;
    Ok(resource.clone())
}

/// Built-in kinds have routes: a path that is none is 404, a method that a path does not take is 405.
fn check_builtin(resource: &Resource, info: &RequestInfo, named: bool) -> Outcome<()> {
    let is_namespaces = resource.plural == "namespaces" && resource.group.is_empty();
    let in_namespace = !info.namespace.is_empty() && !is_namespaces;
    let across = resource.namespaced && !in_namespace;
    if !resource.namespaced && in_namespace || across && (!info.name.is_empty() && named) {
        return Err(Failure::no_such_resource());
    }
    // What follows `proxy` is for who is behind it.
    if !info.rest.is_empty() && info.subresource != "proxy" {
        return Err(Failure::no_such_resource());
    }
    let verbs: &[&str] = match info.subresource.as_str() {
        // What is only created has no objects that could be named.
        "" if resource.verbs == ["create"] && !info.name.is_empty() => return Err(Failure::no_such_resource()),
        "" => resource.verbs,
        name => match resource.subresource(name) {
            Some(subresource) => subresource.verbs,
            None => return Err(Failure::no_such_resource()),
        },
    };
    let has = |verb: &str| verbs.contains(&verb);
    let method = &info.method;
    let collection = info.name.is_empty() || !named;
    let allowed = match info.verb {
        _ if method == http::Method::HEAD => false,
        Verb::Other => false,
        Verb::Get | Verb::List | Verb::Watch if collection => has("list") || has("watch"),
        Verb::Get | Verb::Watch | Verb::List => has("get"),
        Verb::Create if info.subresource.is_empty() => collection && has("create"),
        verb => has(verb.name()) && (collection == (verb == Verb::DeleteCollection)),
    };
    // Across namespaces a collection is only read.
    let allowed = allowed
        && !(across && !matches!(info.verb, Verb::List | Verb::Watch | Verb::Get) && resource.verbs != ["create"]);
    if allowed { Ok(()) } else { Err(Failure::no_such_method()) }
}

/// Has the request answered by what its path and verb ask for. The answers are boxed, each by itself: the largest would
/// otherwise be carried, and copied, through all that goes on around every request.
async fn dispatch(request: &mut Request<'_>) -> Outcome<Response> {
    if reviews::is_review(&request.resource) && request.info.verb == Verb::Create {
        return Box::pin(reviews::create(request)).await;
    }
    if token_request::is_token_request(request) {
        return Box::pin(token_request::create(request)).await;
    }
    if binding::is_binding(request) {
        return Box::pin(binding::create(request)).await;
    }
    if connect::connects(&request.resource, &request.info.subresource) && request.info.names_object {
        Box::pin(connect::admit(request)).await?;
    }
    match request.info.subresource.as_str() {
        "eviction" if !request.resource.is_custom() => return Box::pin(eviction::create(request)).await,
        "proxy" if !request.resource.is_custom() => return Box::pin(proxy::handle(request)).await,
        _ => {}
    }
    if streams::is_stream(request) {
        return Box::pin(streams::handle(request)).await;
    }
    let part = part(request)?;
    check_names(request)?;
    let verb = request.info.verb;
    if part == Part::Scale {
        return Box::pin(scale::handle(request)).await;
    }
    match verb {
        Verb::Get => get::get(request, part).await,
        Verb::List => Box::pin(list::list(request)).await,
        Verb::Watch if request.info.names_object && !request.info.watch_path => get::get(request, part).await,
        Verb::Watch => Box::pin(watch::watch(request)).await,
        Verb::Create if part == Part::Main => Box::pin(create::create(request)).await,
        Verb::Update => Box::pin(update::update(request, part)).await,
        Verb::Patch => Box::pin(patch::patch(request, part)).await,
        Verb::Delete if part == Part::Main => Box::pin(delete::delete(request)).await,
        Verb::DeleteCollection => Box::pin(delete::delete_collection(request)).await,
        _ => Err(Status::method_not_supported(request.resource.qualified(), verb.name()).into()),
    }
}

/// The part of the object that the path names.
fn part(request: &Request<'_>) -> Outcome<Part> {
    let info = request.info;
    let resource = &request.resource;
    if info.subresource.is_empty() {
        return Ok(Part::Main);
    }
    // Upstream answers for the object when a custom resource has no such subresource.
    let Some(subresource) = resource.subresource(&info.subresource).filter(|_| info.rest.is_empty()) else {
        return Err(request.not_found());
    };
    let verb = info.verb.name();
    if resource.is_custom() && !subresource.verbs.contains(&verb) {
        return Err(Status::method_not_supported(resource.qualified(), verb).into());
    }
    Ok(match info.subresource.as_str() {
        "status" => Part::Status,
        "scale" => Part::Scale,
        "finalize" => Part::Finalize,
        "approval" => Part::Other("approval"),
        "ephemeralcontainers" => Part::Other("ephemeralcontainers"),
        "resize" => Part::Other("resize"),
        _ => return Err(Failure::no_such_resource()),
    })
}

/// 400 for a name or namespace that can be in no path.
fn check_names(request: &Request<'_>) -> Outcome<()> {
    let info = request.info;
    if info.names_object {
        let complaints = object::names::path_segment(&info.name);
        if !complaints.is_empty() {
            let name = object::go::quote(&info.name);
            return Err(
                Status::bad_request(format!("Name parameter invalid: {name}: {}", complaints.join("; "))).into()
            );
        }
    } else if matches!(info.verb, Verb::Update | Verb::Delete) {
        return Err(Status::bad_request("name must be provided").into());
    }
    Ok(())
}
