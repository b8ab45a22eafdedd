//! gRPC, as far as a client of etcd needs it: calls and one-way streams over HTTP/2, to one of several endpoints.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// How long a connection to one endpoint may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long to wait before a call is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How often a silent connection is asked whether it is alive, and how long it has to say so. etcd takes no more than one
/// such question in five seconds.
const ALIVE: Duration = Duration::from_secs(6);
/// How much an endpoint may send before it has to wait.
const WINDOW: u32 = 8 << 20;
/// The head of a message: whether it is compressed, and its length.
const HEAD: usize = 5;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Why a call was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Error {
    /// It was never sent.
    #[error("{0}")]
    Unsent(String),
    /// It was sent, and what became of it is not known.
    #[error("{0}")]
    Broken(String),
    /// It was refused.
    #[error("{message}")]
    Refused {
        /// gRPC's code.
        code: u32,
        /// What etcd says.
        message: String,
    },
}

/// gRPC's code for "not now".
const UNAVAILABLE: u32 = 14;
/// gRPC's code for "too much".
const RESOURCE_EXHAUSTED: u32 = 8;

impl Error {
    pub(crate) fn says(&self, text: &str) -> bool {
        matches!(self, Error::Refused { message, .. } if message.contains(text))
    }

    /// Whether the call surely did nothing, and may do better later.
    fn is_harmless(&self) -> bool {
        match self {
            Error::Unsent(_) => true,
            Error::Broken(_) => false,
            Error::Refused { .. } => self.says("no leader") || self.says("too many requests"),
        }
    }

    /// Whether the call may do better later, if it may be done twice.
    fn is_transient(&self) -> bool {
        match self {
            Error::Unsent(_) | Error::Broken(_) => true,
            Error::Refused { code, .. } => *code == UNAVAILABLE || self.is_harmless(),
        }
    }

    /// Whether something is too large for etcd.
    pub(crate) fn is_too_large(&self) -> bool {
        let is = |wanted| matches!(self, Error::Refused { code, .. } if *code == wanted);
        self.says("request is too large") || is(RESOURCE_EXHAUSTED) && self.says("larger than max")
    }

    /// Whether it is not known what the call did.
    pub(crate) fn is_uncertain(&self) -> bool {
        match self {
            Error::Unsent(_) => false,
            Error::Broken(_) => true,
            Error::Refused { code, .. } => *code == UNAVAILABLE && !self.is_harmless(),
        }
    }
}

/// Whether a call may be done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the second time nothing more.
    Freely,
    /// Only if the first time surely did nothing.
    IfUndone,
}

/// One connection at a time to one of several endpoints; when it breaks, the next one is asked.
pub(crate) struct Channel {
    /// `HOST:PORT`, at least one.
    endpoints: Vec<String>,
    tls: Option<TlsConnector>,
    connection: Mutex<Connection>,
}

#[derive(Default)]
struct Connection {
    sender: Option<SendRequest<Body>>,
    /// How many connections there were: the next one's endpoint, too.
    count: usize,
}

impl Channel {
    pub(crate) fn new(endpoints: Vec<String>, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        Channel { endpoints, tls: tls.map(TlsConnector::from), connection: Mutex::default() }
    }

    /// Calls a method for as long as `patience` allows.
    pub(crate) async fn call<Q: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &Q,
        patience: Duration,
        repeat: Repeat,
    ) -> Result<R, Error> {
        let deadline = Instant::now() + patience;
        let body = framed(request);
        loop {
            let error = match self.once(method, body.clone(), deadline).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = if repeat == Repeat::Freely { error.is_transient() } else { error.is_harmless() };
            if !again || Instant::now() + PAUSE >= deadline {
                return Err(error);
            }
            tracing::debug!(method, %error, "etcd is asked again");
            sleep(PAUSE).await;
        }
    }

    async fn once<R: Message + Default>(
        &self,
        method: &'static str,
        body: Bytes,
        deadline: Instant,
    ) -> Result<R, Error> {
        let (sender, number) = self.sender(deadline).await?;
        let body = Full::new(body).boxed_unsync();
        let late = |_| Err(Error::Broken("no answer in time".to_owned()));
        let calling = unary(sender, self.request(method, number, body)?);
        let outcome = timeout_at(deadline, calling).await.unwrap_or_else(late);
        if outcome.as_ref().is_err_and(Error::is_transient) {
            // Perhaps another endpoint does better.
            self.leave(number).await;
        }
        outcome
    }

    /// Sends one message and gives the stream of what comes back. The stream ends when it is dropped.
    pub(crate) async fn stream<Q: Message, R: Message + Default>(
        &self,
        method: &'static str,
        request: &Q,
        patience: Duration,
    ) -> Result<Messages<R>, Error> {
        let deadline = Instant::now() + patience;
        let (mut sender, number) = self.sender(deadline).await?;
        let first = Ok::<_, Infallible>(Frame::data(framed(request)));
        let body = StreamBody::new(stream::iter([first]).chain(stream::pending()));
        let mut request = self.request(method, number, BodyExt::boxed_unsync(body))?;
        // A member that has lost its leader ends the stream instead of being silent.
        request.headers_mut().insert("hasleader", HeaderValue::from_static("true"));
        let response = match timeout_at(deadline, sender.send_request(request)).await {
            Ok(response) => response.map_err(broken)?,
            Err(_) => {
                self.leave(number).await;
                return Err(Error::Broken("no answer in time".to_owned()));
            }
        };
        let (head, body) = response.into_parts();
        status(&head.headers)?;
        Ok(Messages { body, buffer: BytesMut::new(), message: PhantomData })
    }

    fn request(&self, method: &'static str, number: usize, body: Body) -> Result<Request<Body>, Error> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let request = Request::post(format!("{scheme}://{}{method}", self.endpoint(number)))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body);
        request.map_err(|error| Error::Unsent(error.to_string()))
    }

    fn endpoint(&self, number: usize) -> &str {
        self.endpoints.get(number % self.endpoints.len().max(1)).map_or("", String::as_str)
    }

    /// The connection, and its number.
    async fn sender(&self, deadline: Instant) -> Result<(SendRequest<Body>, usize), Error> {
        let late = |_| Error::Unsent("no connection in time".to_owned());
        let mut connection = timeout_at(deadline, self.connection.lock()).await.map_err(late)?;
        if let Some(sender) = connection.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((sender.clone(), connection.count));
        }
        connection.sender = None;
        connection.count += 1;
        let endpoint = self.endpoint(connection.count).to_owned();
        let connecting = timeout_at(deadline, timeout(CONNECT, connect(&endpoint, self.tls.as_ref())));
        let sender = match connecting.await {
            Ok(Ok(sender)) => sender.map_err(|error| Error::Unsent(format!("{endpoint}: {error}")))?,
            _ => return Err(Error::Unsent(format!("{endpoint}: no connection in time"))),
        };
        connection.sender = Some(sender.clone());
        Ok((sender, connection.count))
    }

    /// Gives a connection up that does not answer.
    async fn leave(&self, number: usize) {
        let mut connection = self.connection.lock().await;
        if connection.count == number {
            connection.sender = None;
        }
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

async fn connect(endpoint: &str, tls: Option<&TlsConnector>) -> Result<SendRequest<Body>, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let socket = TcpStream::connect(endpoint).await.map_err(|e| text(&e))?;
    socket.set_nodelay(true).map_err(|e| text(&e))?;
    let socket: Box<dyn Socket> = match tls {
        None => Box::new(socket),
        Some(tls) => {
            let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = rustls_pki_types::ServerName::try_from(host).map_err(|e| text(&e))?;
            Box::new(tls.connect(name, socket).await.map_err(|e| text(&e))?)
        }
    };
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(|e| text(&e))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to etcd broke");
        }
    });
    Ok(sender)
}

async fn unary<R: Message + Default>(mut sender: SendRequest<Body>, request: Request<Body>) -> Result<R, Error> {
    let response = sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
        Some(_) => Error::Unsent(error.error().to_string()),
        None => broken(error.into_error()),
    })?;
    let (head, body) = response.into_parts();
    status(&head.headers)?;
    let body = body.collect().await.map_err(broken)?;
    if let Some(trailers) = body.trailers() {
        status(trailers)?;
    }
    let mut bytes = BytesMut::from(body.to_bytes());
    let whole = "the answer ends too early";
    unframed(&mut bytes)?.ok_or_else(|| Error::Broken(whole.to_owned()))
}

fn broken(error: hyper::Error) -> Error {
    Error::Broken(error.to_string())
}

/// The messages of a stream.
pub(crate) struct Messages<R> {
    body: Incoming,
    buffer: BytesMut,
    message: PhantomData<fn() -> R>,
}

impl<R: Message + Default> Messages<R> {
    /// The next message. Dropping the future before it is ready loses nothing.
    pub(crate) async fn next(&mut self) -> Result<R, Error> {
        loop {
            if let Some(message) = unframed(&mut self.buffer)? {
                return Ok(message);
            }
            match self.body.frame().await {
                None => return Err(Error::Broken("the stream ended".to_owned())),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        if let Some(trailers) = frame.trailers_ref() {
                            status(trailers)?;
                        }
                    }
                },
            }
        }
    }
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(HEAD + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    out.extend_from_slice(&message.encode_to_vec());
    out.freeze()
}

/// Takes the first message out of a buffer, if it is there in full.
fn unframed<R: Message + Default>(buffer: &mut BytesMut) -> Result<Option<R>, Error> {
    let Some([_, length @ ..]) = buffer.first_chunk::<HEAD>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if buffer.len() - HEAD < length {
        return Ok(None);
    }
    buffer.advance(HEAD);
    let message = buffer.split_to(length).freeze();
    R::decode(message).map(Some).map_err(|error| Error::Broken(error.to_string()))
}

/// What headers or trailers say of how it went.
fn status(headers: &HeaderMap) -> Result<(), Error> {
    let text = |name: &str| headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    let code = text("grpc-status");
    if code.is_empty() || code == b"0" {
        return Ok(());
    }
    let code = std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()).unwrap_or(2);
    let message = percent_encoding::percent_decode(text("grpc-message")).decode_utf8_lossy().into_owned();
    Err(Error::Refused { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Header, HeaderOnly};

    #[test]
    fn messages_come_in_pieces() {
        let message = HeaderOnly { header: Some(Header { revision: 300 }) };
        let bytes = framed(&message);
        let mut buffer = BytesMut::new();
        for byte in &bytes[..bytes.len() - 1] {
            buffer.put_u8(*byte);
            assert_eq!(unframed::<HeaderOnly>(&mut buffer).unwrap(), None);
        }
        buffer.extend_from_slice(&bytes[bytes.len() - 1..]);
        buffer.extend_from_slice(&bytes);
        for _ in 0..2 {
            assert_eq!(unframed::<HeaderOnly>(&mut buffer).unwrap().as_ref(), Some(&message));
        }
        assert!(buffer.is_empty());
    }

    #[test]
    fn refusals_say_what_may_be_tried_again() {
        for (code, text, harmless, transient, uncertain) in [
            ("14", "etcdserver: no leader", true, true, false),
            ("14", "etcdserver: request timed out", false, true, true),
            ("8", "etcdserver: too many requests", true, true, false),
            ("11", "etcdserver: mvcc: required revision has been compacted", false, false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", HeaderValue::from_static(code));
            headers.insert("grpc-message", text.replace(' ', "%20").parse().unwrap());
            let error = status(&headers).unwrap_err();
            assert_eq!(error.to_string(), text);
            let kind = (error.is_harmless(), error.is_transient(), error.is_uncertain());
            assert_eq!(kind, (harmless, transient, uncertain), "{text}");
        }
        assert!(status(&HeaderMap::new()).is_ok());
    }
}
