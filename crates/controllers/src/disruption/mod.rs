//! Budgets.
pub mod rules;
