//! What the specification's tables and lists say, row by row, against the real server. A row is named after its section.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod adoption;
mod cleanup;
mod conditions;
mod guards;
mod permits;
mod points;
mod reconcile;
mod rendering;
mod reports;
mod steps;
