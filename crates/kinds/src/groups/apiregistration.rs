//! The resources of the group `apiregistration.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("APIService")],
    strategy: Strategy::WITH_STATUS,
    ..Resource::new(
        "apiregistration.k8s.io",
        "APIService",
        "apiservices",
        &[Version::stored("v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService")],
    )
}];
