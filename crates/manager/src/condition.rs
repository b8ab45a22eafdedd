//! CEL: conditions of targets over `object` and `now`, and conditions of approval.

use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::interpret::{Limits, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::Value as Cel;
use cel_object::dynamic;
use client::Clock;
use object::Value;
use std::sync::{Arc, LazyLock};

/// What one evaluation may cost: Kubernetes' limit for one call.
const COST: u64 = 1_000_000;
/// The longest condition, in characters.
pub const MAX_LENGTH: usize = 4096;

/// Which rules a condition is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As it is written: only what every supported version knows.
    New,
    /// As it is stored: also what newer versions know.
    Stored,
}

/// A condition of targets.
#[derive(Debug)]
pub struct ApplyCondition(Program);

impl ApplyCondition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// It is blank or too long, does not compile, or is not boolean.
    pub fn new(expression: &str, mode: Mode) -> Result<Self, String> {
        static NEW: LazyLock<Env> = LazyLock::new(|| environment(ExpressionSet::New));
        static STORED: LazyLock<Env> = LazyLock::new(|| environment(ExpressionSet::Stored));
        fn environment(set: ExpressionSet) -> Env {
            let variables = [VariableDecl::new("object", Type::Dyn), VariableDecl::new("now", Type::Timestamp)];
            Env::kubernetes(set).with_variables(variables)
        }
        if expression.trim().is_empty() {
            return Err("must not be blank; leave it out instead".to_owned());
        }
        if expression.chars().count() > MAX_LENGTH {
            return Err(format!("must be at most {MAX_LENGTH} characters long"));
        }
        let env: &Env = if mode == Mode::New { &NEW } else { &STORED };
        compile(expression, env).map(ApplyCondition)
    }

    /// Whether a target may be applied: `object` is the live one, null if there is none.
    ///
    /// # Errors
    ///
    /// The evaluation fails, costs too much, or gives something else than a boolean.
    pub fn evaluate(&self, live: Option<&Value>, now: jiff::Timestamp) -> Result<bool, String> {
        let object = live.map_or(Cel::Null, dynamic);
        let now = Cel::Timestamp(timestamp(now));
        verdict(&self.0, &[("object", object), ("now", now)])
    }

    /// The condition as the keeper asks it.
    pub fn into_keeper(self: Arc<Self>, clock: Clock) -> keeper::Condition {
        Arc::new(move |live| self.evaluate(live, clock()))
    }
}

/// A condition of approval, over `request`, `requester` and `reviewer`.
#[derive(Debug)]
pub struct ApprovalCondition(Program);

impl ApprovalCondition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// It does not compile, or is not boolean.
    pub fn new(expression: &str) -> Result<Self, String> {
        static ENV: LazyLock<Env> = LazyLock::new(|| {
            let names = ["request", "requester", "reviewer"];
            Env::kubernetes(ExpressionSet::Stored).with_variables(names.map(|n| VariableDecl::new(n, Type::Dyn)))
        });
        compile(expression, &ENV).map(ApprovalCondition)
    }

    /// Whether the condition holds. A permit approved by the system has no reviewer.
    ///
    /// # Errors
    ///
    /// The evaluation fails, costs too much, or gives something else than a boolean.
    pub fn evaluate(&self, request: &Value, requester: &Value, reviewer: Option<&Value>) -> Result<bool, String> {
        let reviewer = reviewer.map_or(Cel::Null, dynamic);
        verdict(&self.0, &[("request", dynamic(request)), ("requester", dynamic(requester)), ("reviewer", reviewer)])
    }
}

/// A rule over `self`.
#[derive(Debug)]
pub struct Rule {
    program: Program,
    needs_old: bool,
}

static SELF: LazyLock<Env> = LazyLock::new(|| {
    let names = ["self", "oldSelf"].map(|n| VariableDecl::new(n, Type::Dyn));
    Env::kubernetes(ExpressionSet::Stored).with_variables(names)
});

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// It does not compile, or is not boolean.
    pub fn new(expression: &str) -> Result<Self, String> {
        let program = compile(expression, &SELF)?;
        let needs_old = program.variables().any(|v| v == "oldSelf");
        Ok(Rule { program, needs_old })
    }

    /// Whether the rule is about a change.
    pub fn needs_old(&self) -> bool {
        self.needs_old
    }

    /// Whether a value satisfies the rule.
    ///
    /// # Errors
    ///
    /// The evaluation fails, costs too much, or gives something else than a boolean.
    pub fn evaluate(&self, value: &Value) -> Result<bool, String> {
        verdict(&self.program, &[("self", dynamic(value))])
    }
}

/// What an expression over `self` says, if it is a text.
pub fn text(expression: &str, value: &Value) -> Option<String> {
    let parsed = parse(expression, &ParserOptions::default()).ok()?;
    let program = Program::new(&check(&SELF, parsed).ok()?).ok()?;
    let variables = [("self", dynamic(value))];
    match program.eval(&variables, Limits::cost(COST)).result {
        Ok(Cel::String(s)) => Some(s.to_string()),
        _ => None,
    }
}

fn compile(expression: &str, env: &Env) -> Result<Program, String> {
    let parsed = parse(expression, &ParserOptions::default()).map_err(|e| e.to_string())?;
    let checked = check(env, parsed).map_err(|e| e.to_string())?;
    let result = checked.result_type();
    if *result != Type::Bool {
        return Err(format!("must evaluate to bool but got {result}"));
    }
    Program::new(&checked).map_err(|e| e.to_string())
}

fn verdict(program: &Program, variables: &[(&str, Cel<'_>)]) -> Result<bool, String> {
    match program.eval(variables, Limits::cost(COST)).result {
        Ok(Cel::Bool(b)) => Ok(b),
        Ok(_) => Err("not a boolean".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn timestamp(now: jiff::Timestamp) -> cel::value::Timestamp {
    let nanos = now.as_nanosecond().rem_euclid(1_000_000_000);
    cel::value::Timestamp::new(now.as_second(), u32::try_from(nanos).unwrap_or_default(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn live(text: &str) -> Option<Value> {
        (!text.is_empty()).then(|| json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn conditions_decide_from_the_live_object_and_the_time() {
        let now: jiff::Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let rotate = r#"object == null || !has(object.metadata.annotations) || !('at' in object.metadata.annotations) ||
            now >= timestamp(object.metadata.annotations['at']) + duration('5m')"#;
        for (expression, object, expected) in [
            ("object == null", "", Ok(true)),
            ("object == null", r#"{"a":1}"#, Ok(false)),
            (rotate, r#"{"metadata":{}}"#, Ok(true)),
            (rotate, r#"{"metadata":{"annotations":{"at":"2026-01-01T00:04:00Z"}}}"#, Ok(true)),
            (rotate, r#"{"metadata":{"annotations":{"at":"2026-01-01T00:06:00Z"}}}"#, Ok(false)),
            (rotate, r#"{"metadata":{"annotations":{"at":"yesterday"}}}"#, Err(())),
            ("object.a == 1", "", Err(())),
        ] {
            let condition = ApplyCondition::new(expression, Mode::Stored).unwrap();
            assert_eq!(condition.evaluate(live(object).as_ref(), now).map_err(drop), expected, "{expression} {object}");
        }
    }

    #[test]
    fn conditions_that_cannot_be_are_refused() {
        for bad in ["", "  \n", "1", "object ==", "self == null", "object.a", "dyn(true)", &"true||".repeat(1000)] {
            assert!(ApplyCondition::new(bad, Mode::New).is_err(), "{bad}");
        }
        assert!(ApprovalCondition::new("reviewer.name != requester.name && request.spec.duration == '1h'").is_ok());
    }
}
