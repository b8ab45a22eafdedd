//! The controllers that keep declared resources as declared, on the engine of the crate `keeper`, against any cluster.
//!
//! * [`application`]: Applications and their ResourceTrackers.

pub mod application;
