//! The resources of the group `apiextensions.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("CustomResourceDefinition")],
    strategy: Strategy::WITH_STATUS,
    ..Resource::new(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &[Version::stored("v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")],
    )
}];
