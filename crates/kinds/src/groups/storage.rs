//! The resources of the group `storage.k8s.io`.

use crate::check::{self, Errors};
use crate::groups::core::inline_volume;
use crate::pod;
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Subresource, Version};
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
            generation: Generation::Later(&[
                &["spec", "tokenRequests"],
                &["spec", "requiresRepublish"],
                &["spec", "seLinuxMount"],
            ]),
            drop_disabled: |object, old| {
                const PERIOD: &str = "nodeAllocatableUpdatePeriodSeconds";
                if object.sub("spec").has(PERIOD) && !old.sub("spec").has(PERIOD) {
                    object.remove_at(&["spec", PERIOD]);
                }
            },
            validate: validate_driver,
            validate_update: |new, old| {
                let mut out = validate_driver(new);
                let path = Path::ROOT.child("spec");
                let (spec, before) = (new.sub("spec"), old.sub("spec"));
                if spec.sub("attachRequired") != before.sub("attachRequired") {
                    let at = path.child("attachedRequired");
                    out.push(FieldError::invalid(&at, spec.sub("attachRequired"), check::IMMUTABLE));
                }
                if spec.sub("volumeLifecycleModes") != before.sub("volumeLifecycleModes") {
                    let modes = spec.strings("volumeLifecycleModes");
                    let shown = check::go_list("storage.VolumeLifecycleMode", &modes);
                    out.push(FieldError::invalid(&path.child("volumeLifecycleModes"), shown, check::IMMUTABLE));
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
            validate_update: |new, old| {
                let mut out = validate_node(new);
                for before in old.sub("spec").list("drivers") {
                    let same = |d: &&Value| d.text("name") == before.text("name");
                    let drivers = new.sub("spec").list("drivers").iter().filter(same);
                    for driver in drivers.filter(|driver| *driver != before) {
                        let path = Path::ROOT.child("spec");
                        out.push(FieldError::invalid(&path.child("drivers"), driver, check::IMMUTABLE));
                    }
                }
                out
            },
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
        strategy: Strategy {
            validate: validate_class,
            validate_update: validate_class_update,
            warnings: |object, _| {
                let mut out = Vec::new();
                for (i, term) in object.list("allowedTopologies").iter().enumerate() {
                    for (j, requirement) in term.list("matchLabelExpressions").iter().enumerate() {
                        let at = format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key");
                        out.extend(pod::old_label(requirement.text("key")).map(|why| format!("{at}: {why}")));
                    }
                }
                out
            },
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
            prepare_status: |object, old, _| drop_error_codes(object, old),
            validate: |object| {
                let mut out = validate_attachment(object);
                let spec = object.sub("spec");
                pod::csi_driver_name(spec.text("attacher"), &Path::ROOT.child("spec.attacher"), &mut out);
                let source = spec.sub("source");
                if source.has("persistentVolumeName") {
                    let at = Path::ROOT.child("spec.source.persistentVolumeName");
                    check::name(names::dns1123_subdomain, source.text("persistentVolumeName"), &at, &mut out);
                }
                out
            },
            validate_update: |new, old| {
                // Upstream runs the same checks twice, and reports what they find as often.
                let mut out = [validate_attachment(new), validate_attachment(new)].concat();
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

/// Drops the codes of errors, which are off.
fn drop_error_codes(object: &mut Value, old: &Value) {
    for part in ["attachError", "detachError"] {
        let has = |attachment: &Value| attachment.sub("status").sub(part).has("errorCode");
        if has(object) && !has(old) {
            object.remove_at(&["status", part, "errorCode"]);
        }
    }
}

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
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    for (key, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
        ("seLinuxMount", "seLinuxMount"),
    ] {
        if !spec.has(key) {
            out.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let requests = path.child("tokenRequests");
    let list = spec.list("tokenRequests");
    for (i, request) in list.iter().enumerate() {
        let (audience, at) = (request.text("audience"), requests.index(i));
        if list.iter().take(i).any(|r| r.text("audience") == audience) {
            out.push(FieldError::duplicate(&at.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.opt_int("expirationSeconds") else { continue };
        let why = match seconds {
            ..600 => "may not specify a duration less than 10 minutes",
            s if s > 1 << 32 => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        out.push(FieldError::invalid(&at.child("expirationSeconds"), seconds, why));
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
        pod::csi_driver_name(name, &at.child("name"), &mut out);
        let id = driver.text("nodeID");
        if id.is_empty() {
            out.push(FieldError::required(&at.child("nodeID"), ""));
        } else if id.len() > 256 {
            out.push(FieldError::invalid(&at.child("nodeID"), id, "must be 256 characters or less"));
        }
        check::not_negative(driver.sub("allocatable"), "count", &at.child("allocatable"), &mut out);
        let keys = driver.strings("topologyKeys");
        for (j, key) in keys.iter().enumerate() {
            if key.is_empty() {
                out.push(FieldError::required(&at, ""));
            }
            if keys.iter().take(j).any(|k| k == key) {
                out.push(FieldError::duplicate(&at, *key));
            }
            check::label_name(key, &at, &mut out);
        }
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
        check::label_name(&lower, &at, &mut out);
    }
    let parameters = object.members("parameters");
    let at = Path::ROOT.child("parameters");
    let size: usize = parameters.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
    if parameters.len() > 512 {
        out.push(FieldError::too_long(&at, 512));
    }
    for key in parameters.keys().filter(|k| k.is_empty() && parameters.len() <= 512) {
        out.push(FieldError::invalid(&at, key, "field can not be empty."));
    }
    if size > 256 << 10 && parameters.len() <= 512 {
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
    topologies(object.list("allowedTopologies"), &Path::ROOT.child("allowedTopologies"), &mut out);
    out
}

/// Where volumes of a class may be: terms of labels, each key once in a term and each value once in a key.
fn topologies(terms: &[Value], path: &Path<'_>, out: &mut Errors) {
    let normal = |term: &Value| -> Vec<(String, Vec<String>)> {
        let sorted = |mut list: Vec<&str>| {
            list.sort_unstable();
            list.into_iter().map(str::to_owned).collect()
        };
        let expressions = term.list("matchLabelExpressions").iter();
        let mut all: Vec<_> = expressions.map(|e| (e.text("key").to_owned(), sorted(e.strings("values")))).collect();
        all.sort();
        all
    };
    for (i, term) in terms.iter().enumerate() {
        let at = path.index(i);
        let expressions = at.child("matchLabelExpressions");
        let list = term.list("matchLabelExpressions");
        for (j, requirement) in list.iter().enumerate() {
            let here = expressions.index(j);
            let values_path = here.child("values");
            let values = requirement.strings("values");
            if values.is_empty() {
                out.push(FieldError::required(&values_path, ""));
            }
            for (k, value) in values.iter().enumerate().filter(|(k, v)| values[..*k].contains(v)) {
                out.push(FieldError::duplicate(&values_path.index(k), *value));
            }
            let key = requirement.text("key");
            check::label_name(key, &here.child("key"), out);
            if list.iter().take(j).any(|r| r.text("key") == key) {
                out.push(FieldError::duplicate(&here.child("key"), key));
            }
        }
        if terms.iter().take(i).any(|earlier| normal(earlier) == normal(term)) {
            out.push(FieldError::duplicate(&expressions, ""));
        }
    }
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
    check::required(spec, "attacher", &path, &mut out);
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
        (false, true) => inline_volume(source.sub("inlineVolumeSpec"), &at.child("inlineVolumeSpec"), &mut out),
        _ => {}
    }
    check::name(names::dns1123_subdomain, spec.text("nodeName"), &path.child("nodeName"), &mut out);
    out
}
