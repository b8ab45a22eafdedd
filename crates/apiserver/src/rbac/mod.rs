//! Role-based access control: who may do what, by roles and bindings.

mod index;
mod rule;

pub use index::Index;
pub use rule::{Rule, uncovered};
