//! Who owns what, for people.
//!
//! [`Owners`] shows an object with the managers of each field beside it; [`Plan`] tells what an apply would do before
//! it is done.

mod owners;
mod plan;

pub use owners::{Line, Owners};
pub use plan::{Effect, Plan, PlannedField};

use crate::managed::{ManagerId, Managers, Operation};
use crate::path::PathElement;

/// The managers that own a path.
fn owners_of<'m>(managers: &'m Managers, path: &[PathElement]) -> Vec<&'m ManagerId> {
    managers.iter().filter(|(_, owned)| owned.set.has(path)).map(|(id, _)| id).collect()
}

/// A manager in few words: `alice`, `tool (update)`, `hpa (update, scale)`.
fn short(id: &ManagerId) -> String {
    let update = (id.operation == Operation::Update).then_some("update");
    let subresource = Some(id.subresource.as_str()).filter(|s| !s.is_empty());
    let notes: Vec<&str> = update.into_iter().chain(subresource).collect();
    if notes.is_empty() { id.manager.to_string() } else { format!("{} ({})", id.manager, notes.join(", ")) }
}

/// Several managers, separated by commas.
fn list<'m>(ids: impl IntoIterator<Item = &'m ManagerId>) -> String {
    ids.into_iter().map(short).collect::<Vec<_>>().join(", ")
}
