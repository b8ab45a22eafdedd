//! The resources of the group `certificates.k8s.io`.

use crate::resource::{CHANGE_VERBS, Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["csr"],
    namespaced: false,
    subresources: &[
        Subresource::new("approval", "CertificateSigningRequest", CHANGE_VERBS),
        Subresource::status("CertificateSigningRequest"),
    ],
    strategy: Strategy::WITH_STATUS,
    ..Resource::new(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        &[Version::stored("v1", "io.k8s.api.certificates.v1.CertificateSigningRequest")],
    )
}];
