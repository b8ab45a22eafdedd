//! Configurations of mutating and validating webhooks.

use super::expressions::Checker;
use super::matching;
use super::policy::{GROUP, METADATA};
use crate::check::{self, Errors};
use crate::expressions::Compiler;
use crate::read::{Read, default_to, list_mut, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names, webhook};
use std::collections::HashSet;

const STRATEGY: Strategy = Strategy {
    generation: Generation::Counts(&[&["webhooks"]]),
    unconditional_update: false,
    metadata: METADATA,
    compiled: Some(validate),
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

/// What a configuration may have because its old version has it.
#[derive(Clone, Copy, Debug)]
struct Leniency {
    /// Conditions are not looked at, for none changed.
    conditions: bool,
    /// Side effects.
    side_effects: bool,
    /// No version of reviews that is known here.
    reviews: bool,
    /// Names that are there twice.
    names: bool,
    /// Selectors with values that no label can have.
    selectors: bool,
}

impl Leniency {
    fn of(object: &Value, old: Option<&Value>) -> Self {
        let Some(old) = old else {
            return Leniency { conditions: false, side_effects: false, reviews: false, names: false, selectors: false };
        };
        let (new, old) = (object.list("webhooks"), old.list("webhooks"));
        let mut names = HashSet::new();
        Leniency {
            conditions: new.len() == old.len()
                && new.iter().zip(old).all(|(n, o)| n.list(CONDITIONS) == o.list(CONDITIONS)),
            side_effects: old.iter().any(|webhook| !NO_SIDE_EFFECTS.contains(&webhook.text("sideEffects"))),
            reviews: old.iter().any(|webhook| {
                let versions = webhook.strings("admissionReviewVersions");
                !versions.is_empty() && !versions.iter().any(is_known_review)
            }),
            names: !old.iter().all(|webhook| names.insert(webhook.text("name"))),
            selectors: old.iter().any(|webhook| {
                let mut errors = Errors::new();
                SELECTORS.iter().for_each(|key| check::label_selector(webhook.sub(key), &Path::ROOT, &mut errors));
                !errors.is_empty()
            }),
        }
    }
}

const CONDITIONS: &str = "matchConditions";
const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];
const NO_SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun", "Some", "Unknown"];
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

fn is_known_review(version: &&str) -> bool {
    REVIEWS.contains(version)
}

fn validate(object: &Value, old: Option<&Value>, compiler: &mut dyn Compiler) -> Errors {
    let (mut out, list) = (Errors::new(), Path::ROOT.child("webhooks"));
    let (lenient, mut checker) = (Leniency::of(object, old), Checker::of_webhooks(old, compiler));
    let mut seen = HashSet::new();
    for (i, value) in object.list("webhooks").iter().enumerate() {
        let at = list.index(i);
        webhook(value, lenient, &mut checker, &at, &mut out);
        let versions = value.strings("admissionReviewVersions");
        review_versions(&versions, lenient.reviews, &at.child("admissionReviewVersions"), &mut out);
        let name = value.text("name");
        if !lenient.names && !name.is_empty() && !seen.insert(name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
    }
    out
}

fn webhook(webhook: &Value, lenient: Leniency, checker: &mut Checker<'_>, path: &Path<'_>, out: &mut Errors) {
    fully_qualified(webhook.text("name"), &path.child("name"), out);
    let rules = path.child("rules");
    for (i, rule) in webhook.list("rules").iter().enumerate() {
        matching::rule(rule, &rules.index(i), out);
    }
    let one_of = |key: &str, supported: &[&str], out: &mut Errors| {
        if webhook.has(key) {
            check::one_of(webhook, key, supported, path, out);
        }
    };
    one_of("failurePolicy", &["Fail", "Ignore"], out);
    one_of("matchPolicy", &["Equivalent", "Exact"], out);
    let side_effects = if lenient.side_effects { SIDE_EFFECTS } else { NO_SIDE_EFFECTS };
    one_of("sideEffects", side_effects, out);
    if !webhook.has("sideEffects") {
        let why = format!("must specify one of {}", side_effects.join(", "));
        out.push(FieldError::required(&path.child("sideEffects"), why));
    }
    if let Some(seconds) = webhook.opt_int("timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        out.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    for key in SELECTORS {
        if lenient.selectors {
            check::label_selector_of_any_values(webhook.sub(key), &path.child(key), out);
        } else {
            check::label_selector(webhook.sub(key), &path.child(key), out);
        }
    }
    one_of("reinvocationPolicy", &["IfNeeded", "Never"], out);
    client_config(webhook.sub("clientConfig"), &path.child("clientConfig"), out);
    if !lenient.conditions {
        matching::match_conditions(webhook.list(CONDITIONS), &path.child(CONDITIONS), checker, out);
    }
}

fn fully_qualified(name: &str, path: &Path<'_>, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    let complaints = names::dns1123_subdomain(name);
    if !complaints.is_empty() {
        out.push(FieldError::invalid(path, name, complaints.join(",")));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        out.push(FieldError::invalid(path, name, why));
    }
}

fn review_versions(versions: &[&str], any: bool, path: &Path<'_>, out: &mut Errors) {
    let known = REVIEWS.join(", ");
    if versions.is_empty() {
        out.push(FieldError::required(path, format!("must specify one of {known}")));
        return;
    }
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let at = path.index(i);
        if seen.insert(version) {
            check::name(names::dns1035_label, version, &at, out);
        } else {
            out.push(FieldError::invalid(&at, *version, "duplicate version"));
        }
    }
    if !any && !versions.iter().any(is_known_review) {
        let why = format!("must include at least one of {known}");
        out.push(FieldError::invalid(path, Shown::raw(go::string_list(versions)), why));
    }
}

fn client_config(config: &Value, path: &Path<'_>, out: &mut Errors) {
    match (config.has("url"), config.has("service")) {
        (true, true) | (false, false) => {
            out.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (true, false) => webhook::check_url(config.text("url"), &path.child("url"), out),
        (false, true) => webhook::check_service(config.sub("service"), &path.child("service"), out),
    }
}
