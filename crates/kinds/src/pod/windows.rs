//! What pods may say for one operating system only.

use super::containers::all_containers;
use crate::check::Errors;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};

/// What a pod for Windows cannot have in its security context and beside it.
const LINUX_ONLY: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

/// What a container for Windows cannot have in its security context.
const LINUX_ONLY_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Checks `spec.os`, and that nothing is there that the system does not have.
pub(super) fn operating_system(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if !spec.has("os") {
        return;
    }
    let os = path.child("os");
    match spec.sub("os").text("name") {
        "" => out.push(FieldError::required(&os.child("name"), "cannot be empty")),
        "linux" => {
            let why = "windows options cannot be set for a linux pod";
            if spec.sub("securityContext").has("windowsOptions") {
                out.push(FieldError::forbidden(&path.child("securityContext.windowsOptions"), why));
            }
            in_containers(spec, &["windowsOptions"], why, path, out);
        }
        "windows" => {
            let why = "cannot be set for a windows pod";
            for field in LINUX_ONLY {
                let value = spec.at(&field.split('.').collect::<Vec<_>>()).unwrap_or(&Value::Null);
                let set = match field {
                    "hostPID" | "hostIPC" => value.as_bool() == Some(true),
                    "securityContext.sysctls" => value.as_array().is_some_and(|list| !list.is_empty()),
                    _ => !value.is_null(),
                };
                if set {
                    out.push(FieldError::forbidden(&path.child(field), why));
                }
            }
            in_containers(spec, &LINUX_ONLY_CONTAINER, why, path, out);
        }
        other => out.push(FieldError::not_supported(&os, other, &["linux", "windows"])),
    }
}

fn in_containers(spec: &Value, fields: &[&str], why: &str, path: &Path<'_>, out: &mut Errors) {
    for (list, i, container) in all_containers(spec) {
        let list = path.child(list);
        let container_path = list.index(i);
        let at = container_path.child("securityContext");
        for field in fields.iter().filter(|f| container.sub("securityContext").has(f)) {
            out.push(FieldError::forbidden(&at.child(field), why));
        }
    }
}

/// Either all containers are processes of the host, or none is.
pub(super) fn host_processes(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let of = |v: &Value| v.sub("securityContext").sub("windowsOptions").sub("hostProcess").as_bool();
    let whole = of(spec);
    let (mut count, mut processes) = (0, 0);
    for (list, i, container) in all_containers(spec) {
        count += 1;
        let own = of(container);
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let list = path.child(list);
            let at = list.index(i);
            let why = format!("pod hostProcess value must be identical if both are specified, was {whole}");
            let field = at.child("securityContext.windowsOptions.hostProcess");
            out.push(FieldError::invalid(&field, own, why));
        }
        processes += usize::from(own.or(whole) == Some(true));
    }
    if processes == 0 {
        return;
    }
    if processes != count {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        out.push(FieldError::invalid(path, "", why));
    }
    if !spec.flag("hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        out.push(FieldError::invalid(&path.child("hostNetwork"), false, why));
    }
}

/// Checks the `windowsOptions` of a security context.
pub(super) fn options(context: &Value, path: &Path<'_>, out: &mut Errors) {
    const LONGEST_SPEC: usize = 64 * 1024;
    let options = context.sub("windowsOptions");
    let mut refuse = |key: &str, why: String| {
        out.push(FieldError::invalid(&path.child(key), options.text(key), why));
    };
    if options.has("gmsaCredentialSpecName") {
        for why in names::dns1123_subdomain(options.text("gmsaCredentialSpecName")) {
            refuse("gmsaCredentialSpecName", why);
        }
    }
    if options.has("gmsaCredentialSpec") {
        match options.text("gmsaCredentialSpec").len() {
            0 => refuse("gmsaCredentialSpec", "gmsaCredentialSpec cannot be an empty string".to_owned()),
            n if n > LONGEST_SPEC => {
                refuse("gmsaCredentialSpec", "gmsaCredentialSpec size must be under 64 KiB".to_owned());
            }
            _ => {}
        }
    }
    if options.has("runAsUserName") {
        for why in user_name(options.text("runAsUserName")) {
            refuse("runAsUserName", why.to_owned());
        }
    }
}

/// What is wrong with the name of a Windows user: `USER` or `DOMAIN\USER`.
fn user_name(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.bytes().any(|b| b.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut out = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= 256 {
            out.push("runAsUserName's Domain length must be under 256 characters");
        }
        if !is_net_bios(domain) && !is_dns(domain) {
            out.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        out.push("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        out.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        out.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        out.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    out
}

fn is_net_bios(domain: &str) -> bool {
    let forbidden = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    (1..=15).contains(&domain.chars().count()) && !domain.starts_with('.') && !domain.contains(forbidden)
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        label.len() <= 63
            && edge(label.bytes().next())
            && edge(label.bytes().next_back())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_windows_have_names_of_their_own_form() {
        for (name, wrong) in [
            ("Administrator", 0),
            (r"NT AUTHORITY\SYSTEM", 0),
            (r"example.com\user", 0),
            ("", 1),
            (r"a\b\c", 1),
            (r"a:b\user", 1),
            ("...", 1),
            ("a@b", 1),
            (r"domain\", 1),
        ] {
            assert_eq!(user_name(name).len(), wrong, "{name}");
        }
    }
}
