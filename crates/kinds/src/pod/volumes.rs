//! Volumes of pods.

use super::downward;
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::{Value, metadata, names};
use std::collections::{HashMap, HashSet};

/// The sources of volumes, in the order in which upstream looks for them: the first is the volume's, others are too many.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Checks `spec.volumes`, and gives those in which nothing is wrong by their names: nothing else can be mounted. `pod`
/// is the name of the pod, empty for a template.
pub(super) fn volumes<'v>(
    list: &'v [Value],
    pod: &str,
    path: &Path<'_>,
    out: &mut Errors,
) -> HashMap<&'v str, &'v Value> {
    let mut good: HashMap<&str, &Value> = HashMap::new();
    let made = |volume: &Value| format!("{pod}-{}", volume.text("name"));
    for (i, volume) in list.iter().enumerate() {
        let at = path.index(i);
        let name = volume.text("name");
        let before = out.len();
        source(volume, &made(volume), &at, out);
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        } else {
            check::name(names::dns1123_label, name, &at.child("name"), out);
        }
        if good.contains_key(name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
        if out.len() == before {
            good.insert(name, volume);
        }
        let claim = volume.sub("persistentVolumeClaim").text("claimName");
        let own = |v: &Value| v.has("ephemeral") && made(v) == claim;
        if !pod.is_empty() && !claim.is_empty() && list.iter().any(own) {
            let here = at.child("persistentVolumeClaim");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            out.push(FieldError::invalid(&here.child("claimName"), claim, why));
        }
    }
    good
}

/// A volume has exactly one source. `claim` is the name of the claim that an ephemeral one gets.
fn source(volume: &Value, claim: &str, path: &Path<'_>, out: &mut Errors) {
    let mut found = 0;
    for key in SOURCES.into_iter().filter(|k| volume.has(k)) {
        found += 1;
        if found > 1 {
            out.push(FieldError::forbidden(&path.child(shown(key)), "may not specify more than 1 volume type"));
        } else {
            one_source(key, volume.sub(key), path, out);
        }
        let name = volume.text("name");
        match key {
            "iscsi" => {
                let source = volume.sub(key);
                if source.has("initiatorName") && name.len() + source.text("targetPortal").len() >= 64 {
                    out.push(FieldError::invalid(&path.child("name"), name, TOO_LONG));
                }
            }
            "ephemeral" if found == 1 && !name.is_empty() && !claim.starts_with('-') => {
                let complaints = names::dns1123_subdomain(claim);
                let why = |why| format!("PVC name {}: {why}", object::go::quote(claim));
                out.extend(complaints.into_iter().map(|c| FieldError::invalid(&path.child("name"), name, why(c))));
            }
            _ => {}
        }
    }
    if found == 0 {
        out.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// What upstream says of an iSCSI volume whose name and portal are too long together.
pub(crate) const TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
    iscsi.initiatorName is specified.";

/// The name under which upstream forbids a second source.
pub(crate) fn shown(key: &str) -> &str {
    match key {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        key => key,
    }
}

/// Checks a source by its name, given the path of the volume; persistent volumes have some of them too.
pub(crate) fn one_source(key: &str, source: &Value, volume: &Path<'_>, out: &mut Errors) {
    // Upstream has a name of its own for one of the fields.
    let at = &volume.child(if key == "gcePersistentDisk" { "persistentDisk" } else { key });
    match key {
        "emptyDir" => {
            if let Some(limit) = check::quantity(source.sub("sizeLimit"))
                && limit.sign().is_lt()
            {
                out.push(FieldError::forbidden(
                    &at.child("sizeLimit"),
                    "SizeLimit field must be a valid resource quantity",
                ));
            }
        }
        "hostPath" if source.text("path").is_empty() => check::required(source, "path", at, out),
        "hostPath" => {
            no_parent(source.text("path"), &at.child("path"), out);
            const TYPES: [&str; 8] =
                ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
            if source.has("type") {
                check::one_of(source, "type", &TYPES, at, out);
            }
        }
        "gitRepo" => {
            check::required(source, "repository", at, out);
            if !source.text("directory").is_empty() {
                local_path(source.text("directory"), &at.child("directory"), out);
            }
        }
        "gcePersistentDisk" => {
            check::required(source, "pdName", at, out);
            partition(source, at, out);
        }
        "awsElasticBlockStore" => {
            check::required(source, "volumeID", at, out);
            partition(source, at, out);
        }
        "secret" => {
            check::required(source, "secretName", at, out);
            file_mode(source, "defaultMode", at, out);
            items(source, at, out);
        }
        "configMap" => {
            check::required(source, "name", at, out);
            file_mode(source, "defaultMode", at, out);
            items(source, at, out);
        }
        "nfs" => {
            check::required(source, "server", at, out);
            check::required(source, "path", at, out);
            if !source.text("path").starts_with('/') {
                out.push(FieldError::invalid(&at.child("path"), source.text("path"), "must be an absolute path"));
            }
        }
        "iscsi" => iscsi(source, at, out),
        "fc" => fibre_channel(source, at, out),
        "glusterfs" => {
            check::required(source, "endpoints", at, out);
            check::required(source, "path", at, out);
        }
        "rbd" => {
            if source.list("monitors").is_empty() {
                out.push(FieldError::required(&at.child("monitors"), ""));
            }
            check::required(source, "image", at, out);
        }
        "cephfs" if source.list("monitors").is_empty() => {
            out.push(FieldError::required(&at.child("monitors"), ""));
        }
        "cinder" => {
            check::required(source, "volumeID", at, out);
            if source.has("secretRef") {
                check::required(source.sub("secretRef"), "name", &at.child("secretRef"), out);
            }
        }
        "persistentVolumeClaim" => check::required(source, "claimName", at, out),
        "downwardAPI" => {
            file_mode(source, "defaultMode", at, out);
            downward_items(source, at, out);
        }
        "projected" => projected(source, at, out),
        "csi" => {
            csi_driver_name(source.text("driver"), &at.child("driver"), out);
            if source.has("nodePublishSecretRef") {
                let name = source.sub("nodePublishSecretRef").text("name");
                if name.is_empty() {
                    out.push(FieldError::required(&at.child("nodePublishSecretRef").child("name"), ""));
                } else {
                    check::name(names::dns1123_subdomain, name, &at.child("name"), out);
                }
            }
        }
        "ephemeral" if !source.has("volumeClaimTemplate") => {
            out.push(FieldError::required(&at.child("volumeClaimTemplate"), ""));
        }
        "ephemeral" => claim_template(source.sub("volumeClaimTemplate"), &at.child("volumeClaimTemplate"), out),
        "image" => check::required(source, "reference", at, out),
        "flexVolume" => {
            check::required(source, "driver", at, out);
            let options = at.child("options");
            for key in source.members("options").keys() {
                let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
                let dotted = format!(".{}", namespace.to_lowercase());
                if dotted.ends_with(".kubernetes.io") || dotted.ends_with(".k8s.io") {
                    let why = "kubernetes.io and k8s.io namespaces are reserved";
                    out.push(FieldError::invalid(&options.key(key), key, why));
                }
            }
        }
        "azureFile" => {
            check::required(source, "secretName", at, out);
            check::required(source, "shareName", at, out);
        }
        "azureDisk" => azure_disk(source, at, out),
        "vsphereVolume" => check::required(source, "volumePath", at, out),
        "photonPersistentDisk" => check::required(source, "pdID", at, out),
        "portworxVolume" => check::required(source, "volumeID", at, out),
        "scaleIO" => {
            for key in ["gateway", "system", "volumeName"] {
                check::required(source, key, at, out);
            }
        }
        "quobyte" => quobyte(source, at, out),
        "flocker" => {
            let (name, id) = (source.text("datasetName"), source.text("datasetUUID"));
            if name.is_empty() && id.is_empty() {
                out.push(FieldError::required(at, "one of datasetName and datasetUUID is required"));
            }
            if !name.is_empty() && !id.is_empty() {
                let why = "datasetName and datasetUUID can not be specified simultaneously";
                out.push(FieldError::invalid(at, "resource", why));
            }
            if name.contains('/') {
                out.push(FieldError::invalid(&at.child("datasetName"), name, "must not contain '/'"));
            }
        }
        "storageos" => storage_os(source, at, out),
        "local" if source.text("path").is_empty() => check::required(source, "path", at, out),
        "local" => no_parent(source.text("path"), &at.child("path"), out),
        _ => {}
    }
}

/// The template of a claim that lives as long as the pod: labels, annotations, specification and nothing else.
fn claim_template(template: &Value, path: &Path<'_>, out: &mut Errors) {
    let (meta, at) = (template.sub("metadata"), path.child("metadata"));
    out.extend(metadata::validate_annotations(meta.members("annotations"), &at.child("annotations")));
    out.extend(metadata::validate_labels(meta.members("labels"), &at.child("labels")));
    let members = meta.as_object().into_iter().flat_map(object::Map::iter);
    for (key, value) in members.filter(|(k, _)| !matches!(*k, "annotations" | "labels")) {
        if !value.is_null() && value.as_str() != Some("") {
            out.push(FieldError::forbidden(&at.child(key), "cannot be set"));
        }
    }
    crate::claim::spec(template.sub("spec"), &path.child("spec"), out);
}

/// Whether a name has the form of an iSCSI initiator's: an IQN, an EUI or an NAA.
fn is_iscsi_name(name: &str) -> bool {
    let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
    let hex = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_hexdigit());
    let date = |s: &str| s.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    if let Some(rest) = name.strip_prefix("iqn.") {
        let Some((when, authority)) = rest.split_once('.') else { return false };
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let part = |p: &str| edge(p.bytes().next()) && edge(p.bytes().next_back());
        return date(when)
            && host.split('.').all(part)
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
            && authority.len() != host.len() + 1;
    }
    name.strip_prefix("eui.").is_some_and(|rest| hex(rest, 16))
        || name.strip_prefix("naa.").is_some_and(|rest| hex(rest, 32) || hex(rest, 16))
}

fn iscsi(source: &Value, at: &Path<'_>, out: &mut Errors) {
    check::required(source, "targetPortal", at, out);
    check::required(source, "iqn", at, out);
    let known = |name: &str| ["iqn", "eui", "naa"].iter().any(|kind| name.starts_with(kind));
    for (key, field, present) in [
        ("iqn", "iqn", !source.text("iqn").is_empty()),
        ("initiatorName", "initiatorname", source.has("initiatorName")),
    ] {
        let name = source.text(key);
        if present && !known(name) {
            let why = "must be valid format starting with iqn, eui, or naa";
            out.push(FieldError::invalid(&at.child(field), name, why));
        } else if present && !is_iscsi_name(name) {
            out.push(FieldError::invalid(&at.child(field), name, "must be valid format"));
        }
    }
    lun(source, at, out);
    if (source.flag("chapAuthDiscovery") || source.flag("chapAuthSession")) && !source.has("secretRef") {
        out.push(FieldError::required(&at.child("secretRef"), ""));
    }
}

fn lun(source: &Value, at: &Path<'_>, out: &mut Errors) {
    let lun = source.int("lun");
    if !(0..=255).contains(&lun) {
        out.push(FieldError::invalid(&at.child("lun"), lun, "must be between 0 and 255, inclusive"));
    }
}

fn fibre_channel(source: &Value, at: &Path<'_>, out: &mut Errors) {
    let targets = at.child("targetWWNs");
    let names = source.strings("targetWWNs");
    match (names.is_empty(), source.list("wwids").is_empty()) {
        (true, true) => {
            out.push(FieldError::required(&targets, "must specify either targetWWNs or wwids, but not both"));
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            out.push(FieldError::invalid(&targets, Shown::raw(object::go::string_list(&names)), why));
        }
        _ => {}
    }
    if !names.is_empty() && !source.has("lun") {
        out.push(FieldError::required(&at.child("lun"), "lun is required if targetWWNs is specified"));
    } else if !names.is_empty() {
        lun(source, at, out);
    }
}

fn azure_disk(source: &Value, at: &Path<'_>, out: &mut Errors) {
    check::required(source, "diskName", at, out);
    check::required(source, "diskURI", at, out);
    if source.has("cachingMode") {
        check::one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], at, out);
    }
    if !source.has("kind") {
        return;
    }
    check::one_of(source, "kind", &["Dedicated", "Managed", "Shared"], at, out);
    let (uri, form) = (
        source.text("diskURI"),
        match source.text("kind") {
            "Managed" => {
                "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
            }
            _ => "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        },
    );
    let prefix = if source.text("kind") == "Managed" { "/subscriptions/" } else { "https://" };
    if !uri.starts_with(prefix) {
        out.push(FieldError::not_supported(&at.child("diskURI"), uri, &[form]));
    }
}

fn quobyte(source: &Value, at: &Path<'_>, out: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.text("registry");
    if registry.is_empty() {
        out.push(FieldError::required(&at.child("registry"), PAIRS));
    } else if source.text("tenant").len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        out.push(FieldError::required(&at.child("tenant"), why));
    } else {
        for _ in registry.split(',').filter(|pair| pair.matches(':').count() != 1 && !pair.starts_with('[')) {
            out.push(FieldError::invalid(&at.child("registry"), registry, PAIRS));
        }
    }
    check::required(source, "volume", at, out);
}

fn storage_os(source: &Value, at: &Path<'_>, out: &mut Errors) {
    check::required(source, "volumeName", at, out);
    for key in ["volumeName", "volumeNamespace"].into_iter().filter(|k| !source.text(k).is_empty()) {
        check::name(names::dns1123_label, source.text(key), &at.child(key), out);
    }
    if source.has("secretRef") {
        check::required(source.sub("secretRef"), "name", &at.child("secretRef"), out);
    }
}

/// The name of a CSI driver: at most 63 characters, a DNS subdomain whatever the case.
pub(crate) fn csi_driver_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(path, ""));
    }
    if name.len() > 63 {
        out.push(FieldError::too_long(path, 63));
    }
    let lower = name.to_lowercase();
    let complaints = names::dns1123_subdomain(&lower);
    out.extend(complaints.into_iter().map(|why| FieldError::invalid(path, name, why)));
}

fn partition(source: &Value, at: &Path<'_>, out: &mut Errors) {
    let partition = source.int("partition");
    if !(0..=255).contains(&partition) {
        out.push(FieldError::invalid(&at.child("partition"), partition, "must be between 1 and 255, inclusive"));
    }
}

/// The mode of a file.
pub(crate) fn file_mode(source: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    if let Some(mode) = source.opt_int(key).filter(|m| !(0..=0o777).contains(m)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        out.push(FieldError::invalid(&path.child(key), mode, why));
    }
}

fn items(source: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("items");
    for (i, item) in source.list("items").iter().enumerate() {
        let at = list.index(i);
        check::required(item, "key", &at, out);
        check::required(item, "path", &at, out);
        own_path(item.text("path"), &at.child("path"), out);
        file_mode(item, "mode", &at, out);
    }
}

/// Upstream names the source, not the item, where something is wrong.
fn downward_items(source: &Value, at: &Path<'_>, out: &mut Errors) {
    for item in source.list("items") {
        check::required(item, "path", at, out);
        own_path(item.text("path"), &at.child("path"), out);
        match (item.has("fieldRef"), item.has("resourceFieldRef")) {
            (true, both) => {
                downward::field(item.sub("fieldRef"), &downward::FILES, &at.child("fieldRef"), out);
                if both {
                    let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                    out.push(FieldError::invalid(at, "resource", why));
                }
            }
            (false, true) => {
                downward::resource(item.sub("resourceFieldRef"), true, &at.child("resourceFieldRef"), out);
            }
            (false, false) => {
                out.push(FieldError::required(at, "one of fieldRef and resourceFieldRef is required"));
            }
        }
        file_mode(item, "mode", at, out);
    }
}

fn projected(source: &Value, path: &Path<'_>, out: &mut Errors) {
    file_mode(source, "defaultMode", path, out);
    let list = path.child("sources");
    let mut paths: HashSet<&str> = HashSet::new();
    for (i, projection) in source.list("sources").iter().enumerate() {
        let at = list.index(i);
        let mut found = 0;
        for key in ["secret", "configMap", "downwardAPI", "serviceAccountToken"] {
            let (value, here) = (projection.sub(key), at.child(key));
            if value.is_null() {
                continue;
            }
            found += 1;
            match key {
                "downwardAPI" => downward_items(value, &here, out),
                "serviceAccountToken" => projected_token(value, &here, path, out),
                _ => {
                    check::required(value, "name", &here, out);
                    items(value, &here, out);
                }
            }
            for target in value.list("items").iter().map(|item| item.text("path")).filter(|p| !p.is_empty()) {
                if !paths.insert(target) {
                    let shown = if key == "downwardAPI" { target } else { value.text("name") };
                    out.push(FieldError::invalid(path, shown, "conflicting duplicate paths"));
                }
            }
        }
        if found > 1 {
            out.push(FieldError::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

/// A token in a projected volume; `volume` is the path that upstream names for the file.
fn projected_token(value: &Value, path: &Path<'_>, volume: &Path<'_>, out: &mut Errors) {
    let seconds = value.int("expirationSeconds");
    if seconds < 600 {
        let why = "may not specify a duration less than 10 minutes";
        out.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    if seconds > 1 << 32 {
        let why = "may not specify a duration larger than 2^32 seconds";
        out.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, why));
    }
    check::required(value, "path", volume, out);
    own_path(value.text("path"), &volume.child("path"), out);
}

/// A path for a file in a volume that the kubelet fills: names that start with `..` are the kubelet's own.
fn own_path(value: &str, path: &Path<'_>, out: &mut Errors) {
    local_path(value, path, out);
    if value.starts_with("..") && !value.starts_with("../") && value != ".." {
        out.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

/// A path inside a volume: relative, without `..`.
pub(super) fn local_path(value: &str, path: &Path<'_>, out: &mut Errors) {
    if value.starts_with('/') {
        out.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    no_parent(value, path, out);
}

fn no_parent(value: &str, path: &Path<'_>, out: &mut Errors) {
    if value.split('/').any(|part| part == "..") {
        out.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}
