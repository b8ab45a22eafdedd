//! The resources of the group `policy`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["pdb"],
    subresources: &[Subresource::status("PodDisruptionBudget")],
    strategy: Strategy::WITH_STATUS,
    ..Resource::new(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &[Version::stored("v1", "io.k8s.api.policy.v1.PodDisruptionBudget")],
    )
}];
