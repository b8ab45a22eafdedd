//! DaemonSets.

use super::workload::{self, STRATEGY};
use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod;
use crate::read::{Read, default_text, default_to, object_mut};
use crate::resource::{Column, Context, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value};

/// The annotation that stands for a field of older versions: how often the template changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) const DAEMONSETS: Resource = Resource {
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[Subresource::status("DaemonSet")],
    columns: &[
        Column::NAME,
        Column::new("Desired", "integer"),
        Column::new("Current", "integer"),
        Column::new("Ready", "integer"),
        Column::new("Up-to-date", "integer"),
        Column::new("Available", "integer"),
        Column::new("Node Selector", "string"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
        Column::wide("Selector", "string"),
    ],
    cells,
    strategy: Strategy {
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        prepare_create,
        prepare_update,
        validate,
        validate_update,
        validate_status,
        warnings: pod::changed_template_warnings,
        ..STRATEGY
    },
    ..Resource::new(
        "apps",
        "DaemonSet",
        "daemonsets",
        &[Version::stored("v1", "io.k8s.api.apps.v1.DaemonSet").with_default(default).with_check(|object| {
            object.annotation(TEMPLATE_GENERATION).map_or(Ok(()), |a| workload::parse_int(a).map(drop))
        })],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let template = spec.sub("template");
    vec![
        object.name().into(),
        Value::Int(status.int("desiredNumberScheduled")),
        Value::Int(status.int("currentNumberScheduled")),
        Value::Int(status.int("numberReady")),
        Value::Int(status.int("updatedNumberScheduled")),
        Value::Int(status.int("numberAvailable")),
        table::labels(template.sub("spec").members("nodeSelector")).into(),
        table::age(object, now),
        table::container_names(template),
        table::images(template),
        table::selector(spec.sub("selector")).into(),
    ]
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    if let Some(strategy) = object_mut(spec, &["updateStrategy"]) {
        default_text(strategy, "type", "RollingUpdate");
        if strategy.text("type") == "RollingUpdate" {
            default_to(strategy, "rollingUpdate", Map::new());
            if let Some(rolling) = object_mut(strategy, &["rollingUpdate"]) {
                default_to(rolling, "maxUnavailable", 1);
                default_to(rolling, "maxSurge", 0);
            }
        }
    }
    default_to(spec, "revisionHistoryLimit", 10);
    if let Some(template) = spec.get_mut("template") {
        pod::default_template(template);
    }
}

fn template_generation(object: &Value) -> i64 {
    object.annotation(TEMPLATE_GENERATION).and_then(|a| a.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    object.metadata_mut().object_entry("annotations").insert(TEMPLATE_GENERATION, generation.to_string());
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    let generation = template_generation(object).max(1);
    set_template_generation(object, generation);
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    let changed = object.at(&["spec", "template"]) != old.at(&["spec", "template"]);
    set_template_generation(object, template_generation(old) + i64::from(changed));
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let selector = spec.sub("selector");
    let at = path.child("selector");
    check::label_selector(selector, &at, &mut out);
    let readable = out.is_empty();
    let template = spec.sub("template");
    let labels = template.sub("metadata").members("labels");
    if readable && !check::selector_matches(selector, labels) {
        workload::mismatch(labels, &path, &mut out);
    }
    if selector.as_object().is_some()
        && selector.members("matchLabels").is_empty()
        && selector.list("matchExpressions").is_empty()
    {
        let why = "empty selector is invalid for daemonset";
        out.push(FieldError::invalid(&at, gostruct::label_selector(selector), why));
    }
    let at = path.child("template");
    pod::validate_template(template, &at, &mut out);
    let pods = at.child("spec");
    let policy = template.sub("spec").text("restartPolicy");
    if policy != "Always" {
        out.push(FieldError::not_supported(&pods.child("restartPolicy"), policy, &["Always"]));
    }
    if let Some(seconds) = template.sub("spec").opt_int("activeDeadlineSeconds") {
        let why = "activeDeadlineSeconds is not allowed in DaemonSet";
        out.push(FieldError::invalid(&pods.child("activeDeadlineSeconds"), seconds, why));
    }
    check::not_negative(spec, "minReadySeconds", &path, &mut out);
    update_strategy(spec.sub("updateStrategy"), &path.child("updateStrategy"), &mut out);
    check::not_negative(spec, "revisionHistoryLimit", &path, &mut out);
    out
}

fn update_strategy(strategy: &Value, path: &Path<'_>, out: &mut Errors) {
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = path.child("rollingUpdate");
            let rolling = strategy.sub("rollingUpdate");
            let (unavailable, surge) = (rolling.sub("maxUnavailable"), rolling.sub("maxSurge"));
            let (unavailable_path, surge_path) = (at.child("maxUnavailable"), at.child("maxSurge"));
            check::positive_int_or_percent(unavailable, &unavailable_path, out);
            check::positive_int_or_percent(surge, &surge_path, out);
            check::not_more_than_all(unavailable, &unavailable_path, out);
            check::not_more_than_all(surge, &surge_path, out);
            match (check::int_or_percent(unavailable) != 0, check::int_or_percent(surge) != 0) {
                (true, true) => {
                    let shown = Shown::raw(gostruct::int_or_string(surge));
                    out.push(FieldError::invalid(&surge_path, shown, "may not be set when maxUnavailable is non-zero"));
                }
                (false, false) => {
                    out.push(FieldError::required(&unavailable_path, "cannot be 0 when maxSurge is 0"));
                }
                _ => {}
            }
        }
        other => {
            let kind = object::go::quote(other);
            let shown = format!(
                "apps.DaemonSetUpdateStrategy{{Type:{kind}, RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}}"
            );
            out.push(FieldError::not_supported(path, Shown::raw(shown), &["RollingUpdate", "OnDelete"]));
        }
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    // Upstream runs the same checks twice, and reports what they find as often.
    let mut out = validate(new);
    out.extend(validate(new));
    check::immutable_selector(new.sub("spec"), old.sub("spec"), &Path::ROOT.child("spec"), &mut out);
    out
}

fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    for key in [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ] {
        check::not_negative(new.sub("status"), key, &path, &mut out);
    }
    workload::collision_count(new, old, &mut out);
    out
}
