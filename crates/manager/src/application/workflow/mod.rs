//! The workflow of an Application: which steps there are, which may run, and what a run has come to.

mod state;
mod steps;

pub(crate) use state::duration;
pub use state::{Phase, Reason, Run, RunPhase, StepOutcome, StepState, backoff};
pub use steps::{Mode, Plan, Step, plan};
