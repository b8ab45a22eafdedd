//! PersistentVolumeClaims.

use super::volume::{
    CLASS_ANNOTATION, basic_resource, capacity, class, class_warning, drop_attributes_class, modes, unset,
};
use crate::check::{self, Errors};
use crate::claim;
use crate::gostruct;
use crate::pod::{self, resources};
use crate::read::{Read, default_text, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, map, names};

pub(super) const PERSISTENT_VOLUME_CLAIMS: Resource = Resource {
    short_names: &["pvc"],
    subresources: &[Subresource::status("PersistentVolumeClaim")],
    columns: &[
        Column::NAME,
        Column::new("Status", "string"),
        Column::new("Volume", "string"),
        Column::new("Capacity", "string"),
        Column::new("Access Modes", "string"),
        Column::new("StorageClass", "string"),
        Column::new("VolumeAttributesClass", "string"),
        Column::AGE,
        Column::wide("VolumeMode", "string"),
    ],
    cells: claim_cells,
    strategy: Strategy {
        generation: Generation::None,
        returns_deleted: true,
        drop_disabled: |object, old| {
            drop_attributes_class(object, old);
            drop_foreign_source(object, old);
        },
        prepare_create: |object, _| {
            object.set_at(&["status"], map! { "phase" => "Pending" }.into());
            match_sources(object, &Value::Null);
        },
        prepare_update: |object, old, _| match_sources(object, old),
        prepare_status: |object, old, _| drop_modification(object, old),
        validate: validate_claim,
        validate_update: validate_claim_update,
        validate_status: validate_claim_status,
        warnings: |object, _| {
            let mut out = Vec::new();
            class_warning(object, &mut out);
            claim::warnings(object.sub("spec"), &Path::ROOT.child("spec"), &mut out);
            out
        },
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolumeClaim").with_default(default_claim)],
    )
};

/// Drops a source in another namespace, which is off.
fn drop_foreign_source(object: &mut Value, old: &Value) {
    let is_foreign = !object.sub("spec").sub("dataSourceRef").text("namespace").is_empty();
    if is_foreign && !old.sub("spec").has("dataSourceRef") {
        object.remove_at(&["spec", "dataSourceRef"]);
    }
}

/// `dataSource` is the old name of `dataSourceRef`, and takes claims and snapshots only: others are dropped there without
/// a word (KEP 1495). Where one of the two is said, the other says the same.
fn match_sources(object: &mut Value, old: &Value) {
    const PARTS: [&str; 3] = ["apiGroup", "kind", "name"];
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    let had = ["dataSource", "dataSourceRef"].iter().any(|key| old.sub("spec").has(key));
    let source = spec.sub("dataSource");
    let kind = (source.text("apiGroup"), source.text("kind"));
    let known = matches!(kind, ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot"));
    if !had && !spec.has("dataSourceRef") && !known {
        spec.remove_at(&["dataSource"]);
    }
    let (from, to) = match (spec.has("dataSource"), spec.has("dataSourceRef")) {
        (true, false) => ("dataSource", "dataSourceRef"),
        (false, true) if spec.sub("dataSourceRef").text("namespace").is_empty() => ("dataSourceRef", "dataSource"),
        _ => return,
    };
    for part in PARTS {
        if let Some(value) = spec.at(&[from, part]).filter(|value| !value.is_null()).cloned() {
            spec.set_at(&[to, part], value);
        }
    }
}

/// Drops from a claim's status which class its volume has, or is to get.
fn drop_modification(object: &mut Value, old: &Value) {
    for key in ["currentVolumeAttributesClassName", "modifyVolumeStatus"] {
        if object.sub("status").has(key) && !old.sub("status").has(key) {
            object.remove_at(&["status", key]);
        }
    }
}

fn claim_cells(object: &Value, time: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let bound = !spec.text("volumeName").is_empty();
    let deleting = object.sub("metadata").has("deletionTimestamp");
    let (capacity, modes) = match bound {
        true => (capacity(status).to_owned(), modes(&status.strings("accessModes"))),
        false => (String::new(), String::new()),
    };
    vec![
        object.name().into(),
        if deleting { "Terminating" } else { status.text("phase") }.into(),
        spec.text("volumeName").into(),
        capacity.into(),
        modes.into(),
        class(object, spec).into(),
        unset(spec.text("volumeAttributesClassName")),
        table::age(object, time),
        unset(spec.text("volumeMode")),
    ]
}

fn default_claim(object: &mut Value) {
    if let Some(status) = object_mut(object, &["status"]) {
        default_text(status, "phase", "Pending");
    }
    if let Some(spec) = object_mut(object, &["spec"]) {
        pod::default_claim_spec(spec);
    }
}

fn validate_claim(object: &Value) -> Errors {
    let mut out = Errors::new();
    claim::spec(object.sub("spec"), &Path::ROOT.child("spec"), &mut out);
    out
}

/// Gives a part of one object to another, or takes it away there.
fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match from.at(path) {
        Some(value) => to.set_at(path, value.clone()),
        None => {
            to.remove_at(path);
        }
    }
}

/// After the creation only the request may grow, and a class may be filled in.
fn validate_claim_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_claim(new);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    let bound = new.sub("status").text("phase") == "Bound";
    let (mut now, mut was) = (spec.clone(), before.clone());
    // The volume is named once, and a class filled in once: from an annotation, or where there was none.
    if before.text("volumeName").is_empty() {
        copy(spec, &mut was, &["volumeName"]);
    }
    let class = |v: &Value| v.sub("metadata").members("annotations").get(CLASS_ANNOTATION).cloned();
    let (class_now, class_was) = (class(new), class(old));
    let named = spec.get("storageClassName").filter(|c| !c.is_null());
    let fills = named.is_some() && !before.has("storageClassName");
    if fills && class_was.is_some() && named == class_was.as_ref() && (class_now.is_none() || class_now == class_was) {
        now.remove_at(&["storageClassName"]);
    } else {
        if class_now != class_was {
            let meta = Path::ROOT.child("metadata");
            let annotations = meta.child("annotations");
            let shown = class_now.as_ref().and_then(Value::as_str).unwrap_or_default();
            let at = annotations.key(CLASS_ANNOTATION);
            out.push(FieldError::invalid(&at, shown, check::IMMUTABLE));
        }
        if fills && class_was.as_ref().is_none_or(|c| named == Some(c)) {
            now.remove_at(&["storageClassName"]);
        }
    }
    if bound && spec.sub("resources").has("requests") {
        copy(before, &mut now, &["resources", "requests", "storage"]);
    }
    copy(before, &mut now, &["volumeAttributesClassName"]);
    if now != was {
        let difference = gostruct::diff(&gostruct::CLAIM, &was, &now);
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{difference}"
        );
        out.push(FieldError::forbidden(&path, why));
    }
    // A request may shrink down to what there is, so that a failed expansion can be taken back.
    let storage = |v: &Value| check::quantity(v.sub("storage"));
    let request = |s: &Value| storage(s.sub("resources").sub("requests"));
    let capacity = storage(old.sub("status").sub("capacity"));
    if let (Some(now), Some(was)) = (request(spec), request(before))
        && now < was
        && capacity.map_or(!now.sign().is_gt(), |capacity| now <= capacity)
    {
        let resources = path.child("resources");
        let requests = resources.child("requests");
        let why = "field can not be less than status.capacity";
        out.push(FieldError::forbidden(&requests.child("storage"), why));
    }
    check::immutable(spec, before, "volumeMode", &Path::ROOT, &mut out);
    if spec.sub("volumeAttributesClassName") != before.sub("volumeAttributesClassName") {
        let why = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        out.push(FieldError::forbidden(&path.child("volumeAttributesClassName"), why));
    }
    out
}

/// What may be going on with the size of a claim.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn validate_claim_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    let status = new.sub("status");
    let capacity = path.child("capacity");
    for (name, value) in status.members("capacity").iter() {
        basic_resource(value, &capacity.key(name), &mut out);
    }
    let at = path.child("allocatedResourceStatus");
    for (name, value) in status.members("allocatedResourceStatuses").iter() {
        allocated_name(name, &at, &mut out);
        if !value.as_str().is_some_and(|v| RESIZES.contains(&v)) {
            out.push(FieldError::not_supported(&at, name, &RESIZES));
        }
    }
    let at = path.child("allocatedResources");
    for (name, value) in status.members("allocatedResources").iter() {
        if allocated_name(name, &at, &mut out) {
            let before = out.len();
            basic_resource(value, &at.key(name), &mut out);
            if out.len() == before {
                resources::amount("storage", value, &at.key(name), &mut out);
            }
        }
    }
    out
}

/// The name of something that is given to a claim: storage, or somebody's own.
fn allocated_name(name: &str, path: &Path<'_>, out: &mut Errors) -> bool {
    let before = out.len();
    check::name(names::qualified_name, name, path, out);
    if out.len() == before && resources::is_native(name) && name != "storage" {
        out.push(FieldError::not_supported(path, name, &["storage"]));
    }
    out.len() == before
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn the_two_names_of_a_source_say_the_same() {
        const CLAIM: &str = r#"{"kind":"PersistentVolumeClaim","name":"a"}"#;
        const OTHER: &str = r#"{"apiGroup":"a.io","kind":"Backup","name":"a"}"#;
        let both = |source: &str| format!(r#"{{"dataSource":{source},"dataSourceRef":{source}}}"#);
        for (new, old, wanted) in [
            (format!(r#"{{"dataSource":{CLAIM}}}"#), "{}", both(CLAIM)),
            (format!(r#"{{"dataSourceRef":{OTHER}}}"#), "{}", both(OTHER)),
            // Nobody but a client that knows the new name gets more than claims and snapshots.
            (format!(r#"{{"dataSource":{OTHER}}}"#), "{}", "{}".to_owned()),
            (format!(r#"{{"dataSource":{OTHER}}}"#), &both(OTHER), both(OTHER)),
            (format!(r#"{{"dataSource":{OTHER},"dataSourceRef":{CLAIM}}}"#), "{}", {
                format!(r#"{{"dataSource":{OTHER},"dataSourceRef":{CLAIM}}}"#)
            }),
            (
                r#"{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a","namespace":"b"}}"#.to_owned(),
                "{}",
                r#"{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a","namespace":"b"}}"#.to_owned(),
            ),
        ] {
            let claim = |spec: &str| json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            let mut object = claim(&new);
            match_sources(&mut object, &claim(old));
            assert_eq!(json::to_string(object.sub("spec")), wanted, "{new} {old}");
        }
    }
}
