//! Containers.

use super::resources::container_resources;
use super::security::container_security;
use super::volumes::local_path;
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};
use std::collections::HashSet;

/// What the containers of a pod share.
pub(super) struct Shared<'a> {
    /// The specification of the pod.
    pub spec: &'a Value,
    /// The names of the volumes.
    pub volumes: HashSet<&'a str>,
}

/// Which list a container is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Main,
    Init,
    Ephemeral,
}

/// Checks all containers of a pod.
pub(super) fn containers(shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let spec = shared.spec;
    let main = path.child("containers");
    if spec.list("containers").is_empty() {
        out.push(FieldError::required(&main, ""));
    }
    let mut names: HashSet<&str> = HashSet::new();
    let mut host_ports: HashSet<String> = HashSet::new();
    for (i, container) in spec.list("containers").iter().enumerate() {
        let at = main.index(i);
        common(container, shared, &at, &mut names, out);
        lifecycle(container, Role::Main, &at, out);
        if !container.text("restartPolicy").is_empty() {
            out.push(FieldError::forbidden(&at.child("restartPolicy"), "may not be set for non-init containers"));
        }
        unique_host_ports(container, &mut host_ports, &at, out);
    }
    let init = path.child("initContainers");
    for (i, container) in spec.list("initContainers").iter().enumerate() {
        let at = init.index(i);
        common(container, shared, &at, &mut names, out);
        if container.has("restartPolicy") {
            check::required_one_of(container, "restartPolicy", &["Always"], &at, out);
        }
        if container.text("restartPolicy") == "Always" {
            lifecycle(container, Role::Init, &at, out);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(key) {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    out.push(FieldError::forbidden(&at.child(key), why));
                }
            }
        }
        let mut own = HashSet::new();
        unique_host_ports(container, &mut own, &at, out);
    }
    let ephemeral = path.child("ephemeralContainers");
    for (i, container) in spec.list("ephemeralContainers").iter().enumerate() {
        let at = ephemeral.index(i);
        common(container, shared, &at, &mut names, out);
        lifecycle(container, Role::Ephemeral, &at, out);
        let target = container.text("targetContainerName");
        let known = |list: &str| spec.list(list).iter().any(|c| c.text("name") == target);
        if !target.is_empty() && !known("containers") && !known("initContainers") {
            out.push(FieldError::not_found(&at.child("targetContainerName"), target));
        }
    }
}

/// Images of pods (not of templates) have no space around them.
pub(super) fn images(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let path = path.child(list);
        for (i, container) in spec.list(list).iter().enumerate() {
            let image = container.text("image");
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                out.push(FieldError::invalid(&path.index(i).child("image"), image, why));
            }
        }
    }
}

fn common<'a>(
    container: &'a Value,
    shared: &Shared<'_>,
    path: &Path<'_>,
    seen: &mut HashSet<&'a str>,
    out: &mut Errors,
) {
    let name = container.text("name");
    let name_path = path.child("name");
    if name.is_empty() {
        out.push(FieldError::required(&name_path, ""));
    } else {
        check::name(names::dns1123_label, name, &name_path, out);
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&name_path, name));
        }
    }
    check::required(container, "image", path, out);
    let policies = ["File", "FallbackToLogsOnError"];
    check::required_one_of(container, "terminationMessagePolicy", &policies, path, out);
    ports(container, shared, path, out);
    environment(container, path, out);
    mounts(container, shared, path, out);
    check::required_one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, out);
    container_resources(container.sub("resources"), &path.child("resources"), out);
    let policy = path.child("resizePolicy");
    for (i, entry) in container.list("resizePolicy").iter().enumerate() {
        let at = policy.index(i);
        check::required_one_of(entry, "resourceName", &["cpu", "memory"], &at, out);
        check::required_one_of(entry, "restartPolicy", &["NotRequired", "RestartContainer"], &at, out);
    }
    let host_users = shared.spec.sub("hostUsers").as_bool() != Some(false);
    container_security(container, host_users, &path.child("securityContext"), out);
}

fn ports(container: &Value, shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("ports");
    let mut seen = HashSet::new();
    for (i, port) in container.list("ports").iter().enumerate() {
        let at = list.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            let complaints = check::port_name(name);
            if !complaints.is_empty() {
                out.extend(complaints.into_iter().map(|why| FieldError::invalid(&at.child("name"), name, why)));
            } else if !seen.insert(name) {
                out.push(FieldError::duplicate(&at.child("name"), name));
            }
        }
        let number = port.int("containerPort");
        if number == 0 {
            out.push(FieldError::required(&at.child("containerPort"), ""));
        } else if let Some(why) = check::port_number(number) {
            out.push(FieldError::invalid(&at.child("containerPort"), number, why));
        }
        let host = port.int("hostPort");
        if host != 0
            && let Some(why) = check::port_number(host)
        {
            out.push(FieldError::invalid(&at.child("hostPort"), host, why));
        }
        if shared.spec.flag("hostNetwork") && host != number {
            let why = "must match `hostPort` when `hostNetwork` is true";
            out.push(FieldError::invalid(&at.child("containerPort"), number, why));
        }
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &at, out);
    }
}

fn unique_host_ports(container: &Value, seen: &mut HashSet<String>, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("ports");
    for (i, port) in container.list("ports").iter().enumerate().filter(|(_, p)| p.int("hostPort") != 0) {
        let key = format!("{}/{}/{}", port.text("protocol"), port.text("hostIP"), port.int("hostPort"));
        if seen.contains(&key) {
            out.push(FieldError::duplicate(&list.index(i).child("hostPort"), key.as_str()));
        }
        seen.insert(key);
    }
}

fn variable_name(name: &str) -> Vec<String> {
    let good = name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=');
    if good && !name.is_empty() {
        return Vec::new();
    }
    let text = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![names::pattern_text(text, "^[ -<>-~]+$", &[])]
}

fn environment(container: &Value, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("env");
    for (i, variable) in container.list("env").iter().enumerate() {
        let at = list.index(i);
        let name = variable.text("name");
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        } else {
            check::name(variable_name, name, &at.child("name"), out);
        }
        if variable.has("valueFrom") {
            value_from(variable, &at.child("valueFrom"), out);
        }
    }
    let list = path.child("envFrom");
    for (i, source) in container.list("envFrom").iter().enumerate() {
        let at = list.index(i);
        if !source.text("prefix").is_empty() {
            check::name(variable_name, source.text("prefix"), &at.child("prefix"), out);
        }
        let mut found = 0;
        for key in ["configMapRef", "secretRef"].into_iter().filter(|k| source.has(k)) {
            found += 1;
            check::required(source.sub(key), "name", &at.child(key), out);
        }
        let why = match found {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        out.push(FieldError::invalid(&at, "", why));
    }
}

fn value_from(variable: &Value, path: &Path<'_>, out: &mut Errors) {
    let source = variable.sub("valueFrom");
    let mut found = 0;
    for key in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"].into_iter().filter(|k| source.has(k))
    {
        found += 1;
        let (value, at) = (source.sub(key), path.child(key));
        match key {
            "fieldRef" => field_ref(value, &at, out),
            "resourceFieldRef" => resource_ref(value, &at, out),
            _ => {
                check::required(value, "name", &at, out);
                if value.text("key").is_empty() {
                    out.push(FieldError::required(&at.child("key"), ""));
                } else {
                    check::name(check::config_key, value.text("key"), &at.child("key"), out);
                }
            }
        }
    }
    let why = if found == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
    } else if !variable.text("value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if found > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    out.push(FieldError::invalid(path, "", why));
}

fn field_ref(value: &Value, path: &Path<'_>, out: &mut Errors) {
    const FIELDS: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let field = value.text("fieldPath");
    if value.text("apiVersion").is_empty() {
        out.push(FieldError::required(&path.child("apiVersion"), ""));
        return;
    }
    if field.is_empty() {
        out.push(FieldError::required(&path.child("fieldPath"), ""));
        return;
    }
    if let Some((whole, _)) = field.strip_suffix("']").and_then(|f| f.split_once("['")) {
        if !matches!(whole, "metadata.annotations" | "metadata.labels") {
            let why = format!("error converting fieldPath: field label does not support subscript: {field}");
            out.push(FieldError::invalid(&path.child("fieldPath"), field, why));
        }
        return;
    }
    let known = FIELDS.contains(&field)
        || matches!(
            field,
            "metadata.annotations" | "metadata.labels" | "spec.restartPolicy" | "spec.schedulerName" | "status.phase"
        );
    if !known {
        let why = format!("error converting fieldPath: field label not supported: {field}");
        out.push(FieldError::invalid(&path.child("fieldPath"), field, why));
    } else if !FIELDS.contains(&field) {
        check::one_of(value, "fieldPath", &FIELDS, path, out);
    }
}

fn resource_ref(value: &Value, path: &Path<'_>, out: &mut Errors) {
    const RESOURCES: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = value.text("resource");
    if resource.is_empty() {
        out.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !resource.contains("hugepages-") {
        check::one_of(value, "resource", &RESOURCES, path, out);
    }
}

fn mounts(container: &Value, shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let list = path.child("volumeMounts");
    let mut seen = HashSet::new();
    for (i, mount) in container.list("volumeMounts").iter().enumerate() {
        let at = list.index(i);
        let name = mount.text("name");
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        } else if !shared.volumes.contains(name) {
            out.push(FieldError::not_found(&at.child("name"), name));
        }
        let target = mount.text("mountPath");
        if target.is_empty() {
            out.push(FieldError::required(&at.child("mountPath"), ""));
        }
        if !seen.insert(target) {
            out.push(FieldError::invalid(&at.child("mountPath"), target, "must be unique"));
        }
        for key in ["subPath", "subPathExpr"] {
            if !mount.text(key).is_empty() {
                local_path(mount.text(key), &at.child(key), out);
            }
        }
        if !mount.text("subPath").is_empty() && !mount.text("subPathExpr").is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            out.push(FieldError::invalid(&at.child("subPathExpr"), mount.text("subPathExpr"), why));
        }
        if mount.has("mountPropagation") {
            check::one_of(mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"], &at, out);
            let privileged = container.sub("securityContext").flag("privileged");
            if mount.text("mountPropagation") == "Bidirectional" && !privileged {
                let why = "Bidirectional mount propagation is available only to privileged containers";
                out.push(FieldError::forbidden(&at.child("mountPropagation"), why));
            }
        }
    }
    let list = path.child("volumeDevices");
    for (i, device) in container.list("volumeDevices").iter().enumerate() {
        let at = list.index(i);
        let name = device.text("name");
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        } else if !shared.volumes.contains(name) {
            out.push(FieldError::not_found(&at.child("name"), name));
        }
        check::required(device, "devicePath", &at, out);
        if device.text("devicePath").split('/').any(|p| p == "..") {
            let why = "can not contain backsteps ('..')";
            out.push(FieldError::invalid(&at.child("devicePath"), device.text("devicePath"), why));
        }
    }
}

fn lifecycle(container: &Value, role: Role, path: &Path<'_>, out: &mut Errors) {
    if role == Role::Ephemeral {
        for key in
            ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "ports", "resources", "resizePolicy"]
        {
            let set = match key {
                "ports" | "resizePolicy" => !container.list(key).is_empty(),
                "resources" => container.sub(key).as_object().is_some_and(|m| !m.is_empty()),
                _ => container.has(key),
            };
            if set {
                out.push(FieldError::forbidden(&path.child(key), "cannot be set for an Ephemeral Container"));
            }
        }
        return;
    }
    let at = path.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        if container.sub("lifecycle").has(hook) {
            let here = at.child(hook);
            handler(container.sub("lifecycle").sub(hook), &here, out);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"].into_iter().filter(|k| container.has(k)) {
        let (value, at) = (container.sub(key), path.child(key));
        probe(value, &at, out);
        let successes = value.int("successThreshold");
        if key != "readinessProbe" && successes != 1 {
            out.push(FieldError::invalid(&at.child("successThreshold"), successes, "must be 1"));
        }
        if let (true, Some(seconds)) = (key == "readinessProbe", value.opt_int("terminationGracePeriodSeconds")) {
            let why = "must not be set for readinessProbes";
            out.push(FieldError::invalid(&at.child("terminationGracePeriodSeconds"), seconds, why));
        }
    }
}

fn probe(value: &Value, path: &Path<'_>, out: &mut Errors) {
    handler(value, path, out);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        check::not_negative(value, key, path, out);
    }
    check::positive(value, "terminationGracePeriodSeconds", path, out);
}

fn handler(value: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut found = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|k| value.has(k)) {
        let (action, at) = (value.sub(key), path.child(key));
        found += 1;
        if found > 1 {
            out.push(FieldError::forbidden(&at, "may not specify more than 1 handler type"));
            continue;
        }
        match key {
            "exec" if action.list("command").is_empty() => {
                out.push(FieldError::required(&at.child("command"), ""));
            }
            "httpGet" => {
                check::required(action, "path", &at, out);
                check::port_or_name(action.sub("port"), &at.child("port"), out);
                check::one_of(action, "scheme", &["HTTP", "HTTPS"], &at, out);
                let headers = at.child("httpHeaders");
                for (i, header) in action.list("httpHeaders").iter().enumerate() {
                    let name = header.text("name");
                    let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
                    if !good {
                        let text = "a valid HTTP header must consist of alphanumeric characters or '-'";
                        let why = names::pattern_text(text, "[-A-Za-z0-9]+", &["X-Header-Name"]);
                        out.push(FieldError::invalid(&headers.index(i).child("name"), name, why));
                    }
                }
            }
            "tcpSocket" => check::port_or_name(action.sub("port"), &at.child("port"), out),
            "grpc" => {
                let port = action.int("port");
                if let Some(why) = check::port_number(port) {
                    out.push(FieldError::invalid(&at.child("port"), port, why));
                }
            }
            _ => {}
        }
    }
    if found == 0 {
        out.push(FieldError::required(path, "must specify a handler type"));
    }
}
