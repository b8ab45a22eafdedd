//! Role-based access control: who may do what, by roles and bindings.

mod aggregation;
mod authorizer;
mod bootstrap;
mod escalation;
mod index;
mod rule;

pub(crate) use aggregation::{Aggregator, run as aggregate};
pub use authorizer::Rbac;
pub(crate) use bootstrap::{GROUP, ensure};
pub(crate) use escalation::Attempt;
pub(crate) use escalation::check as check_escalation;
pub use index::{Granted, Index};
pub use rule::{Rule, compact, uncovered};
