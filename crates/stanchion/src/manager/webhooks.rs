//! The webhooks: a server over HTTPS that answers the reviews of other API servers.

use super::bundle::Bundle;
use super::everybody;
use super::metrics::{health, said};
use super::registrar::Registrar;
use crate::cluster::Failure;
use apiserver::auth::UserInfo;
use apiserver::http::{Handler, Listener, Tls};
use bytes::Bytes;
use clap::Args as ClapArgs;
use client::Client;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use jiff::Timestamp;
use manager::admission::registration::{Endpoint, MUTATE_PATH, VALIDATE_PATH};
use manager::admission::review::{self, Step};
use manager::{Admission, Metrics};
use object::{Value, json};
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// The largest review, in bytes: it holds an object twice.
const MAX_REVIEW: usize = 8 * 1024 * 1024;
/// For how long a refusal of a service account is looked at again: another replica may just have written down for whom it
/// works. Then, and how often.
const SECOND_LOOK: Duration = Duration::from_millis(150);
const SECOND_LOOKS: usize = 6;

/// The flags about webhooks.
#[derive(Debug, ClapArgs)]
#[group(id = "webhooks")]
pub struct Args {
    /// Address and port on which the webhooks listen, with --webhook-service or --webhook-url
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443", env = "STANCHION_WEBHOOK_LISTEN")]
    webhook_listen: SocketAddr,

    /// Service by which the API server reaches the webhooks; its port is 443 if none is given
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]", value_parser = service, env = "STANCHION_WEBHOOK_SERVICE")]
    webhook_service: Option<Service>,

    /// URL by which the API server reaches the webhooks, such as https://10.0.0.7:9443
    #[arg(long, value_name = "URL", conflicts_with = "webhook_service", env = "STANCHION_WEBHOOK_URL")]
    webhook_url: Option<Uri>,

    /// Secret for the webhooks' certificate, which all replicas share [default: stanchion-manager-webhook in the service's
    /// namespace, or in capsule-system]
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret, env = "STANCHION_WEBHOOK_SECRET")]
    webhook_secret: Option<Place>,
}

/// A service and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    place: Place,
    port: u16,
}

/// An object of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

fn secret(text: &str) -> Result<Place, String> {
    let parts = text.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    let (namespace, name) = parts.ok_or("it has to be NAMESPACE/NAME")?;
    Ok(Place { namespace: namespace.to_owned(), name: name.to_owned() })
}

fn service(text: &str) -> Result<Service, String> {
    let (text, port) = match text.rsplit_once(':') {
        Some((text, port)) => (text, port.parse().map_err(|_| "the port has to be a number up to 65535")?),
        None => (text, 443),
    };
    Ok(Service { place: secret(text)?, port })
}

impl Args {
    /// Listens, if API servers are to ask this manager. It refuses to answer until the manager is open.
    pub async fn start(
        &self,
        client: &Client,
        admission: &Admission,
        metrics: &Metrics,
    ) -> Result<Option<Webhooks>, Failure> {
        let (endpoint, names, namespace) = match (&self.webhook_service, &self.webhook_url) {
            (Some(Service { place: Place { namespace, name }, port }), _) => {
                let names = ["svc", "svc.cluster.local"].map(|end| format!("{name}.{namespace}.{end}")).to_vec();
                let endpoint = Endpoint::Service { namespace: namespace.clone(), name: name.clone(), port: *port };
                (endpoint, names, namespace.clone())
            }
            (None, Some(url)) => {
                let host = url.host().filter(|_| url.scheme_str() == Some("https"));
                let host = host.ok_or("--webhook-url has to be https://HOST[:PORT]")?;
                let names = vec![host.trim_matches(['[', ']']).to_owned()];
                (Endpoint::Url(url.to_string()), names, "capsule-system".to_owned())
            }
            (None, None) => return Ok(None),
        };
        let secret = self.webhook_secret.clone();
        let secret = secret.unwrap_or_else(|| Place { namespace, name: "stanchion-manager-webhook".to_owned() });
        let served = Arc::new(Served::default());
        let registrar =
            Registrar::new(client, secret, endpoint, names, served.clone()).authenticating(admission.authenticates());
        registrar.certificate().await?;
        let listener = Listener::bind(self.webhook_listen, Some(Arc::new(Tls::new(tls(served)?))), everybody()).await;
        let listener = listener.map_err(|e| format!("--webhook-listen {}: {e}", self.webhook_listen))?;
        let (stop, stopped) = watch::channel(false);
        let handler = Arc::new(Reviewer { admission: admission.clone(), metrics: metrics.clone() });
        let server = tokio::spawn(listener.serve(handler, stopped, DRAIN));
        Ok(Some(Webhooks { registrar, _stop: stop, server }))
    }
}

/// Webhooks that listen.
pub struct Webhooks {
    registrar: Registrar,
    _stop: watch::Sender<bool>,
    server: JoinHandle<bool>,
}

/// Webhooks that are registered. They are served and their registrations kept until this is dropped.
pub struct Registered {
    tasks: [AbortHandle; 2],
    _stop: watch::Sender<bool>,
}

impl Webhooks {
    /// Sees to it that the API server asks this manager, whom it knows as `user`.
    pub fn register(self, client: &Client, user: &str) -> Registered {
        let kept = tokio::spawn(self.registrar.keep(client.clone(), user.to_owned()));
        Registered { tasks: [self.server.abort_handle(), kept.abort_handle()], _stop: self._stop }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// How long reviews that are in flight may take when the manager ends.
const DRAIN: Duration = Duration::from_secs(1);

/// The certificate that is served now. Connections keep what they began with.
#[derive(Debug, Default)]
pub struct Served(RwLock<Option<Arc<CertifiedKey>>>);

impl Served {
    /// Serves the certificate of a bundle from now on.
    pub fn set(&self, bundle: &Bundle) -> Result<(), Failure> {
        let chain = CertificateDer::pem_slice_iter(bundle.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(bundle.key.as_bytes())?;
        let certified = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())?;
        *self.0.write() = Some(Arc::new(certified));
        Ok(())
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

fn tls(served: Arc<Served>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(served);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Answers reviews.
struct Reviewer {
    admission: Admission,
    metrics: Metrics,
}

impl Handler for Reviewer {
    type Body = Full<Bytes>;

    async fn handle(self: &Arc<Self>, request: Request<Bytes>, _: UserInfo) -> Response<Full<Bytes>> {
        let step = match (request.method(), request.uri().path()) {
            (&Method::POST, MUTATE_PATH) => Step::Mutate,
            (&Method::POST, VALIDATE_PATH) => Step::Validate,
            (&Method::GET, path) => return health(&self.admission, path),
            _ => return said(StatusCode::NOT_FOUND, "404 page not found"),
        };
        let began = Instant::now();
        let response = self.respond(step, request.body()).await;
        let name = if step == Step::Mutate { "mutate" } else { "validate" };
        self.metrics.reviewed(name, response.status().as_u16(), began.elapsed());
        response
    }

    fn max_body(&self) -> usize {
        MAX_REVIEW
    }
}

impl Reviewer {
    async fn respond(&self, step: Step, body: &[u8]) -> Response<Full<Bytes>> {
        let review = match json::parse(body) {
            Ok(review) => review,
            Err(error) => return said(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        match self.answer(step, &review).await {
            Ok(answer) => {
                let mut response = Response::new(Full::from(json::to_vec(&answer)));
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Err(why) => said(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }

    async fn answer(&self, step: Step, asked: &Value) -> Result<Value, String> {
        let mut answer = review::answer(&self.admission, step, asked, Timestamp::now())?;
        if review::user(asked).starts_with("system:serviceaccount:") {
            for _ in 0..SECOND_LOOKS {
                if !review::is_refusal(&answer) {
                    break;
                }
                tokio::time::sleep(SECOND_LOOK).await;
                answer = review::answer(&self.admission, step, asked, Timestamp::now())?;
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_secrets_are_named_with_their_namespace() {
        let place = |namespace: &str, name: &str| Place { namespace: namespace.to_owned(), name: name.to_owned() };
        assert_eq!(service("a/b"), Ok(Service { place: place("a", "b"), port: 443 }));
        assert_eq!(service("a/b:8443"), Ok(Service { place: place("a", "b"), port: 8443 }));
        assert_eq!(secret("a/b"), Ok(place("a", "b")));
        for text in ["b", "/b", "a/", "a/b:x"] {
            assert!(service(text).is_err(), "{text}");
        }
    }
}
