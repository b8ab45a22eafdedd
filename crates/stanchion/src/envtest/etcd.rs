//! What test environments ask of an etcd before they start a kube-apiserver: that it is healthy.

use super::Error;
use super::flags::Flags;
use crate::terminal::say;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The release of etcd that Kubernetes 1.33 comes with.
const VERSION: &str = "3.5.21";

/// Flags that the help names: test environments look there for `unsafe-no-fsync`.
const FLAGS: [&str; 6] =
    ["advertise-client-urls", "data-dir", "listen-client-urls", "listen-peer-urls", "name", "unsafe-no-fsync"];

/// Answers until SIGTERM or SIGINT. Flags that say nothing of where to listen are left alone.
pub fn run(words: &[String]) -> Result<(), Error> {
    let mut flags = Flags::read(words)?;
    if flags.has("help") || flags.has("h") {
        say!(
            "Stanchion, called by the name of etcd: it tells of its health and keeps no data. It takes these flags:\n"
        );
        FLAGS.iter().for_each(|name| say!("  --{name}"));
        return Ok(());
    }
    if flags.has("version") {
        say!("etcd Version: {VERSION}");
        return Ok(());
    }
    if let Some(folder) = flags.take("data-dir").map(PathBuf::from) {
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let urls = flags.take("listen-client-urls").unwrap_or_else(|| "http://localhost:2379".to_owned());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(&urls))
}

async fn serve(urls: &str) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    for url in urls.split(',') {
        let address = url.strip_prefix("http://").map(|u| u.trim_end_matches('/'));
        let address = address.ok_or_else(|| format!("--listen-client-urls: {url:?} is not an http:// URL"))?;
        let listener = TcpListener::bind(address).await.map_err(|e| format!("cannot listen on {address}: {e}"))?;
        // Older test environments wait for this line.
        eprintln!("serving insecure client requests on {}", listener.local_addr()?);
        tokio::spawn(accept(listener));
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

async fn accept(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (code, text) = match request.uri().path() {
        "/health" | "/health/" | "/livez" | "/readyz" => (200, r#"{"health":"true","reason":""}"#.to_owned()),
        "/version" => (200, format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"3.5.0"}}"#)),
        _ => (404, "this stands in for etcd and keeps no data; kube-apiserver keeps its own\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or_default();
    Ok(response)
}
