//! A program that is called at one URL with the server's own credentials, not as an object of the cluster says.

use super::WebhookClient;
use super::client::{Call, ClientConfig, Fault, Target};
use super::transport::Transport;
use bytes::Bytes;
use http::{HeaderValue, Uri};
use object::go;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where requests go, and over which TLS.
pub struct Endpoint {
    client: Arc<WebhookClient>,
    transport: Transport,
    config: ClientConfig,
    uri: Uri,
}

impl Endpoint {
    /// A URL that is reached with this client's side of TLS.
    ///
    /// # Errors
    ///
    /// If it is none, or not of https.
    pub fn new(client: Arc<WebhookClient>, url: &str, tls: Arc<rustls::ClientConfig>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|e| format!("parse {}: {e}", go::quote(url)))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("{} is no https URL", go::quote(url)));
        }
        let config = ClientConfig { target: Target::Url(url.to_owned()), bundle: String::new() };
        Ok(Endpoint { client, transport: Transport::new(tls), config, uri })
    }

    /// Posts JSON; gives the code of the answer. The header `Authorization` goes to the URL's own host only.
    ///
    /// # Errors
    ///
    /// There was no answer, in words for people.
    pub async fn post(
        &self,
        authorization: Option<&HeaderValue>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<u16, String> {
        let call = Call {
            transport: &self.transport,
            resolver: self.client.resolver(),
            deadline: Instant::now() + timeout,
            authorization: authorization.zip(self.uri.authority()),
        };
        let answer = call.post(&self.config, self.uri.clone(), body).await.map_err(|fault| match fault {
            Fault::Request(why) | Fault::Body(why) => why,
            Fault::Deadline => "context deadline exceeded".to_owned(),
        });
        answer
            .map(|answer| answer.status.as_u16())
            .map_err(|why| format!("Post {}: {why}", go::quote(&self.uri.to_string())))
    }
}
