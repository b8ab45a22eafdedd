//! Requests of programs that run for long: one connection in HTTP/2 for all of them, made anew when it breaks.

use super::client::Failure;
use super::credentials::{Credentials, Proof};
use super::kubeconfig::Kubeconfig;
use super::tls;
use bytes::Bytes;
use client::{BoxFuture, Error, Response, Transport};
use futures_util::StreamExt;
use http::{StatusCode, Uri, header};
use http_body_util::{BodyStream, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

/// How often a quiet connection is asked whether it still is one, and how long the answer may take.
const ALIVE: Duration = Duration::from_secs(30);

/// A cluster of a kubeconfig, over TLS.
pub struct Connection {
    config: Kubeconfig,
    credentials: Credentials,
    host: String,
    port: u16,
    base: String,
    kept: Mutex<Option<Kept>>,
}

/// A connection, and as whom it was made.
struct Kept {
    sender: SendRequest<Full<Bytes>>,
    proof: Arc<Proof>,
}

impl Connection {
    /// The cluster of a kubeconfig, which is not asked yet.
    pub fn new(config: &Kubeconfig) -> Result<Self, Failure> {
        let uri: Uri = config.server.parse().map_err(|e| format!("{}: {e}", config.server))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("{}: only https is possible", config.server).into());
        }
        let host = uri.host().ok_or("the server's URL has no host")?;
        if config.exec.is_none() {
            // What is wrong with certificates is told before anybody waits.
            tls::tls(config)?;
        }
        Ok(Connection {
            config: config.clone(),
            credentials: Credentials::new(config)?,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(443),
            base: uri.path().trim_end_matches('/').to_owned(),
            kept: Mutex::default(),
        })
    }

    /// The connection; a new one where there is none, it broke, or we have another certificate by now.
    async fn sender(&self, proof: &Arc<Proof>) -> Result<SendRequest<Full<Bytes>>, Error> {
        let mut kept = self.kept.lock().await;
        let is_ours = |kept: &Kept| kept.proof.certificate == proof.certificate && kept.proof.key == proof.key;
        if let Some(kept) = kept.as_ref().filter(|kept| !kept.sender.is_closed() && is_ours(kept)) {
            return Ok(kept.sender.clone());
        }
        let made = tokio::time::timeout(ALIVE, self.connect(proof)).await;
        let made = made.unwrap_or_else(|_| Err("it does not answer".into()));
        let sender = made.map_err(|e| self.failed(&e))?;
        Ok(kept.insert(Kept { sender, proof: proof.clone() }).sender.clone())
    }

    fn failed(&self, error: &impl std::fmt::Display) -> Error {
        Error::Transport(format!("cannot reach {}: {error}", self.config.server))
    }

    async fn connect(&self, proof: &Proof) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let mut config = tls::client_config(&self.config, proof)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let name = tls::server_name(&self.config, &self.host)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(hyper_util::rt::TokioTimer::new())
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn complete(&self, request: http::Request<Bytes>, proof: &Proof) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let uri = format!("https://{host}:{}{}{path}", self.port, self.base);
        parts.uri = uri.parse().map_err(|e| Error::Transport(format!("{uri}: {e}")))?;
        if let Some(authorization) = &proof.authorization {
            parts.headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }
}

impl Connection {
    async fn attempt(
        &self,
        request: http::Request<Bytes>,
        proof: &Arc<Proof>,
    ) -> Result<http::Response<Incoming>, Error> {
        let mut sender = self.sender(proof).await?;
        let failed = |e: hyper::Error| Error::Transport(format!("{}: {e}", self.config.server));
        sender.ready().await.map_err(failed)?;
        sender.send_request(self.complete(request, proof)?).await.map_err(failed)
    }
}

impl Transport for Connection {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(async move {
            let proof = self.credentials.proof().await.map_err(|e| self.failed(&e))?;
            let mut response = self.attempt(request.clone(), &proof).await?;
            // What the server does not accept any more is renewed once.
            if response.status() == StatusCode::UNAUTHORIZED && self.credentials.refused(&proof).await {
                let proof = self.credentials.proof().await.map_err(|e| self.failed(&e))?;
                response = self.attempt(request, &proof).await?;
            }
            Ok(response.map(|body| -> client::Body {
                Box::pin(BodyStream::new(body).filter_map(|frame| async {
                    match frame {
                        Ok(frame) => frame.into_data().ok().map(Ok),
                        Err(e) => Some(Err(Error::Transport(e.to_string()))),
                    }
                }))
            }))
        })
    }
}
