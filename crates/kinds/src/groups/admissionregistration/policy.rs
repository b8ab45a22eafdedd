//! ValidatingAdmissionPolicies.

use super::expressions::Checker;
use super::matching;
use crate::check::{self, Errors};
use crate::conditions;
use crate::expressions::{Compiler, Purpose};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Context, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, go, names};
use std::collections::HashSet;

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// An update is checked as if the object were new.
pub(super) const METADATA: MetadataChecks =
    MetadataChecks { anew: 1, update: false, status: false, ..MetadataChecks::ONCE };

pub(super) const POLICIES: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("ValidatingAdmissionPolicy")],
    columns: &[Column::NAME, Column::new("Validations", "integer"), Column::new("ParamKind", "string"), Column::AGE],
    cells: policy_cells,
    strategy: Strategy {
        unconditional_update: false,
        metadata: METADATA,
        prepare_create: |object: &mut Value, _: &Context<'_>| object.set_at(&["status"], Map::new().into()),
        compiled: Some(validate),
        validate_status: |new, _| validate_status(new),
        reset_status: &[&["spec"], &["metadata"]],
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        GROUP,
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy").with_default(default)],
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

pub(super) fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "failurePolicy", "Fail");
    matching::default_match_resources(spec, "matchConstraints");
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
        matching::match_resources(spec.sub("matchConstraints"), &at, out);
        if spec.sub("matchConstraints").list("resourceRules").is_empty() {
            out.push(FieldError::required(&at.child("resourceRules"), ""));
        }
    } else {
        out.push(FieldError::required(&at, ""));
    }
}

/// What both sorts of policies have before their rules. Conditions are left alone where neither they nor the kind of the
/// parameters changed.
pub(super) fn conditions_and_variables(
    spec: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
    out: &mut Errors,
) {
    let unchanged =
        |old: &Value| ["paramKind", "matchConditions"].iter().all(|key| old.sub("spec").get(key) == spec.get(key));
    if !old.is_some_and(unchanged) {
        let conditions = path.child("matchConditions");
        matching::match_conditions(spec.list("matchConditions"), &conditions, checker, out);
    }
    let list = path.child("variables");
    for (i, value) in spec.list("variables").iter().enumerate() {
        variable(value, &list.index(i), checker, out);
    }
}

fn validate(object: &Value, old: Option<&Value>, compiler: &mut dyn Compiler) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let mut checker = Checker::of_policy(spec, old, false, compiler);
    which_requests(spec, &path, &mut out);
    conditions_and_variables(spec, old, &path, &mut checker, &mut out);
    let (validations, annotations) = (spec.list("validations"), spec.list("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        out.push(FieldError::required(&path.child("validations"), why));
        out.push(FieldError::required(&path.child("auditAnnotations"), why));
        return out;
    }
    let list = path.child("validations");
    for (i, value) in validations.iter().enumerate() {
        validation(value, &list.index(i), &mut checker, &mut out);
    }
    let list = path.child("auditAnnotations");
    if annotations.len() > 20 {
        let why = "must not have more than 20 auditAnnotations";
        out.push(FieldError::invalid(&list, shown_annotations(annotations), why));
    }
    let mut seen = HashSet::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let at = list.index(i);
        audit_annotation(annotation, object.name(), &at, &mut checker, &mut out);
        let key = annotation.text("key");
        if !seen.insert(key) {
            out.push(FieldError::duplicate(&at.child("key"), key));
        }
    }
    out
}

fn shown_annotations(annotations: &[Value]) -> Shown {
    let shown: Vec<String> = annotations
        .iter()
        .map(|a| {
            let (key, expression) = (go::quote(a.text("key")), go::quote(a.text("valueExpression")));
            format!("admissionregistration.AuditAnnotation{{Key:{key}, ValueExpression:{expression}}}")
        })
        .collect();
    Shown::raw(format!("[]admissionregistration.AuditAnnotation{{{}}}", shown.join(", ")))
}

fn audit_annotation(annotation: &Value, policy: &str, path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    const LONGEST: usize = 5 << 10;
    let key = annotation.text("key");
    let at = path.child("key");
    if policy.is_empty() {
        out.push(FieldError::invalid(&at, key, "requires metadata.name be non-empty"));
    } else {
        check::label_name(&format!("{policy}/{key}"), &at, out);
    }
    let expression = annotation.text("valueExpression");
    let at = path.child("valueExpression");
    match expression.trim().len() {
        0 => out.push(FieldError::required(&at, "valueExpression is not specified")),
        // Upstream says that it is required, too.
        length if length > LONGEST => {
            out.push(FieldError::required(&at, format!("must not exceed {LONGEST} bytes in length")));
        }
        _ => checker.check(Purpose::Annotation, expression, &at, out),
    }
}

fn validate_status(object: &Value) -> Errors {
    let mut out = Errors::new();
    let (status, path) = (object.sub("status"), Path::ROOT.child("status"));
    let checking = path.child("typeChecking");
    let warnings = checking.child("expressionWarnings");
    for (i, warning) in status.sub("typeChecking").list("expressionWarnings").iter().enumerate() {
        let at = warnings.index(i);
        check::required(warning, "warning", &at, &mut out);
        if warning.text("fieldRef").trim().is_empty() {
            out.push(FieldError::required(&at.child("fieldRef"), ""));
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
        let (group, name) = version.split_once('/').unwrap_or(("", version));
        if !group.is_empty() {
            joined(names::dns1123_subdomain(group), group, &at, out);
        }
        if name.is_empty() {
            out.push(FieldError::invalid(&at, version, "version must be specified"));
        } else {
            joined(names::dns1035_label(name), name, &at, out);
        }
    }
    let name = kind.text("kind");
    let at = path.child("kind");
    if name.is_empty() {
        out.push(FieldError::required(&at, ""));
        return;
    }
    let complaints = names::dns1035_label(&name.to_lowercase());
    if !complaints.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
        out.push(FieldError::invalid(&at, name, why));
    }
}

/// All that is wrong with a name, in one error.
fn joined(complaints: Vec<String>, value: &str, path: &Path<'_>, out: &mut Errors) {
    if !complaints.is_empty() {
        out.push(FieldError::invalid(path, value, complaints.join(",")));
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

fn variable(variable: &Value, path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    let name = variable.text("name");
    let at = path.child("name");
    if name.trim().is_empty() {
        out.push(FieldError::required(&at, "name is not specified"));
    } else {
        let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !first || RESERVED.contains(&name) || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            out.push(FieldError::invalid(&at, name, "name is not a valid CEL identifier"));
        }
    }
    expression(variable, Purpose::Variable(name), path, checker, out);
}

/// An expression that has to be there.
fn expression(owner: &Value, purpose: Purpose<'_>, path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    let (expression, at) = (owner.text("expression"), path.child("expression"));
    if expression.trim().is_empty() {
        out.push(FieldError::required(&at, "expression is not specified"));
    } else {
        checker.check(purpose, expression, &at, out);
    }
}

fn validation(value: &Value, path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    expression(value, Purpose::Validation, path, checker, out);
    let message_expression = value.text("messageExpression");
    let at = path.child("messageExpression");
    if !message_expression.trim().is_empty() {
        checker.check(Purpose::Message, message_expression, &at, out);
    } else if !message_expression.is_empty() {
        out.push(FieldError::invalid(&at, message_expression, "must be non-empty if specified"));
    }
    let message = value.text("message");
    let at = path.child("message");
    if !message.is_empty() && message.trim().is_empty() {
        out.push(FieldError::invalid(&at, message, "message must be non-empty if specified"));
    } else if message.trim().contains(['\n', '\r']) {
        out.push(FieldError::invalid(&at, message, "message must not contain line breaks"));
    }
    if value.has("reason") {
        check::one_of(value, "reason", &["Forbidden", "Invalid", "RequestEntityTooLarge"], path, out);
    }
}
