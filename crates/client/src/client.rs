//! The client: what all requests have in common.

use crate::discovery::Discovery;
use crate::error::{self, Error, Result};
use crate::{Api, Resource, Response, Transport};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method};
use object::{Value, json};
use std::sync::Arc;

/// A client of a server. Cheap to clone; clones share what discovery told.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    headers: Arc<HeaderMap>,
    discovery: Arc<Discovery>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// A request before it is sent.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The path with the query.
    pub(crate) target: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Option<&'a Value>,
}

pub(crate) const JSON: &str = "application/json";

impl Call<'static> {
    pub(crate) fn get(target: String) -> Self {
        Call { method: Method::GET, target, accept: JSON, content_type: JSON, body: None }
    }
}

impl Client {
    /// A client whose requests this transport carries.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        let client = Client { transport, headers: Arc::default(), discovery: Arc::default() };
        client.with_user_agent(concat!("stanchion/", env!("CARGO_PKG_VERSION")))
    }

    /// The same client under another name. Its part before the first `/` owns the fields that requests write without
    /// saying for whom.
    #[must_use]
    pub fn with_user_agent(&self, agent: &str) -> Client {
        let mut headers = (*self.headers).clone();
        if let Ok(agent) = HeaderValue::from_str(agent) {
            headers.insert(USER_AGENT, agent);
        }
        Client { headers: Arc::new(headers), ..self.clone() }
    }

    /// A client that acts as somebody else. The sender must be allowed to.
    #[must_use]
    pub fn acting_as(&self, user: &str, groups: &[&str]) -> Client {
        let mut headers = (*self.headers).clone();
        headers.remove("impersonate-group");
        if let Ok(user) = HeaderValue::from_str(user) {
            headers.insert(HeaderName::from_static("impersonate-user"), user);
        }
        for group in groups.iter().filter_map(|g| HeaderValue::from_str(g).ok()) {
            headers.append(HeaderName::from_static("impersonate-group"), group);
        }
        Client { headers: Arc::new(headers), ..self.clone() }
    }

    /// The requests about one resource.
    pub fn api(&self, resource: &Resource) -> Api {
        Api { client: self.clone(), resource: resource.clone() }
    }

    /// The resource of a kind, as discovery tells it; nothing if the server has none. What is known is not asked for
    /// again; what is not, is.
    pub async fn resource_of(&self, api_version: &str, kind: &str) -> Result<Option<Resource>> {
        self.discovery.find(self, api_version, kind).await
    }

    /// What stands at a path of the server, such as `/version`.
    pub async fn get_path(&self, target: &str) -> Result<Value> {
        self.value(Call::get(target.to_owned())).await
    }

    /// Sends a request and reads the answer. A failure that the server answers is an error.
    pub(crate) async fn value(&self, call: Call<'_>) -> Result<Value> {
        let body = self.bytes(call).await?;
        json::parse(&body).map_err(|e| Error::Content(e.to_string()))
    }

    pub(crate) async fn bytes(&self, call: Call<'_>) -> Result<Bytes> {
        collect(self.send(call).await?).await
    }

    /// Sends a request; an answer of 400 or more is an error.
    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Response> {
        let body = call.body.map(|body| Bytes::from(json::to_vec(body))).unwrap_or_default();
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(call.target)
            .body(body)
            .map_err(|e| Error::Content(e.to_string()))?;
        *request.headers_mut() = (*self.headers).clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(call.accept));
        if call.body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        }
        let response = self.transport.send(request).await?;
        let code = response.status().as_u16();
        if code < 400 {
            return Ok(response);
        }
        let body = collect(response).await?;
        Err(error::status_of_body(code, &body).into())
    }
}

/// The whole body.
async fn collect(response: Response) -> Result<Bytes> {
    let mut stream = response.into_body();
    let Some(first) = stream.next().await.transpose()? else { return Ok(Bytes::new()) };
    let Some(second) = stream.next().await.transpose()? else { return Ok(first) };
    let mut all = BytesMut::from(first);
    all.extend_from_slice(&second);
    while let Some(piece) = stream.next().await.transpose()? {
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}
