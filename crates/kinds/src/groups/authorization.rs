//! The resources of the group `authorization.k8s.io`: questions that are answered and not kept.

use crate::check::Errors;
use crate::read::Read;
use crate::resource::{Resource, Strategy, Version};
use object::Value;
use object::field::{FieldError, Path, Shown};
use object::go;

const GROUP: &str = "authorization.k8s.io";

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        strategy: Strategy { validate: validate_local, ..Strategy::PLAIN },
        ..Resource::review(
            GROUP,
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.LocalSubjectAccessReview")],
        )
    },
    Resource {
        namespaced: false,
        strategy: Strategy { validate: |object| attributes(object, false), ..Strategy::PLAIN },
        ..Resource::review(
            GROUP,
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SelfSubjectAccessReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            GROUP,
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SelfSubjectRulesReview")],
        )
    },
    Resource {
        namespaced: false,
        strategy: Strategy { validate: |object| attributes(object, true), ..Strategy::PLAIN },
        ..Resource::review(
            GROUP,
            "SubjectAccessReview",
            "subjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SubjectAccessReview")],
        )
    },
];

/// Exactly one kind of attributes, and somebody whom they are about.
fn attributes(object: &Value, about_somebody: bool) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    match (spec.has("resourceAttributes"), spec.has("nonResourceAttributes")) {
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            let attributes = spec.sub("nonResourceAttributes");
            let shown = format!(
                "authorization.NonResourceAttributes{{Path:{}, Verb:{}}}",
                go::quote(attributes.text("path")),
                go::quote(attributes.text("verb"))
            );
            out.push(FieldError::invalid(&path.child("nonResourceAttributes"), Shown::raw(shown), why));
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            out.push(FieldError::invalid(&path.child("resourceAttributes"), spec.sub("resourceAttributes"), why));
        }
        _ => {}
    }
    if about_somebody && spec.text("user").is_empty() && spec.list("groups").is_empty() {
        let why = "at least one of user or group must be specified";
        out.push(FieldError::invalid(&path.child("user"), spec.text("user"), why));
    }
    out
}

fn validate_local(object: &Value) -> Errors {
    let mut out = attributes(object, true);
    let path = Path::ROOT.child("spec");
    let attributes_path = path.child("resourceAttributes");
    let spec = object.sub("spec");
    if spec.sub("resourceAttributes").text("namespace") != object.namespace() {
        let why = "must match metadata.namespace";
        let namespace = spec.sub("resourceAttributes").text("namespace");
        out.push(FieldError::invalid(&attributes_path.child("namespace"), namespace, why));
    }
    if spec.has("nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        let shown = spec.sub("nonResourceAttributes");
        out.push(FieldError::invalid(&path.child("nonResourceAttributes"), shown, why));
    }
    out
}
