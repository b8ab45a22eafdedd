//! StatefulSets.

use super::workload::{self, STRATEGY, Workload};
use crate::check::{self, Errors};
use crate::pod;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};

pub(super) const STATEFULSETS: Resource = Resource {
    short_names: &["sts"],
    categories: &["all"],
    subresources: &[Subresource::SCALE, Subresource::status("StatefulSet")],
    columns: &[
        Column::NAME,
        Column::new("Ready", "string"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
    ],
    cells,
    strategy: Strategy {
        // Pods have the name for a host name.
        name: names::dns1123_label,
        drop_disabled,
        validate,
        validate_update,
        validate_status,
        warnings,
        ..STRATEGY
    },
    ..Resource::new(
        "apps",
        "StatefulSet",
        "statefulsets",
        &[Version::stored("v1", "io.k8s.api.apps.v1.StatefulSet").with_default(default)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    vec![
        object.name().into(),
        format!("{}/{}", status.int("readyReplicas"), spec.int("replicas")).into(),
        table::age(object, now),
        table::container_names(spec.sub("template")),
        table::images(spec.sub("template")),
    ]
}

/// Drops how many pods may be away at a time, which is off.
fn drop_disabled(object: &mut Value, old: &Value) {
    const MOST: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    let has = |set: &Value| set.at(&MOST).is_some_and(|v| !v.is_null());
    if has(object) && !has(old) {
        object.remove_at(&MOST);
    }
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object_mut(spec, &["updateStrategy"]) {
        if strategy.text("type").is_empty() {
            default_text(strategy, "type", "RollingUpdate");
            default_to(strategy, "rollingUpdate", Map::new());
        }
        if strategy.text("type") == "RollingUpdate"
            && let Some(rolling) = object_mut(strategy, &["rollingUpdate"])
        {
            default_to(rolling, "partition", 0);
        }
    }
    default_to(spec, "persistentVolumeClaimRetentionPolicy", Map::new());
    if let Some(policy) = object_mut(spec, &["persistentVolumeClaimRetentionPolicy"]) {
        default_text(policy, "whenDeleted", "Retain");
        default_text(policy, "whenScaled", "Retain");
    }
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    if let Some(template) = spec.get_mut("template") {
        pod::default_template(template);
    }
    for claim in list_mut(spec, "volumeClaimTemplates") {
        default_text(claim, "apiVersion", "v1");
        default_text(claim, "kind", "PersistentVolumeClaim");
        claim.object_entry("status").get_or_insert("phase", || "Pending".into());
        if let Some(spec) = object_mut(claim, &["spec"]) {
            pod::default_claim_spec(spec);
        }
    }
}

fn validate(object: &Value) -> Errors {
    const KIND: Workload = Workload { lower: "statefulset", upper: "StatefulSet", unreadable: "" };
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let management = spec.text("podManagementPolicy");
    if management.is_empty() {
        out.push(FieldError::required(&path.child("podManagementPolicy"), ""));
    } else if !matches!(management, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        out.push(FieldError::invalid(&path.child("podManagementPolicy"), management, why));
    }
    update_strategy(spec.sub("updateStrategy"), &path.child("updateStrategy"), &mut out);
    let retention = spec.sub("persistentVolumeClaimRetentionPolicy");
    let at = path.child("persistentVolumeClaimRetentionPolicy");
    if retention.as_object().is_some() {
        for key in ["whenDeleted", "whenScaled"] {
            check::one_of(retention, key, &["Retain", "Delete"], &at, &mut out);
        }
    }
    check::not_negative(spec, "replicas", &path, &mut out);
    check::not_negative(spec, "minReadySeconds", &path, &mut out);
    check::not_negative(spec.sub("ordinals"), "start", &path.child("ordinals"), &mut out);
    workload::selector_and_template(spec, KIND, false, &path, &mut out);
    out
}

fn update_strategy(strategy: &Value, path: &Path<'_>, out: &mut Errors) {
    let rolling = strategy.sub("rollingUpdate");
    let at = path.child("rollingUpdate");
    match strategy.text("type") {
        "" => out.push(FieldError::required(path, "")),
        "OnDelete" => {
            if strategy.has("rollingUpdate") {
                let shown = format!(
                    "apps.RollingUpdateStatefulSetStrategy{{Partition:{}, MaxUnavailable:(*intstr.IntOrString)(nil)}}",
                    rolling.int("partition")
                );
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                out.push(FieldError::invalid(&at, Shown::raw(shown), why));
            }
        }
        "RollingUpdate" => check::not_negative(rolling, "partition", &at, out),
        other => {
            let shown = format!(
                "apps.StatefulSetUpdateStrategy{{Type:{}, RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}}",
                go::quote(other)
            );
            out.push(FieldError::invalid(path, Shown::raw(shown), "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    const MAY_CHANGE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let mut out = validate(new);
    let fixed = |object: &Value| -> Map {
        let mut spec = object.members("spec").clone();
        spec.retain(|k, _| !MAY_CHANGE.contains(&k));
        spec
    };
    if fixed(new) != fixed(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        out.push(FieldError::forbidden(&Path::ROOT.child("spec"), why));
    }
    out
}

/// The warnings about the templates, and about a history without an end.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = pod::template_warnings(object, old);
    let path = Path::ROOT.child("spec");
    let claims = path.child("volumeClaimTemplates");
    for (i, claim) in object.sub("spec").list("volumeClaimTemplates").iter().enumerate() {
        let at = claims.index(i);
        // Upstream leaves a step out of the path of a create, and writes it in Go's way for an update.
        let at = if old.is_some() { at.child("Spec") } else { at };
        let requests = at.child("resources.requests");
        let storage = claim.sub("spec").sub("resources").sub("requests").sub("storage");
        pod::fraction(storage, &requests.key("storage"), &mut out);
    }
    if object.sub("spec").int("revisionHistoryLimit") < 0 {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        out.push(format!("spec.revisionHistoryLimit: {why}"));
    }
    out
}

fn validate_status(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let status = new.sub("status");
    workload::replica_status(
        status,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        &mut out,
    );
    if status.int("availableReplicas") > status.int("readyReplicas") {
        let path = Path::ROOT.child("status");
        let why = "cannot be greater than status.readyReplicas";
        out.push(FieldError::invalid(&path.child("availableReplicas"), status.int("availableReplicas"), why));
    }
    workload::collision_count(new, old, &mut out);
    out
}
