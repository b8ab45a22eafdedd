//! The listener: sockets, TLS, connections and their limits. It hands whole requests to a [`Handler`] and knows nothing
//! of what they mean.

mod compress;
mod finishing;
mod socket;
mod tls;
mod websocket;

pub use tls::{Tls, TlsError, TlsFiles, server_config};
pub(crate) use websocket::Messages;

use crate::audit::Peer;
use crate::auth::{Authenticator, Certified, UserInfo, user_of_certificate};
use bytes::{Bytes, BytesMut};
use finishing::Finishing;
use futures_util::FutureExt;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::{conn::auto, graceful::GracefulShutdown};
use object::Status;
use socket::Socket;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use websocket::Wish;

/// The largest request body, in bytes (upstream's limit).
pub const MAX_BODY: usize = 3 * 1024 * 1024;
/// Writes with longer bodies, in bytes, may take the processor for so long that they get a thread of their own: others
/// must not wait for them.
const LONG: usize = 128 * 1024;
/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for the head of its first or next request; longer than clients keep idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client that was turned away may still send.
const LINGER: Duration = Duration::from_secs(2);

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// The body of an answer: whole, or a stream for a watch.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send> + Send + 'static;

    /// Answers a request whose body has arrived in full.
    fn handle(
        self: &Arc<Self>,
        request: Request<Bytes>,
        user: UserInfo,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Told of a request that comes with a client certificate, and when that ends (seconds since 1970).
    fn certified(&self, end: i64) {
        let _ = end;
    }

    /// Told of a request whose credentials were refused.
    fn refused(&self, parts: &http::request::Parts) -> impl Future<Output = ()> + Send {
        let _ = parts;
        std::future::ready(())
    }

    /// The largest request body, in bytes.
    fn max_body(&self) -> usize {
        MAX_BODY
    }

    /// Whether requests are to carry an [`audit::Peer`](crate::audit::Peer).
    fn wants_peers(&self) -> bool {
        false
    }
}

/// A socket that listens, and how its connections are treated.
pub struct Listener {
    socket: TcpListener,
    tls: Option<Arc<Tls>>,
    authenticator: Arc<Authenticator>,
}

impl Listener {
    /// Binds `address`; port 0 takes a free one.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<Tls>>,
        authenticator: Authenticator,
    ) -> std::io::Result<Self> {
        Ok(Self::over(TcpListener::bind(address).await?, tls, authenticator))
    }

    /// Takes a socket that is bound already.
    pub fn over(socket: TcpListener, tls: Option<Arc<Tls>>, authenticator: Authenticator) -> Self {
        Listener { socket, tls, authenticator: Arc::new(authenticator) }
    }

    /// The address it really listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` becomes true; then no connection is accepted any more, clients are told to take another one,
    /// the requests there may be finished within `drain`, and all are closed. Gives whether all were finished.
    pub async fn serve<H: Handler>(self, handler: Arc<H>, mut stop: watch::Receiver<bool>, drain: Duration) -> bool {
        let graceful = GracefulShutdown::new();
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20))
            .max_concurrent_streams(250)
            .initial_stream_window_size(256 * 1024)
            .initial_connection_window_size(1024 * 1024);
        let builder = Arc::new(builder);
        loop {
            let (stream, peer) = tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors, most likely: others must close before this helps.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = stopped(&mut stop) => break,
            };
            let (acceptor, builder) = (self.tls.as_ref().map(|tls| tls.acceptor()), builder.clone());
            let (handler, authenticator) = (handler.clone(), self.authenticator.clone());
            let (watcher, mut stop) = (graceful.watcher(), stop.clone());
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let accepted = tokio::select! {
                    accepted = accept(stream, acceptor) => accepted,
                    // Who has not even shaken hands is not waited for.
                    () = stopped(&mut stop) => None,
                };
                drop(stop);
                let Some((io, certified)) = accepted else { return };
                let service = service_fn(move |mut request: Request<Incoming>| {
                    if handler.wants_peers() {
                        request.extensions_mut().insert(Peer(peer));
                    }
                    answer(handler.clone(), authenticator.clone(), certified.clone(), request)
                });
                let connection = match io {
                    Stream::Plain(io) => {
                        let connection = builder.serve_connection_with_upgrades(TokioIo::new(io), service).into_owned();
                        watcher.watch(connection).await
                    }
                    Stream::Tls(io) => {
                        let connection =
                            builder.serve_connection_with_upgrades(TokioIo::new(*io), service).into_owned();
                        watcher.watch(connection).await
                    }
                };
                if let Err(error) = connection {
                    tracing::debug!(error = &*error, "connection ended");
                }
            });
        }
        tokio::time::timeout(drain, graceful.shutdown()).await.is_ok()
    }
}

/// Ready when the server is to end.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that nobody can say it any more, which is as good.
    let _ = stop.wait_for(|stop| *stop).await;
}

enum Stream {
    Plain(Socket),
    Tls(Box<tokio_rustls::server::TlsStream<Socket>>),
}

/// Does the TLS handshake; gives the user of the client's certificate with the stream.
async fn accept(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Option<(Stream, Option<Arc<Certified>>)> {
    let Some(acceptor) = acceptor else { return Some((Stream::Plain(Socket(stream)), None)) };
    let handshake = async {
        let stream = refuse_plain(stream).await?;
        acceptor.accept(Socket(stream)).await
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates();
            let certified = chain.and_then(|c| c.first()).and_then(|c| user_of_certificate(c)).map(Arc::new);
            Some((Stream::Tls(Box::new(stream)), certified))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Tells a client that speaks HTTP without TLS what is wrong, in upstream's words, and gives back the stream of any other.
async fn refuse_plain(mut stream: TcpStream) -> std::io::Result<TcpStream> {
    let mut start = [0; 5];
    let count = stream.peek(&mut start).await?;
    if !matches!(start.get(..count), Some(b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO")) {
        return Ok(stream);
    }
    let text = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    linger(&mut stream).await;
    Err(std::io::Error::other("the client does not speak TLS"))
}

/// Reads what is still on its way for a moment: a socket closed with bytes unread takes the last answer with it.
async fn linger(stream: &mut TcpStream) {
    // On the heap, for else every connection had room for it.
    let mut rest = vec![0; 4096];
    let read = async { while let Ok(1..) = stream.read(&mut rest).await {} };
    let _ = tokio::time::timeout(LINGER, read).await;
}

type Answer<B> = Response<Either<B, Full<Bytes>>>;

async fn answer<H: Handler>(
    handler: Arc<H>,
    authenticator: Arc<Authenticator>,
    certified: Option<Arc<Certified>>,
    request: Request<Incoming>,
) -> Result<Answer<H::Body>, std::convert::Infallible> {
    let (mut parts, body) = request.into_parts();
    websocket::reveal_token(&mut parts.headers);
    // Over HTTP/2 the host is part of the address.
    if parts.version == http::Version::HTTP_11 && !parts.headers.contains_key(header::HOST) {
        return Ok(no_host());
    }
    if let Some(certified) = &certified {
        handler.certified(certified.end);
    }
    let certified = certified.as_deref().map(|certified| &certified.user);
    let Some(user) = authenticator.authenticate(certified, &parts.headers).await else {
        handler.refused(&parts).await;
        return Ok(refuse(Status::unauthorized()));
    };
    let body = match whole(body, handler.max_body()).await {
        Ok(body) => body,
        Err(status) => {
            let mut response = refuse(status);
            // What is left of the body is still in the connection: it must not be used for another request.
            if parts.version < http::Version::HTTP_2 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            return Ok(response);
        }
    };
    let compressible = compress::wanted(&parts.method, &parts.headers);
    let wish = Wish::of(&parts);
    let request = Request::from_parts(parts, body);
    let Some(mut response) = handle(handler, request, user).await else {
        return Ok(refuse(Status::internal("the server could not finish this request")));
    };
    if let Some(wish) = wish
        && let Some(messages) = response.extensions_mut().remove()
    {
        return Ok(wish.grant(response, messages).map(|head| Either::Right(Full::from(head))));
    }
    Ok(if compressible { compress::response(response).await } else { response.map(Either::Left) })
}

/// Has a request handled. A panic costs its own request only: nothing is given then.
async fn handle<H: Handler>(handler: Arc<H>, request: Request<Bytes>, user: UserInfo) -> Option<Response<H::Body>> {
    if request.method().is_safe() {
        return AssertUnwindSafe(handler.handle(request, user)).catch_unwind().await.ok();
    }
    let is_long = request.body().len() > LONG;
    let work = Finishing::new(async move { handler.handle(request, user).await });
    if is_long {
        let runtime = tokio::runtime::Handle::current();
        return tokio::task::spawn_blocking(move || runtime.block_on(work)).await.ok().flatten();
    }
    work.await
}

/// The whole body, within its limits of size and time.
async fn whole(mut body: Incoming, limit: usize) -> Result<Bytes, Status> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let end = Instant::now() + BODY_TIMEOUT;
    let mut fits = body.size_hint().lower() <= limit as u64;
    let mut collected = BytesMut::new();
    while fits {
        match tokio::time::timeout_at(end, body.frame()).await {
            Ok(None) => return Ok(collected.freeze()),
            Ok(Some(Ok(frame))) => {
                // Trailers say nothing that anybody here asks for.
                let Ok(data) = frame.into_data() else { continue };
                fits = collected.len() + data.len() <= limit;
                if fits {
                    collected.extend_from_slice(&data);
                }
            }
            Ok(Some(Err(error))) => {
                return Err(Status::bad_request(format!("the request body cannot be read: {error}")));
            }
            Err(_) => return Err(Status::timeout("the request body did not arrive in time")),
        }
    }
    // Clients that are still sending do not read; were the connection closed on them, they would lose the answer.
    tokio::spawn(tokio::time::timeout(LINGER, async move { while let Some(Ok(_)) = body.frame().await {} }));
    Err(Status::too_large(format!("limit is {limit}")))
}

/// 400 in the words of Go's library.
fn no_host<B>() -> Answer<B> {
    let text = Bytes::from_static(b"400 Bad Request: missing required Host header");
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn refuse<B>(status: Status) -> Answer<B> {
    let mut response = Response::new(Either::Right(Full::from(object::json::to_vec(&status.to_value()))));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
