//! Applications against the real server, in process.

#![allow(clippy::unwrap_used)]

mod fixture;
mod life;
mod reported;
mod scenarios;
mod script;
mod steady;
