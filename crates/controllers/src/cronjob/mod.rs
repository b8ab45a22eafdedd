//! CronJobs.
pub mod rules;
pub mod schedule;
pub mod times;
