//! Requests to a cluster, one connection each: what a command line needs.

use super::credentials::{Credentials, Proof};
use super::{Actor, Kubeconfig, tls};
use bytes::Bytes;
use client::{BoxFuture, Transport};
use futures_util::TryStreamExt;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use object::{Value, json};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why a request to a cluster failed, for people.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A cluster.
pub struct Cluster {
    config: Kubeconfig,
    credentials: Credentials,
    actor: Option<Actor>,
    is_tls: bool,
    host: String,
    port: u16,
    base: String,
}

/// A resource as discovery tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Found {
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    pub fn root(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

impl Cluster {
    /// The cluster of a kubeconfig, as its user or another one.
    pub fn new(config: Kubeconfig, actor: Option<Actor>) -> Result<Self, Failure> {
        let (scheme, rest) = config.server.split_once("://").ok_or("the server's URL has no scheme")?;
        let (authority, base) = rest.split_once('/').map_or((rest, ""), |(a, b)| (a, b));
        let port = if scheme == "https" { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, text)) if !text.ends_with(']') => (host, text.parse()?),
            _ => (authority, port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let base = if base.is_empty() { String::new() } else { format!("/{}", base.trim_end_matches('/')) };
        let (credentials, is_tls) = (Credentials::new(&config)?, scheme == "https");
        Ok(Cluster { config, credentials, actor, is_tls, host, port, base })
    }

    /// The namespace for objects whose namespace nobody gives.
    pub fn namespace(&self) -> &str {
        &self.config.namespace
    }

    /// The JSON at a path. A failure that the server answers is told in its words.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        let (code, body) = self.send("GET", path).await?;
        let value = json::parse(&body).map_err(|e| format!("{path}: {e}"))?;
        if code >= 400 {
            let message = value.str_at(&["message"]).unwrap_or("the server refused the request").to_owned();
            return Err(message.into());
        }
        Ok(value)
    }

    /// Finds a resource by plural, singular, short name or kind, with or without `.GROUP` after it.
    pub async fn find(&self, name: &str) -> Result<Found, Failure> {
        let (name, wanted) = name.split_once('.').map_or((name, None), |(n, g)| (n, Some(g)));
        let lower = name.to_lowercase();
        let mut roots = vec![("".to_owned(), "v1".to_owned())];
        let groups = self.get("/apis").await?;
        for group in groups.get("groups").and_then(Value::as_array).unwrap_or_default() {
            let name = group.str_at(&["name"]).unwrap_or_default();
            let version = group.str_at(&["preferredVersion", "version"]).unwrap_or_default();
            roots.push((name.to_owned(), version.to_owned()));
        }
        for (group, version) in roots.into_iter().filter(|(g, _)| wanted.is_none_or(|w| w == g)) {
            let mut found = Found { group, version, plural: String::new(), kind: String::new(), namespaced: false };
            let list = self.get(&found.root()).await?;
            for resource in list.get("resources").and_then(Value::as_array).unwrap_or_default() {
                let text = |key: &str| resource.str_at(&[key]).unwrap_or_default();
                let shorts = resource.get("shortNames").and_then(Value::as_array).unwrap_or_default();
                let named = text("name") == lower
                    || text("singularName") == lower && !lower.is_empty()
                    || text("kind").to_lowercase() == lower
                    || shorts.iter().any(|s| s.as_str() == Some(&lower));
                if named && !text("name").contains('/') {
                    found.plural = text("name").to_owned();
                    found.kind = text("kind").to_owned();
                    found.namespaced = resource.get("namespaced").and_then(Value::as_bool).unwrap_or(false);
                    return Ok(found);
                }
            }
        }
        Err(format!("the server doesn't have a resource type {}", object::go::quote(name)).into())
    }

    async fn send(&self, method: &str, path: &str) -> Result<(u16, Bytes), Failure> {
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("User-Agent", AGENT)
            .header("Accept", "application/json");
        let response = self.request(request.body(Bytes::new())?).await?;
        let code = response.status().as_u16();
        Ok((code, response.into_body().collect().await?.to_bytes()))
    }

    /// Sends a request for a path of the server, as the kubeconfig's user. What the server does not accept any more is
    /// renewed once.
    async fn request(&self, request: hyper::Request<Bytes>) -> Result<hyper::Response<Incoming>, Failure> {
        let proof = self.credentials.proof().await?;
        let response = self.request_as(request.clone(), &proof).await?;
        if response.status() != hyper::StatusCode::UNAUTHORIZED || !self.credentials.refused(&proof).await {
            return Ok(response);
        }
        let proof = self.credentials.proof().await?;
        self.request_as(request, &proof).await
    }

    async fn request_as(
        &self,
        request: hyper::Request<Bytes>,
        proof: &Proof,
    ) -> Result<hyper::Response<Incoming>, Failure> {
        let unreachable = |e: std::io::Error| format!("cannot reach {}: {e}", self.config.server);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(unreachable)?;
        if !self.is_tls {
            return self.exchange(stream, request, proof).await;
        }
        let connector = TlsConnector::from(Arc::new(tls::client_config(&self.config, proof)?));
        let name = tls::server_name(&self.config, &self.host)?;
        let stream = connector.connect(name, stream).await.map_err(unreachable)?;
        self.exchange(stream, request, proof).await
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: hyper::Request<Bytes>,
        proof: &Proof,
    ) -> Result<hyper::Response<Incoming>, Failure>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{}{}", self.base, parts.uri).parse()?;
        parts.headers.insert("Host", format!("{}:{}", self.host, self.port).parse()?);
        if let Some(authorization) = &proof.authorization {
            parts.headers.insert("Authorization", authorization.clone());
        }
        if let Some(actor) = self.actor.as_ref().filter(|_| !parts.headers.contains_key("Impersonate-User")) {
            parts.headers.insert("Impersonate-User", actor.user.parse()?);
            for group in &actor.groups {
                parts.headers.append("Impersonate-Group", group.parse()?);
            }
        }
        Ok(sender.send_request(hyper::Request::from_parts(parts, Full::new(body))).await?)
    }
}

/// Who we say we are.
const AGENT: &str = concat!("stanchion/", env!("CARGO_PKG_VERSION"));

impl Transport for Cluster {
    fn send(&self, request: hyper::Request<Bytes>) -> BoxFuture<'_, Result<client::Response, client::Error>> {
        Box::pin(async move {
            let response = self.request(request).await.map_err(|error| client::Error::Transport(error.to_string()))?;
            Ok(response.map(|body| -> client::Body {
                Box::pin(body.into_data_stream().map_err(|error| client::Error::Transport(error.to_string())))
            }))
        })
    }
}
