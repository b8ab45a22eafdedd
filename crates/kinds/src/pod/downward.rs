//! Fields and resources of a pod that its containers are told of (the downward API).

use crate::check::{self, Errors, quantity};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};

/// The fields that a variable may hold.
pub(super) const VARIABLES: [&str; 9] = [
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

/// The fields that a file may hold.
pub(super) const FILES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A `fieldRef`.
pub(super) fn field(value: &Value, supported: &[&str], path: &Path<'_>, out: &mut Errors) {
    let field = value.text("fieldPath");
    for key in ["apiVersion", "fieldPath"] {
        if value.text(key).is_empty() {
            out.push(FieldError::required(&path.child(key), ""));
            return;
        }
    }
    let mut refuse = |why: String| {
        let why = format!("error converting fieldPath: {why}");
        out.push(FieldError::invalid(&path.child("fieldPath"), field, why));
    };
    if value.text("apiVersion") != "v1" {
        return refuse(format!("unsupported pod version: {}", value.text("apiVersion")));
    }
    if let Some((whole, key)) = field.strip_suffix("']").and_then(|f| f.split_once("['")) {
        match whole {
            "metadata.annotations" => check::label_name(&key.to_lowercase(), path, out),
            "metadata.labels" => check::label_name(key, path, out),
            _ => refuse(format!("field label does not support subscript: {field}")),
        }
        return;
    }
    let converted = match field {
        "spec.host" => "spec.nodeName",
        field => field,
    };
    let known = VARIABLES.contains(&converted)
        || FILES.contains(&converted)
        || matches!(converted, "spec.restartPolicy" | "spec.schedulerName" | "status.phase");
    if !known {
        refuse(format!("field label not supported: {field}"));
    } else if !supported.contains(&converted) {
        out.push(FieldError::not_supported(&path.child("fieldPath"), converted, supported));
    }
}

/// A `resourceFieldRef`; a file must say of which container.
pub(super) fn resource(value: &Value, file: bool, path: &Path<'_>, out: &mut Errors) {
    const RESOURCES: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let name = value.text("resource");
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if file && value.text("containerName").is_empty() {
        out.push(FieldError::required(&path.child("containerName"), ""));
    } else if name.is_empty() {
        out.push(FieldError::required(&path.child("resource"), ""));
    } else if !huge {
        check::one_of(value, "resource", &RESOURCES, path, out);
    }
    let Some(divisor) = quantity(value.sub("divisor")).filter(|d| d.sign().is_ne()) else { return };
    const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let what = match name {
        "limits.cpu" | "requests.cpu" => {
            if !matches!(divisor.to_string().as_str(), "1" | "1m") {
                let why = "only divisor's values 1m and 1 are supported with the cpu resource";
                out.push(FieldError::invalid(&path.child("divisor"), name, why));
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if huge => "hugepages",
        _ => return,
    };
    if !SIZES.split(", ").any(|size| size == divisor.to_string()) {
        let why = format!("only divisor's values {SIZES} are supported with the {what} resource");
        out.push(FieldError::invalid(&path.child("divisor"), name, why));
    }
}
