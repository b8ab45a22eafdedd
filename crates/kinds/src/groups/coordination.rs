//! The resources of the group `coordination.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    ..Resource::new(
        "coordination.k8s.io",
        "Lease",
        "leases",
        &[Version::stored("v1", "io.k8s.api.coordination.v1.Lease")],
    )
}];
