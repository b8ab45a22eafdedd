//! The resources of the group `apps`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        ..Resource::new(
            "apps",
            "ControllerRevision",
            "controllerrevisions",
            &[Version::stored("v1", "io.k8s.api.apps.v1.ControllerRevision")],
        )
    },
    Resource {
        short_names: &["ds"],
        categories: &["all"],
        subresources: &[Subresource::status("DaemonSet")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("apps", "DaemonSet", "daemonsets", &[Version::stored("v1", "io.k8s.api.apps.v1.DaemonSet")])
    },
    Resource {
        short_names: &["deploy"],
        categories: &["all"],
        subresources: &[Subresource::SCALE, Subresource::status("Deployment")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("apps", "Deployment", "deployments", &[Version::stored("v1", "io.k8s.api.apps.v1.Deployment")])
    },
    Resource {
        short_names: &["rs"],
        categories: &["all"],
        subresources: &[Subresource::SCALE, Subresource::status("ReplicaSet")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("apps", "ReplicaSet", "replicasets", &[Version::stored("v1", "io.k8s.api.apps.v1.ReplicaSet")])
    },
    Resource {
        short_names: &["sts"],
        categories: &["all"],
        subresources: &[Subresource::SCALE, Subresource::status("StatefulSet")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "apps",
            "StatefulSet",
            "statefulsets",
            &[Version::stored("v1", "io.k8s.api.apps.v1.StatefulSet")],
        )
    },
];
