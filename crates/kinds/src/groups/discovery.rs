//! The resources of the group `discovery.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    ..Resource::new(
        "discovery.k8s.io",
        "EndpointSlice",
        "endpointslices",
        &[Version::stored("v1", "io.k8s.api.discovery.v1.EndpointSlice")],
    )
}];
