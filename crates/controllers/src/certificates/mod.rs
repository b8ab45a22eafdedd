//! What becomes of CertificateSigningRequests: a kubelet's own are approved, approved ones are signed, old ones go.
//!
//! The rules are those of upstream's `pkg/controller/certificates`.

mod approver;
mod authority;
mod cleaner;
mod request;
mod signer;
mod signers;
#[cfg(test)]
mod tests;
mod usages;

pub(crate) use approver::Approver;
pub use authority::{Authority, AuthorityError};
pub(crate) use cleaner::Cleaner;
pub(crate) use signer::Signer;

use crate::pods;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::resources::CERTIFICATE_SIGNING_REQUESTS;
use client::{Patch, PatchParams, Result};
use kinds::read::Read;
use object::{Map, Value, map};

/// Whether a request has a condition of this type with the status `True`.
fn has(object: &Value, kind: &str) -> bool {
    pods::condition(object, kind).is_some_and(|condition| condition.text("status") == "True")
}

fn is_issued(object: &Value) -> bool {
    !object.sub("status").text("certificate").is_empty()
}

/// What a certificate is asked for.
fn usages(object: &Value) -> Vec<&str> {
    object.sub("spec").strings("usages")
}

/// A request in PEM form, as it is in the object.
fn request_of(object: &Value) -> std::result::Result<request::Request, String> {
    let pem = STANDARD.decode(object.sub("spec").text("request")).map_err(|e| e.to_string())?;
    request::Request::from_pem(&pem)
}

/// A condition that is true, and why.
fn condition(kind: &str, reason: &str, message: &str) -> Map {
    map! { "type" => kind, "status" => "True", "reason" => reason, "message" => message }
}

/// Writes into the status, by `status` or `approval`, unless the object has changed since it was read.
async fn write(context: &crate::Context, object: &Value, subresource: &str, status: Map) -> Result<()> {
    let version = map! { "resourceVersion" => object.meta_str("resourceVersion") };
    let patch = Patch::Merge(map! { "metadata" => version, "status" => status }.into());
    let params = PatchParams { subresource: subresource.to_owned(), ..PatchParams::default() };
    match context.api(&CERTIFICATE_SIGNING_REQUESTS).patch("", object.name(), &patch, &params).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The conditions that an object has, and one more.
fn conditions_and(object: &Value, added: Map) -> Vec<Value> {
    object.sub("status").list("conditions").iter().cloned().chain([Value::Object(added)]).collect()
}
