//! `certificatesigningrequest-approving-controller`: approves what kubelets ask for themselves, if roles say that they may.

use super::{condition, conditions_and, has, is_issued, request_of, signers, usages, write};
use crate::context::Context;
use crate::controller::{Controller, Wiring};
use client::resources::{CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS};
use client::{Cache, Result};
use object::{Value, map};
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

/// Approves requests of kubelets; the keys are theirs.
pub struct Approver {
    context: Context,
    requests: Arc<Cache>,
}

impl Controller for Approver {
    const NAME: &'static str = "certificatesigningrequest-approving-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let requests = wiring.cache(&CERTIFICATE_SIGNING_REQUESTS);
        wiring.on_those(&requests, is_open);
        Approver { context: wiring.context().clone(), requests }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(object) = self.requests.get_key(key).filter(|object| is_open(object)) else { return Ok(None) };
        let request = match request_of(&object) {
            Ok(request) => request,
            Err(error) => {
                warn!("unable to parse csr {:?}: {error}", object.name());
                return Ok(None);
            }
        };
        if signers::kubelet_client(&request, &usages(&object)).is_err() {
            return Ok(None);
        }
        let is_own = object.str_at(&["spec", "username"]) == Some(&request.subject.common_name);
        for (right, is_meant, message) in [
            ("selfnodeclient", is_own, "Auto approving self kubelet client certificate after SubjectAccessReview."),
            ("nodeclient", true, "Auto approving kubelet client certificate after SubjectAccessReview."),
        ] {
            if is_meant && self.may(&object, right).await? {
                let approved = condition("Approved", "AutoApproved", message);
                let status = map! { "conditions" => conditions_and(&object, approved) };
                return write(&self.context, &object, "approval", status).await.map(|()| None);
            }
        }
        debug!("recognized csr {:?} but subject access review was not approved", object.name());
        Ok(None)
    }
}

impl Approver {
    /// Whether who asks has the right to certificates of this sort.
    async fn may(&self, object: &Value, right: &str) -> Result<bool> {
        let asked = |key: &str| object.at(&["spec", key]).cloned().unwrap_or(Value::Null);
        let mut spec = map! {
            "resourceAttributes" => map! {
                "group" => "certificates.k8s.io",
                "resource" => "certificatesigningrequests",
                "subresource" => right,
                "verb" => "create",
                "version" => "*",
            },
        };
        for (key, from) in [("user", "username"), ("uid", "uid"), ("groups", "groups"), ("extra", "extra")] {
            spec.insert(key, asked(from));
        }
        let review = self.context.api(&SUBJECT_ACCESS_REVIEWS).create("", &map! { "spec" => spec }.into()).await?;
        Ok(review.at(&["status", "allowed"]).and_then(Value::as_bool) == Some(true))
    }
}

/// Whether a kubelet's request is neither decided nor signed.
fn is_open(object: &Value) -> bool {
    object.str_at(&["spec", "signerName"]) == Some(signers::KUBELET_CLIENT)
        && !is_issued(object)
        && !["Approved", "Denied"].iter().any(|kind| has(object, kind))
}
