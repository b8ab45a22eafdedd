//! Calls of webhooks: a review goes out, a review comes back, and whatever goes wrong is told in the words of Go's
//! HTTP client and of upstream's REST client.

use super::resolve::Resolver;
use super::review::{self, Review};
use super::tls;
use super::transport::{Peer, Transport, text};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use object::{Value, go};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::time::{Instant, sleep, timeout_at};

/// How long an answer may be, in bytes. (Upstream sets no limit.)
const MAX_ANSWER: usize = 64 << 20;
/// How often a call is made again when the webhook asks for that by `Retry-After`.
const RETRIES: usize = 10;
/// How many redirects are followed.
const REDIRECTS: usize = 10;
/// How much of an answer is repeated in a message.
const MAX_REPEATED: usize = 2048;
/// How many `caBundle`s connections are kept for.
const BUNDLES: usize = 256;

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a URL.
    Url(String),
    /// At a service of the cluster.
    Service {
        /// The service's namespace.
        namespace: String,
        /// The service's name.
        name: String,
        /// The service's port.
        port: u16,
        /// The path; may be empty.
        path: String,
    },
}

/// A webhook's `clientConfig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where it is.
    pub target: Target,
    /// The authorities that its certificate may be signed by: base64 of PEM. Empty for the system's.
    pub bundle: String,
}

impl ClientConfig {
    /// Reads a `clientConfig`.
    pub fn read(value: &Value) -> Self {
        let text = |path: &[&str]| value.str_at(path).unwrap_or_default().to_owned();
        let port = value.at(&["service", "port"]).and_then(Value::as_int).and_then(|p| u16::try_from(p).ok());
        let target = match value.str_at(&["url"]) {
            Some(url) => Target::Url(url.to_owned()),
            None => Target::Service {
                namespace: text(&["service", "namespace"]),
                name: text(&["service", "name"]),
                port: port.unwrap_or(443),
                path: text(&["service", "path"]),
            },
        };
        ClientConfig { target, bundle: text(&["caBundle"]) }
    }

    fn url(&self) -> String {
        match &self.target {
            Target::Url(url) => url.clone(),
            Target::Service { namespace, name, port, path } => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
            }
        }
    }
}

/// Calls webhooks.
pub struct WebhookClient {
    resolver: Resolver,
    transports: Mutex<HashMap<String, Arc<Transport>>>,
}

impl WebhookClient {
    /// A client that finds services in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        WebhookClient { resolver: Resolver::new(store), transports: Mutex::default() }
    }

    /// Whether the `caBundle` can be used at all; the error is upstream's text.
    pub(crate) fn check(&self, config: &ClientConfig) -> Result<(), String> {
        self.transport(&config.bundle).map(drop)
    }

    /// Sends a review and gives the one that answers it, its fields checked to be of their types. The error is
    /// upstream's text.
    pub(crate) async fn call(
        &self,
        config: &ClientConfig,
        kind: &'static Review,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<Value, String> {
        let transport = self.transport(&config.bundle)?;
        let call = self.within(&transport, timeout);
        let url = config.url();
        let (uri, shown) = address(&url, timeout).ok_or_else(|| format!("parse {}: invalid URL", go::quote(&url)))?;
        let wrapped = |why: String| format!("Post {}: {why}", go::quote(&shown));
        let answer = call.post(config, uri, body.into()).await.map_err(|fault| match fault {
            Fault::Request(why) => wrapped(why),
            Fault::Deadline => wrapped("context deadline exceeded".to_owned()),
            Fault::Body(why) => {
                format!("unexpected error when reading response body. Please retry. Original error: {why}")
            }
        })?;
        read(&answer, kind)
    }

    /// Reads a page over TLS: the body of an answer with code 200. `bundle` as in a `clientConfig`.
    pub(crate) async fn get(&self, url: &str, bundle: &str, timeout: Duration) -> Result<Bytes, String> {
        let uri: Uri = url.parse().map_err(|e| format!("parse {}: {e}", go::quote(url)))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("{} is no https URL", go::quote(url)));
        }
        let transport = self.transport(bundle)?;
        let call = self.within(&transport, timeout);
        let config = ClientConfig { target: Target::Url(url.to_owned()), bundle: bundle.to_owned() };
        let answer = call.follow(&config, Method::GET, uri, Bytes::new()).await.map_err(|fault| match fault {
            Fault::Request(why) | Fault::Body(why) => format!("Get {}: {why}", go::quote(url)),
            Fault::Deadline => format!("Get {}: context deadline exceeded", go::quote(url)),
        })?;
        match answer.status.as_u16() {
            200 => Ok(answer.body),
            code => Err(format!("Get {}: the answer has code {code}", go::quote(url))),
        }
    }

    fn within<'c>(&'c self, transport: &'c Transport, timeout: Duration) -> Call<'c> {
        let deadline = Instant::now() + timeout;
        Call { transport, resolver: &self.resolver, deadline, authorization: None }
    }

    /// Who finds services.
    pub(super) fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    fn transport(&self, bundle: &str) -> Result<Arc<Transport>, String> {
        let mut transports = self.transports.lock();
        if let Some(transport) = transports.get(bundle) {
            return Ok(transport.clone());
        }
        let transport = Arc::new(Transport::new(tls::client_config(bundle)?));
        if transports.len() >= BUNDLES {
            transports.clear();
        }
        transports.insert(bundle.to_owned(), transport.clone());
        Ok(transport)
    }
}

/// What URLs do not have as it is.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// The URL with the timeout as its query, for the request and for people.
fn address(url: &str, timeout: Duration) -> Option<(Uri, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let rest = utf8_percent_encode(rest.split(['?', '#']).next()?, ESCAPED).to_string();
    let slash = if rest.contains('/') { "" } else { "/" };
    let shown = format!("{scheme}://{rest}{slash}?timeout={}s", timeout.as_secs());
    Some((shown.parse().ok()?, shown))
}

/// Why a call has no answer.
pub(super) enum Fault {
    /// No answer came.
    Request(String),
    /// The time was over before an answer came.
    Deadline,
    /// The answer broke off.
    Body(String),
}

/// What comes back.
pub(super) struct Answer {
    /// The code.
    pub status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// A call, with all that it takes to get its answer.
pub(super) struct Call<'c> {
    /// Where connections are.
    pub transport: &'c Transport,
    /// Who finds services.
    pub resolver: &'c Resolver,
    /// When it has to be over.
    pub deadline: Instant,
    /// What the header `Authorization` says to this host and port.
    pub authorization: Option<(&'c HeaderValue, &'c Authority)>,
}

impl Call<'_> {
    /// Posts; again, where the answer asks for that.
    pub async fn post(&self, config: &ClientConfig, uri: Uri, body: Bytes) -> Result<Answer, Fault> {
        for attempt in 0.. {
            let answer = self.follow(config, Method::POST, uri.clone(), body.clone()).await?;
            let wait = retry_after(&answer).filter(|_| attempt < RETRIES);
            let Some(seconds) = wait else { return Ok(answer) };
            let slept = timeout_at(self.deadline, sleep(Duration::from_secs(seconds))).await;
            slept.map_err(|_| Fault::Deadline)?;
        }
        Err(Fault::Deadline)
    }

    /// One exchange with its redirects.
    async fn follow(
        &self,
        config: &ClientConfig,
        mut method: Method,
        mut uri: Uri,
        body: Bytes,
    ) -> Result<Answer, Fault> {
        for _ in 0..=REDIRECTS {
            let body = if method == Method::POST { body.clone() } else { Bytes::new() };
            let answer = self.exchange(config, &uri, &method, body).await?;
            let location = answer.headers.get(LOCATION).and_then(|l| l.to_str().ok());
            let (Some(location), true) = (location, answer.status.is_redirection()) else { return Ok(answer) };
            match answer.status.as_u16() {
                301..=303 => method = Method::GET,
                307 | 308 => {}
                _ => return Ok(answer),
            }
            uri = join(&uri, location)
                .ok_or_else(|| Fault::Request(format!("failed to parse Location header {}", go::quote(location))))?;
        }
        Err(Fault::Request(format!("stopped after {REDIRECTS} redirects")))
    }

    async fn exchange(&self, config: &ClientConfig, uri: &Uri, method: &Method, body: Bytes) -> Result<Answer, Fault> {
        let (host, port) = (uri.host().unwrap_or_default().to_owned(), uri.port_u16().unwrap_or(443));
        let peer = match &config.target {
            Target::Service { namespace, name, port: own, .. }
                if host == format!("{name}.{namespace}.svc") && port == *own =>
            {
                Peer::Service(namespace.clone(), name.clone(), port)
            }
            _ => Peer::Host(host, port),
        };
        let mut request = request(uri, method, body).map_err(|e| Fault::Request(e.to_string()))?;
        if let Some((value, _)) = self.authorization.filter(|(_, to)| uri.authority() == Some(to)) {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let sent = timeout_at(self.deadline, self.transport.send(&peer, self.resolver, &request)).await;
        let (response, sender) = sent.map_err(|_| Fault::Deadline)?.map_err(Fault::Request)?;
        let read = timeout_at(self.deadline, collect(response)).await;
        let answer = read.map_err(|_| Fault::Body("context deadline exceeded".to_owned()))?.map_err(Fault::Body)?;
        self.transport.keep(&peer, sender);
        Ok(answer)
    }
}

fn request(uri: &Uri, method: &Method, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, uri.authority().map_or("", |a| a.as_str()))
        .header(USER_AGENT, "kube-apiserver-admission")
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json");
    if method == Method::POST {
        builder = builder.header(CONTENT_LENGTH, body.len());
    }
    builder.body(Full::new(body))
}

async fn collect(response: Response<Incoming>) -> Result<Answer, String> {
    let (parts, mut body) = response.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| match text(&e).as_str() {
            "EOF" => "unexpected EOF".to_owned(),
            other => other.to_owned(),
        })?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > MAX_ANSWER {
                return Err(format!("the answer is longer than {MAX_ANSWER} bytes"));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Answer { status: parts.status, headers: parts.headers, body: bytes.freeze() })
}

/// The seconds after which the webhook wants to be asked again.
fn retry_after(answer: &Answer) -> Option<u64> {
    let busy = answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status.is_server_error();
    answer.headers.get(RETRY_AFTER).filter(|_| busy)?.to_str().ok()?.parse().ok()
}

/// Where a redirect leads.
fn join(base: &Uri, location: &str) -> Option<Uri> {
    let authority = base.authority()?;
    let target = match location {
        absolute if absolute.contains("://") => absolute.to_owned(),
        other if other.starts_with("//") => format!("https:{other}"),
        path if path.starts_with('/') => format!("https://{authority}{path}"),
        relative => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("https://{authority}{folder}/{relative}")
        }
    };
    target.parse().ok()
}

/// The review of an answer, or why there is none.
fn read(answer: &Answer, kind: &'static Review) -> Result<Value, String> {
    let content_type = answer.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !(200..=206).contains(&answer.status.as_u16()) {
        return Err(refusal(answer, content_type));
    }
    if answer.body.is_empty() {
        let content_type = if content_type.is_empty() { "application/json" } else { content_type };
        let code = answer.status.as_u16();
        return Err(format!("0-length response with status code: {code} and content type: {content_type}"));
    }
    review::decode(&answer.body, kind)
}

/// What upstream's REST client makes of a code that is no success.
fn refusal(answer: &Answer, content_type: &str) -> String {
    if let Some(message) = review::failure_message(&answer.body) {
        return message;
    }
    let is_text = content_type.is_empty() || content_type.trim_start().to_ascii_lowercase().starts_with("text/");
    let body = answer.body.get(..MAX_REPEATED).unwrap_or(&answer.body);
    let said = if is_text { String::from_utf8_lossy(body).trim().to_owned() } else { "unknown".to_owned() };
    let text = match answer.status.as_u16() {
        409 => "the server reported a conflict",
        404 => "the server could not find the requested resource",
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return said,
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return said,
        405 => "the server does not allow this method on the requested resource",
        422 => "the server rejected our request due to an error in our request",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        429 => "the server has received too many requests and has asked us to try again later",
        500.. => {
            return format!("an error on the server ({}) has prevented the request from succeeding", go::quote(&said));
        }
        code => return format!("the server responded with the status code {code} but did not return more information"),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn addresses_have_the_timeout() {
        for (config, expected) in [
            (r#"{"url":"https://a.b:8443"}"#, "https://a.b:8443/?timeout=5s"),
            (r#"{"url":"HTTPS://a.b/x y"}"#, "https://a.b/x%20y?timeout=5s"),
            (r#"{"service":{"namespace":"n","name":"s"}}"#, "https://s.n.svc:443/?timeout=5s"),
            (r#"{"service":{"namespace":"n","name":"s","path":"/p","port":9}}"#, "https://s.n.svc:9/p?timeout=5s"),
        ] {
            let config = ClientConfig::read(&json::parse(config.as_bytes()).unwrap());
            let (uri, shown) = address(&config.url(), Duration::from_secs(5)).unwrap();
            assert_eq!((shown.as_str(), uri.to_string().as_str()), (expected, expected));
        }
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let base: Uri = "https://h:1/a/b?timeout=5s".parse().unwrap();
        for (location, expected) in [
            ("/x", "https://h:1/x"),
            ("c", "https://h:1/a/c"),
            ("https://o/y", "https://o/y"),
            ("//p/z", "https://p/z"),
        ] {
            assert_eq!(join(&base, location).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn refusals_are_worded_as_upstream_does() {
        let with = |code: u16, body: &'static str| Answer {
            status: StatusCode::from_u16(code).unwrap(),
            headers: HeaderMap::new(),
            body: body.into(),
        };
        for (code, content_type, body, expected) in [
            (404, "", "x", "the server could not find the requested resource"),
            (
                500,
                "application/json",
                "x",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (500, "text/plain", " x ", "an error on the server (\"x\") has prevented the request from succeeding"),
            (403, "application/json", "x", "unknown"),
            (418, "", "x", "the server responded with the status code 418 but did not return more information"),
            (503, "", r#"{"status":"Failure","message":"m"}"#, "m"),
        ] {
            assert_eq!(refusal(&with(code, body), content_type), expected);
        }
    }
}
