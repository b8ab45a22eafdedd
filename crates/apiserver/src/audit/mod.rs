//! What is written down of requests: an `audit.k8s.io/v1` `Event` in JSON for each stage of those that a policy chooses,
//! as a line of a file, for a webhook, or both.

mod policy;
mod rotation;
mod webhook;

pub use policy::{Level, Policy};
pub use rotation::Rotation;
pub use webhook::{Receiver, Settings, Unsent, Webhook};

use crate::answer::{Body, Response};
use crate::auth::UserInfo;
use crate::request::RequestInfo;
use crate::request::body::{self, Language};
use crate::server::Clock;
use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;
use object::{Map, Value, json, map};
use parking_lot::Mutex;
use policy::{Asked, Extent};
use rotation::Rotating;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The header that carries the id of a request's events.
const ID: &str = "audit-id";
/// How long an id that a client chooses may be.
const MAX_ID: usize = 64;
/// How long a user agent is written.
const MAX_AGENT: usize = 1024;

/// Who is at the other end of a connection; connections put it into the extensions of their requests.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Writes what a policy asks for.
pub struct Log {
    policy: Policy,
    out: Option<Mutex<Box<dyn Write + Send>>>,
    webhook: Option<Webhook>,
    clock: Clock,
    events: AtomicU64,
    unwritten: AtomicU64,
}

tokio::task_local! {
    /// The annotations of the request that is handled.
    static ANNOTATIONS: Arc<Mutex<Map>>;
}

/// Notes something about the request that is handled, if it is audited. What is noted first stays.
pub(crate) fn annotate(key: &str, value: impl FnOnce() -> String) {
    let _ = ANNOTATIONS.try_with(|annotations| {
        let mut annotations = annotations.lock();
        if !annotations.contains_key(key) {
            annotations.insert(key, value());
        }
    });
}

impl Log {
    /// Chooses as a policy says; where events go is said by the functions that follow.
    pub fn new(policy: Policy, clock: Clock) -> Self {
        let (events, unwritten) = (AtomicU64::new(0), AtomicU64::new(0));
        Log { policy, out: None, webhook: None, clock, events, unwritten }
    }

    /// Writes to a file, behind what is there, and begins new ones as `rotation` says; `-` is standard output.
    pub fn to_file(self, path: &Path, rotation: Rotation) -> std::io::Result<Self> {
        if path == Path::new("-") {
            return Ok(self.to(Box::new(std::io::stdout())));
        }
        let file = Rotating::open(path, rotation, self.clock.clone())?;
        Ok(self.to(Box::new(file)))
    }

    /// Writes to anything.
    pub fn to(self, out: Box<dyn Write + Send>) -> Self {
        Log { out: Some(Mutex::new(out)), ..self }
    }

    /// Sends to a webhook.
    pub fn to_webhook(self, webhook: Webhook) -> Self {
        Log { webhook: Some(webhook), ..self }
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// By where events go, as upstream calls it: how many did not arrive there.
    pub(crate) fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let written = self.out.as_ref().map(|_| ("log", self.unwritten.load(Ordering::Relaxed)));
        written.into_iter().chain(self.webhook.as_ref().map(|webhook| ("webhook", webhook.lost())))
    }

    /// Sends what waits for the webhook, as far as that is possible within a time.
    pub async fn finish(&self, patience: std::time::Duration) {
        if let Some(webhook) = &self.webhook {
            webhook.finish(patience).await;
        }
    }

    /// Writes that a request came, if the policy asks for it; gives what is to be known at its end.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        parts: &Parts,
        info: &RequestInfo,
        user: &UserInfo,
        body: &Bytes,
    ) -> Option<Entry> {
        let method = info.method.as_str().to_ascii_lowercase();
        let verb = if info.is_resource { info.verb.name() } else { &method };
        let extent = self.policy.extent(&Asked {
            user: &user.name,
            groups: &user.groups,
            verb,
            is_resource: info.is_resource,
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
            path: &info.path,
        })?;
        let now = self.now();
        let id = id(parts);
        let mut event = map! {
            "kind" => "Event", "apiVersion" => "audit.k8s.io/v1",
            "level" => extent.level.name(), "auditID" => id.as_str(), "verb" => verb,
            "requestURI" => parts.uri.path_and_query().map_or(parts.uri.path(), |p| p.as_str()),
            "user" => shown_user(user), "requestReceivedTimestamp" => now.as_str(),
        };
        let addresses = addresses(parts);
        if !addresses.is_empty() {
            event.insert("sourceIPs", addresses);
        }
        let agent = parts.headers.get(http::header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if !agent.is_empty() {
            event.insert("userAgent", agent.chars().take(MAX_AGENT).collect::<String>());
        }
        let object = request_object(parts, info, body);
        if info.is_resource {
            event.insert("objectRef", reference(info, object.as_ref()));
        }
        let mut entry = Entry { log: self.clone(), extent, event, id, annotations: Arc::default() };
        entry.write("RequestReceived", &now).await;
        if let Some(object) = object.filter(|_| entry.extent.level >= Level::Request && info.is_resource) {
            let object = entry.cleaned(object);
            entry.event.insert("requestObject", object);
        }
        Some(entry)
    }

    /// Writes that a request's credentials were refused.
    pub(crate) async fn unauthenticated(self: &Arc<Self>, parts: &Parts, info: &RequestInfo) {
        let entry = self.begin(parts, info, &UserInfo::default(), &Bytes::new()).await;
        let Some(mut entry) = entry else { return };
        let message = "Authentication failed, attempted: bearer";
        entry.event.insert(
            "responseStatus",
            map! { "metadata" => Map::new(), "status" => "Failure", "message" => message, "code" => 401, "reason" => "Unauthorized" },
        );
        let now = self.now();
        entry.write("ResponseStarted", &now).await;
    }

    /// Writes a line to the file, if there is one.
    fn write(&self, line: &[u8]) {
        let Some(out) = &self.out else { return };
        // One write a line, so that lines stay whole whoever else writes to the file.
        let mut out = out.lock();
        if let Err(error) = out.write_all(line).and_then(|()| out.flush()) {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "the audit log cannot be written");
        }
    }

    fn now(&self) -> String {
        (self.clock)().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }
}

/// The object of an answer that is JSON or protobuf.
fn answered(bytes: &[u8]) -> Option<Value> {
    json::parse(bytes).ok().or_else(|| kinds::protobuf::read(bytes).ok())
}

/// A request that is audited, until its end.
pub(crate) struct Entry {
    log: Arc<Log>,
    extent: Extent,
    event: Map,
    id: String,
    annotations: Arc<Mutex<Map>>,
}

impl Entry {
    /// Handles the request; what is noted meanwhile is written at its end.
    pub async fn during<F: Future>(&self, handling: F) -> F::Output {
        ANNOTATIONS.scope(self.annotations.clone(), handling).await
    }

    /// Notes as whom the request acts.
    pub fn acts_as(&mut self, user: &UserInfo) {
        self.event.insert("impersonatedUser", shown_user(user));
    }

    /// Writes the end of the request, which for an answer that goes on is its beginning; gives the answer the id.
    pub async fn complete(mut self, response: &mut Response) {
        if let Ok(value) = HeaderValue::from_str(&self.id) {
            response.headers_mut().insert(ID, value);
        }
        let code = response.status().as_u16();
        let mut status = map! { "metadata" => Map::new(), "code" => i64::from(code) };
        let streams = matches!(response.body(), Body::Stream(_));
        if let Body::Whole(bytes) = response.body()
            && (code >= 400 || self.extent.level == Level::RequestResponse)
            && let Some(object) = answered(bytes)
        {
            if object.str_at(&["kind"]) == Some("Status") {
                for key in ["status", "message", "reason", "details", "code"] {
                    if let Some(value) = object.get(key) {
                        status.insert(key, value.clone());
                    }
                }
            }
            if self.extent.level == Level::RequestResponse && self.event.contains_key("objectRef") {
                let object = self.cleaned(object);
                self.event.insert("responseObject", object);
            }
        }
        self.event.insert("responseStatus", status);
        let annotations = std::mem::take(&mut *self.annotations.lock());
        if !annotations.is_empty() {
            self.event.insert("annotations", annotations);
        }
        let now = self.log.now();
        if streams {
            self.write("ResponseStarted", &now).await;
        }
        self.write("ResponseComplete", &now).await;
    }

    async fn write(&mut self, stage: &str, now: &str) {
        if self.extent.omit_stages.iter().any(|omitted| omitted == stage) {
            return;
        }
        self.event.insert("stage", stage);
        self.event.insert("stageTimestamp", now);
        let event = Value::Object(std::mem::take(&mut self.event));
        let mut line = json::to_vec(&event);
        line.push(b'\n');
        if let Value::Object(members) = event {
            self.event = members;
        }
        self.log.events.fetch_add(1, Ordering::Relaxed);
        self.log.write(&line);
        if let Some(webhook) = &self.log.webhook {
            let mut event = Bytes::from(line);
            event.truncate(event.len() - 1);
            webhook.take(event).await;
        }
    }

    fn cleaned(&self, mut object: Value) -> Value {
        if self.extent.omit_managed_fields {
            object.remove_at(&["metadata", "managedFields"]);
            if let Some(Value::Array(items)) = object.get_mut("items") {
                items.iter_mut().for_each(|item| {
                    item.remove_at(&["metadata", "managedFields"]);
                });
            }
        }
        object
    }
}

/// The id that the client chose, or a new one.
fn id(parts: &Parts) -> String {
    let given = parts.headers.get(ID).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if given.is_empty() || given.len() > MAX_ID {
        return crate::handlers::uid().unwrap_or_default();
    }
    given.to_owned()
}

/// Where the request comes from: what proxies say, then the other end of the connection.
fn addresses(parts: &Parts) -> Vec<String> {
    let text = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let mut out: Vec<String> = Vec::new();
    let forwarded = text("x-forwarded-for");
    let real = text("x-real-ip");
    for address in forwarded.split(',').chain([real.as_str()]).map(str::trim) {
        if let Ok(address) = address.parse::<IpAddr>()
            && !out.contains(&address.to_string())
        {
            out.push(address.to_string());
        }
    }
    if let Some(Peer(peer)) = parts.extensions.get::<Peer>() {
        let peer = peer.ip().to_canonical().to_string();
        if out.last() != Some(&peer) {
            out.push(peer);
        }
    }
    out
}

fn shown_user(user: &UserInfo) -> Map {
    let mut out = Map::new();
    if !user.name.is_empty() {
        out.insert("username", user.name.as_str());
    }
    if !user.uid.is_empty() {
        out.insert("uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        out.insert("groups", user.groups.iter().map(String::as_str).collect::<Vec<_>>());
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), values.iter().map(String::as_str).collect::<Vec<_>>());
        }
        out.insert("extra", extra);
    }
    out
}

/// The body as an object, where it is one.
fn request_object(parts: &Parts, info: &RequestInfo, text: &Bytes) -> Option<Value> {
    if text.is_empty() || !info.is_resource {
        return None;
    }
    let language =
        if info.method == http::Method::PATCH { Language::Yaml } else { body::language(&parts.headers).ok()? };
    if language == Language::Yaml
        && let Ok(value) = json::parse(text)
    {
        return Some(value);
    }
    body::parse(text, language, false).ok().map(|parsed| parsed.value)
}

/// What the request is about; what the path does not say is said by the object.
fn reference(info: &RequestInfo, object: Option<&Value>) -> Map {
    let mut out = Map::new();
    let of_object = |key: &str| object.map_or("", |o| o.meta_str(key));
    let or_else = |text: &'_ str, key: &str| if text.is_empty() { of_object(key).to_owned() } else { text.to_owned() };
    for (key, value) in [
        ("resource", info.resource.clone()),
        ("namespace", or_else(&info.namespace, "namespace")),
        ("name", or_else(&info.name, "name")),
        ("uid", of_object("uid").to_owned()),
        ("apiGroup", info.group.clone()),
        ("apiVersion", info.version.clone()),
        ("resourceVersion", of_object("resourceVersion").to_owned()),
        ("subresource", info.subresource.clone()),
    ] {
        if !value.is_empty() {
            out.insert(key, value);
        }
    }
    out
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Server};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    async fn logged(level: &str, requests: &[(&str, &str, &str)]) -> Vec<Value> {
        let policy = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{{level: {level}}}]}}");
        let sink = Sink::default();
        let clock: Clock = Arc::new(|| jiff::Timestamp::UNIX_EPOCH);
        let log = Log::new(Policy::parse(&policy).unwrap(), clock).to(Box::new(sink.clone()));
        let options = Options { audit: Some(Arc::new(log)), ..Options::default() };
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let server = Server::new(store, options).await.unwrap();
        for (method, path, body) in requests {
            let request = http::Request::builder()
                .method(*method)
                .uri(*path)
                .header("x-forwarded-for", "192.0.2.1")
                .header("impersonate-user", "bob")
                .extension(Peer("127.0.0.1:5".parse().unwrap()))
                .body(Bytes::copy_from_slice(body.as_bytes()))
                .unwrap();
            let user = UserInfo { name: "alice".into(), ..UserInfo::default() };
            let response = server.handle(request, user).await;
            assert_eq!(response.headers().contains_key(ID), level != "None");
        }
        let text = sink.0.lock().clone();
        String::from_utf8(text).unwrap().lines().map(|line| json::parse(line.as_bytes()).unwrap()).collect()
    }

    const MAP: (&str, &str, &str) =
        ("POST", "/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);

    #[tokio::test]
    async fn a_request_has_two_events() {
        let events = logged("Metadata", &[MAP]).await;
        let stages: Vec<&str> = events.iter().filter_map(|e| e.str_at(&["stage"])).collect();
        assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
        let last = &events[1];
        assert_eq!(events[0].get("auditID"), last.get("auditID"));
        for (path, wanted) in [
            (&["kind"][..], "Event"),
            (&["level"], "Metadata"),
            (&["verb"], "create"),
            (&["requestURI"], "/api/v1/namespaces/default/configmaps"),
            (&["user", "username"], "alice"),
            (&["impersonatedUser", "username"], "bob"),
            (&["objectRef", "resource"], "configmaps"),
            (&["objectRef", "name"], "a"),
            (&["objectRef", "apiVersion"], "v1"),
            (&["annotations", "authorization.k8s.io/decision"], "allow"),
            (&["stageTimestamp"], "1970-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(last.str_at(path), Some(wanted), "{path:?}");
        }
        let addresses = json::to_string(last.get("sourceIPs").unwrap());
        assert_eq!(addresses, r#"["192.0.2.1","127.0.0.1"]"#);
        assert_eq!(last.at(&["responseStatus", "code"]), Some(&Value::Int(201)));
        assert!(last.get("requestObject").is_none() && last.get("responseObject").is_none());
    }

    #[tokio::test]
    async fn objects_are_written_where_the_level_asks_for_them() {
        let events = logged("RequestResponse", &[MAP, MAP]).await;
        assert_eq!(events[1].str_at(&["requestObject", "data", "k"]), Some("v"));
        assert!(events[1].str_at(&["responseObject", "metadata", "uid"]).is_some());
        assert_eq!(events[3].str_at(&["responseStatus", "reason"]), Some("AlreadyExists"));
        let events = logged("Request", &[MAP]).await;
        assert!(events[1].get("requestObject").is_some() && events[1].get("responseObject").is_none());
        assert!(logged("None", &[MAP]).await.is_empty());
    }
}
