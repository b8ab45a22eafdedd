//! Volumes of pods.

use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};

/// Checks `spec.volumes`.
pub(super) fn volumes(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    let mut seen = std::collections::HashSet::new();
    for (i, volume) in list.iter().enumerate() {
        let at = path.index(i);
        let name = volume.text("name");
        source(volume, &at, out);
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
            continue;
        }
        let complaints = names::dns1123_label(name);
        if !complaints.is_empty() {
            out.extend(complaints.into_iter().map(|why| FieldError::invalid(&at.child("name"), name, why)));
        } else if !seen.insert(name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
    }
}

/// A volume has exactly one source.
fn source(volume: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut found = 0;
    let sources = volume.as_object().into_iter().flat_map(object::Map::iter);
    for (key, source) in sources.filter(|(k, v)| *k != "name" && !v.is_null()) {
        let at = path.child(key);
        found += 1;
        if found > 1 {
            out.push(FieldError::forbidden(&at, "may not specify more than 1 volume type"));
            continue;
        }
        one_source(key, source, &at, out);
    }
    if found == 0 {
        out.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// Checks a source by its name; persistent volumes have some of them too.
pub(crate) fn one_source(key: &str, source: &Value, at: &Path<'_>, out: &mut Errors) {
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
        "hostPath" => {
            check::required(source, "path", at, out);
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
        "iscsi" => {
            for key in ["targetPortal", "iqn"] {
                check::required(source, key, at, out);
            }
            let lun = source.int("lun");
            if !(0..=255).contains(&lun) {
                out.push(FieldError::invalid(&at.child("lun"), lun, "must be between 0 and 255, inclusive"));
            }
        }
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
        "cinder" => check::required(source, "volumeID", at, out),
        "persistentVolumeClaim" => check::required(source, "claimName", at, out),
        "downwardAPI" => {
            file_mode(source, "defaultMode", at, out);
            downward_items(source, at, out);
        }
        "projected" => projected(source, at, out),
        "csi" => {
            check::required(source, "driver", at, out);
            if !source.text("driver").is_empty() {
                csi_driver_name(source.text("driver"), &at.child("driver"), out);
            }
        }
        "ephemeral" if !source.has("volumeClaimTemplate") => {
            out.push(FieldError::required(&at.child("volumeClaimTemplate"), ""));
        }
        "image" => check::required(source, "reference", at, out),
        "flexVolume" => check::required(source, "driver", at, out),
        "azureFile" => {
            check::required(source, "secretName", at, out);
            check::required(source, "shareName", at, out);
        }
        "vsphereVolume" => check::required(source, "volumePath", at, out),
        "local" => check::required(source, "path", at, out),
        _ => {}
    }
}

/// The name of a CSI driver: at most 63 characters, a DNS subdomain whatever the case.
pub(crate) fn csi_driver_name(name: &str, path: &Path<'_>, out: &mut Errors) {
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
        out.push(FieldError::invalid(&at.child("partition"), partition, "must be between 0 and 255, inclusive"));
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
        if !item.text("path").is_empty() {
            local_path(item.text("path"), &at.child("path"), out);
        }
        file_mode(item, "mode", &at, out);
    }
}

fn downward_items(source: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("items");
    for (i, item) in source.list("items").iter().enumerate() {
        let at = list.index(i);
        check::required(item, "path", &at, out);
        if !item.text("path").is_empty() {
            local_path(item.text("path"), &at.child("path"), out);
        }
        match (item.has("fieldRef"), item.has("resourceFieldRef")) {
            (true, true) => {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                out.push(FieldError::invalid(&at, "resource", why));
            }
            (false, false) => {
                out.push(FieldError::required(&at, "one of fieldRef and resourceFieldRef is required"));
            }
            _ => {}
        }
        file_mode(item, "mode", &at, out);
    }
}

fn projected(source: &Value, path: &Path<'_>, out: &mut Errors) {
    file_mode(source, "defaultMode", path, out);
    let list = path.child("sources");
    for (i, projection) in source.list("sources").iter().enumerate() {
        let at = list.index(i);
        let mut found = 0;
        let members = projection.as_object().into_iter().flat_map(object::Map::iter);
        for (key, value) in members.filter(|(_, v)| !v.is_null()) {
            found += 1;
            let here = at.child(key);
            if found > 1 {
                out.push(FieldError::forbidden(&here, "may not specify more than 1 volume type"));
                continue;
            }
            match key {
                "secret" | "configMap" => {
                    check::required(value, "name", &here, out);
                    items(value, &here, out);
                }
                "downwardAPI" => downward_items(value, &here, out),
                "serviceAccountToken" => {
                    let seconds = value.int("expirationSeconds");
                    if seconds < 600 {
                        let why = "may not specify a duration less than 10 minutes";
                        out.push(FieldError::invalid(&here.child("expirationSeconds"), seconds, why));
                    }
                    if seconds > 1 << 32 {
                        let why = "may not specify a duration larger than 2^32 seconds";
                        out.push(FieldError::invalid(&here.child("expirationSeconds"), seconds, why));
                    }
                    check::required(value, "path", &here, out);
                    if !value.text("path").is_empty() {
                        local_path(value.text("path"), &here.child("path"), out);
                    }
                }
                _ => {}
            }
        }
        if found == 0 {
            out.push(FieldError::required(&at, "must specify a volume type"));
        }
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
