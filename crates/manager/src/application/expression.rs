//! CEL expressions of applications and their definitions, over JSON values.

use cel::check::check;
use cel::env::{Env, Validators, VariableDecl};
use cel::interpret::{Limits, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::Value as Cel;
use object::Value;

/// What one evaluation may cost: ten times what Kubernetes allows a call, because templates make whole objects.
const COST: u64 = 10_000_000;
/// The longest expression, in bytes.
const LONGEST: usize = 16_384;

/// The names that an expression may use, each of any type.
pub(super) fn environment(names: &[&'static str]) -> Env {
    let variables = names.iter().map(|name| VariableDecl::new(*name, Type::Dyn));
    // Parts of objects are lists and maps of values of many types.
    let validators = Validators { homogeneous_aggregates: false, ..Validators::ALL };
    Env::kubernetes(ExpressionSet::Stored).with_validators(validators).with_variables(variables)
}

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub(super) struct Expression(Program);

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with line and column.
    pub fn new(text: &str, environment: &Env) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("an expression of more than {LONGEST} bytes"));
        }
        let parsed = parse(text, &ParserOptions::default()).map_err(|error| first(&error))?;
        let checked = check(environment, parsed).map_err(|error| first(&error))?;
        Program::new(&checked).map(Expression).map_err(|error| error.to_string())
    }

    /// What it comes to.
    ///
    /// # Errors
    ///
    /// If it fails, costs too much, or gives something that has no JSON.
    pub fn value(&self, variables: &[(&str, &Value)]) -> Result<Value, String> {
        let variables: Vec<(&str, Cel<'_>)> =
            variables.iter().map(|(name, value)| (*name, cel_object::dynamic(value))).collect();
        let result = self.0.eval(variables.as_slice(), Limits::cost(COST)).result.map_err(|error| error.to_string())?;
        cel_object::json(&result)
    }

    /// Whether it holds.
    ///
    /// # Errors
    ///
    /// As for [`Expression::value`], and if it gives no boolean.
    pub fn holds(&self, variables: &[(&str, &Value)]) -> Result<bool, String> {
        match self.value(variables)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(format!("gives no boolean but a value of type {}", other.type_name())),
        }
    }
}

/// The first of several issues, in one line: `1:5: what is wrong`.
fn first(issues: &dyn std::fmt::Display) -> String {
    let text = issues.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("ERROR: <input>:").to_owned()
}
