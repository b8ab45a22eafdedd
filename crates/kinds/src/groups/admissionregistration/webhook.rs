//! Configurations of mutating and validating webhooks.

use super::matching;
use crate::check::{self, Errors};
use crate::read::{Read, default_to, list_mut, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};

const GROUP: &str = "admissionregistration.k8s.io";

const STRATEGY: Strategy = Strategy {
    generation: Generation::Counts(&[&["webhooks"]]),
    unconditional_update: false,
    validate,
    validate_update: |new, _| validate(new),
    ..Strategy::PLAIN
};

pub(super) const MUTATING: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: COLUMNS,
    cells,
    strategy: STRATEGY,
    ..Resource::new(
        GROUP,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration")
            .with_default(|object| default(object, true))],
    )
};

pub(super) const VALIDATING: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: COLUMNS,
    cells,
    strategy: STRATEGY,
    ..Resource::new(
        GROUP,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration")
            .with_default(|object| default(object, false))],
    )
};

const COLUMNS: &[Column] = &[Column::NAME, Column::new("Webhooks", "integer"), Column::AGE];

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), Value::Int(object.list("webhooks").len() as i64), table::age(object, now)]
}

fn default(object: &mut Value, mutating: bool) {
    for webhook in list_mut(object, "webhooks") {
        default_to(webhook, "failurePolicy", "Fail");
        default_to(webhook, "matchPolicy", "Equivalent");
        default_to(webhook, "namespaceSelector", Map::new());
        default_to(webhook, "objectSelector", Map::new());
        default_to(webhook, "timeoutSeconds", 10);
        if mutating {
            default_to(webhook, "reinvocationPolicy", "Never");
        }
        if let Some(service) = object_mut(webhook, &["clientConfig", "service"]) {
            default_to(service, "port", 443);
        }
        matching::default_rules(webhook, "rules");
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let list = Path::ROOT.child("webhooks");
    let mut seen: Vec<&str> = Vec::new();
    for (i, value) in object.list("webhooks").iter().enumerate() {
        let at = list.index(i);
        webhook(value, &at, &mut out);
        let name = value.text("name");
        if !name.is_empty() {
            if seen.contains(&name) {
                out.push(FieldError::duplicate(&at.child("name"), name));
            }
            seen.push(name);
        }
    }
    out
}

fn webhook(webhook: &Value, path: &Path<'_>, out: &mut Errors) {
    fully_qualified(webhook.text("name"), &path.child("name"), out);
    for key in ["namespaceSelector", "objectSelector"] {
        check::label_selector(webhook.sub(key), &path.child(key), out);
    }
    let rules = path.child("rules");
    for (i, rule) in webhook.list("rules").iter().enumerate() {
        matching::rule(rule, &rules.index(i), out);
    }
    if webhook.has("failurePolicy") {
        check::one_of(webhook, "failurePolicy", &["Fail", "Ignore"], path, out);
    }
    if webhook.has("matchPolicy") {
        check::one_of(webhook, "matchPolicy", &["Equivalent", "Exact"], path, out);
    }
    if webhook.has("reinvocationPolicy") {
        check::one_of(webhook, "reinvocationPolicy", &["IfNeeded", "Never"], path, out);
    }
    if webhook.has("sideEffects") {
        check::one_of(webhook, "sideEffects", &["None", "NoneOnDryRun"], path, out);
    } else {
        out.push(FieldError::required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    if let Some(seconds) = webhook.opt_int("timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        out.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    review_versions(&webhook.strings("admissionReviewVersions"), &path.child("admissionReviewVersions"), out);
    client_config(webhook.sub("clientConfig"), &path.child("clientConfig"), out);
    matching::match_conditions(webhook.list("matchConditions"), &path.child("matchConditions"), out);
}

fn fully_qualified(name: &str, path: &Path<'_>, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    let complaints = names::dns1123_subdomain(name);
    if !complaints.is_empty() {
        out.extend(complaints.into_iter().map(|why| FieldError::invalid(path, name, why)));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        out.push(FieldError::invalid(path, name, why));
    }
}

fn review_versions(versions: &[&str], path: &Path<'_>, out: &mut Errors) {
    if versions.is_empty() {
        out.push(FieldError::required(path, "must specify one of v1, v1beta1"));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let at = path.index(i);
        if versions[..i].contains(version) {
            out.push(FieldError::invalid(&at, *version, "duplicate version"));
        } else {
            check::name(names::dns1035_label, version, &at, out);
        }
    }
    if !versions.iter().any(|v| matches!(*v, "v1" | "v1beta1")) {
        let why = "must include at least one of v1, v1beta1";
        out.push(FieldError::invalid(path, Shown::raw(go::string_list(versions)), why));
    }
}

fn client_config(config: &Value, path: &Path<'_>, out: &mut Errors) {
    match (config.has("url"), config.has("service")) {
        (true, true) | (false, false) => {
            out.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (true, false) => url(config.text("url"), &path.child("url"), out),
        (false, true) => {
            let at = path.child("service");
            let service = config.sub("service");
            for (key, why) in [("name", "service name is required"), ("namespace", "service namespace is required")] {
                if service.text(key).is_empty() {
                    out.push(FieldError::required(&at.child(key), why));
                }
            }
            let port = service.int("port");
            if let Some(why) = check::port_number(port) {
                out.push(FieldError::invalid(&at.child("port"), port, format!("port is not valid: {why}")));
            }
            if service.has("path") {
                url_path(service.text("path"), &at.child("path"), out);
            }
        }
    }
}

const FORM: &str = "; desired format: https://host[/path]";

fn url(text: &str, path: &Path<'_>, out: &mut Errors) {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let (scheme, rest) = match before.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() => (scheme, rest),
        _ => ("", before),
    };
    if scheme.is_empty() && rest.contains(':') && !rest.starts_with('/') {
        let wrong = if text.starts_with(':') {
            "missing protocol scheme"
        } else {
            "first path segment in URL cannot contain colon"
        };
        let why = format!("url must be a valid URL: parse {}: {wrong}{FORM}", go::quote(text));
        out.push(FieldError::required(path, why));
        return;
    }
    if let Some(escape) = bad_escape(before) {
        let (text, escape) = (go::quote(text), go::quote(escape));
        out.push(FieldError::required(
            path,
            format!("url must be a valid URL: parse {text}: invalid URL escape {escape}{FORM}"),
        ));
        return;
    }
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        out.push(FieldError::invalid(path, scheme.as_str(), format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        out.push(FieldError::invalid(path, host, format!("host must be specified{FORM}")));
    }
    if !user.is_empty() {
        out.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        out.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        out.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

/// The first `%` that two hexadecimal digits do not follow, with what is there in their place.
fn bad_escape(text: &str) -> Option<&str> {
    text.match_indices('%').map(|(at, _)| text.get(at..).unwrap_or_default()).find_map(|rest| {
        let digits = rest.bytes().skip(1).take(2).filter(u8::is_ascii_hexdigit).count();
        let end = rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at);
        (digits < 2).then(|| rest.get(..end).unwrap_or(rest))
    })
}

fn url_path(text: &str, path: &Path<'_>, out: &mut Errors) {
    if text.is_empty() {
        return;
    }
    if text == "/" {
        return;
    }
    if !text.starts_with('/') {
        let form = "; desired format: /path";
        let why = format!("must start with a '/'{form}");
        out.push(FieldError::invalid(path, text, why));
        return;
    }
    let steps = text.trim_start_matches('/').trim_end_matches('/');
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            out.push(FieldError::invalid(path, text, format!("segment[{i}] may not be empty")));
            continue;
        }
        for why in names::dns1123_subdomain(step) {
            out.push(FieldError::invalid(path, text, format!("segment[{i}]: {why}")));
        }
    }
}
