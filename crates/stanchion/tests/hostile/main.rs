//! Bad input of every kind against the built server: each request gets a proper answer, and the server stays well.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod bodies;
mod connections;
mod metadata;
mod parameters;
mod patches;
mod random;
mod support;
