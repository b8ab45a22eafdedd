//! `x-kubernetes-validations`: their fields, and what the compiler says of the expressions.

use super::{go_form, list, text};
use crate::json_path;
use crate::rules::{
    self, Assumption, CompiledRule, Decls, Expressions, OBJECT_BUDGET, RULE_COST_LIMIT, Run, SCHEMA_COST_LIMIT,
};
use crate::structural::{Node, Rule, Structural};
use object::Value;
use object::field::{FieldError, Path};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the fields of the rules of one schema; `node` is its compiled form, if it has one.
pub(super) fn fields(schema: &Value, node: Option<&Node>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let rules = list(schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let path = path.child("x-kubernetes-validations");
    let breaks = |text: &str| text.contains(['\n', '\r']);
    // Where the whole has no structural form, a part may still have one. With many errors this one does not matter.
    let named = rules.iter().any(|rule| !text(rule, "fieldPath").is_empty());
    let own = if named && node.is_none() && errors.len() < 64 { Structural::new(schema).ok() } else { None };
    let node = node.or(own.as_ref().map(Structural::root));
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
        field_path(text(rule, "fieldPath"), node, &path.child("fieldPath"), errors);
    }
}

fn field_path(value: &str, node: Option<&Node>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
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
    if node.is_some_and(|node| json_path::resolve(value, node, true).is_err()) {
        invalid("fieldPath must be a valid path");
    }
}

/// How often a node can occur in one object.
#[derive(Clone, Copy)]
pub(super) struct Cardinality<'u> {
    /// The product of the bounds of the lists and maps around it.
    times: u64,
    /// Those that have none.
    pub(super) unbounded: Option<&'u Unbounded<'u>>,
}

impl Cardinality<'_> {
    /// Of the root.
    pub(super) const ONCE: Cardinality<'static> = Cardinality { times: 1, unbounded: None };

    /// In a list or map that has a bound.
    pub(super) fn within(self, limit: i64) -> Self {
        Cardinality { times: self.times.saturating_mul(u64::try_from(limit).unwrap_or(0)), ..self }
    }
}

/// What one rule, or message expression, is estimated to cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// The field of the definition that holds the expression.
    pub field: String,
    /// The expression.
    pub expression: String,
    /// The most that one evaluation costs.
    pub once: u64,
    /// How often it runs over one object, at most.
    pub times: u64,
    /// What counts towards the limits: both multiplied.
    pub total: u64,
    /// Lists and maps around the rule, as fields of the definition, that have no `maxItems` or `maxProperties`. While
    /// there is any, the number of times is what the largest request can hold.
    pub unbounded: Vec<String>,
    /// The sizes that the estimate assumes.
    pub assumptions: Vec<Assumption>,
}

/// A list or map without a bound, and those around it.
#[derive(Clone, Copy)]
pub(super) struct Unbounded<'u> {
    pub(super) path: &'u Path<'u>,
    pub(super) around: Option<&'u Unbounded<'u>>,
}

/// Compiles the rules of one schema and keeps count of their cost.
pub(super) struct Rules<'s> {
    structural: &'s Structural,
    decls: Option<Decls>,
    stored: Expressions,
    /// The schema is what it was: the cost of single rules does not matter.
    unchanged: bool,
    /// What costs assume is wanted too.
    explain: bool,
    costs: Vec<RuleCost>,
    errors: Vec<FieldError>,
}

impl<'s> Rules<'s> {
    pub(super) fn new(structural: &'s Structural, unchanged: bool, explain: bool, old: Option<&Value>) -> Self {
        let stored = Expressions::of(old);
        Rules { structural, decls: None, stored, unchanged, explain, costs: Vec::new(), errors: Vec::new() }
    }

    /// Compiles the rules of `node`, which stands at `path`.
    pub(super) fn compile(
        &mut self,
        node: &'s Node,
        path: &Path<'_>,
        uncorrelatable: Option<&Path<'_>>,
        cardinality: Cardinality<'_>,
    ) {
        let path = path.child("x-kubernetes-validations");
        let decls = self.decls.get_or_insert_with(|| Decls::new(self.structural.root()));
        let Some(decl) = decls.get(node) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            return self.errors.push(FieldError::internal(&path, detail));
        };
        let times = match cardinality.unbounded {
            None => cardinality.times,
            Some(_) => rules::worst_cardinality(decl),
        };
        let compiled = rules::compile(node, decl, &self.stored, self.explain.then_some(times));
        let mut unbounded = Vec::new();
        let mut next = cardinality.unbounded.filter(|_| self.explain);
        while let Some(one) = next {
            unbounded.push(one.path.to_string());
            next = one.around;
        }
        for (i, (rule, compiled)) in node.rules().iter().zip(compiled).enumerate() {
            let path = path.index(i);
            self.rule(rule, compiled, (times, unbounded.clone()), uncorrelatable, &path);
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: CompiledRule,
        (times, unbounded): (u64, Vec<String>),
        uncorrelatable: Option<&Path<'_>>,
        path: &Path<'_>,
    ) {
        let at = path.child("rule");
        let cost = RuleCost {
            field: at.to_string(),
            expression: rule.rule.to_string(),
            once: compiled.cost,
            times,
            total: compiled.cost.saturating_mul(times),
            unbounded,
            assumptions: compiled.assumptions,
        };
        self.cost(cost, "estimated rule cost", &at);
        if let Some(error) = &compiled.error {
            self.errors.push(FieldError::invalid(&at, go_form::rule(rule), error.as_str()));
        }
        let at = path.child("messageExpression");
        if let Some(error) = &compiled.message_error {
            self.errors.push(FieldError::invalid(&at, go_form::rule(rule), error.as_str()));
        } else if compiled.message.is_some() {
            // A message is made at most once for a failed rule; upstream does not multiply it.
            let cost = RuleCost {
                field: at.to_string(),
                expression: rule.message_expression.to_string(),
                once: compiled.message_cost,
                times: 1,
                total: compiled.message_cost,
                unbounded: Vec::new(),
                assumptions: compiled.message_assumptions,
            };
            self.cost(cost, "estimated messageExpression cost", &at);
        }
        if compiled.uses_old {
            if let Some(list) = uncorrelatable {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                self.errors.push(FieldError::invalid(&path.child("rule"), &*rule.rule, detail));
            }
        } else if let Some(set) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(&path.child("optionalOldSelf"), set, detail));
        }
    }

    fn cost(&mut self, cost: RuleCost, name: &str, path: &Path<'_>) {
        if cost.total > RULE_COST_LIMIT && !self.unchanged {
            self.errors.push(FieldError::forbidden(path, exceeds(name, cost.total, RULE_COST_LIMIT)));
        }
        self.costs.push(cost);
    }

    /// What all rules gave, and the errors about the cost of them all.
    pub(super) fn finish(self, path: &Path<'_>) -> (Vec<FieldError>, Vec<RuleCost>) {
        let mut errors = self.errors;
        let total = self.costs.iter().fold(0u64, |sum, cost| sum.saturating_add(cost.total));
        if total > SCHEMA_COST_LIMIT {
            let mut dear: Vec<&RuleCost> =
                self.costs.iter().filter(|cost| cost.total >= SCHEMA_COST_LIMIT / 100).collect();
            dear.sort_by_key(|cost| std::cmp::Reverse(cost.total));
            for cost in dear.into_iter().take(4) {
                let detail =
                    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                errors.push(FieldError::forbidden(&Path::ROOT.child(&cost.field), detail));
            }
            let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, exceeds(name, total, SCHEMA_COST_LIMIT)));
        }
        (errors, self.costs)
    }
}

fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// What the rules of defaults may still cost; nothing after a run had to stop.
pub(super) struct Budget(Option<u64>);

impl Default for Budget {
    fn default() -> Self {
        Budget(Some(OBJECT_BUDGET))
    }
}

impl Budget {
    /// Runs the rules over a default as if it stayed what it is and, where that gives no errors, as if it were new.
    pub(super) fn check_default(&mut self, node: &Node, default: &Value, path: &Path<'_>) -> Vec<FieldError> {
        let Some(budget) = self.0.filter(|_| node.rules_within()) else { return Vec::new() };
        let mut run = Run::new(budget);
        let left = run.run(node, default, Some(default), false, path);
        if !run.errors.is_empty() {
            self.0 = left;
            return run.errors;
        }
        let mut run = Run::new(budget);
        let left_when_new = run.run(node, default, None, false, path);
        self.0 = left.zip(left_when_new).map(|(a, b)| a.min(b));
        run.errors
    }
}
