//! Deployments.

use super::workload::{self, STRATEGY, Workload};
use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod;
use crate::read::{Read, default_text, default_to, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go};

/// The annotation that stands for a field of older versions: to which revision to go back.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

pub(super) const DEPLOYMENTS: Resource = Resource {
    short_names: &["deploy"],
    categories: &["all"],
    subresources: &[Subresource::SCALE, Subresource::status("Deployment")],
    columns: &[
        Column::NAME,
        Column::new("Ready", "string"),
        Column::new("Up-to-date", "string"),
        Column::new("Available", "string"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
        Column::wide("Selector", "string"),
    ],
    cells,
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"], &["metadata", "annotations"]]),
        // Labels do not belong to the controller, which writes the status.
        reset_status: &[&["spec"], &["metadata", "labels"]],
        prepare_status: workload::drop_terminating,
        validate,
        validate_update,
        validate_status,
        warnings: pod::workload_warnings,
        ..STRATEGY
    },
    ..Resource::new(
        "apps",
        "Deployment",
        "deployments",
        &[Version::stored("v1", "io.k8s.api.apps.v1.Deployment").with_default(default).with_check(readable)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let template = spec.sub("template");
    vec![
        object.name().into(),
        format!("{}/{}", status.int("readyReplicas"), spec.int("replicas")).into(),
        Value::Int(status.int("updatedReplicas")),
        Value::Int(status.int("availableReplicas")),
        table::age(object, now),
        table::container_names(template),
        table::images(template),
        table::selector(spec.sub("selector")).into(),
    ]
}

fn readable(object: &Value) -> Result<(), String> {
    let Some(revision) = object.annotation(ROLLBACK_TO) else { return Ok(()) };
    let why = |why| format!("failed to parse annotation[{ROLLBACK_TO}]={revision} as int64: {why}");
    workload::parse_int(revision).map(drop).map_err(why)
}

/// The revision to go back to is a number, as its field was, or nothing.
fn default_rollback(object: &mut Value) {
    const PATH: [&str; 3] = ["metadata", "annotations", ROLLBACK_TO];
    match object.annotation(ROLLBACK_TO).map(|a| (a.is_empty(), workload::parse_int(a))) {
        Some((true, _)) => {
            object.remove_at(&PATH);
        }
        Some((_, Ok(revision))) => object.set_at(&PATH, revision.to_string().into()),
        _ => {}
    }
}

fn default(object: &mut Value) {
    default_rollback(object);
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "replicas", 1);
    if let Some(strategy) = object_mut(spec, &["strategy"]) {
        default_text(strategy, "type", "RollingUpdate");
        if strategy.text("type") == "RollingUpdate" {
            default_to(strategy, "rollingUpdate", Map::new());
            if let Some(rolling) = object_mut(strategy, &["rollingUpdate"]) {
                default_to(rolling, "maxUnavailable", "25%");
                default_to(rolling, "maxSurge", "25%");
            }
        }
    }
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    if let Some(template) = spec.get_mut("template") {
        pod::default_template(template);
    }
}

fn validate(object: &Value) -> Errors {
    const KIND: Workload = Workload { lower: "deployment", upper: "ReplicaSet", unreadable: "invalid label selector" };
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    check::not_negative(spec, "replicas", &path, &mut out);
    workload::selector_and_template(spec, KIND, true, &path, &mut out);
    update_strategy(spec.sub("strategy"), &path.child("strategy"), &mut out);
    check::not_negative(spec, "minReadySeconds", &path, &mut out);
    check::not_negative(spec, "revisionHistoryLimit", &path, &mut out);
    let revision = object.annotation(ROLLBACK_TO).and_then(|a| workload::parse_int(a).ok());
    if let Some(revision) = revision.filter(|r| *r < 0) {
        let rollback = path.child("rollback");
        out.push(FieldError::invalid(&rollback.child("version"), revision, "must be greater than or equal to 0"));
    }
    check::not_negative(spec, "progressDeadlineSeconds", &path, &mut out);
    if let Some(deadline) = spec.opt_int("progressDeadlineSeconds").filter(|d| *d <= spec.int("minReadySeconds")) {
        let why = "must be greater than minReadySeconds";
        out.push(FieldError::invalid(&path.child("progressDeadlineSeconds"), deadline, why));
    }
    out
}

fn update_strategy(strategy: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("rollingUpdate");
    match strategy.text("type") {
        "Recreate" => {
            if strategy.has("rollingUpdate") {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                out.push(FieldError::forbidden(&at, why));
            }
        }
        "RollingUpdate" => {
            let rolling = strategy.sub("rollingUpdate");
            let (unavailable, surge) = (rolling.sub("maxUnavailable"), rolling.sub("maxSurge"));
            let unavailable_path = at.child("maxUnavailable");
            check::positive_int_or_percent(unavailable, &unavailable_path, out);
            check::positive_int_or_percent(surge, &at.child("maxSurge"), out);
            if check::int_or_percent(unavailable) == 0 && check::int_or_percent(surge) == 0 {
                let shown = Shown::raw(gostruct::int_or_string(unavailable));
                out.push(FieldError::invalid(&unavailable_path, shown, "may not be 0 when `maxSurge` is 0"));
            }
            check::not_more_than_all(unavailable, &unavailable_path, out);
        }
        other => {
            let rolling = if strategy.has("rollingUpdate") { "&" } else { "(*apps.RollingUpdateDeployment)(nil)" };
            let shown = format!("apps.DeploymentStrategy{{Type:{}, RollingUpdate:{rolling}}}", go::quote(other));
            out.push(FieldError::not_supported(path, Shown::raw(shown), &["Recreate", "RollingUpdate"]));
        }
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate(new);
    check::immutable_selector(new.sub("spec"), old.sub("spec"), &Path::ROOT.child("spec"), &mut out);
    out
}

fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let status = new.sub("status");
    workload::replica_status(
        status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
        &mut out,
    );
    workload::available_are_ready(status, &mut out);
    workload::collision_count(new, old, &mut out);
    out
}
