//! CEL on admission requests: the variables `object`, `oldObject`, `request`, `authorizer` and what they are made of.
//! Objects have no schema here, so that mistakes show when an expression runs.
//!
//! An [`Expression`] is compiled once. A [`Scope`] holds what its variables stand for in a request; a [`Run`] evaluates
//! expressions over it, each within what one may cost and all within a budget, and evaluates the `variables` of policies
//! when they are first asked for.

mod conditions;
mod expression;
mod patches;
mod run;
mod schemas;
mod types;
mod variables;
mod written;

pub(crate) use conditions::{Judgement, judge};
pub(crate) use expression::{Expression, Names, compile, environment};
pub(crate) use patches::{JSON_PATCH, OBJECT};
pub(crate) use run::{OUT_OF_BUDGET, Run, Scope};
pub(crate) use schemas::{SchemaTypes, typed_environment};
pub(crate) use variables::{VariableTypes, Variables};
pub use written::WrittenExpressions;

/// What the conditions of one webhook or policy may cost together.
pub(crate) const CONDITIONS_BUDGET: u64 = 2_500_000;

/// What the expressions of one policy may cost together for one request and parameter.
pub(crate) const POLICY_BUDGET: u64 = 10_000_000;
