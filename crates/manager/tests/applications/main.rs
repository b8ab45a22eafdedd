//! Applications against the real server, in process.

#![allow(clippy::unwrap_used)]

mod definitions;
mod election;
mod fixture;
mod keeping;
mod library;
mod life;
mod referring;
mod reported;
mod running;
mod scenarios;
mod schematics;
mod script;
mod steady;
mod steps;
