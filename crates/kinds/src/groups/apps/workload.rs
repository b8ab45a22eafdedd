//! What the workloads have in common.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod;
use crate::read::Read;
use crate::resource::{Context, Generation, Strategy};
use object::Value;
use object::field::{FieldError, Path};

/// Where the template of the pods is.
pub(crate) const TEMPLATE: &[&str] = &["spec", "template"];

/// The strategy that workloads share.
pub(super) const STRATEGY: Strategy =
    Strategy { generation: Generation::Counts(&[&["spec"]]), template: TEMPLATE, ..Strategy::WITH_STATUS };

/// An integer in an annotation, which stands for a field of versions that are gone; the error is Go's.
pub(super) fn parse_int(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", object::go::quote(text))
    })
}

/// Drops how many pods are on their way out, which is off.
pub(super) fn drop_terminating(object: &mut Value, old: &Value, _: &Context<'_>) {
    const TERMINATING: [&str; 2] = ["status", "terminatingReplicas"];
    if old.at(&TERMINATING).is_none_or(Value::is_null) {
        object.remove_at(&TERMINATING);
    }
}

/// What a kind of workload calls itself in messages.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    /// As in `empty selector is invalid for deployment`.
    pub lower: &'static str,
    /// As in `activeDeadlineSeconds in ReplicaSet is not Supported`.
    pub upper: &'static str,
    /// The complaint about a selector that cannot be read.
    pub unreadable: &'static str,
}

/// Checks `selector` and `template` of a workload. `whole` is false where the template's pods are not checked.
pub(super) fn selector_and_template(spec: &Value, kind: Workload, whole: bool, path: &Path<'_>, out: &mut Errors) {
    let selector = spec.sub("selector");
    let at = path.child("selector");
    let mut readable = true;
    if selector.as_object().is_none() {
        out.push(FieldError::required(&at, ""));
    } else {
        let before = out.len();
        check::label_selector(selector, &at, out);
        readable = out.len() == before;
        if selector.members("matchLabels").is_empty() && selector.list("matchExpressions").is_empty() {
            let why = format!("empty selector is invalid for {}", kind.lower);
            out.push(FieldError::invalid(&at, gostruct::label_selector(selector), why));
        }
    }
    if !readable {
        out.push(FieldError::invalid(&at, gostruct::label_selector(selector), kind.unreadable));
        return;
    }
    let template = spec.sub("template");
    let labels = template.sub("metadata").members("labels");
    let everything = selector.as_object().is_some_and(|s| s.is_empty());
    if !everything && !check::selector_matches(selector, labels) {
        mismatch(labels, path, out);
    }
    validate_template(template, kind, whole, path, out);
}

/// The complaint about a template whose labels the selector does not select.
pub(crate) fn mismatch(labels: &object::Map, path: &Path<'_>, out: &mut Errors) {
    let template = path.child("template");
    let meta = template.child("metadata");
    let why = "`selector` does not match template `labels`";
    out.push(FieldError::invalid(&meta.child("labels"), gostruct::labels(labels), why));
}

/// Checks a template whose pods run for ever.
pub(crate) fn validate_template(template: &Value, kind: Workload, whole: bool, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("template");
    if whole {
        pod::validate_template(template, &at, out);
    } else {
        pod::validate_template_metadata(template, &at, out);
    }
    let spec = at.child("spec");
    let policy = template.sub("spec").text("restartPolicy");
    if policy != "Always" {
        out.push(FieldError::not_supported(&spec.child("restartPolicy"), policy, &["Always"]));
    }
    if template.sub("spec").has("activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {} is not Supported", kind.upper);
        out.push(FieldError::forbidden(&spec.child("activeDeadlineSeconds"), why));
    }
}

/// Counters that may not be negative, and may not exceed `status.replicas`.
pub(crate) fn replica_status(status: &Value, counters: &[&str], bounded: &[&str], out: &mut Errors) {
    let path = Path::ROOT.child("status");
    for key in counters {
        check::not_negative(status, key, &path, out);
    }
    for key in bounded {
        if status.int(key) > status.int("replicas") {
            out.push(FieldError::invalid(&path.child(key), status.int(key), "cannot be greater than status.replicas"));
        }
    }
}

/// No more replicas can be available than are ready.
pub(crate) fn available_are_ready(status: &Value, out: &mut Errors) {
    let available = status.int("availableReplicas");
    if available > status.int("readyReplicas") {
        let path = Path::ROOT.child("status");
        out.push(FieldError::invalid(
            &path.child("availableReplicas"),
            available,
            "cannot be greater than readyReplicas",
        ));
    }
}

/// `status.collisionCount` only grows.
pub(super) fn collision_count(new: &Value, old: &Value, out: &mut Errors) {
    let count = |v: &Value| v.sub("status").opt_int("collisionCount");
    let less = match (count(new), count(old)) {
        (None, Some(_)) => true,
        (Some(new), Some(old)) => new < old,
        _ => false,
    };
    if less {
        let path = Path::ROOT.child("status");
        let shown = count(new).unwrap_or(0);
        out.push(FieldError::invalid(&path.child("collisionCount"), shown, "cannot be decremented"));
    }
}
