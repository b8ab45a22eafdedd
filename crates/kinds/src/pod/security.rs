//! Security contexts.

use crate::check::{self, Errors};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};

const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";

fn id(context: &Value, key: &str, path: &Path<'_>, out: &mut Errors) {
    if let Some(value) = context.opt_int(key).filter(|v| !(0..=i64::from(i32::MAX)).contains(v)) {
        out.push(FieldError::invalid(&path.child(key), value, ID_RANGE));
    }
}

/// `spec.securityContext` of a pod.
pub(super) fn pod_security(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let context = spec.sub("securityContext");
    let at = path.child("securityContext");
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(context, key, &at, out);
    }
    let groups = at.child("supplementalGroups");
    for (i, group) in context.list("supplementalGroups").iter().filter_map(Value::as_int).enumerate() {
        if !(0..=i64::from(i32::MAX)).contains(&group) {
            out.push(FieldError::invalid(&groups.index(i), group, ID_RANGE));
        }
    }
    let share = at.child("shareProcessNamespace");
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        out.push(FieldError::invalid(&share, true, why));
    }
    if context.has("fsGroupChangePolicy") {
        check::one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &at, out);
    }
    if context.has("supplementalGroupsPolicy") {
        check::one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at, out);
    }
    let sysctls = at.child("sysctls");
    let mut seen: Vec<&str> = Vec::new();
    for (i, sysctl) in context.list("sysctls").iter().enumerate() {
        let here = sysctls.index(i);
        let name = sysctl.text("name");
        if name.is_empty() {
            out.push(FieldError::required(&here.child("name"), ""));
        } else if !is_sysctl(name) {
            let pattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            let why = format!("must have at most 253 characters and match regex {pattern}");
            out.push(FieldError::invalid(&here.child("name"), name, why));
        } else if seen.contains(&name) {
            out.push(FieldError::duplicate(&here.child("name"), name));
        }
        seen.push(name);
    }
    if context.has("seccompProfile") {
        profile(context.sub("seccompProfile"), &at.child("seccompProfile"), out);
    }
    if context.has("appArmorProfile") {
        profile(context.sub("appArmorProfile"), &at.child("appArmorProfile"), out);
    }
}

fn is_sysctl(name: &str) -> bool {
    let part = |p: &str| {
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        p.bytes().all(|b| edge(b) || matches!(b, b'-' | b'_'))
            && p.bytes().next().is_some_and(edge)
            && p.bytes().next_back().is_some_and(edge)
    };
    name.len() <= 253 && name.split(['.', '/']).all(part)
}

/// A profile for seccomp or AppArmor.
fn profile(profile: &Value, path: &Path<'_>, out: &mut Errors) {
    check::required_one_of(profile, "type", &["Localhost", "RuntimeDefault", "Unconfined"], path, out);
    let local = path.child("localhostProfile");
    match (profile.text("type"), profile.has("localhostProfile")) {
        ("Localhost", false) => {
            out.push(FieldError::required(&local, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", true) => {
            let file = profile.text("localhostProfile");
            super::volumes::local_path(file, &local, out);
        }
        (_, true) => {
            let why = "can only be set when seccomp type is Localhost";
            out.push(FieldError::invalid(&local, profile.text("localhostProfile"), why));
        }
        _ => {}
    }
}

/// `securityContext` of a container.
pub(super) fn container_security(container: &Value, host_users: bool, path: &Path<'_>, out: &mut Errors) {
    let context = container.sub("securityContext");
    if context.as_object().is_none() {
        return;
    }
    for key in ["runAsUser", "runAsGroup"] {
        id(context, key, path, out);
    }
    if context.has("procMount") {
        check::one_of(context, "procMount", &["Default", "Unmasked"], path, out);
        if host_users && context.text("procMount") == "Unmasked" {
            let why = "`hostUsers` must be false to use `Unmasked`";
            out.push(FieldError::invalid(&path.child("procMount"), "Unmasked", why));
        }
    }
    if context.has("seccompProfile") {
        profile(context.sub("seccompProfile"), &path.child("seccompProfile"), out);
    }
    if context.has("appArmorProfile") {
        profile(context.sub("appArmorProfile"), &path.child("appArmorProfile"), out);
    }
    if context.sub("allowPrivilegeEscalation").as_bool() == Some(false) {
        if context.flag("privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            out.push(FieldError::invalid(path, context, why));
        }
        if context.sub("capabilities").strings("add").contains(&"CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            out.push(FieldError::invalid(path, context, why));
        }
    }
}
