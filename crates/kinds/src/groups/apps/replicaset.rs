//! ReplicaSets.

use super::workload::{self, STRATEGY, Workload};
use crate::check::{self, Errors};
use crate::pod;
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::Value;
use object::field::Path;

pub(super) const REPLICASETS: Resource = Resource {
    short_names: &["rs"],
    categories: &["all"],
    subresources: &[Subresource::SCALE, Subresource::status("ReplicaSet")],
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
    strategy: Strategy {
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        prepare_status: workload::drop_terminating,
        validate,
        validate_update,
        validate_status,
        warnings: pod::workload_warnings,
        ..STRATEGY
    },
    ..Resource::new(
        "apps",
        "ReplicaSet",
        "replicasets",
        &[Version::stored("v1", "io.k8s.api.apps.v1.ReplicaSet").with_default(default)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let template = spec.sub("template");
    vec![
        object.name().into(),
        Value::Int(spec.int("replicas")),
        Value::Int(status.int("replicas")),
        Value::Int(status.int("readyReplicas")),
        table::age(object, now),
        table::container_names(template),
        table::images(template),
        table::selector(spec.sub("selector")).into(),
    ]
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "replicas", 1);
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
    check::not_negative(spec, "minReadySeconds", &path, &mut out);
    workload::selector_and_template(spec, KIND, true, &path, &mut out);
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    // Upstream runs the same checks twice, and reports what they find as often.
    let mut out = validate(new);
    out.extend(validate(new));
    check::immutable_selector(new.sub("spec"), old.sub("spec"), &Path::ROOT.child("spec"), &mut out);
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = new.sub("status");
    workload::replica_status(
        status,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        &mut out,
    );
    workload::available_are_ready(status, &mut out);
    out
}
