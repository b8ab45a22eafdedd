//! The resources of the group `batch`.

mod cron;
mod cronjob;
mod job;
mod job_checks;
mod job_status;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] = &[cronjob::CRONJOBS, job::JOBS];
