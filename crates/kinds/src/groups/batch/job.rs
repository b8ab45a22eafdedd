//! Jobs.

use super::job_checks::{NAME, UID, validate, validate_update};
use super::job_status::validate_status;
use crate::pod;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{
    Column, Context, MetadataChecks, Parts, Propagation, Resource, SelectableField, Strategy, Subresource, Version,
};
use crate::table;
use jiff::Timestamp;
use object::Value;
use object::field::Path;

const STATUS_LEAVES: Parts = &[&["spec"]];

pub(super) const JOBS: Resource = Resource {
    categories: &["all"],
    subresources: &[Subresource::status("Job")],
    columns: &[
        Column::NAME,
        Column::new("Status", "string"),
        Column::new("Completions", "string"),
        Column::new("Duration", "string"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
        Column::wide("Selector", "string"),
    ],
    cells,
    selectable: &[SelectableField {
        name: "status.successful",
        value: |object| object.sub("status").int("succeeded").to_string(),
    }],
    strategy: Strategy {
        reset_status: STATUS_LEAVES,
        propagation: Propagation::Orphan,
        template: &["spec", "template"],
        prepare_create,
        validate,
        validate_update,
        validate_status,
        warnings: |object, old| {
            let mut out: Vec<String> =
                if old.is_none() { pod::name_warning(object.name()).into_iter().collect() } else { Vec::new() };
            out.extend(warnings_of_spec(object, old, &["spec"]));
            out
        },
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        delete_warning: "child pods are preserved by default when jobs are deleted; set \
                         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
                         this warning",
        ..Strategy::WITH_STATUS
    },
    ..Resource::new("batch", "Job", "jobs", &[Version::stored("v1", "io.k8s.api.batch.v1.Job").with_default(default)])
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let done = status.int("succeeded");
    let completions = match (spec.opt_int("completions"), spec.int("parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        _ => format!("{done}/1"),
    };
    let time = |key: &str| status.text(key).parse::<Timestamp>().ok();
    let duration = match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => table::human(end.unwrap_or(now).as_second() - start.as_second()),
    };
    let is =
        |kind: &str| status.list("conditions").iter().any(|c| c.text("type") == kind && c.text("status") == "True");
    let state = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if object.sub("metadata").has("deletionTimestamp") {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    vec![
        object.name().into(),
        state.into(),
        completions.into(),
        duration.into(),
        table::age(object, now),
        table::container_names(spec.sub("template")),
        table::images(spec.sub("template")),
        table::selector(spec.sub("selector")).into(),
    ]
}

/// Labels are those of the template, where there are none.
fn default_labels(object: &mut Value) {
    let labels = object.sub("spec").sub("template").sub("metadata").members("labels").clone();
    if !labels.is_empty() && object.sub("metadata").members("labels").is_empty() {
        object.set_at(&["metadata", "labels"], labels.into());
    }
}

fn default(object: &mut Value) {
    // A new job gets them when its template has the labels that it is given.
    if !object.meta_str("uid").is_empty() {
        default_labels(object);
    }
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    if !spec.has("completions") && !spec.has("parallelism") {
        spec.set_at(&["completions"], Value::Int(1));
    }
    default_to(spec, "parallelism", 1);
    let limit = if spec.has("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    default_to(spec, "backoffLimit", limit);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "manualSelector", false);
    default_to(spec, "suspend", false);
    let replacement = if spec.has("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    default_to(spec, "podReplacementPolicy", replacement);
    default_spec(spec);
}

/// Defaults that templates of jobs have too.
pub(super) fn default_spec(spec: &mut Value) {
    if let Some(policy) = object_mut(spec, &["podFailurePolicy"]) {
        for rule in list_mut(policy, "rules") {
            for pattern in list_mut(rule, "onPodConditions") {
                default_text(pattern, "status", "True");
            }
        }
    }
    if let Some(template) = spec.get_mut("template") {
        pod::default_template(template);
    }
}

/// The warnings about the specification of jobs at a path, repeated with each new generation.
pub(super) fn warnings_of_spec(object: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    const MANY_INDEXES: i64 = 100_000;
    const MANY_PODS: i64 = 10_000;
    let generation = |v: &Value| v.at(&["metadata", "generation"]).and_then(Value::as_int);
    let mut out = Vec::new();
    let Some(spec) = object.at(path).filter(|_| old.is_none_or(|old| generation(old) != generation(object))) else {
        return out;
    };
    let text = path.join(".");
    if spec.text("completionMode") == "Indexed"
        && spec.int("completions") > MANY_INDEXES
        && spec.int("parallelism") > MANY_PODS
    {
        out.push(format!(
            "{text}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    let path = Path::ROOT.child(&text);
    out.extend(pod::warnings_of(spec.sub("template"), &path.child("template")));
    out
}

/// A job selects its pods by its own uid, unless somebody takes care of the selector.
fn prepare_create(object: &mut Value, _: &Context<'_>) {
    if object.sub("spec").flag("manualSelector") {
        return default_labels(object);
    }
    let (name, uid) = (object.name().to_owned(), object.meta_str("uid").to_owned());
    let labels = object.object_entry("spec").object_entry("template").object_entry("metadata").object_entry("labels");
    for (keys, value) in [(NAME, &name), (UID, &uid)] {
        if !labels.contains_key(keys[0]) {
            for key in keys {
                labels.insert(key, value.as_str());
            }
        }
    }
    let selector = object.object_entry("spec").object_entry("selector").object_entry("matchLabels");
    selector.get_or_insert(UID[1], || uid.into());
    default_labels(object);
}
