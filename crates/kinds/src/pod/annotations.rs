//! Annotations that say something about a pod, most of them from before there were fields for it.

use super::containers::all_containers;
use super::volumes::local_path;
use crate::check::Errors;
use crate::read::Read;
use object::field::{FieldError, Path};
use object::{Map, Value, go, map};

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// What seccomp's profile of a pod was called before there was a field.
pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Before the name of a container: its seccomp profile.
pub(crate) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Before the name of a container: its AppArmor profile.
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn of(object: &Value) -> &Map {
    object.sub("metadata").members("annotations")
}

/// The profile of AppArmor that an annotation names, as the field has it.
pub(crate) fn app_armor_profile(annotation: &str) -> Option<Value> {
    Some(match annotation {
        "unconfined" => map! { "type" => "Unconfined" }.into(),
        "runtime/default" => map! { "type" => "RuntimeDefault" }.into(),
        _ => {
            let file = annotation.strip_prefix("localhost/").filter(|file| !file.is_empty() && file.trim() == *file)?;
            map! { "localhostProfile" => file, "type" => "Localhost" }.into()
        }
    })
}

/// Annotations in which init containers once stood, and their statuses.
const INIT_CONTAINERS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Drops from a pod or template the annotations in which init containers once stood: older kubelets would heed them.
pub(crate) fn drop_old(object: &mut Value) {
    if INIT_CONTAINERS.iter().any(|key| of(object).contains_key(key)) {
        for key in INIT_CONTAINERS {
            object.remove_at(&["metadata", "annotations", key]);
        }
    }
}

/// Checks the annotations of a pod or template that mean something.
pub(super) fn annotations(object: &Value, path: &Path<'_>, out: &mut Errors) {
    let spec = object.sub("spec");
    for (key, value) in of(object).iter() {
        let text = value.as_str().unwrap_or_default();
        if key == MIRROR && spec.text("nodeName").is_empty() {
            let why = "must set spec.nodeName if mirror pod annotation is set";
            out.push(FieldError::invalid(&path.key(key), text, why));
        }
        if key == DELETION_COST && !is_cost(text) {
            out.push(FieldError::invalid(&path.key(key), text, "must be a 32bit integer"));
        }
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(text, &path.child(key), out);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            let at = path.key(key);
            if !all_containers(spec).any(|(_, _, container)| container.text("name") == name) {
                out.push(FieldError::invalid(&at, name, "container not found"));
            }
            if !matches!(text, "" | "runtime/default" | "unconfined") && !text.starts_with("localhost/") {
                let why = format!("invalid AppArmor profile name: {}", go::quote(text));
                out.push(FieldError::invalid(&at, text, why));
            }
        }
    }
}

/// A whole number of 32 bits without a plus sign and leading zeros.
fn is_cost(text: &str) -> bool {
    let first = text.bytes().next();
    let plain = first.is_some_and(|b| matches!(b, b'-' | b'1'..=b'9')) || text == "0";
    plain && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, path: &Path<'_>, out: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(file) => local_path(file, path, out),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => out.push(FieldError::invalid(path, profile, "must be a valid seccomp profile")),
    }
}

/// Where both an annotation and a field name a profile, they name the same.
pub(crate) fn profiles(object: &Value, path: &Path<'_>, out: &mut Errors) {
    let (spec, annotations) = (object.sub("spec"), of(object));
    if annotations.is_empty() {
        return;
    }
    let annotation = |key: &str| annotations.get(key).and_then(Value::as_str);
    let context = spec.sub("securityContext");
    if let Some(value) = annotation(SECCOMP_POD).filter(|_| context.has("seccompProfile")) {
        same("seccomp", value, context.sub("seccompProfile"), &path.child("securityContext.seccompProfile"), out);
    }
    for (list, i, container) in all_containers(spec) {
        let (name, own) = (container.text("name"), container.sub("securityContext"));
        let list = path.child(list);
        let at = list.index(i);
        if let Some(value) = annotation(&format!("{SECCOMP_CONTAINER}{name}")).filter(|_| own.has("seccompProfile")) {
            same("seccomp", value, own.sub("seccompProfile"), &at.child("securityContext.seccompProfile"), out);
        }
        let profile = match own.has("appArmorProfile") {
            true => own.sub("appArmorProfile"),
            false => context.sub("appArmorProfile"),
        };
        let windows = spec.sub("os").text("name") == "windows";
        let value = annotation(&format!("{APP_ARMOR}{name}"));
        if let Some(value) = value.filter(|_| !windows && profile.as_object().is_some()) {
            same("apparmor", value, profile, &at.child("securityContext.appArmorProfile"), out);
        }
    }
}

fn same(what: &str, annotation: &str, profile: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut differs = |key: &str, part: &str| {
        let why = format!("{what} {part} in annotation and field must match");
        out.push(FieldError::forbidden(&path.child(key), why));
    };
    let good = match profile.text("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default"),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(file) => {
                if profile.text("localhostProfile") != file {
                    differs("localhostProfile", "profile");
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !good {
        differs("type", "type");
    }
}

/// What of these annotations an update may not change: that a pod mirrors one of the kubelet's.
pub(crate) fn updates(new: &Value, old: &Value, path: &Path<'_>, out: &mut Errors) {
    let (now, before) = (of(new).get(MIRROR), of(old).get(MIRROR));
    if now == before {
        return;
    }
    let why = match before {
        Some(_) => "may not remove or update mirror pod annotation",
        None => "may not add mirror pod annotation",
    };
    out.push(FieldError::forbidden(&path.key(MIRROR), why));
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn init_containers_in_annotations_are_dropped() {
        for (annotations, wanted) in [
            (r#"{"a":"b","pod.beta.kubernetes.io/init-containers":"[]"}"#, r#"{"a":"b"}"#),
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
        ] {
            let text = format!(r#"{{"metadata":{{"annotations":{annotations}}}}}"#);
            let mut object = json::parse(text.as_bytes()).unwrap();
            drop_old(&mut object);
            assert_eq!(json::to_string(object.sub("metadata").sub("annotations")), wanted);
        }
    }
}
