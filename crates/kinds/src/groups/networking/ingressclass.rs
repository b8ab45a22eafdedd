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

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let controller = spec.text("controller");
    let at = path.child("controller");
    if controller.is_empty() {
        out.push(FieldError::required(&at, ""));
    } else {
        if controller.len() > 250 {
            out.push(FieldError::too_long(&at, 250));
        }
        domain_prefixed(controller, &at, &mut out);
    }
    let parameters = spec.sub("parameters");
    if spec.has("parameters") {
        let at = path.child("parameters");
        if parameters.has("apiGroup") && !parameters.text("apiGroup").is_empty() {
            check::name(names::dns1123_subdomain, parameters.text("apiGroup"), &at.child("aPIGroup"), &mut out);
        }
        for key in ["kind", "name"] {
            if parameters.text(key).is_empty() {
                let why = if key == "kind" { "kind is required" } else { "name is required" };
                out.push(FieldError::required(&at.child(key), why));
            } else {
                check::name(names::path_segment, parameters.text(key), &at.child(key), &mut out);
            }
        }
        check::required_one_of(parameters, "scope", &["Cluster", "Namespace"], &at, &mut out);
        match (parameters.text("scope"), parameters.has("namespace")) {
            ("Namespace", false) => {
                let why = "`parameters.scope` is set to 'Namespace'";
                out.push(FieldError::required(&at.child("namespace"), why));
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

fn domain_prefixed(value: &str, path: &Path<'_>, out: &mut Errors) {
    let (domain, rest) = match value.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => (domain, rest),
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            out.push(FieldError::invalid(path, value, why));
            return;
        }
    };
    let complaints = names::dns1123_subdomain(domain);
    out.extend(complaints.into_iter().map(|why| FieldError::invalid(path, domain, why)));
    let good = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:".contains(&b));
    if !good {
        let why = names::pattern_text("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        out.push(FieldError::invalid(path, rest, why));
    }
}
