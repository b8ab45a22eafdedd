//! The resources of the group `policy`.

use crate::check::{self, Errors};
use crate::conditions;
use crate::gostruct;
use crate::read::Read;
use crate::resource::{Column, MetadataChecks, Parts, Resource, Strategy, Subresource, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};

const STATUS_LEAVES: Parts = &[&["spec"]];

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["pdb"],
    subresources: &[Subresource::status("PodDisruptionBudget")],
    columns: &[
        Column::NAME,
        Column::new("Min Available", "string"),
        Column::new("Max Unavailable", "string"),
        Column::new("Allowed Disruptions", "integer"),
        Column::AGE,
    ],
    cells: |object, now| {
        let shown = |key: &str| match object.sub("spec").sub(key) {
            Value::String(s) => s.to_string(),
            Value::Int(i) => i.to_string(),
            _ => "N/A".to_owned(),
        };
        vec![
            object.name().into(),
            shown("minAvailable").into(),
            shown("maxUnavailable").into(),
            Value::Int(object.sub("status").int("disruptionsAllowed")),
            table::age(object, now),
        ]
    },
    strategy: Strategy {
        reset_status: STATUS_LEAVES,
        unconditional_update: false,
        metadata: MetadataChecks { create: false, anew: 0, update: false, status: false },
        validate,
        validate_update: |new, _| validate(new),
        validate_status,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &[Version::stored("v1", "io.k8s.api.policy.v1.PodDisruptionBudget")],
    )
}];

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let why = "minAvailable and maxUnavailable cannot be both set";
        out.push(FieldError::invalid(&path, gostruct::budget_spec(spec), why));
    }
    for key in ["minAvailable", "maxUnavailable"].into_iter().filter(|k| spec.has(k)) {
        check::positive_int_or_percent(spec.sub(key), &path.child(key), &mut out);
        check::not_more_than_all(spec.sub(key), &path.child(key), &mut out);
    }
    check::label_selector(spec.sub("selector"), &path.child("selector"), &mut out);
    if spec.has("unhealthyPodEvictionPolicy") {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        check::one_of(spec, "unhealthyPodEvictionPolicy", &policies, &path, &mut out);
    }
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    conditions::validate(new.sub("status").list("conditions"), &path.child("conditions"), &mut out);
    for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        check::not_negative(new.sub("status"), key, &path, &mut out);
    }
    out
}
