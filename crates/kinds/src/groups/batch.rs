//! The resources of the group `batch`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        short_names: &["cj"],
        categories: &["all"],
        subresources: &[Subresource::status("CronJob")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("batch", "CronJob", "cronjobs", &[Version::stored("v1", "io.k8s.api.batch.v1.CronJob")])
    },
    Resource {
        categories: &["all"],
        subresources: &[Subresource::status("Job")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("batch", "Job", "jobs", &[Version::stored("v1", "io.k8s.api.batch.v1.Job")])
    },
];
