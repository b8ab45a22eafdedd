//! CertificateApproval, CertificateSigning, CertificateSubjectRestriction: who may approve and sign which requests, and
//! whom nobody may ask to be.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use crate::auth::{MASTERS, Subject};
use crate::authorize::{Attributes, Decision};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::{Value, go};
use x509_parser::prelude::{FromDer, X509CertificationRequest};

/// The signer whose certificates are users of this server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Refuses a write of a request for a certificate.
pub(super) async fn check(asked: Asked<'_>, request: &Value) -> Outcome<()> {
    let Some(old) = asked.old else { return check_subject(asked, request) };
    let (verb, plugin) = match asked.subresource {
        "approval" => ("approve", Plugin::CertificateApproval),
        "status" => ("sign", Plugin::CertificateSigning),
        _ => return Ok(()),
    };
    let same = |key: &str| request.at(&["status", key]) == old.at(&["status", key]);
    if verb == "sign" && same("certificate") && same("conditions") || !asked.has(plugin) {
        return Ok(());
    }
    let signer = old.str_at(&["spec", "signerName"]).unwrap_or_default();
    if may(asked, verb, signer).await {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {}", go::quote(signer));
    Err(asked.forbid(request, &why))
}

/// Whether the user may do that for a signer, or for all of its domain.
async fn may(asked: Asked<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let attributes = Attributes {
            user: asked.user,
            verb,
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            subresource: "",
            name,
            namespace: "",
            path: "",
        };
        if matches!(asked.server.options.authorizer.authorize(attributes).await, Decision::Allow(_)) {
            return true;
        }
    }
    false
}

/// Nobody becomes an administrator by a certificate.
fn check_subject(asked: Asked<'_>, request: &Value) -> Outcome<()> {
    let signer = request.str_at(&["spec", "signerName"]).unwrap_or_default();
    if signer != CLIENT_SIGNER || !asked.creates() || !asked.has(Plugin::CertificateSubjectRestriction) {
        return Ok(());
    }
    let text = STANDARD.decode(request.str_at(&["spec", "request"]).unwrap_or_default()).unwrap_or_default();
    match organizations(&text) {
        None => Err(asked.forbid(request, "failed to parse CSR: the request cannot be read")),
        Some(all) if all.iter().any(|o| o == MASTERS) => {
            let why = format!("use of {signer} signer with {MASTERS} group is not allowed");
            Err(asked.forbid(request, &why))
        }
        Some(_) => Ok(()),
    }
}

/// The organizations of the subject of a certificate request in PEM form; nothing if it cannot be read.
fn organizations(pem: &[u8]) -> Option<Vec<String>> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    Subject::of(&request.certification_request_info.subject).map(|subject| subject.organizations)
}
