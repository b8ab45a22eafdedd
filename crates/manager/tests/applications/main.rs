//! Applications against the real server, in process.

#![allow(clippy::unwrap_used)]

mod definitions;
mod election;
mod fixture;
mod life;
mod reported;
mod scenarios;
mod schematics;
mod script;
mod steady;
mod steps;
