//! Connections to webhooks: opened when they are needed, kept for the next call, per authority and `caBundle`.

use super::resolve::Resolver;
use super::tls;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How many connections to an authority are kept.
const IDLE: usize = 32;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// A host and a port.
    Host(String, u16),
    /// A service: namespace, name, port.
    Service(String, String, u16),
}

impl Peer {
    /// The name that the certificate has to have.
    fn name(&self) -> String {
        match self {
            Peer::Host(host, _) => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            Peer::Service(namespace, name, _) => format!("{name}.{namespace}.svc"),
        }
    }
}

/// The connections of one `caBundle`.
pub(super) struct Transport {
    tls: Arc<ClientConfig>,
    idle: Mutex<HashMap<Peer, Vec<Sender>>>,
}

type Sender = SendRequest<Full<Bytes>>;

impl Transport {
    pub fn new(tls: Arc<ClientConfig>) -> Self {
        Transport { tls, idle: Mutex::default() }
    }

    /// Sends a request and gives the answer's head; the error is Go's text. The connection is used again once the body
    /// was read; see [`Transport::keep`].
    pub async fn send(
        &self,
        peer: &Peer,
        resolver: &Resolver,
        request: &Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), String> {
        // A kept connection may have been closed by the other side meanwhile: such a one is no failure.
        while let Some(mut sender) = self.take(peer) {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request.clone()).await {
                Ok(response) => return Ok((response, sender)),
                Err(error) if error.message().is_some() || error.error().is_incomplete_message() => {}
                Err(error) => return Err(text(error.error())),
            }
        }
        let mut sender = self.connect(peer, resolver).await?;
        let response = sender.send_request(request.clone()).await.map_err(|e| text(&e))?;
        Ok((response, sender))
    }

    /// Keeps a connection for the next call.
    pub fn keep(&self, peer: &Peer, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock();
        let held = idle.entry(peer.clone()).or_default();
        if held.len() < IDLE {
            held.push(sender);
        }
    }

    fn take(&self, peer: &Peer) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let held = idle.get_mut(peer)?;
        while let Some(sender) = held.pop() {
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    async fn connect(&self, peer: &Peer, resolver: &Resolver) -> Result<Sender, String> {
        let stream = match peer {
            Peer::Host(host, port) => dial(host, *port).await?,
            Peer::Service(namespace, name, port) => {
                let (host, port) = resolver.resolve(namespace, name, *port).await?;
                dial(&host, port).await?
            }
        };
        let _ = stream.set_nodelay(true);
        let host = peer.name();
        let name = ServerName::try_from(host.clone()).map_err(|e| format!("x509: {e}"))?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(name, stream).await.map_err(|e| tls::failure(&e, &host))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|e| text(&e))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Connects to the first address of a host that answers. Where none does, an IPv4 address's failure is told first.
async fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let mut addresses: Vec<SocketAddr> = match found {
        Ok(found) => found.collect(),
        Err(_) => return Err(format!("dial tcp: lookup {bare}: no such host")),
    };
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                first.get_or_insert_with(|| format!("dial tcp {address}: {}", io_text("connect", &error)));
            }
        }
    }
    Err(first.unwrap_or_else(|| format!("dial tcp: lookup {bare}: no such host")))
}

/// A failed system call in Go's words.
pub(super) fn io_text(call: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset => "connection reset by peer",
        io::ErrorKind::HostUnreachable => "no route to host",
        io::ErrorKind::NetworkUnreachable => "network is unreachable",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::BrokenPipe => "broken pipe",
        _ => return format!("{call}: {error}"),
    };
    format!("{call}: {why}")
}

/// A failed exchange in Go's words.
pub(super) fn text(error: &hyper::Error) -> String {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
                _ => io_text("read", io),
            };
        }
        source = inner.source();
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return format!("net/http: HTTP/1.x transport connection broken: malformed HTTP response: {error}");
    }
    error.to_string()
}
