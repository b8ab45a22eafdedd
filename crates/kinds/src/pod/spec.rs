//! The specification of a pod, and templates of pods.

use super::containers::{self, Shared};
use super::{affinity, security, volumes};
use crate::check::{self, Errors};
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Value, metadata, names};

/// Checks the template of a workload: labels, annotations and specification.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, out: &mut Errors) {
    let meta = template.sub("metadata");
    out.extend(metadata::validate_labels(meta.members("labels"), &path.child("labels")));
    out.extend(metadata::validate_annotations(meta.members("annotations"), &path.child("annotations")));
    let spec = path.child("spec");
    validate_spec(template.sub("spec"), &spec, out);
    if !template.sub("spec").list("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        out.push(FieldError::forbidden(&spec.child("ephemeralContainers"), why));
    }
}

/// Checks what pods and templates have in common.
pub(crate) fn validate_spec(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    volumes::volumes(spec.list("volumes"), &path.child("volumes"), out);
    let shared = Shared { spec, volumes: spec.list("volumes").iter().map(|v| v.text("name")).collect() };
    containers::containers(&shared, path, out);
    check::required_one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, out);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check::required_one_of(spec, "dnsPolicy", &policies, path, out);
    out.extend(metadata::validate_labels(spec.members("nodeSelector"), &path.child("nodeSelector")));
    security::pod_security(spec, path, out);
    let secrets = path.child("imagePullSecrets");
    for (i, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        if spec.list("imagePullSecrets").len() > 1 && secret.text("name").is_empty() {
            out.push(FieldError::required(&secrets.index(i).child("name"), ""));
        }
    }
    if spec.has("affinity") {
        affinity::affinity(spec.sub("affinity"), &path.child("affinity"), out);
    }
    dns_config(spec, path, out);
    let gates = path.child("readinessGates");
    for (i, gate) in spec.list("readinessGates").iter().enumerate() {
        check::label_name(gate.text("conditionType"), &gates.index(i).child("conditionType"), out);
    }
    let gates = path.child("schedulingGates");
    for (i, gate) in spec.list("schedulingGates").iter().enumerate() {
        let at = gates.index(i);
        check::label_name(gate.text("name"), &at, out);
        if spec.list("schedulingGates").iter().take(i).any(|g| g.text("name") == gate.text("name")) {
            out.push(FieldError::duplicate(&at, gate.text("name")));
        }
    }
    affinity::spread(spec.list("topologySpreadConstraints"), &path.child("topologySpreadConstraints"), out);
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
        check::required_one_of(spec, "preemptionPolicy", &["Never", "PreemptLowerPriority"], path, out);
    }
    if spec.has("os") {
        check::required_one_of(spec.sub("os"), "name", &["linux", "windows"], &path.child("os"), out);
    }
    for (name, value) in spec.members("overhead").iter() {
        super::resources::amount(name, value, &path.child("overhead").key(name), out);
    }
}

/// What only pods are checked for.
pub(crate) fn validate_pod(pod: &Value, out: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let spec = pod.sub("spec");
    validate_spec(spec, &path, out);
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
        check::name(names::dns1123_subdomain, search.trim_end_matches('.'), &searches.index(i), out);
    }
    let options = at.child("options");
    for (i, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            out.push(FieldError::required(&options.index(i), "must not be empty"));
        }
    }
}

fn host_aliases(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let aliases = path.child("hostAliases");
    for (i, alias) in spec.list("hostAliases").iter().enumerate() {
        let at = aliases.index(i);
        crate::net::ip(alias.text("ip"), &at.child("ip"), out);
        for name in alias.strings("hostnames") {
            check::name(names::dns1123_subdomain, name, &at.child("hostnames"), out);
        }
    }
}
