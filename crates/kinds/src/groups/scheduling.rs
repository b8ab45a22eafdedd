//! The resources of the group `scheduling.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["pc"],
    namespaced: false,
    ..Resource::new(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        &[Version::stored("v1", "io.k8s.api.scheduling.v1.PriorityClass")],
    )
}];
