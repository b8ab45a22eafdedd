//! The resources of the group `admissionregistration.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        categories: &["api-extensions"],
        namespaced: false,
        ..Resource::new(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration")],
        )
    },
    Resource {
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[Subresource::status("ValidatingAdmissionPolicy")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy")],
        )
    },
    Resource {
        categories: &["api-extensions"],
        namespaced: false,
        ..Resource::new(
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding")],
        )
    },
    Resource {
        categories: &["api-extensions"],
        namespaced: false,
        ..Resource::new(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            &[Version::stored("v1", "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration")],
        )
    },
];
