//! PersistentVolumes and PersistentVolumeClaims.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::pod::{self, resources};
use crate::read::{Read, default_text, default_to, object_mut};
use crate::resource::{Column, Context, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, map, names};

/// Fields of a volume's specification that are no source.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) const PERSISTENT_VOLUMES: Resource = Resource {
    short_names: &["pv"],
    namespaced: false,
    subresources: &[Subresource::status("PersistentVolume")],
    columns: &[
        Column::NAME,
        Column::new("Capacity", "string"),
        Column::new("Access Modes", "string"),
        Column::new("Reclaim Policy", "string"),
        Column::new("Status", "string"),
        Column::new("Claim", "string"),
        Column::new("StorageClass", "string"),
        Column::new("VolumeAttributesClass", "string"),
        Column::new("Reason", "string"),
        Column::AGE,
        Column::wide("VolumeMode", "string"),
    ],
    cells: volume_cells,
    selectable: &[],
    strategy: Strategy {
        generation: Generation::None,
        returns_deleted: true,
        prepare_create: |object, context| {
            let phase = map! { "phase" => "Pending", "lastPhaseTransitionTime" => now(context) };
            object.set_at(&["status"], phase.into());
        },
        prepare_status,
        validate: validate_volume,
        validate_update: validate_volume_update,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "PersistentVolume",
        "persistentvolumes",
        &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolume").with_default(default_volume)],
    )
};

fn now(context: &Context<'_>) -> String {
    context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Notes when the phase changed.
fn prepare_status(object: &mut Value, old: &Value, context: &Context<'_>) {
    let (status, before) = (object.sub("status"), old.sub("status"));
    let same_time = status.sub("lastPhaseTransitionTime") == before.sub("lastPhaseTransitionTime");
    if status.text("phase") != before.text("phase") && (same_time || !status.has("lastPhaseTransitionTime")) {
        object.set_at(&["status", "lastPhaseTransitionTime"], now(context).into());
    }
}

fn modes(list: &[&str]) -> String {
    let short = |m: &&str| match *m {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        _ => "RWOP",
    };
    let mut out: Vec<&str> = Vec::new();
    for mode in ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"] {
        if list.contains(&mode) {
            out.push(short(&mode));
        }
    }
    out.join(",")
}

fn class(object: &Value, spec: &Value) -> String {
    object
        .annotation("volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| spec.text("storageClassName"))
        .to_owned()
}

fn unset(text: &str) -> Value {
    if text.is_empty() { "<unset>".into() } else { text.into() }
}

fn volume_cells(object: &Value, time: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let claim = spec.sub("claimRef");
    let claim = if spec.has("claimRef") {
        format!("{}/{}", claim.text("namespace"), claim.text("name"))
    } else {
        String::new()
    };
    let deleting = object.sub("metadata").has("deletionTimestamp");
    vec![
        object.name().into(),
        spec.sub("capacity").text("storage").into(),
        modes(&spec.strings("accessModes")).into(),
        spec.text("persistentVolumeReclaimPolicy").into(),
        if deleting { "Terminating" } else { status.text("phase") }.into(),
        claim.into(),
        class(object, spec).into(),
        unset(spec.text("volumeAttributesClassName")),
        status.text("reason").into(),
        table::age(object, time),
        spec.text("volumeMode").into(),
    ]
}

fn default_volume(object: &mut Value) {
    if let Some(status) = object_mut(object, &["status"]) {
        default_text(status, "phase", "Pending");
    }
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_to(spec, "volumeMode", "Filesystem");
    if let Some(path) = object_mut(spec, &["hostPath"]) {
        default_to(path, "type", "");
    }
    pod::default_legacy_sources(spec);
}

fn sources(spec: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = spec.as_object().into_iter().flat_map(Map::iter);
    members.filter(|(k, v)| !NOT_SOURCES.contains(k) && !v.is_null())
}

fn validate_volume(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    access_modes(spec, &path, &mut out);
    let capacity = path.child("capacity");
    let amounts = spec.members("capacity");
    if amounts.is_empty() {
        out.push(FieldError::required(&capacity, ""));
    }
    if amounts.len() != 1 || !amounts.contains_key("storage") {
        out.push(FieldError::not_supported(&capacity, resource_list(spec), &["storage"]));
    }
    for (name, value) in amounts.iter() {
        let at = capacity.key(name);
        resources::amount(name, value, &at, &mut out);
        if check::quantity(value).is_some_and(|q| !q.sign().is_gt()) && name == "storage" {
            let shown = value.as_str().unwrap_or_default();
            out.push(FieldError::invalid(&at, shown, "must be greater than zero"));
        }
    }
    if !spec.text("persistentVolumeReclaimPolicy").is_empty() {
        let policies = ["Delete", "Recycle", "Retain"];
        check::one_of(spec, "persistentVolumeReclaimPolicy", &policies, &path, &mut out);
    }
    if spec.has("nodeAffinity") {
        let at = path.child("nodeAffinity");
        if spec.sub("nodeAffinity").has("required") {
            pod::node_selector(spec.sub("nodeAffinity").sub("required"), &at.child("required"), &mut out);
        } else {
            out.push(FieldError::required(&at.child("required"), "must specify required node constraints"));
        }
    }
    let mut found = 0;
    for (key, source) in sources(spec) {
        let at = path.child(key);
        found += 1;
        if found > 1 {
            out.push(FieldError::forbidden(&at, "may not specify more than 1 volume type"));
            continue;
        }
        if key == "csi" {
            pod::csi_driver_name(source.text("driver"), &at.child("driver"), &mut out);
            check::required(source, "volumeHandle", &at, &mut out);
        } else {
            pod::one_source(key, source, &at, &mut out);
        }
        if key == "local" && !spec.has("nodeAffinity") {
            out.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
        }
    }
    if found == 0 {
        out.push(FieldError::required(&path, "must specify a volume type"));
    }
    let recycled = spec.text("persistentVolumeReclaimPolicy") == "Recycle";
    if spec.sub("hostPath").text("path") == "/" && recycled {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        out.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    if !spec.text("storageClassName").is_empty() {
        check::name(names::dns1123_subdomain, spec.text("storageClassName"), &path.child("storageClassName"), &mut out);
    }
    if spec.has("volumeMode") {
        check::one_of(spec, "volumeMode", &["Block", "Filesystem"], &path, &mut out);
    }
    out
}

/// A list of resources as Go prints it.
fn resource_list(spec: &Value) -> Shown {
    if !spec.has("capacity") {
        return Shown::raw("core.ResourceList(nil)");
    }
    let pairs: Vec<String> = spec
        .members("capacity")
        .iter()
        .filter_map(|(name, value)| {
            let quantity = check::quantity(value)?;
            Some(format!("{}:{}", object::go::quote(name), quantity.go_syntax_with_text()))
        })
        .collect();
    Shown::raw(format!("core.ResourceList{{{}}}", pairs.join(", ")))
}

fn access_modes(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("accessModes");
    let list = spec.strings("accessModes");
    if list.is_empty() {
        out.push(FieldError::required(&at, ""));
    }
    for mode in &list {
        if !MODES.contains(mode) {
            out.push(FieldError::not_supported(&at, *mode, &MODES));
        }
    }
    if list.contains(&"ReadWriteOncePod") && list.iter().any(|m| *m != "ReadWriteOncePod" && MODES.contains(m)) {
        let why = "may not use ReadWriteOncePod with other access modes";
        out.push(FieldError::forbidden(&at, why));
    }
}

fn validate_volume_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_volume(new);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    if !sources(spec).eq(sources(before)) {
        let difference = gostruct::diff(&gostruct::VOLUME_SOURCE, before, spec);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        out.push(FieldError::forbidden(&path.child("persistentvolumesource"), why));
    }
    check::immutable(spec, before, "volumeMode", &path, &mut out);
    if before.has("nodeAffinity") && spec.sub("nodeAffinity") != before.sub("nodeAffinity") {
        let why = "field is immutable, except for updating from beta label to GA";
        out.push(FieldError::invalid(&path.child("nodeAffinity"), spec.sub("nodeAffinity"), why));
    }
    out
}

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
    selectable: &[SelectableField { name: "name", value: |object| object.name().to_owned() }],
    strategy: Strategy {
        generation: Generation::None,
        returns_deleted: true,
        prepare_create: |object, _| object.set_at(&["status"], map! { "phase" => "Pending" }.into()),
        validate: validate_claim,
        validate_update: validate_claim_update,
        validate_status: validate_claim_status,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolumeClaim").with_default(default_claim)],
    )
};

fn claim_cells(object: &Value, time: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let bound = !spec.text("volumeName").is_empty();
    let deleting = object.sub("metadata").has("deletionTimestamp");
    let (capacity, modes) = match bound {
        true => (status.sub("capacity").text("storage").to_owned(), modes(&status.strings("accessModes"))),
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
        spec.text("volumeMode").into(),
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
    claim_spec(object.sub("spec"), &Path::ROOT.child("spec"), &mut out);
    out
}

fn claim_spec(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("accessModes");
    let list = spec.strings("accessModes");
    if list.is_empty() {
        out.push(FieldError::required(&at, "at least 1 access mode is required"));
    }
    check::label_selector(spec.sub("selector"), &path.child("selector"), out);
    for mode in &list {
        if !MODES.contains(mode) {
            out.push(FieldError::not_supported(&at, *mode, &MODES));
        }
    }
    if list.contains(&"ReadWriteOncePod") && list.iter().any(|m| *m != "ReadWriteOncePod" && MODES.contains(m)) {
        out.push(FieldError::forbidden(&at, "may not use ReadWriteOncePod with other access modes"));
    }
    let resources = path.child("resources");
    let at = resources.key("storage");
    match spec.sub("resources").members("requests").get("storage") {
        None => out.push(FieldError::required(&at, "")),
        Some(value) => {
            let before = out.len();
            resources::amount("storage", value, &at, out);
            if let Some(quantity) = check::quantity(value).filter(|q| !q.sign().is_gt() && out.len() == before) {
                out.push(FieldError::invalid(&at, quantity.to_string().as_str(), "must be greater than zero"));
            }
        }
    }
    if spec.has("storageClassName") && !spec.text("storageClassName").is_empty() {
        check::name(names::dns1123_subdomain, spec.text("storageClassName"), &path.child("storageClassName"), out);
    }
    if spec.has("volumeMode") {
        check::one_of(spec, "volumeMode", &["Block", "Filesystem"], path, out);
    }
    for key in ["dataSource", "dataSourceRef"].into_iter().filter(|k| spec.has(k)) {
        let (source, at) = (spec.sub(key), path.child(key));
        check::required(source, "name", &at, out);
        check::required(source, "kind", &at, out);
        if source.text("apiGroup").is_empty() && source.text("kind") != "PersistentVolumeClaim" {
            out.push(FieldError::invalid(&at, source.text("kind"), ""));
        }
    }
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
    // The volume is named once, and a class filled in once.
    if before.text("volumeName").is_empty() {
        copy(spec, &mut was, &["volumeName"]);
    }
    if !before.has("storageClassName") {
        copy(before, &mut now, &["storageClassName"]);
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
        && capacity.is_some_and(|capacity| now <= capacity)
    {
        let resources = path.child("resources");
        let requests = resources.child("requests");
        let why = "field can not be less than status.capacity";
        out.push(FieldError::forbidden(&requests.child("storage"), why));
    }
    out
}

fn validate_claim_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("status");
    for (name, value) in new.sub("status").members("capacity").iter() {
        resources::amount(name, value, &path.child("capacity").key(name), &mut out);
    }
    out
}
