//! Secrets.

use super::configmap::{MAX_DATA, decoded_length, unchanged_if_immutable};
use crate::check::{self, Errors};
use crate::pem;
use crate::read::{Read, default_text};
use crate::resource::{Column, Resource, SelectableField, Strategy, Version};
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::field::{FieldError, Path};
use object::{Value, go, json};

pub(super) const SECRETS: Resource = Resource {
    columns: &[Column::NAME, Column::new("Type", "string"), Column::new("Data", "string"), Column::AGE],
    cells: |object, now| {
        let count = object.members("data").len() as i64;
        vec![object.name().into(), object.text("type").into(), Value::Int(count), table::age(object, now)]
    },
    selectable: &[SelectableField { name: "type", value: |object| object.text("type").to_owned() }],
    strategy: Strategy { validate, validate_update, warnings, ..Strategy::PLAIN },
    ..Resource::new(
        "",
        "Secret",
        "secrets",
        &[Version::stored("v1", "io.k8s.api.core.v1.Secret").with_default(default)],
    )
};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// `stringData` is a way to write `data`; it is not stored.
fn default(object: &mut Value) {
    default_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) = object.remove_at(&["stringData"]) {
        for (key, text) in texts {
            let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
            object.object_entry("data").insert(key, encoded);
        }
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let members = object.members("data");
    let data = Path::ROOT.child("data");
    let mut total = 0;
    for (key, value) in members.iter() {
        check::name(check::config_key, key, &data.key(key), &mut out);
        total += decoded_length(value);
    }
    if total > MAX_DATA {
        out.push(FieldError::too_long(&data, MAX_DATA as i64));
    }
    let mut need = |key: &str| {
        if !members.contains_key(key) {
            out.push(FieldError::required(&data.key(key), ""));
        }
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" if object.annotation(SERVICE_ACCOUNT_NAME).is_none_or(str::is_empty) => {
            let annotations = Path::ROOT.child("metadata").child("annotations").to_string();
            let path = Path::ROOT.child(&annotations);
            out.push(FieldError::required(&path.key(SERVICE_ACCOUNT_NAME), ""));
        }
        "kubernetes.io/dockercfg" => docker_config(object, ".dockercfg", &mut out),
        "kubernetes.io/dockerconfigjson" => docker_config(object, ".dockerconfigjson", &mut out),
        "kubernetes.io/basic-auth" if !members.contains_key("username") && !members.contains_key("password") => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth"
            if members.get("ssh-privatekey").and_then(Value::as_str).unwrap_or_default().is_empty() =>
        {
            out.push(FieldError::required(&data.key("ssh-privatekey"), ""));
        }
        "kubernetes.io/tls" => {
            need("tls.crt");
            need("tls.key");
        }
        _ => {}
    }
    out
}

/// Docker's configuration must be a JSON object; the error never shows it.
fn docker_config(object: &Value, key: &str, out: &mut Errors) {
    let data = Path::ROOT.child("data");
    let path = data.key(key);
    let Some(text) = object.members("data").get(key).and_then(Value::as_str) else {
        out.push(FieldError::required(&path, ""));
        return;
    };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let why = match json::parse(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let kind = go::json_kind(&other);
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
        Err(error) => error.to_string(),
    };
    out.push(FieldError::invalid(&path, "<secret contents redacted>", why));
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    check::immutable(new, old, "type", &Path::ROOT, &mut out);
    unchanged_if_immutable(new, old, &["data"], &mut out);
    out.extend(validate(new));
    out
}

/// A key pair that is none gets a warning, in the words of Go. (What is in the blocks is not looked at.)
fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    if object.text("type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let text = |key: &str| {
        let text = object.members("data").get(key).and_then(Value::as_str).unwrap_or_default();
        String::from_utf8_lossy(&STANDARD.decode(text).unwrap_or_default()).into_owned()
    };
    let why = wrong_certificate(&text("tls.crt")).or_else(|| wrong_key(&text("tls.key")));
    why.map(|why| format!("tls: {why}")).into_iter().collect()
}

/// Why a text is no certificate.
fn wrong_certificate(text: &str) -> Option<String> {
    let others: Vec<&str> = pem::blocks(text).map(|block| block.label).collect();
    match &others[..] {
        types if types.contains(&"CERTIFICATE") => None,
        [] => Some("failed to find any PEM data in certificate input".to_owned()),
        [only] if only.ends_with("PRIVATE KEY") => Some(
            "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have \
             been switched"
                .to_owned(),
        ),
        types => Some(format!(
            "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: [{}]",
            types.join(" ")
        )),
    }
}

/// Why a text is no private key.
fn wrong_key(text: &str) -> Option<String> {
    let others: Vec<&str> = pem::blocks(text).map(|block| block.label).collect();
    let is_key = |kind: &&str| *kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY");
    match &others[..] {
        types if types.iter().any(is_key) => None,
        [] => Some("failed to find any PEM data in key input".to_owned()),
        ["CERTIFICATE"] => Some("found a certificate rather than a key in the PEM for the private key".to_owned()),
        types => Some(format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the \
             following types: [{}]",
            types.join(" ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_pairs_that_are_none_are_told_of_in_gos_words() {
        const ALL: &str = "after skipping PEM blocks of the following types";
        let text = |types: &[&str]| -> String {
            types.iter().map(|kind| format!("-----BEGIN {kind}-----\nYQ==\n-----END {kind}-----\n")).collect()
        };
        for (certificate, key, wanted) in [
            (&["X", "CERTIFICATE"][..], &["EC PARAMETERS", "EC PRIVATE KEY"][..], None),
            (&[], &["PRIVATE KEY"], Some("tls: failed to find any PEM data in certificate input".to_owned())),
            (&["RSA PRIVATE KEY"], &["PRIVATE KEY"], Some("tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned())),
            (&["X", "Y"], &["PRIVATE KEY"], Some(format!("tls: failed to find \"CERTIFICATE\" PEM block in certificate input {ALL}: [X Y]"))),
            (&["CERTIFICATE"], &[], Some("tls: failed to find any PEM data in key input".to_owned())),
            (&["CERTIFICATE"], &["CERTIFICATE"], Some("tls: found a certificate rather than a key in the PEM for the private key".to_owned())),
            (&["CERTIFICATE"], &["X"], Some(format!("tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input {ALL}: [X]"))),
        ] {
            let (certificate, key) = (STANDARD.encode(text(certificate)), STANDARD.encode(text(key)));
            let secret = format!(r#"{{"data":{{"tls.crt":"{certificate}","tls.key":"{key}"}},"type":"kubernetes.io/tls"}}"#);
            let found = warnings(&json::parse(secret.as_bytes()).unwrap(), None);
            assert_eq!(found, wanted.into_iter().collect::<Vec<_>>());
        }
    }
}
