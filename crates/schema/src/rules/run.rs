//! Running the rules of a schema over an object.

use super::Decls;
use super::adapt::adapt;
use super::compile::CompiledRule;
use crate::check::Pair;
use crate::structural::{Node, Rule, Type};
use cel::interpret::{Activation, Limits};
use cel::value::{ErrorKind as CelErrorKind, Result as CelResult, Value as Cel};
use object::Value;
use object::field::{FieldError, Path};
use std::cell::OnceCell;

/// What all rules over one object may cost.
pub(crate) const OBJECT_BUDGET: u64 = 10_000_000;

/// What one evaluation may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// The longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The most bytes that the texts of a run's errors may take together. Upstream knows no such limit; a run that gets
/// there has said enough.
const MAX_TEXT: usize = 4 << 20;

/// A run over one object.
pub(crate) struct Run {
    budget: u64,
    text: usize,
    /// The CEL types of the schema, once rules have to be compiled.
    decls: Option<Decls>,
    pub(crate) errors: Vec<FieldError>,
    pub(crate) warnings: Vec<String>,
}

/// What a part of an object is compared with to tell whether it changed: its old value, or that of the nearest part
/// around it that has one.
#[derive(Clone, Copy)]
enum Correlation<'p> {
    /// Nothing is let pass.
    Off,
    Own(Part<'p>),
    Around(Part<'p>),
}

/// A part with its old value. Whether they are equal is found out at most once.
#[derive(Clone, Copy)]
struct Part<'p> {
    pair: Pair<'p>,
    value: &'p Value,
    equal: &'p OnceCell<bool>,
}

impl<'p> Correlation<'p> {
    /// What holds for a part below: its own old value, or that of what is around it.
    fn below(self, pair: Option<Pair<'p>>, value: &'p Value, equal: &'p OnceCell<bool>) -> Self {
        match (self, pair) {
            (Correlation::Own(_), Some(pair)) => Correlation::Own(Part { pair, value, equal }),
            (Correlation::Own(part), None) => Correlation::Around(part),
            (other, _) => other,
        }
    }

    fn pair(self) -> Option<Pair<'p>> {
        match self {
            Correlation::Own(part) => Some(part.pair),
            Correlation::Off | Correlation::Around(_) => None,
        }
    }

    fn is_unchanged(self) -> bool {
        match self {
            Correlation::Own(part) | Correlation::Around(part) => {
                *part.equal.get_or_init(|| part.pair.is_equal(part.value))
            }
            Correlation::Off => false,
        }
    }
}

/// The rest of a run is of no use.
struct Stop;

impl Run {
    /// A run that may cost `budget`.
    pub(crate) fn new(budget: u64) -> Self {
        Run { budget, text: 0, decls: None, errors: Vec::new(), warnings: Vec::new() }
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
        let equal = OnceCell::new();
        let correlation = match old {
            Some(old) if ratchet => Correlation::Own(Part { pair: Pair { node, old }, value, equal: &equal }),
            _ => Correlation::Off,
        };
        if !node.rules_compiled() {
            self.decls = Some(Decls::new(node));
        }
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
                    let equal = OnceCell::new();
                    let correlation = correlation.below(pair, item, &equal);
                    self.node(schema, item, pair.map(|pair| pair.old), correlation, &path.index(i))?;
                }
            }
            Value::Object(members) => {
                for (key, value) in members.iter() {
                    let declared = node.property(key);
                    let Some(schema) = declared.or_else(|| node.additional_schema()) else { continue };
                    let equal = OnceCell::new();
                    let pair = correlation.pair().and_then(|pair| pair.member(key));
                    let correlation = correlation.below(pair, value, &equal);
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
        let Some(compiled) = node.compiled_rules(self.decls.as_ref()) else {
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
                    self.report(FieldError::invalid(path, kind, detail), false)?;
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, error: FieldError, unchanged: bool) -> Result<(), Stop> {
        self.text += error.field.len() + error.detail.len();
        if unchanged {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
        if self.text > MAX_TEXT { Err(Stop) } else { Ok(()) }
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
        self.report(error, !compiled.uses_old && correlation.is_unchanged())?;
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
