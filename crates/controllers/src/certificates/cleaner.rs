//! `certificatesigningrequest-cleaner-controller`: deletes requests that are over.

use super::is_issued;
use crate::context::Context;
use crate::controller::{Controller, Wiring};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::resources::CERTIFICATE_SIGNING_REQUESTS;
use client::{Cache, DeleteParams, Result};
use jiff::{SignedDuration, Timestamp};
use kinds::read::Read;
use object::Value;
use std::sync::Arc;
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::DecodePem;

/// How long a request stays after it was signed, denied or given up.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
/// How long it stays without a decision.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Deletes requests that are over; the keys are theirs.
pub struct Cleaner {
    context: Context,
    requests: Arc<Cache>,
}

impl Controller for Cleaner {
    const NAME: &'static str = "certificatesigningrequest-cleaner-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let requests = wiring.cache(&CERTIFICATE_SIGNING_REQUESTS);
        wiring.on_own(&requests);
        Cleaner { context: wiring.context().clone(), requests }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(object) = self.requests.get_key(key) else { return Ok(None) };
        let Some(end) = end(&object) else { return Ok(None) };
        let left = end.duration_since(self.context.now());
        if let Some(wait) = Duration::try_from(left).ok().filter(|wait| !wait.is_zero()) {
            return Ok(Some(wait));
        }
        let params = DeleteParams {
            uid: object.meta_str("uid").to_owned(),
            resource_version: object.meta_str("resourceVersion").to_owned(),
            ..DeleteParams::default()
        };
        match self.context.api(&CERTIFICATE_SIGNING_REQUESTS).delete("", object.name(), &params).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(None),
        }
    }
}

/// When a request is over: some time after it was decided, or with its certificate; nothing if somebody has still to act.
fn end(object: &Value) -> Option<Timestamp> {
    let after = |text: &str, time| text.parse::<Timestamp>().ok()?.checked_add(time).ok();
    let conditions = object.sub("status").list("conditions");
    let mut ends: Vec<Timestamp> = conditions
        .iter()
        .filter(|condition| match condition.str_at(&["type"]) {
            Some("Approved") => is_issued(object),
            Some("Denied" | "Failed") => true,
            _ => false,
        })
        .filter_map(|condition| after(condition.str_at(&["lastUpdateTime"])?, DECIDED))
        .collect();
    if conditions.is_empty() {
        ends.extend(after(object.meta_str("creationTimestamp"), PENDING));
    }
    ends.extend(expiry(object));
    ends.into_iter().min()
}

/// When the certificate of a request is over.
fn expiry(object: &Value) -> Option<Timestamp> {
    let pem = STANDARD.decode(object.str_at(&["status", "certificate"])?).ok()?;
    let end = Certificate::from_pem(pem).ok()?.tbs_certificate.validity.not_after.to_unix_duration();
    Timestamp::from_second(end.as_secs().try_into().ok()?).ok()
}
