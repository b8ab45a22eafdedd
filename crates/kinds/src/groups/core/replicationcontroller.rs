//! ReplicationControllers.

use crate::check::{self, Errors};
use crate::groups::apps::{Workload, available_are_ready, mismatch, replica_status, validate_workload_template};
use crate::pod;
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Propagation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Map, Value};

pub(super) const REPLICATION_CONTROLLERS: Resource = Resource {
    short_names: &["rc"],
    categories: &["all"],
    subresources: &[Subresource::SCALE, Subresource::status("ReplicationController")],
    columns: &[
        Column::NAME,
        Column::new("Desired", "integer"),
        Column::new("Current", "integer"),
        Column::new("Ready", "integer"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
        Column::wide("Selector", "string"),
    ],
    cells,
    selectable: &[SelectableField {
        name: "status.replicas",
        value: |object| object.sub("status").int("replicas").to_string(),
    }],
    strategy: Strategy {
        propagation: Propagation::Orphan,
        template: &["spec", "template"],
        validate,
        // Upstream runs the same checks twice, and reports what they find as often.
        validate_update: |new, _| [validate(new), validate(new)].concat(),
        validate_status,
        warnings: pod::workload_warnings,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "ReplicationController",
        "replicationcontrollers",
        &[Version::stored("v1", "io.k8s.api.core.v1.ReplicationController").with_default(default)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    vec![
        object.name().into(),
        Value::Int(spec.int("replicas")),
        Value::Int(status.int("replicas")),
        Value::Int(status.int("readyReplicas")),
        table::age(object, now),
        table::container_names(spec.sub("template")),
        table::images(spec.sub("template")),
        table::labels(spec.members("selector")).into(),
    ]
}

/// Selector and labels are those of the template where they are not given.
fn default(object: &mut Value) {
    let labels: Map = object.sub("spec").sub("template").sub("metadata").members("labels").clone();
    if !labels.is_empty() {
        if object.sub("spec").members("selector").is_empty() {
            object.set_at(&["spec", "selector"], labels.clone().into());
        }
        if object.sub("metadata").members("labels").is_empty() {
            object.set_at(&["metadata", "labels"], labels.into());
        }
    }
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "replicas", 1);
    if let Some(template) = spec.get_mut("template") {
        pod::default_template(template);
    }
}

fn validate(object: &Value) -> Errors {
    const KIND: Workload = Workload { lower: "", upper: "ReplicationController", unreadable: "" };
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    check::not_negative(spec, "minReadySeconds", &path, &mut out);
    let selector = spec.members("selector");
    if selector.is_empty() {
        out.push(FieldError::required(&path.child("selector"), ""));
    }
    check::not_negative(spec, "replicas", &path, &mut out);
    if !spec.has("template") {
        out.push(FieldError::required(&path.child("template"), ""));
        return out;
    }
    let labels = spec.sub("template").sub("metadata").members("labels");
    if !selector.iter().all(|(k, v)| labels.get(k) == Some(v)) {
        mismatch(labels, &path, &mut out);
    }
    validate_workload_template(spec.sub("template"), KIND, true, &path, &mut out);
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = new.sub("status");
    replica_status(
        status,
        &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        &mut out,
    );
    available_are_ready(status, &mut out);
    out
}
