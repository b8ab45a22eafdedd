//! Bindings of ValidatingAdmissionPolicies, and what those of MutatingAdmissionPolicies have with them in common.

use super::matching;
use super::policy::{GROUP, METADATA};
use crate::check::{self, Errors};
use crate::read::{Read, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, names};
use std::collections::HashSet;

pub(super) const BINDINGS: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: &[Column::NAME, Column::new("PolicyName", "string"), Column::new("ParamRef", "string"), Column::AGE],
    cells,
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"]]),
        unconditional_update: false,
        metadata: METADATA,
        compiled: Some(|object, _, _| validate(object)),
        ..Strategy::PLAIN
    },
    ..Resource::new(
        GROUP,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding")
            .with_default(default)],
    )
};

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let parameters = spec.sub("paramRef");
    let shown = match (parameters.text("namespace"), parameters.text("name")) {
        (_, "") if parameters.has("selector") => table::go_selector(parameters.sub("selector")),
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![object.name().into(), spec.text("policyName").into(), shown.into(), table::age(object, now)]
}

/// Defaults of both sorts of bindings.
pub(super) fn default(object: &mut Value) {
    if let Some(spec) = object_mut(object, &["spec"]) {
        matching::default_match_resources(spec, "matchResources");
    }
}

/// What both sorts of bindings say of their policy, its parameters and the requests.
pub(super) fn bound(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    check::required_name(names::dns1123_subdomain, spec, "policyName", path, out);
    if spec.has("paramRef") {
        param_ref(spec.sub("paramRef"), &path.child("paramRef"), out);
    }
    if spec.has("matchResources") {
        matching::match_resources(spec.sub("matchResources"), &path.child("matchResources"), out);
    }
}

fn param_ref(reference: &Value, path: &Path<'_>, out: &mut Errors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selects) = (reference.text("name"), reference.has("selector"));
    let (name_path, selector) = (path.child("name"), path.child("selector"));
    if !name.is_empty() {
        check::name(names::path_segment, name, &name_path, out);
        if selects {
            out.push(FieldError::forbidden(&name_path, EXCLUSIVE));
        }
    }
    if selects {
        check::label_selector(reference.sub("selector"), &selector, out);
        if !name.is_empty() {
            out.push(FieldError::forbidden(&selector, EXCLUSIVE));
        }
    }
    if name.is_empty() && !selects {
        out.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    check::required_one_of(reference, "parameterNotFoundAction", &["Deny", "Allow"], path, out);
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    bound(spec, &path, &mut out);
    actions(&spec.strings("validationActions"), &path.child("validationActions"), &mut out);
    out
}

fn actions(list: &[&str], path: &Path<'_>, out: &mut Errors) {
    let mut seen = HashSet::new();
    for (i, action) in list.iter().enumerate() {
        let at = path.index(i);
        if !matches!(*action, "Audit" | "Deny" | "Warn") {
            out.push(FieldError::not_supported(&at, *action, &["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action) {
            out.push(FieldError::duplicate(&at, *action));
        }
    }
    if list.contains(&"Deny") && list.contains(&"Warn") {
        let shown = check::go_list("admissionregistration.ValidationAction", list);
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        out.push(FieldError::invalid(path, shown, why));
    }
    if list.is_empty() {
        out.push(FieldError::required(path, "at least one validation action is required"));
    }
}
