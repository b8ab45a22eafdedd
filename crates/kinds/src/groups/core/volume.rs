//! PersistentVolumes.

use crate::check::{self, Errors};
use crate::claim;
use crate::gostruct;
use crate::pod;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Context, Generation, Resource, Strategy, Subresource, Version};
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
        drop_disabled: drop_attributes_class,
        prepare_create: |object, context| {
            let phase = map! { "phase" => "Pending", "lastPhaseTransitionTime" => now(context) };
            object.set_at(&["status"], phase.into());
        },
        prepare_status,
        validate: validate_volume,
        validate_update: validate_volume_update,
        warnings: volume_warnings,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "PersistentVolume",
        "persistentvolumes",
        &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolume").with_default(default_volume)],
    )
};

pub(super) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

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

pub(super) fn class_warning(object: &Value, out: &mut Vec<String>) {
    if object.annotation(CLASS_ANNOTATION).is_some() {
        let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        out.push(format!("metadata.annotations[{CLASS_ANNOTATION}]: {why}"));
    }
}

fn volume_warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let (spec, path) = (object.sub("spec"), Path::ROOT.child("spec"));
    class_warning(object, &mut out);
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
                   provisioning.";
        out.push(format!("{}: {why}", path.child("persistentVolumeReclaimPolicy")));
    }
    let affinity = path.child("nodeAffinity");
    pod::selector_terms(spec.sub("nodeAffinity").sub("required"), &affinity.child("required"), &mut out);
    // Upstream says nothing of these two here, and a volume has one source.
    if !spec.has("flocker") && !spec.has("quobyte") {
        pod::old_sources(spec, &path, &mut out);
    }
    pod::fraction(spec.sub("capacity").sub("storage"), &path.child("capacity").key("storage"), &mut out);
    out
}

pub(super) fn modes(list: &[&str]) -> String {
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

pub(super) fn class(object: &Value, spec: &Value) -> String {
    object.annotation(CLASS_ANNOTATION).unwrap_or_else(|| spec.text("storageClassName")).to_owned()
}

pub(super) fn unset(text: &str) -> Value {
    if text.is_empty() { "<unset>".into() } else { text.into() }
}

/// How much storage the `capacity` of a volume's spec, or of a claim's status, tells of; no storage where it is silent.
pub(super) fn capacity(part: &Value) -> &str {
    match part.sub("capacity").text("storage") {
        "" => "0",
        storage => storage,
    }
}

/// Drops the class of attributes, which is off, from a volume or a claim.
pub(super) fn drop_attributes_class(object: &mut Value, old: &Value) {
    const CLASS: &str = "volumeAttributesClassName";
    if object.sub("spec").has(CLASS) && !old.sub("spec").has(CLASS) {
        object.remove_at(&["spec", CLASS]);
    }
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
        capacity(spec).into(),
        modes(&spec.strings("accessModes")).into(),
        spec.text("persistentVolumeReclaimPolicy").into(),
        if deleting { "Terminating" } else { status.text("phase") }.into(),
        claim.into(),
        class(object, spec).into(),
        unset(spec.text("volumeAttributesClassName")),
        status.text("reason").into(),
        table::age(object, time),
        unset(spec.text("volumeMode")),
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
    volume_spec(object.sub("spec"), object.name(), &Path::ROOT.child("spec"), &mut out);
    out
}

/// Checks a volume that is said in place, in an attachment: only what a CSI driver has to know of it.
pub(crate) fn inline_volume(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    const HERE: &str = "in the context of inline volumes";
    let mut forbid = |key: &str, why: &str| out.push(FieldError::forbidden(&path.child(key), format!("{why} {HERE}")));
    for key in ["claimRef", "capacity"] {
        if spec.has(key) && (key != "capacity" || !spec.members(key).is_empty()) {
            forbid(key, "may not be specified");
        }
    }
    if !spec.has("csi") {
        out.push(FieldError::required(&path.child("csi"), format!("has to be specified {HERE}")));
    }
    claim::access_modes(spec, "", path, out);
    let mut forbid = |key: &str, why: &str| out.push(FieldError::forbidden(&path.child(key), format!("{why} {HERE}")));
    if !matches!(spec.text("persistentVolumeReclaimPolicy"), "" | "Retain") {
        forbid("persistentVolumeReclaimPolicy", "may only be Retain");
    }
    if spec.has("nodeAffinity") {
        forbid("nodeAffinity", "may not be specified");
    }
    volume_sources(spec, "", path, out);
    let mut forbid = |key: &str, why: &str| out.push(FieldError::forbidden(&path.child(key), format!("{why} {HERE}")));
    if !spec.text("storageClassName").is_empty() {
        forbid("storageClassName", "may not be specified");
    }
    if !matches!(spec.text("volumeMode"), "" | "Filesystem") {
        forbid("volumeMode", "may not specify volumeMode other than Filesystem");
    }
}

fn volume_spec(spec: &Value, name: &str, path: &Path<'_>, out: &mut Errors) {
    claim::access_modes(spec, "", path, out);
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
        basic_resource(value, &at, out);
        if let Some(quantity) = check::quantity(value).filter(|q| !q.sign().is_gt()) {
            out.push(FieldError::invalid(&at, quantity.to_string().as_str(), "must be greater than zero"));
        }
    }
    if !spec.text("persistentVolumeReclaimPolicy").is_empty() {
        let policies = ["Delete", "Recycle", "Retain"];
        check::one_of(spec, "persistentVolumeReclaimPolicy", &policies, path, out);
    }
    if spec.has("nodeAffinity") {
        let at = path.child("nodeAffinity");
        if spec.sub("nodeAffinity").has("required") {
            pod::node_selector(spec.sub("nodeAffinity").sub("required"), &at.child("required"), out);
        } else {
            out.push(FieldError::required(&at.child("required"), "must specify required node constraints"));
        }
    }
    volume_sources(spec, name, path, out);
    let recycled = spec.text("persistentVolumeReclaimPolicy") == "Recycle";
    let path_of_host = spec.sub("hostPath").text("path");
    let whole = path_of_host.starts_with('/') && path_of_host.split('/').all(|part| matches!(part, "" | "."));
    if whole && recycled {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        out.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    if !spec.text("storageClassName").is_empty() {
        check::name(names::dns1123_subdomain, spec.text("storageClassName"), &path.child("storageClassName"), out);
    }
    if spec.has("volumeMode") {
        check::one_of(spec, "volumeMode", &["Block", "Filesystem"], path, out);
    }
}

/// Checks that a volume has one source, and that.
fn volume_sources(spec: &Value, name: &str, path: &Path<'_>, out: &mut Errors) {
    let mut found = 0;
    // Upstream looks for these in another order than in pods, with iSCSI and claims of its own.
    let first =
        ["hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"];
    let rest = ["cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"];
    let last = ["portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"];
    for key in first.into_iter().chain(rest).chain(last).filter(|k| spec.has(k)) {
        found += 1;
        if found > 1 && key != "flexVolume" {
            out.push(FieldError::forbidden(
                &path.child(pod::shown_source(key)),
                "may not specify more than 1 volume type",
            ));
            continue;
        }
        source(key, spec, name, path, out);
    }
    if found == 0 {
        out.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// An amount that is not negative.
pub(super) fn basic_resource(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if let Some(number) = check::quantity(value).map(|q| q.value()).filter(|n| *n < 0) {
        out.push(FieldError::invalid(path, number, "must be a valid resource quantity"));
    }
}

/// Checks what a persistent volume's source may have beyond a pod's.
fn source(key: &str, spec: &Value, name: &str, path: &Path<'_>, out: &mut Errors) {
    let (source, at) = (spec.sub(key), path.child(key));
    let secret = |key: &str, parts: &[&str], out: &mut Errors| {
        for part in parts.iter().filter(|_| source.has(key)) {
            check::required(source.sub(key), part, &at.child(key), out);
        }
    };
    match key {
        "csi" => {
            pod::csi_driver_name(source.text("driver"), &at.child("driver"), out);
            check::required(source, "volumeHandle", &at, out);
            for key in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                secret(key, &["name", "namespace"], out);
                let (reference, here) = (source.sub(key), at.child(key));
                for (part, rule) in
                    [("name", names::dns1123_subdomain as names::NameCheck), ("namespace", names::dns1123_label)]
                {
                    if !reference.text(part).is_empty() {
                        check::name(rule, reference.text(part), &here.child(part), out);
                    }
                }
            }
            return;
        }
        "glusterfs" if source.has("endpointsNamespace") => {
            let (namespace, here) = (source.text("endpointsNamespace"), at.child("endpointsNamespace"));
            if namespace.is_empty() {
                let why = "if the endpointnamespace is set, it must be a valid namespace name";
                out.push(FieldError::invalid(&here, namespace, why));
            } else {
                check::name(names::dns1123_label, namespace, &here, out);
            }
        }
        "azureFile" if source.has("secretNamespace") => check::required(source, "secretNamespace", &at, out),
        "cinder" | "storageos" => secret("secretRef", &["namespace"], out),
        "iscsi" => {
            let portal = source.text("targetPortal");
            if source.has("initiatorName") && name.len() + portal.len() >= 64 {
                out.push(FieldError::invalid(&at.child("targetportal"), portal, pod::TOO_LONG));
            }
            secret("secretRef", &["name"], out);
        }
        "local" if !spec.has("nodeAffinity") => {
            out.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
        }
        _ => {}
    }
    pod::one_source(key, source, path, out);
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

fn validate_volume_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_volume(new);
    let path = Path::ROOT.child("spec");
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    let mut same = spec.clone();
    // The secret for expansions may be named later.
    let secret = ["csi", "controllerExpandSecretRef"];
    if before.has("csi") && before.at(&secret).is_none() {
        same.remove_at(&secret);
    }
    if !sources(&same).eq(sources(before)) {
        let difference = gostruct::diff(&gostruct::VOLUME_SOURCE, before, &same);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        out.push(FieldError::forbidden(&path.child("persistentvolumesource"), why));
    }
    // Upstream leaves the `spec` out of these two paths.
    check::immutable(spec, before, "volumeMode", &Path::ROOT, &mut out);
    if before.has("nodeAffinity") && !same_affinity(spec.sub("nodeAffinity"), before.sub("nodeAffinity")) {
        let why = "field is immutable, except for updating from beta label to GA";
        out.push(FieldError::invalid(&Path::ROOT.child("nodeAffinity"), spec.sub("nodeAffinity"), why));
    }
    out
}

/// Whether a volume is on the same nodes, with old names of labels replaced by new ones at most.
fn same_affinity(new: &Value, old: &Value) -> bool {
    const RENAMED: [(&str, &str); 5] = [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    let mut old = old.clone();
    let terms = |v: &Value| v.sub("required").list("nodeSelectorTerms").to_vec();
    let renamed = terms(new);
    if let Some(required) = object_mut(&mut old, &["required"]) {
        for (term, new) in list_mut(required, "nodeSelectorTerms").iter_mut().zip(&renamed) {
            for part in ["matchExpressions", "matchFields"] {
                for (requirement, new) in list_mut(term, part).iter_mut().zip(new.list(part)) {
                    if RENAMED.contains(&(requirement.text("key"), new.text("key"))) {
                        requirement.set_at(&["key"], new.text("key").into());
                    }
                }
            }
        }
    }
    &old == new
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn old_sources_of_volumes_are_told_of_where_upstream_does() {
        for (source, wanted) in [
            ("flocker", None),
            ("quobyte", None),
            ("cephfs", Some("spec.cephfs: deprecated in v1.28, non-functional in v1.31+")),
            ("storageos", Some("spec.storageOS: deprecated in v1.22, non-functional in v1.25+")),
        ] {
            let volume = json::parse(format!(r#"{{"spec":{{"{source}":{{}}}}}}"#).as_bytes()).unwrap();
            assert_eq!(volume_warnings(&volume, None), wanted.into_iter().collect::<Vec<_>>(), "{source}");
        }
    }
}
