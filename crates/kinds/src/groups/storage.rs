//! The resources of the group `storage.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        ..Resource::new(
            "storage.k8s.io",
            "CSIDriver",
            "csidrivers",
            &[Version::stored("v1", "io.k8s.api.storage.v1.CSIDriver")],
        )
    },
    Resource {
        namespaced: false,
        ..Resource::new(
            "storage.k8s.io",
            "CSINode",
            "csinodes",
            &[Version::stored("v1", "io.k8s.api.storage.v1.CSINode")],
        )
    },
    Resource {
        ..Resource::new(
            "storage.k8s.io",
            "CSIStorageCapacity",
            "csistoragecapacities",
            &[Version::stored("v1", "io.k8s.api.storage.v1.CSIStorageCapacity")],
        )
    },
    Resource {
        short_names: &["sc"],
        namespaced: false,
        ..Resource::new(
            "storage.k8s.io",
            "StorageClass",
            "storageclasses",
            &[Version::stored("v1", "io.k8s.api.storage.v1.StorageClass")],
        )
    },
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("VolumeAttachment")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "storage.k8s.io",
            "VolumeAttachment",
            "volumeattachments",
            &[Version::stored("v1", "io.k8s.api.storage.v1.VolumeAttachment")],
        )
    },
];
