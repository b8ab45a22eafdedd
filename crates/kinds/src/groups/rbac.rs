//! The resources of the group `rbac.authorization.k8s.io`.

use crate::resource::{Resource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        ..Resource::new(
            "rbac.authorization.k8s.io",
            "ClusterRoleBinding",
            "clusterrolebindings",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.ClusterRoleBinding")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::new(
            "rbac.authorization.k8s.io",
            "ClusterRole",
            "clusterroles",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.ClusterRole")],
        )
    },
    Resource {
        ..Resource::new(
            "rbac.authorization.k8s.io",
            "RoleBinding",
            "rolebindings",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.RoleBinding")],
        )
    },
    Resource {
        ..Resource::new(
            "rbac.authorization.k8s.io",
            "Role",
            "roles",
            &[Version::stored("v1", "io.k8s.api.rbac.v1.Role")],
        )
    },
];
