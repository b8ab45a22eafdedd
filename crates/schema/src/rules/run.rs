//! Running the rules of a schema over an object.

use super::adapt::adapt;
use super::compile::CompiledRule;
use crate::check::Pair;
use crate::structural::{Node, Rule, Type};
use cel::interpret::{Activation, Limits};
use cel::value::{ErrorKind as CelErrorKind, Result as CelResult, Value as Cel};
use object::Value;
use object::field::{FieldError, Path};

/// What all rules over one object may cost.
pub(crate) const OBJECT_BUDGET: u64 = 10_000_000;

/// What one evaluation may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// The longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A run over one object.
pub(crate) struct Run {
    budget: u64,
    pub(crate) errors: Vec<FieldError>,
    pub(crate) warnings: Vec<String>,
}

/// What a part of an object is compared with to tell whether it changed: its old value, or that of the nearest part
/// around it that has one.
#[derive(Clone, Copy)]
enum Correlation<'p> {
    /// Nothing is let pass.
    Off,
    Own(Pair<'p>, &'p Value),
    Around(Pair<'p>, &'p Value),
}

impl<'p> Correlation<'p> {
    fn below(self, value: &'p Value, find: impl FnOnce(Pair<'p>) -> Option<Pair<'p>>) -> Self {
        match self {
            Correlation::Own(pair, own) => match find(pair) {
                Some(inner) => Correlation::Own(inner, value),
                None => Correlation::Around(pair, own),
            },
            other => other,
        }
    }

    fn is_unchanged(self) -> bool {
        match self {
            Correlation::Own(pair, value) | Correlation::Around(pair, value) => pair.is_equal(value),
            Correlation::Off => false,
        }
    }
}

/// The rest of a run is of no use.
struct Stop;

impl Run {
    /// A run that may cost `budget`.
    pub(crate) fn new(budget: u64) -> Self {
        Run { budget, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Runs all rules of `node` and below it. With `ratchet` a failure of a part that did not change is a warning.
    /// Gives what is left of the budget; nothing where the run had to stop.
    pub(crate) fn run(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        ratchet: bool,
        path: &Path<'_>,
    ) -> Option<u64> {
        let correlation = match old {
            Some(old) if ratchet => Correlation::Own(Pair { node, old }, value),
            _ => Correlation::Off,
        };
        match self.node(node, value, old, correlation, path) {
            Ok(()) => Some(self.budget),
            Err(Stop) => None,
        }
    }

    fn node(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        if value.is_null() || !node.rules_within() {
            return Ok(());
        }
        if !node.rules().is_empty() {
            self.rules(node, value, old.filter(|old| !old.is_null()), correlation, path)?;
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = node.items().filter(|schema| schema.rules_within()) else { return Ok(()) };
                let old_items = old.map(|old| Pair { node, old }.items());
                for (i, item) in items.iter().enumerate() {
                    let pair = old_items.as_ref().and_then(|old| old.item(item));
                    let correlation = correlation.below(item, |_| pair);
                    self.node(schema, item, pair.map(|pair| pair.old), correlation, &path.index(i))?;
                }
            }
            Value::Object(members) => {
                for (key, value) in members.iter() {
                    let declared = node.property(key);
                    let Some(schema) = declared.or_else(|| node.additional_schema()) else { continue };
                    let correlation = correlation.below(value, |pair| pair.member(key));
                    let old = old.and_then(|old| old.get(key));
                    let path = if declared.is_some() { path.child(key) } else { path.key(key) };
                    self.node(schema, value, old, correlation, &path)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_>,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        let kind = node.typ().map_or("", Type::name);
        let Some(compiled) = node.compiled_rules() else {
            let detail = "rule compiler initialization error: unable to convert structural schema to CEL declarations";
            self.errors.push(FieldError::invalid(path, kind, detail));
            return Ok(());
        };
        if self.budget == 0 {
            return self.stop(path, kind, OUT_OF_BUDGET.to_owned());
        }
        let plain = Variables { node, value, old, optional: false };
        for (rule, compiled) in node.rules().iter().zip(compiled) {
            if let Some(error) = &compiled.error {
                self.errors.push(FieldError::invalid(path, kind, format!("rule compile error: {error}")));
                continue;
            }
            let Some(program) = &compiled.program else { continue };
            let optional = rule.optional_old_self == Some(true);
            if compiled.uses_old && old.is_none() && !optional {
                continue;
            }
            let evaluation = program.eval(&Variables { optional, ..plain }, Limits::cost(CALL_LIMIT));
            if evaluation.cost > self.budget {
                return self.stop(path, kind, OUT_OF_BUDGET.to_owned());
            }
            self.budget -= evaluation.cost;
            match evaluation.result {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => self.failed(rule, compiled, &plain, correlation, kind, path)?,
                Err(error) => {
                    let shown = shown(rule);
                    let text = error.to_string();
                    if error.kind() != CelErrorKind::Evaluation {
                        let detail = format!(
                            "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                        );
                        return self.stop(path, kind, detail);
                    }
                    let detail = if text.starts_with("no such overload") {
                        format!(
                            "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                        )
                    } else {
                        format!("{text} evaluating rule: {shown}")
                    };
                    self.errors.push(FieldError::invalid(path, kind, detail));
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self, path: &Path<'_>, kind: &str, detail: String) -> Result<(), Stop> {
        self.errors.push(FieldError::invalid(path, kind, detail));
        Err(Stop)
    }

    fn failed(
        &mut self,
        rule: &Rule,
        compiled: &CompiledRule,
        variables: &Variables<'_>,
        correlation: Correlation<'_>,
        kind: &str,
        path: &Path<'_>,
    ) -> Result<(), Stop> {
        let inner;
        let path = match &compiled.field {
            Some(field) => {
                inner = path.child(field);
                &inner
            }
            None => path,
        };
        let plain = || match rule.message.trim() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            message => message.to_owned(),
        };
        let mut stop = false;
        let error = match self.message(compiled, variables) {
            Message::None => for_reason(rule, path, kind, plain()),
            Message::Made(text) => for_reason(rule, path, kind, text),
            Message::Stop(detail) => {
                stop = true;
                FieldError::invalid(path, kind, detail)
            }
        };
        if !compiled.uses_old && correlation.is_unchanged() {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
        if stop { Err(Stop) } else { Ok(()) }
    }

    /// The message that an expression makes; none where there is no expression or its result is of no use.
    fn message(&mut self, compiled: &CompiledRule, variables: &Variables<'_>) -> Message {
        let Some(program) = &compiled.message else { return Message::None };
        let evaluation = program.eval(variables, Limits::cost(CALL_LIMIT));
        if evaluation.cost > self.budget {
            return Message::Stop(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
            );
        }
        self.budget -= evaluation.cost;
        match evaluation.result {
            Ok(Cel::String(text)) => match text.trim() {
                "" => Message::None,
                text if text.len() > MAX_MESSAGE || text.contains(['\n', '\r']) => Message::None,
                text => Message::Made(text.to_owned()),
            },
            Err(error) if error.kind() != CelErrorKind::Evaluation => Message::Stop(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                    .to_owned(),
            ),
            _ => Message::None,
        }
    }
}

enum Message {
    None,
    Made(String),
    Stop(String),
}

/// What stands for a rule in an error: its message if it has one.
fn shown(rule: &Rule) -> &str {
    let message = rule.message.trim();
    if rule.message.is_empty() { rule.rule.trim() } else { message }
}

fn for_reason(rule: &Rule, path: &Path<'_>, kind: &str, detail: String) -> FieldError {
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(path, kind),
        _ => FieldError::invalid(path, kind, detail),
    }
}

/// `self` and `oldSelf`.
#[derive(Clone, Copy)]
struct Variables<'a> {
    node: &'a Node,
    value: &'a Value,
    old: Option<&'a Value>,
    optional: bool,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn resolve(&self, name: &str) -> Option<CelResult<Cel<'a>>> {
        match (name, self.old) {
            ("self", _) => Some(adapt(self.node, self.value)),
            ("oldSelf", Some(old)) if self.optional => Some(adapt(self.node, old).map(Cel::some)),
            ("oldSelf", Some(old)) => Some(adapt(self.node, old)),
            ("oldSelf", None) if self.optional => Some(Ok(Cel::Optional(None))),
            _ => None,
        }
    }
}
