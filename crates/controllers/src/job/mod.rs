//! Jobs.
pub mod account;
pub mod assess;
pub mod backoff;
pub mod indexes;
pub mod plan;
pub mod pod;
pub mod policy;
pub mod spec;
pub mod status;
pub mod template;
#[cfg(test)]
mod tests;
