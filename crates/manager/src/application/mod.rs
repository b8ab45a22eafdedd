//! Applications and their ResourceTrackers.
//!
//! An Application declares components; rendered, they are objects in one or more clusters. What was applied is recorded
//! in ResourceTrackers before it is applied, so that whatever happens it is known what there is to keep, and to clean up.

pub mod actor;
mod builtin;
mod carry_out;
pub mod clusters;
pub mod collect;
pub mod compression;
mod condition;
mod controller;
pub mod declared;
mod definition_history;
mod definition_kinds;
mod definition_revisions;
pub mod definitions;
mod digest;
pub mod dispatch;
pub mod execute;
mod expression;
mod field;
mod finish;
pub mod garbage;
pub mod health;
pub mod kinds;
pub mod library;
pub mod names;
pub mod observe;
mod order;
pub mod placement;
mod places;
pub mod policy;
mod reconcile;
mod refer;
pub mod render;
mod resolve;
mod restart;
pub mod revision;
pub mod schematic;
mod shaping;
pub mod status;
mod stored;
pub mod three_way;
pub mod tracker;
pub mod workflow;
pub mod write;

pub use controller::{Controller, Options};
