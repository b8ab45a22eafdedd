//! The resources of the group `node.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    namespaced: false,
    ..Resource::new(
        "node.k8s.io",
        "RuntimeClass",
        "runtimeclasses",
        &[Version::stored("v1", "io.k8s.api.node.v1.RuntimeClass")],
    )
}];
