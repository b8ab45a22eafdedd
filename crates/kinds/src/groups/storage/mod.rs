//! The resources of the group `storage.k8s.io`.

mod attachment;
mod class;
mod csi;
#[cfg(test)]
mod tests;

use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Generation, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::Value;

const GROUP: &str = "storage.k8s.io";

const STRATEGY: Strategy = Strategy { returns_deleted: true, ..Strategy::PLAIN };

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        columns: &[
            Column::NAME,
            Column::new("AttachRequired", "boolean"),
            Column::new("PodInfoOnMount", "boolean"),
            Column::new("StorageCapacity", "boolean"),
            Column::new("TokenRequests", "string"),
            Column::new("RequiresRepublish", "boolean"),
            Column::new("Modes", "string"),
            Column::AGE,
        ],
        cells: driver_cells,
        strategy: Strategy {
            unconditional_update: false,
            generation: Generation::Later(&[&["spec"]]),
            drop_disabled: |object, old| {
                const PERIOD: &str = "nodeAllocatableUpdatePeriodSeconds";
                if object.sub("spec").has(PERIOD) && !old.sub("spec").has(PERIOD) {
                    object.remove_at(&["spec", PERIOD]);
                }
            },
            validate: csi::validate_driver,
            validate_update: csi::validate_driver_update,
            ..STRATEGY
        },
        ..Resource::new(
            GROUP,
            "CSIDriver",
            "csidrivers",
            &[Version::stored("v1", "io.k8s.api.storage.v1.CSIDriver").with_default(default_driver)],
        )
    },
    Resource {
        namespaced: false,
        columns: &[Column::NAME, Column::new("Drivers", "integer"), Column::AGE],
        cells: |object, now| {
            let count = object.sub("spec").list("drivers").len() as i64;
            vec![object.name().into(), Value::Int(count), table::age(object, now)]
        },
        strategy: Strategy {
            unconditional_update: false,
            metadata: MetadataChecks { anew: 2, update: false, ..MetadataChecks::ONCE },
            validate: csi::validate_node,
            validate_update: csi::validate_node_update,
            ..STRATEGY
        },
        ..Resource::new(GROUP, "CSINode", "csinodes", &[Version::stored("v1", "io.k8s.api.storage.v1.CSINode")])
    },
    Resource {
        columns: &[Column::NAME, Column::CREATED_AT],
        cells: table::name_and_creation,
        strategy: Strategy {
            unconditional_update: false,
            metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
            validate: |object| csi::validate_capacity(object, None),
            validate_update: csi::validate_capacity_update,
            warnings: csi::capacity_warnings,
            ..Strategy::PLAIN
        },
        ..Resource::new(
            GROUP,
            "CSIStorageCapacity",
            "csistoragecapacities",
            &[Version::stored("v1", "io.k8s.api.storage.v1.CSIStorageCapacity")],
        )
    },
    Resource {
        short_names: &["sc"],
        namespaced: false,
        columns: &[
            Column::NAME,
            Column::new("Provisioner", "string"),
            Column::new("ReclaimPolicy", "string"),
            Column::new("VolumeBindingMode", "string"),
            Column::new("AllowVolumeExpansion", "string"),
            Column::AGE,
        ],
        cells: class_cells,
        strategy: Strategy {
            metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
            validate: class::validate,
            validate_update: class::validate_update,
            warnings: class::warnings,
            ..STRATEGY
        },
        ..Resource::new(
            GROUP,
            "StorageClass",
            "storageclasses",
            &[Version::stored("v1", "io.k8s.api.storage.v1.StorageClass").with_default(|object| {
                default_to(object, "reclaimPolicy", "Delete");
                default_to(object, "volumeBindingMode", "Immediate");
            })],
        )
    },
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("VolumeAttachment")],
        columns: &[
            Column::NAME,
            Column { format: "name", ..Column::new("Attacher", "string") },
            Column::new("PV", "string"),
            Column::new("Node", "string"),
            Column::new("Attached", "boolean"),
            Column::AGE,
        ],
        cells: |object, now| {
            let spec = object.sub("spec");
            vec![
                object.name().into(),
                spec.text("attacher").into(),
                spec.sub("source").text("persistentVolumeName").into(),
                spec.text("nodeName").into(),
                object.sub("status").flag("attached").into(),
                table::age(object, now),
            ]
        },
        strategy: Strategy {
            unconditional_update: false,
            returns_deleted: true,
            generation: Generation::None,
            reset_status: &[&["spec"], &["metadata"]],
            prepare_status: attachment::prepare_status,
            metadata: MetadataChecks { anew: 2, update: false, status: false, ..MetadataChecks::ONCE },
            validate: attachment::validate,
            validate_update: attachment::validate_update,
            validate_status: attachment::validate_status,
            ..Strategy::WITH_STATUS
        },
        ..Resource::new(
            GROUP,
            "VolumeAttachment",
            "volumeattachments",
            &[Version::stored("v1", "io.k8s.api.storage.v1.VolumeAttachment")],
        )
    },
];

fn default_driver(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_to(spec, "attachRequired", true);
    for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default_to(spec, key, false);
    }
    default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if spec.list("volumeLifecycleModes").is_empty() {
        spec.set_at(&["volumeLifecycleModes"], vec!["Persistent"].into());
    }
}

fn driver_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let tokens: Vec<&str> = spec.list("tokenRequests").iter().map(|t| t.text("audience")).collect();
    let modes = spec.strings("volumeLifecycleModes");
    let attach = spec.sub("attachRequired").as_bool() != Some(false);
    vec![
        object.name().into(),
        attach.into(),
        spec.flag("podInfoOnMount").into(),
        spec.flag("storageCapacity").into(),
        if tokens.is_empty() { "<unset>".to_owned() } else { tokens.join(",") }.into(),
        spec.flag("requiresRepublish").into(),
        if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") }.into(),
        table::age(object, now),
    ]
}

fn class_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut name = object.name().to_owned();
    let default = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if default.iter().any(|key| object.annotation(key) == Some("true")) {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        object.text("provisioner").into(),
        object.text("reclaimPolicy").into(),
        object.text("volumeBindingMode").into(),
        object.flag("allowVolumeExpansion").into(),
        table::age(object, now),
    ]
}
