//! Bindings of pods to nodes, and the statuses of components.

use crate::resource::{Resource, Version};

pub(super) const BINDINGS: Resource =
    Resource::review("", "Binding", "bindings", &[Version::stored("v1", "io.k8s.api.core.v1.Binding")]);

pub(super) const COMPONENT_STATUSES: Resource = Resource {
    short_names: &["cs"],
    namespaced: false,
    verbs: &["get", "list"],
    storage: None,
    ..Resource::new(
        "",
        "ComponentStatus",
        "componentstatuses",
        &[Version::stored("v1", "io.k8s.api.core.v1.ComponentStatus")
            .deprecated("v1 ComponentStatus is deprecated in v1.19+")],
    )
};
