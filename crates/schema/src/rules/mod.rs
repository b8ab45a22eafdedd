//! `x-kubernetes-validations`: CEL rules over typed objects.
//!
//! * [`names`]: how property names are spelled in expressions;
//! * [`decl`]: the CEL types of a schema, and the sizes that cost estimates assume;
//! * [`adapt`]: objects as CEL values, read in place;
//! * [`compile`]: from texts to programs with their cost;
//! * [`explain`]: what a cost assumes;
//! * [`run`]: the programs over an object.

mod adapt;
mod compile;
mod decl;
mod explain;
mod names;
mod run;

pub(crate) use compile::{Compiled, CompiledRule, Expressions, compile, worst_cardinality};
pub(crate) use decl::Decls;
pub use explain::Assumption;
pub use names::escape;
pub(crate) use run::{OBJECT_BUDGET, Run};

/// The most that one rule (or message expression) may be estimated to cost.
pub const RULE_COST_LIMIT: u64 = 10_000_000;

/// The most that all rules of one schema may be estimated to cost.
pub const SCHEMA_COST_LIMIT: u64 = 100_000_000;

/// The largest request, in bytes: what bounds sizes that a schema does not.
pub(crate) const MAX_REQUEST: u64 = 3_145_728;
