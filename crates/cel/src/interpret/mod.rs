//! Running checked expressions.
//!
//! A [`Program`] is made once of a checked tree and evaluated many times, from any number of threads. Evaluation
//! gives a value or an error, and what it cost by the rules of the Kubernetes API server.
//!
//! ```
//! use cel::check::check;
//! use cel::env::VariableDecl;
//! use cel::interpret::{Limits, Program};
//! use cel::library::{ExpressionSet, Registry, Version};
//! use cel::parse::{ParserOptions, parse};
//! use cel::types::Type;
//! use cel::value::Value;
//!
//! let env = Registry::kubernetes()
//!     .env(Version(1, 33), ExpressionSet::Stored)
//!     .with_variables([VariableDecl::new("name", Type::String)]);
//! let checked = check(&env, parse("name.size() < 9", &ParserOptions::default())?)?;
//! let program = Program::new(&checked)?;
//!
//! let evaluation = program.eval(&[("name", Value::borrowed("stanchion"))], Limits::cost(1_000_000));
//! assert!(matches!(evaluation.result, Ok(Value::Bool(false))));
//! assert_eq!(evaluation.cost, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attribute;
mod cost;
mod eval;
mod fold;
mod functions;
mod message;
mod patterns;
mod plan;
mod planner;

use std::fmt;
use std::sync::Arc;

pub use functions::{ExternalFunction, Functions, ObjectTypes};

use crate::ast::Ast;
use crate::checked::CheckedAst;
use crate::value::{Result, Value};
use eval::Frame;
use plan::{Node, Slot};
use planner::Planner;

/// An expression ready to run.
#[derive(Debug)]
pub struct Program {
    root: Node,
    variables: Box<[(Arc<str>, Slot)]>,
    slots: usize,
}

/// What an evaluation may use.
#[derive(Clone, Copy)]
pub struct Limits<'r> {
    /// The cost at which the evaluation ends with `operation cancelled: actual cost limit exceeded`.
    pub cost: u64,
    /// Asked every hundred iterations; `true` ends the evaluation with `operation interrupted`.
    pub interrupt: Option<&'r dyn Fn() -> bool>,
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> = Limits { cost: u64::MAX, interrupt: None };

    /// A limit on the cost alone.
    pub const fn cost(cost: u64) -> Limits<'static> {
        Limits { cost, interrupt: None }
    }
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// The values of variables. Each variable is asked for at most once in an evaluation, when it is first used.
pub trait Activation<'a> {
    /// The value of the variable called `name`; `None` if there is no such variable.
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>>>;
}

impl<'a> Activation<'a> for [(&str, Value<'a>)] {
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| Ok(value.clone()))
    }
}

impl<'a, const N: usize> Activation<'a> for [(&str, Value<'a>); N] {
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>>> {
        self.as_slice().resolve(name)
    }
}

/// What came of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value or the error.
    pub result: Result<Value<'a>>,
    /// The cost, whatever the result.
    pub cost: u64,
}

impl Program {
    /// Makes a program. Constant patterns that do not compile and constant conversions that fail are errors here.
    pub fn new(checked: &CheckedAst) -> Result<Self> {
        Program::with_functions(checked, &Functions::new())
    }

    /// Makes a program that may call functions of the embedding program.
    pub fn with_functions(checked: &CheckedAst, functions: &Functions) -> Result<Self> {
        Program::plan(checked.expr(), Some(checked), functions)
    }

    /// Makes a program of a tree that was only parsed. Overloads are chosen by the values; calls cost as if no
    /// overload was known.
    pub fn unchecked(ast: &Ast, functions: &Functions) -> Result<Self> {
        Program::plan(&ast.expr, None, functions)
    }

    fn plan(expr: &crate::ast::Expr, checked: Option<&CheckedAst>, functions: &Functions) -> Result<Self> {
        let mut planner = Planner::new(checked, functions);
        let root = planner.plan(expr)?;
        Ok(Program { root, variables: planner.variables.into(), slots: planner.slots })
    }

    /// The names of the variables the program may ask for.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| &**name)
    }

    /// Evaluates the program. What it borrows of the program and of the variables' values lives as long as the
    /// result.
    pub fn eval<'a>(&'a self, activation: &(impl Activation<'a> + ?Sized), limits: Limits<'_>) -> Evaluation<'a> {
        // A sized pointer makes a trait object of any activation.
        let mut frame = Frame::new(self.slots, &self.variables, &activation, limits);
        let result = frame.eval(&self.root);
        Evaluation { result, cost: frame.cost() }
    }
}

impl<'a, A: Activation<'a> + ?Sized> Activation<'a> for &A {
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>>> {
        (**self).resolve(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_values_are_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
        shared::<Value<'static>>();
    }
}
