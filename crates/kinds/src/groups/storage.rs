//! The resources of the group `storage.k8s.io`.

use crate::check::{self, Errors};
use crate::pod;
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, names};

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
            validate: validate_driver,
            validate_update: |new, old| {
                let mut out = validate_driver(new);
                let path = Path::ROOT.child("spec");
                for key in ["attachRequired", "volumeLifecycleModes"] {
                    check::immutable(new.sub("spec"), old.sub("spec"), key, &path, &mut out);
                }
                out
            },
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
            validate: validate_node,
            validate_update: |new, _| validate_node(new),
            ..STRATEGY
        },
        ..Resource::new(GROUP, "CSINode", "csinodes", &[Version::stored("v1", "io.k8s.api.storage.v1.CSINode")])
    },
    Resource {
        columns: &[Column::NAME, Column::CREATED_AT],
        cells: table::name_and_creation,
        strategy: Strategy {
            unconditional_update: false,
            validate: validate_capacity,
            validate_update: |new, old| {
                let mut out = validate_capacity(new);
                for key in ["storageClassName", "nodeTopology"] {
                    check::immutable(new, old, key, &Path::ROOT, &mut out);
                }
                out
            },
            ..STRATEGY
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
        strategy: Strategy { validate: validate_class, validate_update: validate_class_update, ..STRATEGY },
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
            Column::new("Attacher", "string"),
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
            generation: crate::resource::Generation::None,
            reset_status: &[&["spec"], &["metadata"]],
            validate: validate_attachment,
            validate_update: |new, old| {
                let mut out = validate_attachment(new);
                check::immutable(new, old, "spec", &Path::ROOT, &mut out);
                out
            },
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

fn validate_driver(object: &Value) -> Errors {
    let mut out = Errors::new();
    let meta = Path::ROOT.child("metadata");
    pod::csi_driver_name(object.name(), &meta.child("name"), &mut out);
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    for key in ["attachRequired", "podInfoOnMount", "storageCapacity"] {
        if !spec.has(key) {
            out.push(FieldError::required(&path.child(key), ""));
        }
    }
    if spec.has("fsGroupPolicy") {
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        check::one_of(spec, "fsGroupPolicy", &policies, &path, &mut out);
    }
    let modes = path.child("volumeLifecycleModes");
    for mode in spec.strings("volumeLifecycleModes") {
        if !matches!(mode, "Persistent" | "Ephemeral") {
            out.push(FieldError::not_supported(&modes, mode, &["Persistent", "Ephemeral"]));
        }
    }
    out
}

fn validate_node(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let drivers = spec.child("drivers");
    let mut seen: Vec<&str> = Vec::new();
    for (i, driver) in object.sub("spec").list("drivers").iter().enumerate() {
        let at = drivers.index(i);
        let name = driver.text("name");
        if name.is_empty() {
            out.push(FieldError::required(&at.child("name"), ""));
        } else {
            pod::csi_driver_name(name, &at.child("name"), &mut out);
        }
        check::required(driver, "nodeID", &at, &mut out);
        if seen.contains(&name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
        seen.push(name);
    }
    out
}

fn validate_capacity(object: &Value) -> Errors {
    let mut out = Errors::new();
    check::name(
        names::dns1123_subdomain,
        object.text("storageClassName"),
        &Path::ROOT.child("storageClassName"),
        &mut out,
    );
    for key in ["capacity", "maximumVolumeSize"] {
        check::quantity_not_negative(object.sub(key), &Path::ROOT.child(key), &mut out);
    }
    check::label_selector(object.sub("nodeTopology"), &Path::ROOT.child("nodeTopology"), &mut out);
    out
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

fn validate_class(object: &Value) -> Errors {
    let mut out = Errors::new();
    let provisioner = object.text("provisioner");
    let at = Path::ROOT.child("provisioner");
    if provisioner.is_empty() {
        out.push(FieldError::required(&at, provisioner));
    } else {
        let lower = provisioner.to_lowercase();
        out.extend(names::qualified_name(&lower).into_iter().map(|why| FieldError::invalid(&at, provisioner, why)));
    }
    let parameters = object.members("parameters");
    let at = Path::ROOT.child("parameters");
    let size: usize = parameters.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
    if parameters.len() > 512 {
        let why = format!("Provisioner Parameters exceeded max allowed {}", 512);
        out.push(FieldError { detail: why, ..FieldError::too_long(&at, 512) });
        return out;
    }
    for key in parameters.keys().filter(|k| k.is_empty()) {
        out.push(FieldError::invalid(&at, key, "field can not be empty."));
    }
    if size > 256 << 10 {
        out.push(FieldError::too_long(&at, 256 << 10));
    }
    if !object.text("reclaimPolicy").is_empty() {
        check::one_of(object, "reclaimPolicy", &["Delete", "Retain"], &Path::ROOT, &mut out);
    }
    if object.has("volumeBindingMode") {
        let modes = ["Immediate", "WaitForFirstConsumer"];
        check::one_of(object, "volumeBindingMode", &modes, &Path::ROOT, &mut out);
    } else {
        out.push(FieldError::required(&Path::ROOT.child("volumeBindingMode"), ""));
    }
    out
}

fn validate_class_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_class(new);
    for (key, part) in
        [("parameters", "parameters"), ("provisioner", "provisioner"), ("reclaimPolicy", "reclaimPolicy")]
    {
        if new.sub(key) != old.sub(key) {
            out.push(FieldError::forbidden(&Path::ROOT.child(key), format!("updates to {part} are forbidden.")));
        }
    }
    check::immutable(new, old, "volumeBindingMode", &Path::ROOT, &mut out);
    out
}

fn validate_attachment(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    if spec.text("attacher").is_empty() {
        out.push(FieldError::required(&path.child("attacher"), ""));
    } else {
        pod::csi_driver_name(spec.text("attacher"), &path.child("attacher"), &mut out);
    }
    let source = spec.sub("source");
    let at = path.child("source");
    match (source.has("persistentVolumeName"), source.has("inlineVolumeSpec")) {
        (false, false) => {
            out.push(FieldError::required(
                &at,
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ));
        }
        (true, true) => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            out.push(FieldError::forbidden(&at, why));
        }
        (true, false) if source.text("persistentVolumeName").is_empty() => {
            let why = "must specify non empty persistentVolumeName";
            out.push(FieldError::required(&at.child("persistentVolumeName"), why));
        }
        _ => {}
    }
    check::name(names::dns1123_subdomain, spec.text("nodeName"), &path.child("nodeName"), &mut out);
    out
}
