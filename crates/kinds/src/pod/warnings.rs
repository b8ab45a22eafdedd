//! Warnings about pods and templates of pods.

mod files;
mod ports;

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, app_armor_profile};
use super::containers::all_containers;
use crate::claim;
use crate::net;
use crate::read::Read;
use object::field::Path;
use object::{Value, go, names};
use std::collections::HashSet;

/// How many warnings are looked for: no answer tells more.
const MOST: usize = 4096;

/// Labels of nodes that have newer names, and what is said of them.
const OLD_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
];

/// Sources of volumes that are on their way out, or gone.
const OLD_SOURCES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Annotations that do nothing any more.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// What is said of annotations about seccomp where a field is missing.
const OLD_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
/// What is said of annotations about AppArmor where a field is missing.
const OLD_APP_ARMOR: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// What is said of a label of nodes that has a newer name.
pub(crate) fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// The warnings about a pod that is created; nobody is warned about changes of pods.
pub(crate) fn pod_warnings(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let name = unlike_a_label(pod.name(), "this is used in the Pod's hostname");
    name.into_iter().chain(warnings_of(pod, &Path::ROOT)).collect()
}

/// The warnings about a pod as its author wrote it, before annotations about AppArmor become fields: those become fields,
/// and those that cannot.
pub(crate) fn pod_warnings_before(pod: &Value) -> Vec<String> {
    let spec = pod.sub("spec");
    if spec.sub("os").text("name") == "windows" {
        return Vec::new();
    }
    let meta = Path::ROOT.child("metadata");
    let at = meta.child("annotations");
    let whole = spec.sub("securityContext").sub("appArmorProfile");
    let mut out = Vec::new();
    for (_, _, container) in all_containers(spec) {
        let key = format!("{APP_ARMOR}{}", container.text("name"));
        let Some(annotation) = pod.annotation(&key) else { continue };
        let stands_alone = !container.sub("securityContext").has("appArmorProfile")
            && app_armor_profile(annotation).is_none_or(|profile| profile != *whole);
        if stands_alone {
            out.push(format!("{}: {OLD_APP_ARMOR}", at.key(&key)));
        }
    }
    out
}

/// The warnings about addresses that a kubelet reports.
pub(crate) fn pod_status_warnings(pod: &Value) -> Vec<String> {
    let status = Path::ROOT.child("status");
    let mut out = Vec::new();
    for key in ["podIPs", "hostIPs"] {
        let at = status.child(key);
        for (i, address) in pod.sub("status").list(key).iter().enumerate() {
            let item = at.index(i);
            net::ip_warning(address.text("ip"), &item.child("ip"), &mut out);
        }
    }
    out
}

/// Warnings about a pod or template at a path, in upstream's order.
pub(crate) fn warnings_of(object: &Value, path: &Path<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let (spec, spec_path) = (object.sub("spec"), path.child("spec"));
    labels_of_nodes(spec, &spec_path, &mut out);
    spread(spec, &spec_path, &mut out);
    let meta = path.child("metadata");
    let annotations = meta.child("annotations");
    for (key, why) in OLD_ANNOTATIONS.iter().filter(|(key, _)| object.annotation(key).is_some()) {
        out.push(format!("{}: {why}", annotations.key(key)));
    }
    let volumes = spec_path.child("volumes");
    for (i, volume) in spec.list("volumes").iter().enumerate() {
        let at = volumes.index(i);
        old_sources(volume, &at, &mut out);
        let own = at.child("ephemeral.volumeClaimTemplate.spec");
        claim::warnings(volume.sub("ephemeral").sub("volumeClaimTemplate").sub("spec"), &own, &mut out);
    }
    files::overlaps(spec.list("volumes"), &mut out);
    repeated(spec, "hostAliases", "ip", &spec_path, &mut out);
    repeated(spec, "imagePullSecrets", "name", &spec_path, &mut out);
    let secrets = spec_path.child("imagePullSecrets");
    for (i, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        if secret.text("name").is_empty() {
            out.push(format!("{}: invalid empty name \"\"", secrets.index(i).child("name")));
        }
    }
    let overhead = spec_path.child("overhead");
    for name in BYTES {
        fraction(spec.sub("overhead").sub(name), &overhead.key(name), &mut out);
    }
    if object.annotation(SECCOMP_POD).is_some() && !spec.sub("securityContext").has("seccompProfile") {
        out.push(format!("{}: {OLD_SECCOMP}", annotations.key(SECCOMP_POD)));
    }
    for (list, i, container) in all_containers(spec) {
        profiles(object, container, &annotations, path, &mut out);
        let containers = spec_path.child(list);
        let at = containers.index(i);
        amounts(container, &at, &mut out);
        environment(container, &at, &mut out);
    }
    ports::overlaps(spec, &spec_path, &mut out);
    if spec.int("terminationGracePeriodSeconds") < 0 {
        let at = spec_path.child("terminationGracePeriodSeconds");
        out.push(format!("{at}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    affinity(spec, &spec_path, &mut out);
    addresses(spec, &spec_path, &mut out);
    out
}

/// Addresses in odd forms.
fn addresses(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let (config, aliases) = (path.child("dnsConfig"), path.child("hostAliases"));
    let servers = config.child("nameservers");
    for (i, server) in spec.sub("dnsConfig").strings("nameservers").into_iter().enumerate() {
        net::ip_warning(server, &servers.index(i), out);
    }
    for (i, alias) in spec.list("hostAliases").iter().enumerate() {
        let at = aliases.index(i);
        net::ip_warning(alias.text("ip"), &at.child("ip"), out);
    }
}

/// Annotations that say of a container what a field should. What those of a pod say about AppArmor is told before they
/// become fields ([`pod_warnings_before`]).
fn profiles(object: &Value, container: &Value, annotations: &Path<'_>, path: &Path<'_>, out: &mut Vec<String>) {
    let (name, context) = (container.text("name"), container.sub("securityContext"));
    let key = format!("{SECCOMP_CONTAINER}{name}");
    if object.annotation(&key).is_some() && !context.has("seccompProfile") {
        out.push(format!("{}: {OLD_SECCOMP}", annotations.key(&key)));
    }
    let of_whole = object.sub("spec").sub("securityContext").has("appArmorProfile");
    let key = format!("{APP_ARMOR}{name}");
    if !path.is_root() && !of_whole && !context.has("appArmorProfile") && object.annotation(&key).is_some() {
        out.push(format!("{}: {OLD_APP_ARMOR}", annotations.key(&key)));
    }
}

/// Entries of a list that say again what an earlier one said.
fn repeated(spec: &Value, list: &str, key: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen = HashSet::new();
    let at = path.child(list);
    for (i, item) in spec.list(list).iter().enumerate() {
        if !seen.insert(item.text(key)) {
            out.push(format!("{}: duplicate {key} {}", at.index(i).child(key), go::quote(item.text(key))));
        }
    }
}

/// Sources of a volume that are on their way out.
pub(crate) fn old_sources(volume: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    for (key, why) in OLD_SOURCES.iter().filter(|(key, _)| volume.has(key)) {
        out.push(format!("{}: {why}", path.child(if *key == "storageos" { "storageOS" } else { key })));
    }
}

fn labels_of_nodes(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let selector = path.child("nodeSelector");
    for key in spec.members("nodeSelector").keys() {
        out.extend(old_label(key).map(|why| format!("{}: {why}", selector.key(key))));
    }
    let affinity = path.child("affinity");
    let (node, at) = (spec.sub("affinity").sub("nodeAffinity"), affinity.child("nodeAffinity"));
    let required = at.child("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = node.sub("requiredDuringSchedulingIgnoredDuringExecution");
    selector_terms(terms, &required, out);
    let preferred = at.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (i, term) in node.list("preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
        let term_path = preferred.index(i);
        selector_term(term.sub("preference"), true, &term_path.child("preference"), out);
    }
}

/// Old labels in a selector of nodes.
pub(crate) fn selector_terms(selector: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let terms = path.child("nodeSelectorTerms");
    for (i, term) in selector.list("nodeSelectorTerms").iter().enumerate() {
        selector_term(term, false, &terms.index(i), out);
    }
}

/// `preferred` is whether values that are no labels are let through: then they are told of.
fn selector_term(term: &Value, preferred: bool, path: &Path<'_>, out: &mut Vec<String>) {
    let expressions = path.child("matchExpressions");
    for (i, requirement) in term.list("matchExpressions").iter().enumerate() {
        let (at, key) = (expressions.index(i), requirement.text("key"));
        out.extend(old_label(key).map(|why| format!("{}: {key} is {why}", at.child("key"))));
        let values = at.child("values");
        for (j, value) in requirement.strings("values").into_iter().enumerate().filter(|_| preferred) {
            for why in names::label_value(value) {
                out.push(format!("{}: {value} is invalid, {why}", values.index(j)));
            }
        }
    }
}

const NULL: &str = "a null labelSelector results in matching no pod";

fn spread(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let constraints = path.child("topologySpreadConstraints");
    for (i, constraint) in spec.list("topologySpreadConstraints").iter().enumerate() {
        let at = constraints.index(i);
        let key = constraint.text("topologyKey");
        out.extend(old_label(key).map(|why| format!("{}: {key} is {why}", at.child("topologyKey"))));
        if !constraint.has("labelSelector") {
            out.push(format!("{}: {NULL}", at.child("labelSelector")));
        }
    }
}

fn affinity(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let affinity = path.child("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (value, at) = (spec.sub("affinity").sub(kind), affinity.child(kind));
        for list in
            ["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"]
        {
            let terms = at.child(list);
            for (i, term) in value.list(list).iter().enumerate() {
                let term_path = terms.index(i);
                if list.starts_with("required") && !term.has("labelSelector") {
                    out.push(format!("{}: {NULL}", term_path.child("labelSelector")));
                } else if list.starts_with("preferred") && !term.sub("podAffinityTerm").has("labelSelector") {
                    out.push(format!("{}: {NULL}", term_path.child("podAffinityTerm.labelSelector")));
                }
            }
        }
    }
}

/// What is counted in bytes.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// Parts of bytes, which nobody can give.
fn amounts(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let resources = path.child("resources");
    for name in BYTES {
        for part in ["limits", "requests"] {
            let at = resources.child(part);
            fraction(container.sub("resources").sub(part).sub(name), &at.key(name), out);
        }
    }
}

/// The warning about a part of a byte.
pub(crate) fn fraction(value: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    if let Some(quantity) = crate::check::quantity(value).filter(|q| q.milli_value() % 1000 != 0) {
        let shown = go::quote(&quantity.to_string());
        out.push(format!("{path}: fractional byte value {shown} is invalid, must be an integer"));
    }
}

/// The warning about a name that does not do for the names of pods.
pub(crate) fn name_warning(name: &str) -> Option<String> {
    unlike_a_label(name, "this is used in Pod names and hostnames")
}

/// The warning about a name that is no DNS label, and is `used` as one.
fn unlike_a_label(name: &str, used: &str) -> Option<String> {
    let complaints = names::dns1123_label(name);
    (!complaints.is_empty()).then(|| {
        format!(
            "metadata.name: {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            complaints.join(" ")
        )
    })
}

/// The warnings of a workload with a template: its name when it is created, and its template.
pub(crate) fn workload_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out: Vec<String> =
        if old.is_none() { name_warning(object.name()).into_iter().collect() } else { Vec::new() };
    out.extend(template_warnings(object, old));
    out
}

/// The warnings about the template of a workload, repeated with each new generation.
pub(crate) fn template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let generation = |v: &Value| v.at(&["metadata", "generation"]).and_then(Value::as_int);
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    warnings_of_template(object.sub("spec").sub("template"))
}

/// The warnings about the template of a daemon set, repeated when the template changes.
pub(crate) fn changed_template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let template = object.sub("spec").sub("template");
    if old.is_some_and(|old| old.sub("spec").sub("template") == template) {
        return Vec::new();
    }
    warnings_of_template(template)
}

/// The warnings about a template elsewhere: at a path of fields.
pub(crate) fn template_warnings_at(object: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    let template = object.at(path);
    if old.is_some_and(|old| old.at(path) == template) {
        return Vec::new();
    }
    let at = path.join(".");
    template.map_or_else(Vec::new, |template| warnings_of(template, &Path::ROOT.child(&at)))
}

fn warnings_of_template(template: &Value) -> Vec<String> {
    let spec = Path::ROOT.child("spec");
    warnings_of(template, &spec.child("template"))
}

fn environment(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let env = path.child("env");
    let mut seen = HashSet::new();
    for (i, variable) in container.list("env").iter().enumerate() {
        let name = variable.text("name");
        if !seen.insert(name) {
            // A value that goes on from the one it hides is no mistake.
            let (value, hidden) = (variable.text("value"), format!("$({name})"));
            if variable.has("valueFrom") || value == hidden || !value.contains(&hidden) {
                let quoted = go::quote(name);
                out.push(format!(
                    "{}: hides previous definition of {quoted}, which may be dropped when using apply",
                    env.index(i)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_is_old_or_useless_in_a_pod_is_named() {
        for (pod, wanted) in [
            (
                r#"{"spec":{"containers":[{"env":[{"name":"A"},{"name":"A"}]}]}}"#,
                r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#,
            ),
            (
                r#"{"spec":{"containers":[{"env":[{"name":"A"},{"name":"A","value":"$(A)"}]}]}}"#,
                r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#,
            ),
            (
                r#"{"spec":{"hostAliases":[{"ip":"1.1.1.1"},{"ip":"1.1.1.1"}]}}"#,
                r#"spec.hostAliases[1].ip: duplicate ip "1.1.1.1""#,
            ),
            (
                r#"{"spec":{"imagePullSecrets":[{"name":"a"},{"name":"a"}]}}"#,
                r#"spec.imagePullSecrets[1].name: duplicate name "a""#,
            ),
            (
                r#"{"spec":{"overhead":{"memory":"1m"}}}"#,
                r#"spec.overhead[memory]: fractional byte value "1m" is invalid, must be an integer"#,
            ),
            (
                r#"{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1m"}}}}}}]}}"#,
                r#"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1m" is invalid, must be an integer"#,
            ),
            (
                r#"{"spec":{"nodeSelector":{"beta.kubernetes.io/os":"linux"}}}"#,
                r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
            ),
            (
                r#"{"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}}}"#,
                r#"metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead"#,
            ),
            (
                r#"{"spec":{"volumes":[{"name":"v","gitRepo":{}}]}}"#,
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            ),
            (
                r#"{"spec":{"containers":[{"resources":{"limits":{"memory":"100m"}}}]}}"#,
                r#"spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer"#,
            ),
            (
                r#"{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/os","values":["-"]}]}]}}}}}"#,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead"#,
            ),
            (
                r#"{"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"preference":{"matchExpressions":[{"key":"a","values":["-"]}]}}]}}}}"#,
                r#"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: - is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
            ),
            (
                r#"{"metadata":{"annotations":{"container.seccomp.security.alpha.kubernetes.io/c":"unconfined","container.seccomp.security.alpha.kubernetes.io/d":"unconfined"}},"spec":{"containers":[{"name":"c"},{"name":"d","securityContext":{"seccompProfile":{}}}]}}"#,
                r#"metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead"#,
            ),
            (
                r#"{"spec":{"dnsConfig":{"nameservers":["1.1.1.1","1.1.1.01"]}}}"#,
                r#"spec.dnsConfig.nameservers[1]: non-standard IP address "1.1.1.01" will be considered invalid in a future Kubernetes release: use "1.1.1.1""#,
            ),
            (
                r#"{"spec":{"hostAliases":[{"ip":"1.1.1.01"}]}}"#,
                r#"spec.hostAliases[0].ip: non-standard IP address "1.1.1.01" will be considered invalid in a future Kubernetes release: use "1.1.1.1""#,
            ),
            (
                r#"{"spec":{"topologySpreadConstraints":[{"topologyKey":"a"}]}}"#,
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ),
        ] {
            let mut pod = json::parse(pod.as_bytes()).unwrap();
            pod.metadata_mut().insert("name", "p");
            assert_eq!(pod_warnings(&pod, None), [wanted]);
            assert!(pod_warnings(&pod, Some(&pod)).is_empty());
        }
    }

    #[test]
    fn annotations_about_app_armor_are_told_of_where_no_field_says_the_same() {
        const WHY: &str = "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the \
             \"appArmorProfile\" field instead";
        // Of a pod the annotation is compared with its profile, of a template the profile is enough.
        for (annotation, whole, own, of_pod, of_template) in [
            ("unconfined", "", "", true, true),
            ("nonsense", "", "", true, true),
            ("unconfined", r#""securityContext":{"appArmorProfile":{"type":"Unconfined"}},"#, "", false, false),
            ("unconfined", r#""securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}},"#, "", true, false),
            ("unconfined", "", r#","securityContext":{"appArmorProfile":{"type":"Unconfined"}}"#, false, false),
            ("unconfined", r#""os":{"name":"windows"},"#, "", false, true),
        ] {
            let text = format!(
                r#"{{"metadata":{{"name":"p","annotations":{{"{APP_ARMOR}c":"{annotation}"}}}},"spec":{{{whole}"containers":[{{"name":"c"{own}}}]}}}}"#
            );
            let object = json::parse(text.as_bytes()).unwrap();
            assert_eq!(pod_warnings_before(&object).contains(&WHY.to_owned()), of_pod, "{text}");
            assert!(pod_warnings(&object, None).is_empty(), "{text}");
            let template = warnings_of(&object, &Path::ROOT.child("template"));
            assert_eq!(template, if of_template { vec![format!("template.{WHY}")] } else { Vec::new() }, "{text}");
        }
    }

    #[test]
    fn a_pods_name_and_its_addresses_are_looked_at() {
        let pod = json::parse(
            br#"{"metadata":{"name":"a.b"},"status":{"podIPs":[{"ip":"10.0.0.01"}],"hostIPs":[{"ip":"10.0.0.2"},{"ip":"10.0.0.02"}]}}"#,
        )
        .unwrap();
        let found = pod_warnings(&pod, None);
        let why = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [";
        assert!(found.len() == 1 && found[0].starts_with(why), "{found:?}");
        let odd = |ip: &str| {
            format!("non-standard IP address \"{ip}\" will be considered invalid in a future Kubernetes release")
        };
        let wanted = [
            format!("status.podIPs[0].ip: {}: use \"10.0.0.1\"", odd("10.0.0.01")),
            format!("status.hostIPs[1].ip: {}: use \"10.0.0.2\"", odd("10.0.0.02")),
        ];
        assert_eq!(pod_status_warnings(&pod), wanted);
    }

    #[test]
    fn a_long_name_of_a_workload_is_named() {
        assert_eq!(name_warning("a"), None);
        assert!(name_warning(&"x".repeat(64)).unwrap().ends_with("[must be no more than 63 characters]"));
    }

    #[test]
    fn sources_of_volumes_that_are_gone_are_named() {
        let volume = object::json::parse(br#"{"name":"v","photonPersistentDisk":{"pdID":"d"}}"#).unwrap();
        let mut out = Vec::new();
        old_sources(&volume, &Path::ROOT.child("spec"), &mut out);
        assert_eq!(out, ["spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"]);
    }
}
