//! Jobs.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Context, Parts, Propagation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Value, names, selector::Labels};

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
        warnings: pod::workload_warnings,
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

const UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

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

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    generated_selector(object, &mut out);
    spec(object.sub("spec"), &path, &mut out);
    let indexed = object.sub("spec").text("completionMode") == "Indexed";
    if let (true, Some(completions)) = (indexed, object.sub("spec").opt_int("completions").filter(|c| *c > 0)) {
        let example = format!("{}-{}", object.name(), completions - 1);
        let complaints = names::dns1123_label(&example);
        if !complaints.is_empty() {
            let meta = Path::ROOT.child("metadata");
            let why = format!("will not able to create pod with invalid DNS label: {example}");
            out.push(FieldError::invalid(&meta.child("name"), object.name(), why));
        }
    }
    out
}

/// Where the selector was made by the server, it must be the server's.
fn generated_selector(object: &Value, out: &mut Errors) {
    let spec = object.sub("spec");
    if spec.flag("manualSelector") {
        return;
    }
    if !spec.has("selector") {
        return;
    }
    let (name, uid) = (object.name(), object.meta_str("uid"));
    let at = Path::ROOT.child("spec");
    let template = at.child("template");
    let meta = template.child("metadata");
    let labels_path = meta.child("labels");
    let labels = spec.sub("template").sub("metadata").members("labels");
    for (keys, wanted) in [(UID, uid), (NAME, name)] {
        for key in keys {
            let have = labels.get(key).and_then(Value::as_str).unwrap_or_default();
            if have != wanted {
                let why = format!("must be '{wanted}'");
                out.push(FieldError::invalid(&labels_path, gostruct::labels(labels), why));
            }
        }
    }
    let mut expected = Value::Null;
    expected.set_at(&["matchLabels", UID[1]], uid.into());
    let mut legacy = Value::Null;
    legacy.set_at(&["matchLabels", UID[0]], uid.into());
    let selector = spec.sub("selector");
    if selector != &expected && selector != &legacy {
        let why = "`selector` not auto-generated";
        out.push(FieldError::invalid(&at.child("selector"), gostruct::label_selector(selector), why));
    }
}

/// The specification of a job.
fn spec(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if !spec.has("selector") {
        out.push(FieldError::required(&path.child("selector"), ""));
    } else {
        check::label_selector(spec.sub("selector"), &path.child("selector"), out);
    }
    let labels = spec.sub("template").sub("metadata").members("labels");
    if spec.has("selector")
        && Labels::from_object(spec.sub("selector")).is_ok()
        && !check::selector_matches(spec.sub("selector"), labels)
    {
        crate::groups::apps::mismatch(labels, path, out);
    }
    template_of_job(spec, path, out);
}

/// What jobs and templates of jobs are checked for.
pub(super) fn template_of_job(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check::not_negative(spec, key, path, out);
    }
    if spec.has("completionMode") {
        let mode = spec.text("completionMode");
        if !matches!(mode, "NonIndexed" | "Indexed") {
            check::one_of(spec, "completionMode", &["NonIndexed", "Indexed"], path, out);
        }
        if mode == "Indexed" && !spec.has("completions") {
            out.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
        }
    }
    if spec.has("backoffLimitPerIndex") && spec.text("completionMode") != "Indexed" {
        let why = "may only be used with completionMode=Indexed";
        let at = path.child("backoffLimitPerIndex");
        out.push(FieldError::invalid(&at, spec.int("backoffLimitPerIndex"), why));
    }
    if spec.has("podReplacementPolicy") {
        let policies = ["Failed", "TerminatingOrFailed"];
        check::one_of(spec, "podReplacementPolicy", &policies, path, out);
    }
    let template = path.child("template");
    pod::validate_template(spec.sub("template"), &template, out);
    let pods = template.child("spec");
    match spec.sub("template").sub("spec").text("restartPolicy") {
        "OnFailure" | "Never" => {}
        "Always" => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            out.push(FieldError::required(&pods.child("restartPolicy"), why));
        }
        other => {
            out.push(FieldError::not_supported(&pods.child("restartPolicy"), other, &["OnFailure", "Never"]));
        }
    }
    if spec.has("podFailurePolicy") {
        failure_policy(spec, &path.child("podFailurePolicy"), out);
        if spec.sub("template").sub("spec").text("restartPolicy") != "Never" {
            let shown = spec.sub("template").sub("spec").text("restartPolicy");
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            out.push(FieldError::invalid(&pods.child("restartPolicy"), shown, why));
        }
    }
}

fn failure_policy(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let rules = path.child("rules");
    for (i, rule) in spec.sub("podFailurePolicy").list("rules").iter().enumerate() {
        let at = rules.index(i);
        let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
        if rule.text("action").is_empty() {
            let why = "valid values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"";
            out.push(FieldError::required(&at.child("action"), why));
        } else {
            check::one_of(rule, "action", &actions, &at, out);
        }
        match (rule.has("onExitCodes"), !rule.list("onPodConditions").is_empty()) {
            (true, true) => {
                let why = "specifying both OnExitCodes and OnPodConditions is not supported";
                out.push(FieldError::invalid(&at, Shown::raw("<rule>"), why));
            }
            (false, false) => {
                let why = "specifying one of OnExitCodes and OnPodConditions is required";
                out.push(FieldError::invalid(&at, Shown::raw("<rule>"), why));
            }
            _ => {}
        }
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    // Upstream runs the same checks twice, and reports what they find as often.
    let mut out = validate(new);
    let path = Path::ROOT.child("spec");
    let (now, was) = (new.sub("spec"), old.sub("spec"));
    spec(now, &path, &mut out);
    let elastic = was.text("completionMode") == "Indexed"
        && now.sub("completions") == now.sub("parallelism")
        && was.sub("completions") == was.sub("parallelism");
    if !elastic {
        check::immutable(now, was, "completions", &path, &mut out);
    }
    check::immutable_selector(now, was, &path, &mut out);
    let suspended =
        was.flag("suspend") && old.sub("status").list("conditions").iter().all(|c| c.text("type") != "Suspended");
    let not_started = suspended || old.sub("status").text("startTime").is_empty() && was.flag("suspend");
    if now.sub("template") != was.sub("template") && !not_started {
        let shown = Shown::raw(gostruct::pod_template(now.sub("template")));
        out.push(FieldError::invalid(&path.child("template"), shown, check::IMMUTABLE));
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        check::immutable(now, was, key, &path, &mut out);
    }
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        check::not_negative(new.sub("status"), key, &path, &mut out);
    }
    out
}
