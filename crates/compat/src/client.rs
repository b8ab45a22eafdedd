//! A small HTTP client that keeps one connection and sends what it is told, well formed or not.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How long an answer may take, a watch's end included.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much is read from a connection at once, in bytes. TLS by itself reads four kilobytes at a time.
const READS: usize = 32 * 1024;
/// How many headers an answer may have; warnings are a header each.
const MOST_HEADERS: usize = 5_000;

/// Where a server is and how it is spoken to.
#[derive(Clone)]
pub struct Target {
    /// The address.
    pub address: SocketAddr,
    /// The TLS side.
    pub tls: Arc<rustls::ClientConfig>,
}

/// A request to send.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// An answer in full.
#[derive(Clone, Debug)]
pub struct Response {
    /// The code.
    pub code: u16,
    /// The headers.
    pub headers: hyper::HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// A request of the administrator.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        let token = ("Authorization".to_owned(), "Bearer admintoken".to_owned());
        Request { method: method.to_owned(), path: path.into(), headers: vec![token], body: None }
    }

    /// The request with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The request with a body of a media type.
    pub fn body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("Content-Type", media_type)
    }
}

impl Target {
    /// Opens a TLS connection.
    pub async fn connect(&self) -> Result<TlsStream<BufReader<TcpStream>>, String> {
        let stream = TcpStream::connect(self.address).await.map_err(|e| e.to_string())?;
        let _ = stream.set_nodelay(true);
        let name = rustls_pki_types::ServerName::from(self.address.ip());
        TlsConnector::from(self.tls.clone())
            .connect(name, BufReader::with_capacity(READS, stream))
            .await
            .map_err(|e| e.to_string())
    }
}

/// A client of one server.
pub struct Client {
    target: Target,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client that connects when it first sends.
    pub fn new(target: Target) -> Self {
        Client { target, sender: None }
    }

    /// Sends a request and reads the whole answer. A connection that was closed meanwhile is made anew once.
    pub async fn send(&mut self, request: &Request) -> Result<Response, String> {
        match self.attempt_in_time(request).await {
            Ok(response) => Ok(response),
            Err(_) => {
                self.sender = None;
                self.attempt_in_time(request).await
            }
        }
    }

    /// Like [`Client::send`], but what fails is not tried again.
    pub async fn send_once(&mut self, request: &Request) -> Result<Response, String> {
        let outcome = self.attempt_in_time(request).await;
        if outcome.is_err() {
            self.sender = None;
        }
        outcome
    }

    async fn attempt_in_time(&mut self, request: &Request) -> Result<Response, String> {
        match tokio::time::timeout(PATIENCE, self.attempt(request)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.sender = None;
                Err(format!("no answer to {} {} within {PATIENCE:?}", request.method, request.path))
            }
        }
    }

    /// Sends a request and gives the body while it comes, for a watch.
    pub async fn stream(&mut self, request: &Request) -> Result<Incoming, String> {
        self.exchange(request).await.map(hyper::Response::into_body)
    }

    async fn attempt(&mut self, request: &Request) -> Result<Response, String> {
        let (parts, body) = self.exchange(request).await?.into_parts();
        let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
        Ok(Response { code: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Sends a request and gives the head of the answer as soon as it is there, with the body to come.
    pub async fn exchange(&mut self, request: &Request) -> Result<hyper::Response<Incoming>, String> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            self.sender = Some(self.connect().await?);
        }
        let sender = self.sender.as_mut().ok_or("no connection")?;
        let mut builder = hyper::Request::builder().method(request.method.as_str()).uri(request.path.as_str());
        builder = builder.header("Host", self.target.address.to_string());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let body = Full::from(request.body.clone().unwrap_or_default());
        let request = builder.body(body).map_err(|e| e.to_string())?;
        sender.ready().await.map_err(|e| e.to_string())?;
        sender.send_request(request).await.map_err(|e| e.to_string())
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = self.target.connect().await?;
        let (sender, connection) = Builder::new()
            .max_headers(MOST_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
