//! Requests of programs that run for long: one connection in HTTP/2 for all of them, made anew when it breaks.

use super::client::{Failure, tls};
use super::kubeconfig::Kubeconfig;
use bytes::Bytes;
use client::{BoxFuture, Error, Response, Transport};
use futures_util::StreamExt;
use http::{HeaderValue, Uri, header};
use http_body_util::{BodyStream, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

/// How often a quiet connection is asked whether it still is one, and how long the answer may take.
const ALIVE: Duration = Duration::from_secs(30);

/// A cluster of a kubeconfig, over TLS.
pub struct Connection {
    server: String,
    host: String,
    port: u16,
    base: String,
    tls: Arc<ClientConfig>,
    authorization: Option<HeaderValue>,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Connection {
    /// The cluster of a kubeconfig, which is not asked yet.
    pub fn new(config: &Kubeconfig) -> Result<Self, Failure> {
        let uri: Uri = config.server.parse().map_err(|e| format!("{}: {e}", config.server))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("{}: only https is possible", config.server).into());
        }
        let host = uri.host().ok_or("the server's URL has no host")?;
        let mut tls = tls(config)?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let authorization = match config.token.as_str() {
            "" => None,
            token => Some(HeaderValue::try_from(format!("Bearer {token}"))?),
        };
        Ok(Connection {
            server: config.server.clone(),
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(443),
            base: uri.path().trim_end_matches('/').to_owned(),
            tls: Arc::new(tls),
            authorization,
            sender: Mutex::default(),
        })
    }

    /// The connection; a new one where there is none, or it broke.
    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.as_ref().filter(|s| !s.is_closed()) {
            return Ok(sender.clone());
        }
        let made = tokio::time::timeout(ALIVE, self.connect()).await;
        let made = made.unwrap_or_else(|_| Err("it does not answer".into()));
        let sender = made.map_err(|e| Error::Transport(format!("cannot reach {}: {e}", self.server)))?;
        Ok(kept.insert(sender).clone())
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(hyper_util::rt::TokioTimer::new())
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn complete(&self, request: http::Request<Bytes>) -> Result<http::Request<Full<Bytes>>, Error> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let uri = format!("https://{host}:{}{}{path}", self.port, self.base);
        parts.uri = uri.parse().map_err(|e| Error::Transport(format!("{uri}: {e}")))?;
        if let Some(authorization) = &self.authorization {
            parts.headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        Ok(http::Request::from_parts(parts, Full::new(body)))
    }
}

impl Transport for Connection {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(async move {
            let mut sender = self.sender().await?;
            let failed = |e: hyper::Error| Error::Transport(format!("{}: {e}", self.server));
            sender.ready().await.map_err(failed)?;
            let response = sender.send_request(self.complete(request)?).await.map_err(failed)?;
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
