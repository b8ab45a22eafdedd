//! Security contexts.

use super::windows;
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
        for (flag, namespace) in [("hostNetwork", Some("net")), ("hostIPC", Some("ipc"))] {
            if spec.flag(flag) && sysctl_namespace(name) == namespace {
                let why = format!("may not be specified when '{flag}' is true");
                out.push(FieldError::invalid(&here.child("name"), name, why));
            }
        }
    }
    if context.has("seLinuxChangePolicy") {
        check::one_of(context, "seLinuxChangePolicy", &["Recursive"], &at, out);
    }
    both(context, &at, out);
}

/// What a security context may say of a pod and of a container alike.
fn both(context: &Value, path: &Path<'_>, out: &mut Errors) {
    if context.has("seccompProfile") {
        seccomp(context.sub("seccompProfile"), &path.child("seccompProfile"), out);
    }
    windows::options(context, &path.child("windowsOptions"), out);
    if context.has("appArmorProfile") {
        app_armor(context.sub("appArmorProfile"), &path.child("appArmorProfile"), out);
    }
}

/// The namespace of the kernel to which a parameter belongs.
fn sysctl_namespace(name: &str) -> Option<&'static str> {
    // Slashes and dots change places where a slash comes first.
    let slashes = name.find(['.', '/']).is_some_and(|i| name[i..].starts_with('/'));
    let swapped = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let name: String = if slashes { name.chars().map(swapped).collect() } else { name.to_owned() };
    match name.as_str() {
        "kernel.sem" => Some("ipc"),
        n if n.starts_with("net.") => Some("net"),
        n if ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|p| n.starts_with(p)) => Some("ipc"),
        _ => None,
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

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(profile: &Value, path: &Path<'_>, out: &mut Errors) {
    if profile.text("type").is_empty() {
        out.push(FieldError::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else {
        check::one_of(profile, "type", &PROFILES, path, out);
    }
    let local = path.child("localhostProfile");
    let file = profile.text("localhostProfile");
    match (profile.text("type"), profile.has("localhostProfile")) {
        ("Localhost", false) => {
            out.push(FieldError::required(&local, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", true) => super::volumes::local_path(file, &local, out),
        (_, true) => {
            let why = "can only be set when seccomp type is Localhost";
            out.push(FieldError::invalid(&local, file, why));
        }
        _ => {}
    }
}

fn app_armor(profile: &Value, path: &Path<'_>, out: &mut Errors) {
    const LONGEST: usize = 4095;
    let local = path.child("localhostProfile");
    let file = profile.text("localhostProfile");
    match profile.text("type") {
        "Localhost" => {
            if file.trim() != file {
                out.push(FieldError::invalid(&local, file, "must not be padded with whitespace"));
            } else if file.is_empty() {
                out.push(FieldError::required(&local, "must be set when AppArmor type is Localhost"));
            }
            if file.len() > LONGEST {
                out.push(FieldError::too_long(&local, LONGEST as i64));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if profile.has("localhostProfile") {
                let why = "can only be set when AppArmor type is Localhost";
                out.push(FieldError::invalid(&local, file, why));
            }
        }
        "" => out.push(FieldError::required(&path.child("type"), "type is required when appArmorProfile is set")),
        other => out.push(FieldError::not_supported(&path.child("type"), other, &PROFILES)),
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
    both(context, path, out);
}
