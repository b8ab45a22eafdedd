//! The specification of a pod, and templates of pods.

use super::containers::{self, Shared};
use super::{affinity, security, volumes, windows};
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, map, metadata, names};
use std::collections::HashSet;

/// Checks the template of a workload: labels, annotations and specification.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, out: &mut Errors) {
    validate_template_metadata(template, path, out);
    let spec = path.child("spec");
    validate_spec(template.sub("spec"), None, &spec, out);
    super::annotations::profiles(template, &spec, out);
    if !template.sub("spec").list("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        out.push(FieldError::forbidden(&spec.child("ephemeralContainers"), why));
    }
}

/// Checks labels and annotations of a template.
pub(crate) fn validate_template_metadata(template: &Value, path: &Path<'_>, out: &mut Errors) {
    let meta = template.sub("metadata");
    let (labels, annotations) = (path.child("labels"), path.child("annotations"));
    out.extend(metadata::validate_labels(meta.members("labels"), &labels));
    out.extend(metadata::validate_annotations(meta.members("annotations"), &annotations));
    super::annotations::annotations(template, &annotations, out);
}

/// Checks what pods and templates have in common; `pod` is the name of the pod, where it is one.
fn validate_spec(spec: &Value, pod: Option<&str>, path: &Path<'_>, out: &mut Errors) {
    if !spec.has("terminationGracePeriodSeconds") {
        out.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volumes::volumes(spec.list("volumes"), pod.unwrap_or_default(), &path.child("volumes"), out);
    containers::containers(&Shared { spec, volumes }, path, out);
    containers::host_network_ports(spec, pod.is_some(), path, out);
    check::required_one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, out);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check::required_one_of(spec, "dnsPolicy", &policies, path, out);
    out.extend(metadata::validate_labels(spec.members("nodeSelector"), &path.child("nodeSelector")));
    security::pod_security(spec, path, out);
    if spec.has("affinity") {
        affinity::affinity(spec.sub("affinity"), &path.child("affinity"), out);
    }
    dns_config(spec, path, out);
    let gates = path.child("readinessGates");
    for (i, gate) in spec.list("readinessGates").iter().enumerate() {
        check::label_name(gate.text("conditionType"), &gates.index(i).child("conditionType"), out);
    }
    let gates = path.child("schedulingGates");
    let mut seen = HashSet::new();
    for (i, gate) in spec.list("schedulingGates").iter().enumerate() {
        let at = gates.index(i);
        check::label_name(gate.text("name"), &at, out);
        if !seen.insert(gate.text("name")) {
            out.push(FieldError::duplicate(&at, gate.text("name")));
        }
    }
    affinity::spread(spec.list("topologySpreadConstraints"), &path.child("topologySpreadConstraints"), out);
    windows::host_processes(spec, path, out);
    host_users(spec, path, out);
    for (key, rule) in [
        ("serviceAccountName", names::dns1123_subdomain as names::NameCheck),
        ("nodeName", names::dns1123_subdomain),
        ("hostname", names::dns1123_label),
        ("subdomain", names::dns1123_label),
        ("priorityClassName", names::dns1123_subdomain),
    ] {
        if !spec.text(key).is_empty() {
            check::name(rule, spec.text(key), &path.child(key), out);
        }
    }
    if spec.has("runtimeClassName") {
        check::name(names::dns1123_subdomain, spec.text("runtimeClassName"), &path.child("runtimeClassName"), out);
    }
    if let Some(seconds) = spec.opt_int("activeDeadlineSeconds").filter(|s| !(1..=i64::from(i32::MAX)).contains(s)) {
        let why = "must be between 1 and 2147483647, inclusive";
        out.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, why));
    }
    affinity::tolerations(spec.list("tolerations"), &path.child("tolerations"), out);
    host_aliases(spec, path, out);
    if spec.has("preemptionPolicy") {
        check::required_one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, out);
    }
    if spec.has("overhead") {
        // Upstream takes the overhead for the limits of a container.
        let limits = map! { "limits" => spec.sub("overhead").clone() };
        super::resources::container_resources(&limits.into(), &path.child("overhead"), out);
    }
    windows::operating_system(spec, path, out);
}

/// A user namespace of its own goes with none of the host's other namespaces.
fn host_users(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if spec.sub("hostUsers").as_bool() != Some(false) {
        return;
    }
    for (key, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.flag(key) {
            out.push(FieldError::forbidden(&path.child(shown), "when `pod.Spec.HostUsers` is false"));
        }
    }
}

/// What pods are checked for, created or changed.
pub(crate) fn validate_pod(pod: &Value, out: &mut Errors) {
    let (path, meta) = (Path::ROOT.child("spec"), Path::ROOT.child("metadata"));
    let spec = pod.sub("spec");
    super::annotations::annotations(pod, &meta.child("annotations"), out);
    validate_spec(spec, Some(pod.name()), &path, out);
    if spec.text("serviceAccountName").is_empty() {
        let volumes = path.child("volumes");
        for (i, volume) in spec.list("volumes").iter().enumerate() {
            let volume_path = volumes.index(i);
            let projected = volume_path.child("projected");
            let sources = projected.child("sources");
            for (j, source) in volume.sub("projected").list("sources").iter().enumerate() {
                if source.has("serviceAccountToken") {
                    let why = "must not be specified when serviceAccountName is not set";
                    out.push(FieldError::forbidden(&sources.index(j).child("serviceAccountToken"), why));
                }
            }
        }
    }
    containers::images(spec, &path, out);
}

fn dns_config(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("dnsConfig");
    let config = spec.sub("dnsConfig");
    if spec.text("dnsPolicy") == "None" {
        if !spec.has("dnsConfig") {
            out.push(FieldError::required(&at, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if config.list("nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            out.push(FieldError::required(&at.child("nameservers"), why));
            return;
        }
    }
    let servers = at.child("nameservers");
    if config.list("nameservers").len() > 3 {
        let shown = object::field::Shown::raw(object::go::string_list(&config.strings("nameservers")));
        out.push(FieldError::invalid(&servers, shown, "must not have more than 3 nameservers"));
    }
    for (i, server) in config.strings("nameservers").into_iter().enumerate() {
        crate::net::ip(server, &servers.index(i), out);
    }
    let searches = at.child("searches");
    let list = config.strings("searches");
    let shown = || object::field::Shown::raw(object::go::string_list(&list));
    if list.len() > 32 {
        out.push(FieldError::invalid(&searches, shown(), "must not have more than 32 search paths"));
    }
    if list.join(" ").len() > 2048 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        out.push(FieldError::invalid(&searches, shown(), why));
    }
    for (i, search) in list.iter().enumerate().filter(|(_, s)| **s != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        check::name(relaxed_subdomain, search, &searches.index(i), out);
    }
    let options = at.child("options");
    for (i, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            out.push(FieldError::required(&options.index(i), "must not be empty"));
        }
    }
}

/// A DNS subdomain whose labels may hold underscores, and start with one.
fn relaxed_subdomain(name: &str) -> Vec<String> {
    const LABEL: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label).as_bytes();
        rest.first().is_some_and(|b| edge(*b))
            && rest.last().is_some_and(|b| edge(*b))
            && rest.iter().all(|b| edge(*b) || matches!(b, b'-' | b'_'))
    };
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push(names::max_length_text(253));
    }
    if !name.split('.').all(label) {
        let text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or \
                    '.', and must start and end with an alphanumeric character";
        let pattern = format!("{LABEL}(\\.{LABEL})*");
        out.push(names::pattern_text(text, &pattern, &["example.com"]));
    }
    out
}

fn host_aliases(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let aliases = path.child("hostAliases");
    for (i, alias) in spec.list("hostAliases").iter().enumerate() {
        let at = aliases.index(i);
        crate::net::ip(alias.text("ip"), &at.child("ip"), out);
        let hosts = at.child("hostnames");
        for (j, name) in alias.strings("hostnames").into_iter().enumerate() {
            check::name(names::dns1123_subdomain, name, &hosts.index(j), out);
        }
    }
}
