//! The resources of the group `apiextensions.k8s.io`. The rules of definitions are those of the crate `schema`.

use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("CustomResourceDefinition")],
    columns: &[Column::NAME, Column::CREATED_AT],
    cells: table::name_and_creation,
    strategy: Strategy {
        unconditional_update: false,
        reset_status: &[&["spec"], &["metadata"]],
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &[Version::stored("v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")],
    )
}];
