//! The checks of the level `baseline`, in the order of upstream's identifiers.

use super::Violation;
use super::checks::{Pod, containers, context, plural, quoted, set, setters, violation};
use crate::pod::APP_ARMOR;
use crate::read::Read;
use object::{Value, go};

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Names of sysctls that are safe, with the first minor version that knows them so.
const SYSCTLS: [(u32, &str); 12] = [
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
];

/// What a pod violates; where `restricted` asks the same more strictly, it is left to that.
pub(super) fn violations(pod: &Pod<'_>, restricted: bool) -> Vec<Violation> {
    let mut out = Vec::new();
    out.extend(app_armor(pod));
    out.extend(capabilities(pod).filter(|_| !(restricted && pod.minor >= 22)));
    out.extend(host_namespaces(pod));
    out.extend(host_paths(pod).filter(|_| !restricted));
    out.extend(host_ports(pod));
    let privileged = pod.named(|c| context(c).flag("privileged"));
    if !privileged.is_empty() {
        let detail = format!("{} must not set securityContext.privileged=true", containers(&privileged));
        out.push(violation("privileged", detail));
    }
    out.extend(proc_mount(pod));
    out.extend(se_linux(pod));
    out.extend(seccomp(pod).filter(|_| !(restricted && pod.minor >= 19)));
    out.extend(sysctls(pod));
    out.extend(host_process(pod));
    out
}

fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |c: &Value| matches!(c.sub("appArmorProfile").text("type"), "" | "RuntimeDefault" | "Localhost");
    let bad = pod.named(|c| !allowed(context(c)));
    let mut values = Vec::new();
    let own = !allowed(pod.context());
    if own {
        values.push(pod.context().sub("appArmorProfile").text("type"));
    }
    values.extend(pod.containers().map(context).filter(|c| !allowed(c)).map(|c| c.sub("appArmorProfile").text("type")));
    let annotations = pod.template.sub("metadata").members("annotations");
    let annotated = annotations.iter().filter(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        key.starts_with(APP_ARMOR) && !(matches!(value, "" | "runtime/default") || value.starts_with("localhost/"))
    });
    let annotated: Vec<(&str, &Value)> = annotated.collect();
    let mut who: Vec<String> = setters(own, &bad).into_iter().collect();
    if !annotated.is_empty() {
        let told =
            annotated.iter().map(|(key, value)| format!("{key}={}", go::quote(value.as_str().unwrap_or_default())));
        let told: Vec<String> = told.collect();
        who.push(format!("{} {}", plural("annotation", "annotations", told.len()), told.join(", ")));
    }
    if who.is_empty() {
        return None;
    }
    let values = set(values.into_iter());
    let count = values.len() + annotated.len();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", count);
    let mut detail = who.join(" and ");
    if !values.is_empty() {
        detail = format!("{detail} must not set AppArmor profile type to {}", quoted(&values));
    }
    Some(violation(reason, detail))
}

fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let added = |c: &'_ Value| -> Vec<String> {
        let added = context(c).sub("capabilities").strings("add").into_iter();
        added.filter(|name| !CAPABILITIES.contains(name)).map(str::to_owned).collect()
    };
    let bad = pod.named(|c| !added(c).is_empty());
    let all: Vec<String> = pod.containers().flat_map(added).collect();
    (!bad.is_empty()).then(|| {
        let all = quoted(&set(all.iter().map(String::as_str)));
        let detail = format!("{} must not include {all} in securityContext.capabilities.add", containers(&bad));
        violation("non-default capabilities", detail)
    })
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|key| pod.spec.flag(key));
    let shared: Vec<String> = shared.map(|key| format!("{key}=true")).collect();
    (!shared.is_empty()).then(|| violation("host namespaces", shared.join(", ")))
}

fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let paths = pod.spec.list("volumes").iter().filter(|v| v.has("hostPath")).map(|v| v.text("name"));
    let paths: Vec<&str> = paths.collect();
    (!paths.is_empty()).then(|| {
        violation("hostPath volumes", format!("{} {}", plural("volume", "volumes", paths.len()), quoted(&paths)))
    })
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |c: &Value| -> Vec<String> {
        c.list("ports").iter().map(|p| p.int("hostPort")).filter(|p| *p != 0).map(|p| p.to_string()).collect()
    };
    let bad = pod.named(|c| !ports(c).is_empty());
    let all: Vec<String> = pod.containers().flat_map(ports).collect();
    (!bad.is_empty()).then(|| {
        let all = set(all.iter().map(String::as_str));
        let (uses, what) = (plural("uses", "use", bad.len()), plural("hostPort", "hostPorts", all.len()));
        violation("hostPort", format!("{} {uses} {what} {}", containers(&bad), all.join(", ")))
    })
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |c: &Value| !matches!(context(c).text("procMount"), "" | "Default");
    let bad = pod.named(is_bad);
    (!bad.is_empty()).then(|| {
        let types = set(pod.containers().filter(|c| is_bad(c)).map(|c| context(c).text("procMount")));
        let detail = format!("{} must not set securityContext.procMount to {}", containers(&bad), quoted(&types));
        violation("procMount", detail)
    })
}

fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    let allows = |ty: &str| {
        matches!(ty, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || ty == "container_engine_t" && pod.minor >= 31
    };
    let option = |context: &Value, key: &str| context.sub("seLinuxOptions").text(key).to_owned();
    let sets = |context: &Value, key: &str| !option(context, key).is_empty();
    let is_bad = |c: &Value| !allows(&option(c, "type")) || sets(c, "user") || sets(c, "role");
    let bad = pod.named(|c| is_bad(context(c)));
    let who = setters(is_bad(pod.context()), &bad)?;
    let all: Vec<&Value> = std::iter::once(pod.context()).chain(pod.containers().map(context)).collect();
    let types: Vec<String> = all.iter().map(|c| option(c, "type")).filter(|ty| !allows(ty)).collect();
    let types = set(types.iter().map(String::as_str));
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!("{} {}", plural("type", "types", types.len()), quoted(&types)));
    }
    for key in ["user", "role"] {
        if all.iter().any(|c| sets(c, key)) {
            data.push(format!("{key} may not be set"));
        }
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    Some(violation("seLinuxOptions", detail))
}

fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let profile = |c: &'_ Value| c.sub("seccompProfile").text("type").to_owned();
    let is_bad = |ty: &str| !matches!(ty, "" | "RuntimeDefault" | "Localhost");
    let bad = pod.named(|c| is_bad(&profile(context(c))));
    let own = profile(pod.context());
    let who = setters(is_bad(&own), &bad)?;
    let all: Vec<String> = std::iter::once(own).chain(pod.containers().map(|c| profile(context(c)))).collect();
    let values = set(all.iter().map(String::as_str).filter(|ty| is_bad(ty)));
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(&values));
    Some(violation("seccompProfile", detail))
}

fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let safe = |name: &str| SYSCTLS.iter().any(|(since, known)| *known == name && *since <= pod.minor);
    let bad = pod.context().list("sysctls").iter().map(|s| s.text("name")).filter(|name| !safe(name));
    let bad: Vec<&str> = bad.collect();
    (!bad.is_empty()).then(|| violation("forbidden sysctls", bad.join(", ")))
}

fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |c: &Value| c.sub("windowsOptions").flag("hostProcess");
    let bad = pod.named(|c| is_bad(context(c)));
    let who = setters(is_bad(pod.context()), &bad)?;
    Some(violation("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true")))
}
