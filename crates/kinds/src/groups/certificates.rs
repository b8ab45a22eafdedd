//! The resources of the group `certificates.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, object_mut};
use crate::resource::{
    CHANGE_VERBS, Column, Context, Generation, Resource, SelectableField, Strategy, Subresource, Version,
};
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["csr"],
    namespaced: false,
    subresources: &[
        Subresource::new("approval", "CertificateSigningRequest", CHANGE_VERBS),
        Subresource::status("CertificateSigningRequest"),
    ],
    columns: &[
        Column::NAME,
        Column::AGE,
        Column::new("SignerName", "string"),
        Column::new("Requestor", "string"),
        Column::new("RequestedDuration", "string"),
        Column::new("Condition", "string"),
    ],
    cells,
    selectable: &[SelectableField {
        name: "spec.signerName",
        value: |object| object.sub("spec").text("signerName").to_owned(),
    }],
    strategy: Strategy {
        generation: Generation::None,
        prepare_create,
        prepare_update: |object, old, _| object.set_at(&["spec"], old.sub("spec").clone()),
        prepare_status: crate::approval::prepare_status,
        validate,
        validate_update: |new, _| validate(new),
        validate_status: crate::approval::validate_status,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        &[Version::stored("v1", "io.k8s.api.certificates.v1.CertificateSigningRequest")],
    )
}];

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let is = |kind: &str| status.list("conditions").iter().any(|c| c.text("type") == kind);
    let mut state = vec![["Denied", "Approved"].into_iter().find(|kind| is(kind)).unwrap_or("Pending")];
    if is("Failed") {
        state.push("Failed");
    }
    if !status.text("certificate").is_empty() {
        state.push("Issued");
    }
    let duration = spec.opt_int("expirationSeconds").map_or("<none>".to_owned(), table::human);
    vec![
        object.name().into(),
        table::age(object, now),
        spec.text("signerName").into(),
        spec.text("username").into(),
        duration.into(),
        state.join(",").into(),
    ]
}

/// Who asks is said by the server, and conditions by those who may approve.
fn prepare_create(object: &mut Value, context: &Context<'_>) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        spec.remove_at(&[key]);
    }
    if let Some(user) = context.user {
        spec.set_at(&["username"], user.name.as_str().into());
        spec.set_at(&["uid"], user.uid.as_str().into());
        spec.set_at(&["groups"], user.groups.iter().map(String::as_str).collect::<Vec<_>>().into());
        if !user.extra.is_empty() {
            let extra: Map = user
                .extra
                .iter()
                .map(|(k, v)| (k.as_str(), Value::from(v.iter().map(String::as_str).collect::<Vec<_>>())))
                .collect();
            spec.set_at(&["extra"], extra.into());
        }
    }
    object.set_at(&["status"], Map::new().into());
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(crate) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    request(spec, &path.child("request"), &mut out);
    let usages = spec.strings("usages");
    let at = path.child("usages");
    if usages.is_empty() {
        out.push(FieldError::required(&at, ""));
    }
    for (i, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            out.push(FieldError::not_supported(&at.index(i), *usage, &USAGES));
        }
        if usages[..i].contains(usage) {
            out.push(FieldError::duplicate(&at.index(i), *usage));
        }
    }
    let signer = spec.text("signerName");
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        out.push(FieldError::invalid(&path.child("signerName"), signer, why));
    } else {
        signer_name(signer, &path.child("signerName"), &mut out);
    }
    if let Some(seconds) = spec.opt_int("expirationSeconds").filter(|s| *s < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        out.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    let status = Path::ROOT.child("status");
    let conditions = status.child("conditions");
    let list = object.sub("status").list("conditions");
    let is = |kind: &str| list.iter().any(|c| c.text("type") == kind);
    for (i, condition) in list.iter().enumerate() {
        let at = conditions.index(i);
        match condition.text("type") {
            "" => out.push(FieldError::required(&at.child("type"), "")),
            "Approved" if is("Denied") => {
                let why = "Approved and Denied conditions are mutually exclusive";
                out.push(FieldError::invalid(&at.child("type"), "Approved", why));
            }
            _ => {}
        }
        check::required_one_of(condition, "status", &["False", "True", "Unknown"], &at, &mut out);
    }
    out
}

/// The request must be a PEM block of a certificate request.
fn request(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let bytes = STANDARD.decode(spec.text("request")).unwrap_or_default();
    if !is_request(&String::from_utf8_lossy(&bytes)) {
        out.push(unfit_request(&bytes, path, "PEM block type must be CERTIFICATE REQUEST"));
    }
}

/// Whether the first block of a text in PEM form is a request. (What is in it is for others to read.)
fn is_request(text: &str) -> bool {
    const LABEL: &str = "CERTIFICATE REQUEST";
    let first = text.split_once("-----BEGIN ").and_then(|(_, rest)| rest.split_once("-----"));
    first.is_some_and(|(label, rest)| label == LABEL && rest.contains("-----END CERTIFICATE REQUEST-----"))
}

/// An error about the bytes of a request.
pub(crate) fn unfit_request(bytes: &[u8], path: &Path<'_>, why: impl Into<String>) -> FieldError {
    let shown = if bytes.is_empty() {
        "[]byte(nil)".to_owned()
    } else {
        let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:#x}")).collect();
        format!("[]byte{{{}}}", bytes.join(", "))
    };
    FieldError::invalid(path, Shown::raw(shown), why)
}

fn signer_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, rest] = parts.as_slice() else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        out.push(FieldError::invalid(path, name, why));
        return;
    };
    let complaints = names::dns1123_subdomain(domain);
    out.extend(
        complaints
            .into_iter()
            .map(|why| FieldError::invalid(path, *domain, format!("validating label {domain:?}: {why}"))),
    );
    if domain.split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        out.push(FieldError::invalid(path, *domain, why));
    }
    for why in names::dns1123_subdomain(rest) {
        out.push(FieldError::invalid(path, *rest, format!("validating label {rest:?}: {why}")));
    }
    if name.len() > 571 {
        out.push(FieldError::too_long(path, 571));
    }
}
