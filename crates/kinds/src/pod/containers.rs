//! Containers.

use super::resources::container_resources;
use super::security::container_security;
use super::{downward, mounts};
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, names};
use std::collections::{HashMap, HashSet};

/// What the containers of a pod share.
pub(super) struct Shared<'a> {
    /// The specification of the pod.
    pub spec: &'a Value,
    /// The volumes by their names.
    pub volumes: HashMap<&'a str, &'a Value>,
}

/// All containers of a pod with their lists and positions, in upstream's order.
pub(super) fn all_containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(move |list| spec.list(list).iter().enumerate().map(move |(i, c)| (list, i, c)))
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
        lifecycle(container, shared, &at, out);
        if container.has("restartPolicy") {
            out.push(FieldError::forbidden(&at.child("restartPolicy"), "may not be set for non-init containers"));
        }
        unique_host_ports(container, &mut host_ports, &at, out);
    }
    let init = path.child("initContainers");
    for (i, container) in spec.list("initContainers").iter().enumerate() {
        let at = init.index(i);
        common(container, shared, &at, &mut names, out);
        if container.has("restartPolicy") {
            check::one_of(container, "restartPolicy", &["Always"], &at, out);
        }
        if container.text("restartPolicy") == "Always" {
            lifecycle(container, shared, &at, out);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(key) {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    out.push(FieldError::forbidden(&at.child(key), why));
                }
            }
        }
        // Upstream looks at one container at a time and counts from the start of a list of one.
        unique_host_ports(container, &mut HashSet::new(), &init.index(0), out);
    }
    let ephemeral = path.child("ephemeralContainers");
    for (i, container) in spec.list("ephemeralContainers").iter().enumerate() {
        let at = ephemeral.index(i);
        common(container, shared, &at, &mut names, out);
        image(container, &at, out);
        let target = container.text("targetContainerName");
        let known = |list: &str| spec.list(list).iter().any(|c| c.text("name") == target);
        if !target.is_empty() && !known("containers") && !known("initContainers") {
            out.push(FieldError::not_found(&at.child("targetContainerName"), target));
        }
        only_ephemeral(container, &at, out);
    }
}

/// What containers for debugging may not have.
fn only_ephemeral(container: &Value, path: &Path<'_>, out: &mut Errors) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    for key in [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        let set = match key {
            "ports" | "resizePolicy" => !container.list(key).is_empty(),
            "resources" => container.sub(key).as_object().is_some_and(|m| !m.is_empty()),
            _ => container.has(key),
        };
        if set {
            out.push(FieldError::forbidden(&path.child(key), WHY));
        }
    }
    let mounts = path.child("volumeMounts");
    for (i, mount) in container.list("volumeMounts").iter().enumerate() {
        for key in ["subPath", "subPathExpr"].into_iter().filter(|k| !mount.text(k).is_empty()) {
            out.push(FieldError::forbidden(&mounts.index(i).child(key), WHY));
        }
    }
}

/// Images of pods (not of templates) have no space around them.
pub(super) fn images(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    for list in ["containers", "initContainers"] {
        images_of(spec, list, path, out);
    }
}

/// The same for one of the lists.
pub(crate) fn images_of(spec: &Value, list: &str, path: &Path<'_>, out: &mut Errors) {
    let path = path.child(list);
    for (i, container) in spec.list(list).iter().enumerate() {
        image(container, &path.index(i), out);
    }
}

fn image(container: &Value, path: &Path<'_>, out: &mut Errors) {
    let image = container.text("image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        out.push(FieldError::invalid(&path.child("image"), image, why));
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
    }
    if !seen.insert(name) {
        out.push(FieldError::duplicate(&name_path, name));
    }
    check::required(container, "image", path, out);
    let policies = ["File", "FallbackToLogsOnError"];
    check::required_one_of(container, "terminationMessagePolicy", &policies, path, out);
    ports(container, path, out);
    environment(container, path, out);
    mounts::mounts(container, shared, path, out);
    mounts::devices(container, shared, path, out);
    check::required_one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, out);
    container_resources(container.sub("resources"), &path.child("resources"), out);
    resize_policy(container, shared.spec, &path.child("resizePolicy"), out);
    let host_users = shared.spec.sub("hostUsers").as_bool() != Some(false);
    container_security(container, host_users, &path.child("securityContext"), out);
}

/// What a change of resources does to a container; upstream names the list, not the entry, where something is wrong.
fn resize_policy(container: &Value, spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut seen = HashSet::new();
    for (i, entry) in container.list("resizePolicy").iter().enumerate() {
        let (resource, policy) = (entry.text("resourceName"), entry.text("restartPolicy"));
        if !seen.insert(resource) {
            out.push(FieldError::duplicate(&path.index(i), resource));
        }
        for (value, supported) in [(resource, ["cpu", "memory"]), (policy, ["NotRequired", "RestartContainer"])] {
            if value.is_empty() {
                out.push(FieldError::required(path, ""));
            } else if !supported.contains(&value) {
                out.push(FieldError::not_supported(path, value, &supported));
            }
        }
        if spec.text("restartPolicy") == "Never" && policy != "NotRequired" {
            let why = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            out.push(FieldError::invalid(path, policy, why));
        }
    }
}

fn ports(container: &Value, path: &Path<'_>, out: &mut Errors) {
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
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &at, out);
    }
}

/// On the host's network a container's port is the host's. Templates may leave the host's out: pods fill it in.
pub(super) fn host_network_ports(spec: &Value, is_pod: bool, path: &Path<'_>, out: &mut Errors) {
    let containers = path.child("containers");
    for (i, container) in spec.list("containers").iter().enumerate().filter(|_| spec.flag("hostNetwork")) {
        let container_path = containers.index(i);
        let ports = container_path.child("ports");
        for (j, port) in container.list("ports").iter().enumerate() {
            let host = port.int("hostPort");
            if (is_pod || host != 0) && host != port.int("containerPort") {
                let why = "must match `containerPort` when `hostNetwork` is true";
                out.push(FieldError::invalid(&ports.index(j).child("hostPort"), host, why));
            }
        }
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
            let (reference, here) = (source.sub(key), at.child(key));
            if reference.text("name").is_empty() {
                out.push(FieldError::required(&here.child("name"), ""));
            } else {
                // Upstream takes the name for the start of one.
                let check = |name: &str| names::generate_name(name, names::dns1123_subdomain);
                let complaints = check(reference.text("name"));
                let name = reference.text("name");
                out.extend(complaints.into_iter().map(|why| FieldError::invalid(&here.child("name"), name, why)));
            }
        }
        let why = match found {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        out.push(FieldError::invalid(&list, "", why));
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
            "fieldRef" => downward::field(value, &downward::VARIABLES, &at, out),
            "resourceFieldRef" => downward::resource(value, false, &at, out),
            _ => {
                check::name(names::dns1123_subdomain, value.text("name"), &at.child("name"), out);
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

fn lifecycle(container: &Value, shared: &Shared<'_>, path: &Path<'_>, out: &mut Errors) {
    let grace = shared.spec.opt_int("terminationGracePeriodSeconds");
    let at = path.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        if container.sub("lifecycle").has(hook) {
            let here = at.child(hook);
            handler(container.sub("lifecycle").sub(hook), grace, &here, out);
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
    handler(value, None, path, out);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        check::not_negative(value, key, path, out);
    }
    check::positive(value, "terminationGracePeriodSeconds", path, out);
}

fn handler(value: &Value, grace: Option<i64>, path: &Path<'_>, out: &mut Errors) {
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
            "httpGet" => http_get(action, &at, out),
            "tcpSocket" => check::port_or_name(action.sub("port"), &at.child("port"), out),
            "grpc" => {
                let port = action.int("port");
                if let Some(why) = check::port_number(port) {
                    out.push(FieldError::invalid(&at.child("port"), port, why));
                }
            }
            "sleep" => {
                let seconds = action.int("seconds");
                if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
                    let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    out.push(FieldError::invalid(&at, seconds, why));
                }
            }
            _ => {}
        }
    }
    if found == 0 {
        out.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &Path<'_>, out: &mut Errors) {
    check::required(action, "path", path, out);
    check::port_or_name(action.sub("port"), &path.child("port"), out);
    check::one_of(action, "scheme", &["HTTP", "HTTPS"], path, out);
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let text = "a valid HTTP header must consist of alphanumeric characters or '-'";
            let why = names::pattern_text(text, "[-A-Za-z0-9]+", &["X-Header-Name"]);
            out.push(FieldError::invalid(&path.child("httpHeaders"), name, why));
        }
    }
}
