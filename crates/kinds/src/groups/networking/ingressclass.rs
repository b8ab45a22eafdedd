//! IngressClasses.

use crate::check::{self, Errors};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use object::field::{FieldError, Path};
use object::{Value, names};

pub(super) const INGRESS_CLASSES: Resource = Resource {
    namespaced: false,
    columns: &[Column::NAME, Column::new("Controller", "string"), Column::new("Parameters", "string"), Column::AGE],
    cells: |object, now| {
        let spec = object.sub("spec");
        let parameters = spec.sub("parameters");
        let shown = match (spec.has("parameters"), parameters.text("apiGroup")) {
            (false, _) => "<none>".to_owned(),
            (true, "") => format!("{}/{}", parameters.text("kind"), parameters.text("name")),
            (true, group) => format!("{}.{group}/{}", parameters.text("kind"), parameters.text("name")),
        };
        vec![object.name().into(), spec.text("controller").into(), shown.into(), table::age(object, now)]
    },
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"]]),
        validate,
        validate_update: |new, old| {
            let mut out = validate(new);
            let path = Path::ROOT.child("spec");
            check::immutable(new.sub("spec"), old.sub("spec"), "controller", &path, &mut out);
            out
        },
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "networking.k8s.io",
        "IngressClass",
        "ingressclasses",
        &[Version::stored("v1", "io.k8s.api.networking.v1.IngressClass").with_default(|object| {
            if let Some(parameters) = object_mut(object, &["spec", "parameters"]) {
                default_to(parameters, "scope", "Cluster");
            }
        })],
    )
};

/// Checks a reference to an object beside this one.
pub(super) fn reference(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if value.has("apiGroup") {
        check::name(names::dns1123_subdomain, value.text("apiGroup"), &path.child("apiGroup"), out);
    }
    for (key, why) in [("kind", "kind is required"), ("name", "name is required")] {
        if value.text(key).is_empty() {
            out.push(FieldError::required(&path.child(key), why));
        } else {
            check::name(names::path_segment, value.text(key), &path.child(key), out);
        }
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let controller = spec.text("controller");
    let at = path.child("controller");
    if controller.len() > 250 {
        out.push(FieldError::too_long(&at, 250));
    }
    check::domain_prefixed(controller, &at, &mut out);
    let parameters = spec.sub("parameters");
    if spec.has("parameters") {
        let at = path.child("parameters");
        reference(parameters, &at, &mut out);
        check::required_one_of(parameters, "scope", &["Cluster", "Namespace"], &at, &mut out);
        match (parameters.text("scope"), parameters.has("namespace")) {
            ("Namespace", false) => {
                let why = "`parameters.scope` is set to 'Namespace'";
                out.push(FieldError::required(&at.child("namespace"), why));
            }
            ("Namespace", true) => {
                let namespace = parameters.text("namespace");
                check::name(names::dns1123_label, namespace, &at.child("namespace"), &mut out);
            }
            ("Cluster", true) => {
                let why = "`parameters.scope` is set to 'Cluster'";
                out.push(FieldError::forbidden(&at.child("namespace"), why));
            }
            _ => {}
        }
    }
    out
}
