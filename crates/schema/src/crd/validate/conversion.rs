//! How objects are converted between versions.

use super::{flag, list, names, text};
use object::field::{FieldError, Path, Shown};
use object::names::dns1035_label;
use object::webhook::{check_service, check_url};
use object::{Value, go};

pub(super) fn validate(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").filter(|c| !c.is_null()) else { return };
    let old_conversion = old.and_then(|old| old.at(&["spec", "conversion"]));
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(&path.child("strategy"), other, &["None", "Webhook"])),
    }
    if flag(spec, "preserveUnknownFields") && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), strategy, detail));
    }
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    let client = webhook.get("clientConfig");
    let reviews = list(webhook, "conversionReviewVersions");
    if strategy == "Webhook" {
        let old_bundle = old.filter(|old| names::is_established(old)).and(old_conversion).map(bundle);
        let check_bundle = old_bundle.is_some_and(|bundle| bundle_error(bundle).is_none());
        client_config(client, check_bundle, &path.child("webhookClientConfig"), errors);
        let known = old_conversion.is_none_or(|old| {
            let old = old.get("webhook").map(|w| list(w, "conversionReviewVersions")).unwrap_or_default();
            old.is_empty() || old.iter().any(is_known_review)
        });
        review_versions(reviews, known, &path.child("conversionReviewVersions"), errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(&path.child("webhookClientConfig"), detail));
    }
    if !reviews.is_empty() {
        errors.push(FieldError::forbidden(&path.child("conversionReviewVersions"), detail));
    }
}

fn client_config(client: Option<&Value>, check_bundle: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(client) = client else {
        return errors.push(FieldError::required(path, "required when strategy is set to Webhook"));
    };
    let (url, service) = (client.get("url"), client.get("service"));
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => check_url(url.as_str().unwrap_or_default(), &path.child("url"), errors),
        (None, Some(service)) => check_service(service, &path.child("service"), errors),
    }
    if check_bundle {
        let bundle = text(client, "caBundle");
        if let Some(error) = bundle_error(bundle) {
            errors.push(FieldError::invalid(&path.child("caBundle"), bytes_shown(bundle), error));
        }
    }
}

fn review_versions(versions: &[Value], known: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        if seen.contains(&version) {
            errors.push(FieldError::invalid(&path.index(i), version, "duplicate version"));
            continue;
        }
        let complaints = dns1035_label(version);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(&path.index(i), version, complaints.join(",")));
        }
        if seen.len() < 64 {
            seen.push(version);
        }
    }
    if known && !versions.iter().any(is_known_review) {
        let names: Vec<String> = versions.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        errors.push(FieldError::invalid(path, &names[..], "must include at least one of v1, v1beta1"));
    }
}

fn is_known_review(version: &Value) -> bool {
    matches!(version.as_str(), Some("v1" | "v1beta1"))
}

fn bundle(conversion: &Value) -> &str {
    conversion.at(&["webhook", "clientConfig", "caBundle"]).and_then(Value::as_str).unwrap_or_default()
}

/// Why a bundle of certificates (PEM in Base64) cannot be used. An empty one can.
pub(crate) fn bundle_error(bundle: &str) -> Option<&'static str> {
    use base64::Engine;
    if bundle.is_empty() {
        return None;
    }
    let pem = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let pem = String::from_utf8_lossy(&pem).into_owned();
    let mut rest = pem.as_str();
    while let Some((_, after)) = rest.split_once("-----BEGIN CERTIFICATE-----") {
        let Some((body, tail)) = after.split_once("-----END CERTIFICATE-----") else { break };
        let body: String = body.split_whitespace().collect();
        match base64::engine::general_purpose::STANDARD.decode(body) {
            // A certificate is a DER sequence.
            Ok(der) if der.first() == Some(&0x30) => return None,
            _ => rest = tail,
        }
    }
    Some("unable to load root certificates: unable to parse bytes as PEM block")
}

fn bytes_shown(bundle: &str) -> Shown {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    Shown::raw(go::bytes(&bytes))
}
