//! The resources of the group `certificates.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, object_mut};
use crate::resource::{
    CHANGE_VERBS, Column, Context, Generation, MetadataChecks, Resource, SelectableField, Strategy, Subresource,
    Version,
};
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};
use std::collections::HashSet;

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
        name: names::path_segment,
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        generation: Generation::None,
        prepare_create,
        // What a request asks for is owned by nobody: an update leaves it as it was.
        reset: &[&["spec"], &["status"]],
        drops_on_create: false,
        prepare_status: crate::approval::prepare_status,
        validate: |object| validate(object, None),
        validate_update: |new, old| validate(new, Some(old)),
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

/// The signer of requests of early versions, which named none.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

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

/// Checks a request as a whole. An update, which knows the old object, may leave what is wrong with that as it is.
pub(crate) fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    request(spec, &path.child("request"), &mut out);
    let usages = spec.strings("usages");
    let at = path.child("usages");
    if usages.is_empty() {
        out.push(FieldError::required(&at, ""));
    }
    let before = old.map(|old| old.sub("spec").strings("usages")).unwrap_or_default();
    if before.iter().all(|usage| USAGES.contains(usage)) {
        for (i, usage) in usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage)) {
            out.push(FieldError::not_supported(&at.index(i), *usage, &USAGES));
        }
    }
    if repeated(&before).is_empty() {
        out.extend(repeated(&usages).into_iter().map(|i| FieldError::duplicate(&at.index(i), usages[i])));
    }
    let signer = spec.text("signerName");
    let at = path.child("signerName");
    let legacy = |object: &Value| object.sub("spec").text("signerName") == LEGACY_SIGNER;
    if legacy(object) && !old.is_some_and(legacy) {
        let why = "the legacy signerName is not allowed via this API version";
        out.push(FieldError::invalid(&at, signer, why));
    } else {
        signer_name(signer, &at, &mut out);
    }
    if let Some(seconds) = spec.opt_int("expirationSeconds").filter(|s| *s < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        out.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    conditions(object, old, &mut out);
    out
}

/// Which items of a list have been there before.
fn repeated(list: &[&str]) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..list.len()).filter(|i| !seen.insert(list[*i])).collect()
}

fn types(object: &Value) -> Vec<&str> {
    object.sub("status").list("conditions").iter().map(|c| c.text("type")).collect()
}

/// The conditions: each type once, those about approval and failure only as true, and not approved and denied at once.
fn conditions(object: &Value, old: Option<&Value>, out: &mut Errors) {
    let status = Path::ROOT.child("status");
    let path = status.child("conditions");
    let kinds = types(object);
    let before = old.map(types).unwrap_or_default();
    let decided_twice = before.contains(&"Approved") && before.contains(&"Denied");
    let again = if repeated(&before).is_empty() { repeated(&kinds) } else { Vec::new() };
    let mut again = again.into_iter().peekable();
    let (mut approved, mut denied) = (false, false);
    for (i, condition) in object.sub("status").list("conditions").iter().enumerate() {
        let (at, kind) = (path.index(i), kinds[i]);
        if kind.is_empty() && !before.contains(&"") {
            out.push(FieldError::required(&at.child("type"), ""));
        }
        let states: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        check::required_one_of(condition, "status", states, &at, out);
        approved |= kind == "Approved";
        denied |= kind == "Denied";
        if approved && denied && matches!(kind, "Approved" | "Denied") && !decided_twice {
            let why = "Approved and Denied conditions are mutually exclusive";
            out.push(FieldError::invalid(&at.child("type"), kind, why));
        }
        if again.next_if_eq(&i).is_some() {
            out.push(FieldError::duplicate(&at.child("type"), kind));
        }
    }
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
    let shown = if bytes.is_empty() { "[]byte(nil)".to_owned() } else { go::bytes(bytes) };
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
    if domain.len() > 253 {
        out.push(FieldError::too_long(path, 253));
    }
    labels(domain, names::dns1123_label, path, out);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        out.push(FieldError::invalid(path, *domain, why));
    }
    labels(rest, names::dns1123_subdomain, path, out);
    if name.len() > 571 {
        out.push(FieldError::too_long(path, 571));
    }
}

/// The parts between dots; what is wrong with the first odd one is said, and nothing of the others.
fn labels(segment: &str, check: names::NameCheck, path: &Path<'_>, out: &mut Errors) {
    let odd = segment.split('.').map(|label| (label, check(label))).find(|(_, complaints)| !complaints.is_empty());
    if let Some((label, complaints)) = odd {
        let said = |why| format!("validating label {}: {why}", go::quote(label));
        out.extend(complaints.into_iter().map(|why| FieldError::invalid(path, segment, said(why))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    /// What is wrong beside the request itself.
    fn complaints(object: &Value, old: Option<&Value>) -> Vec<String> {
        let all = validate(object, old);
        all.iter().map(ToString::to_string).filter(|text| !text.starts_with("spec.request")).collect()
    }

    #[test]
    fn signers_are_named_by_a_domain_and_a_path() {
        let label = |label: &str| names::dns1123_label(label).remove(0);
        let subdomain = |label: &str| names::dns1123_subdomain(label).remove(0);
        let long = format!("{}a.io/x", "a.".repeat(150));
        let path = format!("a.io/{}", "a.".repeat(300).trim_end_matches('.'));
        for (name, expected) in [
            ("a.io/b", vec![]),
            ("a.io/b.c", vec![]),
            ("", vec!["spec.signerName: Required value".to_owned()]),
            (
                "a.io/b/c",
                vec![
                    "spec.signerName: Invalid value: \"a.io/b/c\": must be a fully qualified domain and path of the form 'example.com/signer-name'"
                        .to_owned(),
                ],
            ),
            (
                "io/b",
                vec![
                    "spec.signerName: Invalid value: \"io\": should be a domain with at least two segments separated by dots"
                        .to_owned(),
                ],
            ),
            (
                "a.B.C/D",
                vec![
                    format!("spec.signerName: Invalid value: \"a.B.C\": validating label \"B\": {}", label("B")),
                    format!("spec.signerName: Invalid value: \"D\": validating label \"D\": {}", subdomain("D")),
                ],
            ),
            (
                "a.io/b..c",
                vec![format!("spec.signerName: Invalid value: \"b..c\": validating label \"\": {}", subdomain(""))],
            ),
            (&long, vec!["spec.signerName: Too long: may not be more than 253 bytes".to_owned()]),
            (&path, vec!["spec.signerName: Too long: may not be more than 571 bytes".to_owned()]),
        ] {
            let object = value(&format!(r#"{{"spec":{{"signerName":"{name}","usages":["any"]}}}}"#));
            assert_eq!(complaints(&object, None), expected, "{name}");
        }
    }

    #[test]
    fn conditions_are_once_of_each_type_and_decide_one_way() {
        const APPROVED: &str = r#"{"type":"Approved","status":"True"}"#;
        const DENIED: &str = r#"{"type":"Denied","status":"True"}"#;
        const OTHER: &str = r#"{"type":"x","status":"Unknown"}"#;
        let with = |list: &[&str]| {
            let list = list.join(",");
            let text =
                format!(r#"{{"spec":{{"signerName":"a.b/c","usages":["any"]}},"status":{{"conditions":[{list}]}}}}"#);
            value(&text)
        };
        for (old, new, expected) in [
            (vec![], vec![APPROVED, OTHER], vec![]),
            (
                vec![APPROVED],
                vec![APPROVED, DENIED],
                vec![
                    "status.conditions[1].type: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
                ],
            ),
            (vec![APPROVED, DENIED], vec![DENIED, APPROVED], vec![]),
            (vec![], vec![OTHER, OTHER], vec!["status.conditions[1].type: Duplicate value: \"x\""]),
            (vec![OTHER, OTHER], vec![OTHER, OTHER], vec![]),
            (vec![], vec![r#"{"status":"True"}"#], vec!["status.conditions[0].type: Required value"]),
            (vec![r#"{"status":"True"}"#], vec![r#"{"status":"True"}"#], vec![]),
            (vec![], vec![r#"{"type":"x"}"#], vec!["status.conditions[0].status: Required value"]),
            (
                vec![],
                vec![r#"{"type":"Failed","status":"False"}"#],
                vec![r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#],
            ),
        ] {
            assert_eq!(complaints(&with(&new), Some(&with(&old))), expected, "{new:?}");
        }
    }

    #[test]
    fn updates_may_leave_what_was_odd() {
        let odd = value(
            r#"{"spec":{"signerName":"kubernetes.io/legacy-unknown","usages":["fly","fly"],"expirationSeconds":599}}"#,
        );
        let all = complaints(&odd, None);
        let texts = [
            "spec.usages[0]: Unsupported value: \"fly\"",
            "spec.usages[1]: Unsupported value: \"fly\"",
            "spec.usages[1]: Duplicate value: \"fly\"",
            "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed",
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
        ];
        assert_eq!(all.len(), texts.len());
        assert!(all.iter().zip(texts).all(|(found, text)| found.starts_with(text)), "{all:?}");
        assert_eq!(complaints(&odd, Some(&odd)).len(), 1);
    }
}
