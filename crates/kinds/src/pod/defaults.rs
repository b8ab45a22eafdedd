//! Defaults of pods and of templates of pods.

use super::annotations::drop_old;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use object::{Map, Value};

/// Defaults of a pod: those of a template, and what only pods get.
pub(crate) fn default_pod(pod: &mut Value) {
    drop_old(pod);
    if let Some(spec) = object_mut(pod, &["spec"]) {
        let host_network = spec.flag("hostNetwork");
        for containers in ["containers", "initContainers"] {
            for container in list_mut(spec, containers) {
                requests_from_limits(container);
                if host_network {
                    for port in list_mut(container, "ports") {
                        let number = port.int("containerPort");
                        if port.int("hostPort") == 0 {
                            port.set_at(&["hostPort"], Value::Int(number));
                        }
                    }
                }
            }
        }
        default_to(spec, "enableServiceLinks", true);
        default_spec(spec);
    }
}

/// Defaults of the template at `spec.template` or the like.
pub(crate) fn default_template(template: &mut Value) {
    drop_old(template);
    if let Some(spec) = object_mut(template, &["spec"]) {
        default_spec(spec);
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits = container.sub("resources").members("limits").clone();
    if limits.is_empty() {
        return;
    }
    let requests = container.object_entry("resources").object_entry("requests");
    for (name, quantity) in limits.iter() {
        requests.get_or_insert(name, || quantity.clone());
    }
}

fn default_spec(spec: &mut Value) {
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    default_text(spec, "schedulerName", "default-scheduler");
    default_to(spec, "securityContext", Map::new());
    default_to(spec, "terminationGracePeriodSeconds", 30);
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        list_mut(spec, containers).iter_mut().for_each(default_container);
    }
    list_mut(spec, "volumes").iter_mut().for_each(default_volume);
}

fn default_container(container: &mut Value) {
    let policy = pull_policy(container.text("image"));
    default_text(container, "imagePullPolicy", policy);
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    for port in list_mut(container, "ports") {
        default_text(port, "protocol", "TCP");
    }
    for variable in list_mut(container, "env") {
        if let Some(field) = object_mut(variable, &["valueFrom", "fieldRef"]) {
            default_text(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object_mut(container, &[probe]) else { continue };
        for (key, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            if probe.int(key) == 0 {
                probe.set_at(&[key], Value::Int(value));
            }
        }
        default_handler(probe);
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = object_mut(container, &["lifecycle", hook]) {
            default_handler(hook);
        }
    }
}

fn default_handler(handler: &mut Value) {
    if let Some(get) = object_mut(handler, &["httpGet"]) {
        default_text(get, "path", "/");
        default_text(get, "scheme", "HTTP");
    }
    if let Some(grpc) = object_mut(handler, &["grpc"]) {
        default_to(grpc, "service", "");
    }
}

/// Images without a tag, or with the tag `latest`, are pulled always.
fn pull_policy(image: &str) -> &'static str {
    let (rest, digest) = image.split_once('@').map_or((image, false), |(rest, _)| (rest, true));
    let last = rest.rsplit('/').next().unwrap_or(rest);
    let tag = last.split_once(':').map_or("", |(_, tag)| tag);
    match (tag, digest) {
        ("", true) => "IfNotPresent",
        ("" | "latest", _) => "Always",
        _ => "IfNotPresent",
    }
}

fn default_volume(volume: &mut Value) {
    const MODE: i64 = 0o644;
    if volume.as_object().is_some_and(|m| !m.iter().any(|(k, v)| k != "name" && !v.is_null())) {
        volume.set_at(&["emptyDir"], Map::new().into());
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object_mut(volume, &[source]) {
            default_to(source, "defaultMode", MODE);
        }
    }
    if let Some(downward) = object_mut(volume, &["downwardAPI"]) {
        default_downward_items(downward);
    }
    if let Some(projected) = object_mut(volume, &["projected"]) {
        for source in list_mut(projected, "sources") {
            if let Some(token) = object_mut(source, &["serviceAccountToken"]) {
                default_to(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = object_mut(source, &["downwardAPI"]) {
                default_downward_items(downward);
            }
        }
    }
    if let Some(path) = object_mut(volume, &["hostPath"]) {
        default_to(path, "type", "");
    }
    if let Some(image) = object_mut(volume, &["image"]) {
        let policy = pull_policy(image.text("reference"));
        default_text(image, "pullPolicy", policy);
    }
    if let Some(spec) = object_mut(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
        default_claim_spec(spec);
    }
    default_legacy_sources(volume);
}

/// Defaults of the older volume types, the same for volumes and persistent volumes.
pub(crate) fn default_legacy_sources(volume: &mut Value) {
    if let Some(iscsi) = object_mut(volume, &["iscsi"]) {
        default_text(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = object_mut(volume, &["rbd"]) {
        default_text(rbd, "pool", "rbd");
        default_text(rbd, "user", "admin");
        default_text(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(azure) = object_mut(volume, &["azureDisk"]) {
        default_to(azure, "cachingMode", "ReadWrite");
        default_to(azure, "kind", "Shared");
        default_to(azure, "fsType", "ext4");
        default_to(azure, "readOnly", false);
    }
    if let Some(scale_io) = object_mut(volume, &["scaleIO"]) {
        default_text(scale_io, "storageMode", "ThinProvisioned");
        default_text(scale_io, "fsType", "xfs");
    }
}

fn default_downward_items(source: &mut Value) {
    for item in list_mut(source, "items") {
        if let Some(field) = object_mut(item, &["fieldRef"]) {
            default_text(field, "apiVersion", "v1");
        }
    }
}

/// Defaults of the specification of a claim.
pub(crate) fn default_claim_spec(spec: &mut Value) {
    default_to(spec, "volumeMode", "Filesystem");
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn the_tag_decides_how_images_are_pulled() {
        for (image, policy) in [
            ("a", "Always"),
            ("a:latest", "Always"),
            ("a:1", "IfNotPresent"),
            ("host:5000/a", "Always"),
            ("host:5000/a:1", "IfNotPresent"),
            ("a@sha256:0", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
