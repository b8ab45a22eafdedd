//! `/metrics` and health of `stanchion manager`, over plain HTTP.

use super::everybody;
use crate::cluster::Failure;
use apiserver::auth::UserInfo;
use apiserver::http::{Handler, Listener};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use manager::{Admission, Metrics};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long answers may still take at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// Serves the measurements on an address until the sender that this gives is dropped.
pub async fn serve(
    address: SocketAddr,
    metrics: Metrics,
    admission: Admission,
) -> Result<watch::Sender<bool>, Failure> {
    let listener = Listener::bind(address, None, everybody()).await;
    let listener = listener.map_err(|e| format!("--metrics-listen {address}: {e}"))?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(listener.serve(Arc::new(Page { metrics, admission }), stopped, DRAIN));
    Ok(stop)
}

struct Page {
    metrics: Metrics,
    admission: Admission,
}

impl Handler for Page {
    type Body = Full<Bytes>;

    async fn handle(self: &Arc<Self>, request: Request<Bytes>, _: UserInfo) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/metrics") => {
                let mut text = String::new();
                apiserver::metrics::of_process(&mut text);
                self.metrics.write(&mut text);
                let mut response = Response::new(Full::from(text));
                let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, form);
                response
            }
            (&Method::GET, path) => health(&self.admission, path),
            _ => said(StatusCode::NOT_FOUND, "404 page not found"),
        }
    }
}

/// The pages that say whether this program lives, and whether it is ready.
pub fn health(admission: &Admission, path: &str) -> Response<Full<Bytes>> {
    match path {
        "/healthz" | "/livez" => said(StatusCode::OK, "ok"),
        "/readyz" if admission.is_ready() => said(StatusCode::OK, "ok"),
        "/readyz" => said(StatusCode::SERVICE_UNAVAILABLE, "the manager is starting"),
        _ => said(StatusCode::NOT_FOUND, "404 page not found"),
    }
}

/// A text as an answer.
pub fn said(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
}
