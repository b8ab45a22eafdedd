//! The resources of the group `authentication.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        ..Resource::review(
            "authentication.k8s.io",
            "SelfSubjectReview",
            "selfsubjectreviews",
            &[Version::stored("v1", "io.k8s.api.authentication.v1.SelfSubjectReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            "authentication.k8s.io",
            "TokenReview",
            "tokenreviews",
            &[Version::stored("v1", "io.k8s.api.authentication.v1.TokenReview")],
        )
    },
];
