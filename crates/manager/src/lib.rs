//! The controllers that keep declared resources as declared, on the engine of the crate `keeper`, against any cluster:
//! tenants and what they declare, permits, Applications.
//!
//! * [`run`], [`Manager`], [`Options`]: the manager;
//! * [`kinds`]: the kinds and their definitions, those of `capsule.clastix.io/v1beta2`, so that manifests written for
//!   Capsule work unchanged;
//! * [`replication`], [`block`], [`tenancy`]: what objects say, and which namespaces they mean;
//! * [`application`]: Applications and their ResourceTrackers;
//! * [`permit`]: permits: phases, templates, parameters, approval;
//! * [`admission`]: defaults, checks, and the protection of what is managed;
//! * [`metrics`]: what it measures;
//! * [`render`], [`load`], [`collect`]: from declarations to targets;
//! * [`condition`]: CEL; [`status`], [`identity`]: the parts that everything shares.
//!
//! ```
//! let kinds: Vec<String> = manager::kinds::definitions()?.iter().map(|d| d.name().to_owned()).collect();
//! assert!(kinds.contains(&"tenants.capsule.clastix.io".to_owned()));
//! # Ok::<(), String>(())
//! ```
//!
//! What is to be done follows from pure functions; applying, healing and cleaning up is the keeper's. The crate knows
//! nothing of how an API server works.

pub mod admission;
pub mod application;
mod asked;
pub mod block;
pub mod collect;
pub mod condition;
pub mod identity;
pub mod kinds;
mod lanes;
pub mod load;
mod manager;
pub mod metrics;
pub mod permit;
mod permit_templates;
mod permits;
mod reach;
pub mod render;
pub mod replication;
mod replications;
pub mod roles;
mod runner;
pub mod status;
pub mod tenancy;
mod tenants;

pub use admission::Admission;
pub use manager::{Manager, Options, run};
pub use metrics::Metrics;
