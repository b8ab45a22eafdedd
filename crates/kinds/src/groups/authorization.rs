//! The resources of the group `authorization.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        ..Resource::review(
            "authorization.k8s.io",
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.LocalSubjectAccessReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SelfSubjectAccessReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SelfSubjectRulesReview")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            "subjectaccessreviews",
            &[Version::stored("v1", "io.k8s.api.authorization.v1.SubjectAccessReview")],
        )
    },
];
