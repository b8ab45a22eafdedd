//! The resources of the group `autoscaling`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[Subresource::status("HorizontalPodAutoscaler")],
    strategy: Strategy::WITH_STATUS,
    ..Resource::new(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        &[
            Version::stored("v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"),
            Version::stored("v1", "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"),
        ],
    )
}];
