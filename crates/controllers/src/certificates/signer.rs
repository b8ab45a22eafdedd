//! `certificatesigningrequest-signing-controller`: signs requests that are approved.

use super::{condition, conditions_and, has, is_issued, request_of, signers, usages, write};
use crate::context::Context;
use crate::controller::{Controller, Wiring};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::resources::CERTIFICATE_SIGNING_REQUESTS;
use client::{Cache, Result};
use object::{Value, map};
use signers::Verdict;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// How long a certificate is good for, unless less is asked for.
const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// The least time for which one is signed.
const LEAST: Duration = Duration::from_secs(10 * 60);

/// Signs approved requests; the keys are theirs.
pub struct Signer {
    context: Context,
    requests: Arc<Cache>,
}

impl Controller for Signer {
    const NAME: &'static str = "certificatesigningrequest-signing-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let requests = wiring.cache(&CERTIFICATE_SIGNING_REQUESTS);
        wiring.on_those(&requests, is_waiting);
        Signer { context: wiring.context().clone(), requests }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(object) = self.requests.get_key(key).filter(|object| is_waiting(object)) else { return Ok(None) };
        let Some(authority) = &self.context.settings().authority else { return Ok(None) };
        let name = object.name();
        let request = match request_of(&object) {
            Ok(request) => request,
            Err(error) => {
                warn!("unable to parse csr {name:?}: {error}");
                return Ok(None);
            }
        };
        let (usages, signer) = (usages(&object), object.str_at(&["spec", "signerName"]).unwrap_or_default());
        let status = match signers::verdict(signer, &request, &usages) {
            Verdict::Ignore => return Ok(None),
            Verdict::Refuse(why) => {
                let failed = condition("Failed", "SignerValidationFailure", &why);
                map! { "conditions" => conditions_and(&object, failed) }
            }
            Verdict::Sign => match authority.sign(&request, &usages, self.context.now(), life(&object)) {
                Ok(certificate) => map! { "certificate" => STANDARD.encode(certificate) },
                // The request does not change any more: to try again would not help.
                Err(error) => {
                    warn!("error auto signing csr {name:?}: {error}");
                    return Ok(None);
                }
            },
        };
        write(&self.context, &object, "status", status).await.map(|()| None)
    }
}

/// Whether a request is approved, and neither signed nor given up.
fn is_waiting(object: &Value) -> bool {
    has(object, "Approved") && !has(object, "Failed") && !is_issued(object)
}

/// For how long a certificate is asked for, within limits.
fn life(object: &Value) -> Duration {
    match object.at(&["spec", "expirationSeconds"]).and_then(Value::as_int) {
        None => LIFE,
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).clamp(LEAST, LIFE),
    }
}
