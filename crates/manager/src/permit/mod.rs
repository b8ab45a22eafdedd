//! Permits: what a template lets somebody ask for, for a while.
//!
//! * [`phase`]: the phases of a permit and who may move it from one to another: the strict table;
//! * [`template`]: ResourcePermitTemplate and GlobalResourcePermitTemplate;
//! * [`params`]: parameters against their schema; [`rules`], its CEL; [`form`], its hints;
//! * [`render`]: from a template and parameters to the snapshot;
//! * [`approval`]: who may approve what;
//! * [`review`]: what people may do to a permit;
//! * [`record`]: transitions, as the status keeps them.

pub mod approval;
pub mod form;
pub mod params;
pub mod phase;
pub mod record;
pub mod render;
pub mod review;
pub mod rules;
pub mod template;

pub use phase::{Actor, Phase};
