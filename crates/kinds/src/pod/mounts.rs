//! Where containers see volumes: as directories and as devices.

use super::containers::Shared;
use super::volumes::local_path;
use crate::check::{self, Errors};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};
use std::collections::HashSet;

/// Checks `volumeMounts`. Upstream names the list, not the entry, for some of what it finds.
pub(super) fn mounts(container: &Value, shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("volumeMounts");
    let devices = container.list("volumeDevices");
    let mut seen = HashSet::new();
    for (i, mount) in container.list("volumeMounts").iter().enumerate() {
        let at = list.index(i);
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        }
        if !shared.volumes.contains_key(name) {
            out.push(FieldError::not_found(&at.child("name"), name));
        }
        if target.is_empty() {
            out.push(FieldError::required(&at.child("mountPath"), ""));
        }
        if !seen.insert(target) {
            out.push(FieldError::invalid(&at.child("mountPath"), target, "must be unique"));
        }
        if devices.iter().any(|d| d.text("name") == name) {
            out.push(FieldError::invalid(&at.child("name"), name, "must not already exist in volumeDevices"));
        }
        if devices.iter().any(|d| d.text("devicePath") == target) {
            let why = "must not already exist as a path in volumeDevices";
            out.push(FieldError::invalid(&at.child("mountPath"), target, why));
        }
        let (sub, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
        if !sub.is_empty() {
            local_path(sub, &list.child("subPath"), out);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                out.push(FieldError::invalid(&at.child("subPathExpr"), expression, why));
            }
            local_path(expression, &list.child("subPathExpr"), out);
        }
        if mount.has("mountPropagation") {
            check::one_of(mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"], &list, out);
            let privileged = container.sub("securityContext").flag("privileged");
            if mount.text("mountPropagation") == "Bidirectional" && !privileged {
                let why = "Bidirectional mount propagation is available only to privileged containers";
                out.push(FieldError::forbidden(&list.child("mountPropagation"), why));
            }
        }
        if mount.has("recursiveReadOnly") {
            recursive_read_only(mount, &list, out);
        }
    }
}

fn recursive_read_only(mount: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("recursiveReadOnly");
    match mount.text("recursiveReadOnly") {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.flag("readOnly") {
                out.push(FieldError::forbidden(&at, "may only be specified when readOnly is true"));
            }
            if mount.has("mountPropagation") && mount.text("mountPropagation") != "None" {
                let why = "may only be specified when mountPropagation is None or not specified";
                out.push(FieldError::forbidden(&at, why));
            }
        }
        other => out.push(FieldError::not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"])),
    }
}

/// Checks `volumeDevices`.
pub(super) fn devices(container: &Value, shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("volumeDevices");
    let mounts = container.list("volumeMounts");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for (i, device) in container.list("volumeDevices").iter().enumerate() {
        let at = list.index(i);
        let (name, target) = (device.text("name"), device.text("devicePath"));
        let mut invalid = |key: &str, value: &str, why: &str| {
            out.push(FieldError::invalid(&at.child(key), value, why));
        };
        if names.contains(name) {
            invalid("name", name, "must be unique");
        }
        if paths.contains(target) {
            invalid("devicePath", target, "must be unique");
        }
        if target.split('/').any(|p| p == "..") {
            invalid("devicePath", target, "can not contain backsteps ('..')");
        } else {
            paths.insert(target);
        }
        if mounts.iter().any(|m| m.text("name") == name) {
            invalid("name", name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|m| m.text("mountPath") == target) {
            invalid("devicePath", target, "must not already exist as a path in volumeMounts");
        }
        match shared.volumes.get(name) {
            None => out.push(FieldError::not_found(&at.child("name"), name)),
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                out.push(FieldError::invalid(&at.child("name"), name, why));
            }
            Some(_) => {}
        }
        check::required(device, "name", &at, out);
        check::required(device, "devicePath", &at, out);
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
