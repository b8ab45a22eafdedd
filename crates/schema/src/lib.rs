#![allow(dead_code)]
//! Structural schemas of CustomResourceDefinitions: check, prune, default, validate, ratchet.

mod check;
pub mod crd;
mod defaulting;
mod embedded;
mod format;
mod json_path;
mod lists;
mod metadata;
mod prune;
mod rules;
mod scale;
mod stack;
mod structural;
mod typed;
mod version;

pub use defaulting::default;
pub use format::Format;
pub use prune::{drop_nulls, prune};
pub use rules::{RULE_COST_LIMIT, SCHEMA_COST_LIMIT};
pub use scale::Scale;
pub use structural::{Additional, ListType, MapType, Node, Rule, Structural, Type};
pub use version::{Outcome, Unfit, Version};
