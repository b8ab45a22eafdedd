//! ValidatingAdmissionPolicies and their bindings.

use super::matching;
use crate::check::{self, Errors};
use crate::conditions;
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Context, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

pub(super) const POLICIES: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("ValidatingAdmissionPolicy")],
    columns: &[Column::NAME, Column::new("Validations", "integer"), Column::new("ParamKind", "string"), Column::AGE],
    cells: policy_cells,
    strategy: Strategy {
        unconditional_update: false,
        prepare_create: |object: &mut Value, _: &Context<'_>| object.set_at(&["status"], Map::new().into()),
        validate,
        validate_update: |new, _| validate(new),
        validate_status: |new, _| validate_status(new),
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        GROUP,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy").with_default(default)],
    )
};

pub(super) const BINDINGS: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: &[Column::NAME, Column::new("PolicyName", "string"), Column::new("ParamRef", "string"), Column::AGE],
    cells: binding_cells,
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"]]),
        unconditional_update: false,
        validate: validate_binding,
        validate_update: |new, _| validate_binding(new),
        ..Strategy::PLAIN
    },
    ..Resource::new(
        GROUP,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding")
            .with_default(default_binding)],
    )
};

fn policy_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    cells_counting("validations", object, now)
}

/// The cells of a policy that has a list of rules.
pub(super) fn cells_counting(rules: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let kind = spec.sub("paramKind");
    let shown = match (spec.has("paramKind"), kind.text("apiVersion")) {
        (false, _) => "<unset>".to_owned(),
        (true, "") => kind.text("kind").to_owned(),
        (true, version) => format!("{version}/{}", kind.text("kind")),
    };
    let count = spec.list(rules).len() as i64;
    vec![object.name().into(), Value::Int(count), shown.into(), table::age(object, now)]
}

pub(super) fn binding_cells(object: &Value, now: Timestamp) -> Vec<Value> {
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

pub(super) fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "failurePolicy", "Fail");
    matching::default_match_resources(spec, "matchConstraints");
}

pub(super) fn default_binding(object: &mut Value) {
    if let Some(spec) = object_mut(object, &["spec"]) {
        matching::default_match_resources(spec, "matchResources");
    }
}

pub(super) fn match_resources(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if value.has("matchPolicy") {
        check::one_of(value, "matchPolicy", &["Equivalent", "Exact"], path, out);
    } else {
        out.push(FieldError::required(&path.child("matchPolicy"), ""));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if value.has(key) {
            check::label_selector(value.sub(key), &path.child(key), out);
        } else {
            out.push(FieldError::required(&path.child(key), ""));
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let list = path.child(key);
        for (i, rule) in value.list(key).iter().enumerate() {
            let at = list.index(i);
            matching::rule(rule, &at, out);
            let names_path = at.child("resourceNames");
            let mut seen: Vec<&str> = Vec::new();
            for (j, name) in rule.strings("resourceNames").into_iter().enumerate() {
                check::name(names::path_segment, name, &names_path.index(j), out);
                if seen.contains(&name) {
                    out.push(FieldError::duplicate(&names_path.index(j), name));
                }
                seen.push(name);
            }
        }
    }
}

/// What both sorts of policies say of the requests that they are about.
pub(super) fn which_requests(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if spec.has("failurePolicy") {
        check::one_of(spec, "failurePolicy", &["Fail", "Ignore"], path, out);
    } else {
        out.push(FieldError::required(&path.child("failurePolicy"), ""));
    }
    if spec.has("paramKind") {
        param_kind(spec.sub("paramKind"), &path.child("paramKind"), out);
    }
    let at = path.child("matchConstraints");
    if spec.has("matchConstraints") {
        match_resources(spec.sub("matchConstraints"), &at, out);
        if spec.sub("matchConstraints").list("resourceRules").is_empty() {
            out.push(FieldError::required(&at.child("resourceRules"), ""));
        }
    } else {
        out.push(FieldError::required(&at, ""));
    }
}

/// What both sorts of policies have before their rules.
pub(super) fn conditions_and_variables(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    matching::match_conditions(spec.list("matchConditions"), &path.child("matchConditions"), out);
    variables(spec.list("variables"), &path.child("variables"), out);
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    which_requests(spec, &path, &mut out);
    conditions_and_variables(spec, &path, &mut out);
    let (validations, annotations) = (spec.list("validations"), spec.list("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        out.push(FieldError::required(&path.child("validations"), why));
        out.push(FieldError::required(&path.child("auditAnnotations"), why));
        return out;
    }
    let list = path.child("validations");
    for (i, value) in validations.iter().enumerate() {
        validation(value, &list.index(i), &mut out);
    }
    let list = path.child("auditAnnotations");
    if annotations.len() > 20 {
        let shown: Vec<String> = annotations
            .iter()
            .map(|a| {
                let (key, expression) = (go::quote(a.text("key")), go::quote(a.text("valueExpression")));
                format!("admissionregistration.AuditAnnotation{{Key:{key}, ValueExpression:{expression}}}")
            })
            .collect();
        let shown = Shown::raw(format!("[]admissionregistration.AuditAnnotation{{{}}}", shown.join(", ")));
        out.push(FieldError::invalid(&list, shown, "must not have more than 20 auditAnnotations"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let at = list.index(i);
        let key = annotation.text("key");
        if object.meta_str("generateName").is_empty() {
            check::label_name(&format!("{}/{key}", object.name()), &at.child("key"), &mut out);
        }
        let expression = annotation.text("valueExpression").trim();
        if expression.is_empty() {
            let why = "valueExpression is not specified";
            out.push(FieldError::required(&at.child("valueExpression"), why));
        } else if expression.len() > 5 << 10 {
            out.push(FieldError::invalid(&at.child("valueExpression"), expression, "must not exceed 5kb in length"));
        }
        if seen.contains(&key) {
            out.push(FieldError::duplicate(&at.child("key"), key));
        }
        seen.push(key);
    }
    out
}

fn validate_status(object: &Value) -> Errors {
    let mut out = Errors::new();
    let (status, path) = (object.sub("status"), Path::ROOT.child("status"));
    let checking = path.child("typeChecking");
    let warnings = checking.child("expressionWarnings");
    for (i, warning) in status.sub("typeChecking").list("expressionWarnings").iter().enumerate() {
        for key in ["warning", "fieldRef"] {
            if warning.text(key).trim().is_empty() {
                out.push(FieldError::required(&warnings.index(i).child(key), ""));
            }
        }
    }
    conditions::validate(status.list("conditions"), &path.child("conditions"), &mut out);
    out
}

fn param_kind(kind: &Value, path: &Path<'_>, out: &mut Errors) {
    let version = kind.text("apiVersion");
    let at = path.child("apiVersion");
    if version.is_empty() {
        out.push(FieldError::required(&at, ""));
    } else if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        out.push(FieldError::invalid(&at, version, why));
    } else {
        let (group, version_name) = version.split_once('/').unwrap_or(("", version));
        if !group.is_empty() {
            let complaints = names::dns1123_subdomain(group);
            out.extend(complaints.into_iter().map(|why| FieldError::invalid(&at, group, why)));
        }
        let complaints = names::dns1035_label(version_name);
        out.extend(complaints.into_iter().map(|why| FieldError::invalid(&at, version_name, why)));
    }
    let name = kind.text("kind");
    let at = path.child("kind");
    if name.is_empty() {
        out.push(FieldError::required(&at, ""));
    } else {
        let lower = name.to_lowercase();
        let complaints = names::dns1035_label(&lower);
        if !complaints.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
            out.push(FieldError::invalid(&at, name, why));
        }
    }
}

/// Words that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

fn variables(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    for (i, variable) in list.iter().enumerate() {
        let at = path.index(i);
        let name = variable.text("name");
        let name_path = at.child("name");
        if name.trim().is_empty() {
            out.push(FieldError::required(&name_path, "name is not specified"));
        } else {
            let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
            if !first || RESERVED.contains(&name) || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                out.push(FieldError::invalid(&name_path, name, "name is not a valid CEL identifier"));
            }
        }
        if variable.text("expression").trim().is_empty() {
            out.push(FieldError::required(&at.child("expression"), "expression is not specified"));
        }
    }
}

fn validation(value: &Value, path: &Path<'_>, out: &mut Errors) {
    if value.text("expression").trim().is_empty() {
        out.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    }
    let message_expression = value.text("messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let why = "must be non-empty if specified";
        out.push(FieldError::invalid(&path.child("messageExpression"), message_expression, why));
    }
    let message = value.text("message");
    let trimmed = message.trim();
    let at = path.child("message");
    if !message.is_empty() && trimmed.is_empty() {
        out.push(FieldError::invalid(&at, message, "message must be non-empty if specified"));
    } else if trimmed.contains('\n') {
        out.push(FieldError::invalid(&at, message, "message must not contain line breaks"));
    }
    if value.has("reason") {
        check::one_of(value, "reason", &["Forbidden", "Invalid", "RequestEntityTooLarge"], path, out);
    }
}

/// What both sorts of bindings say of their policy, its parameters and the requests.
pub(super) fn bound(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if spec.text("policyName").is_empty() {
        out.push(FieldError::required(&path.child("policyName"), ""));
    } else {
        check::name(names::dns1123_subdomain, spec.text("policyName"), &path.child("policyName"), out);
    }
    if spec.has("paramRef") {
        let reference = spec.sub("paramRef");
        let at = path.child("paramRef");
        match (reference.text("name").is_empty(), reference.has("selector")) {
            (true, false) => {
                out.push(FieldError::required(&at, "one of name or selector must be specified"));
            }
            (false, true) => {
                out.push(FieldError::forbidden(&at.child("name"), "name and selector are mutually exclusive"));
                out.push(FieldError::forbidden(&at.child("selector"), "name and selector are mutually exclusive"));
            }
            _ => {}
        }
        if reference.has("selector") {
            check::label_selector(reference.sub("selector"), &at.child("selector"), out);
        }
        if !reference.text("name").is_empty() {
            check::name(names::path_segment, reference.text("name"), &at.child("name"), out);
        }
        if !reference.has("parameterNotFoundAction") {
            out.push(FieldError::required(&at.child("parameterNotFoundAction"), ""));
        } else {
            check::one_of(reference, "parameterNotFoundAction", &["Deny", "Allow"], &at, out);
        }
    }
    if spec.has("matchResources") {
        match_resources(spec.sub("matchResources"), &path.child("matchResources"), out);
    }
}

fn validate_binding(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    bound(spec, &path, &mut out);
    let actions = spec.strings("validationActions");
    let at = path.child("validationActions");
    if actions.is_empty() {
        out.push(FieldError::required(&at, "at least one validation action is required"));
    }
    for (i, action) in actions.iter().enumerate() {
        let here = at.index(i);
        if !matches!(*action, "Audit" | "Deny" | "Warn") {
            out.push(FieldError::not_supported(&here, *action, &["Audit", "Deny", "Warn"]));
        }
        if actions[..i].contains(action) {
            out.push(FieldError::duplicate(&here, *action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let shown = check::go_list("admissionregistration.ValidationAction", &actions);
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        out.push(FieldError::invalid(&at, shown, why));
    }
    out
}
