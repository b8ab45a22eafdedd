//! The resources of the group `flowcontrol.apiserver.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("FlowSchema")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "flowcontrol.apiserver.k8s.io",
            "FlowSchema",
            "flowschemas",
            &[Version::stored("v1", "io.k8s.api.flowcontrol.v1.FlowSchema")],
        )
    },
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("PriorityLevelConfiguration")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "flowcontrol.apiserver.k8s.io",
            "PriorityLevelConfiguration",
            "prioritylevelconfigurations",
            &[Version::stored("v1", "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration")],
        )
    },
];
