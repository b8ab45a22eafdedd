//! The resources of the group `scheduling.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, default_to};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};

/// The highest priority that is not the system's own.
const HIGHEST: i64 = 1_000_000_000;

/// The value of a priority class that every cluster has, by its name; nothing for any other.
pub fn system_priority(name: &str) -> Option<i64> {
    match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["pc"],
    namespaced: false,
    columns: &[
        Column::NAME,
        Column::new("Value", "integer"),
        Column::new("Global-Default", "boolean"),
        Column::AGE,
        Column::new("PreemptionPolicy", "string"),
    ],
    cells: |object, now| {
        vec![
            object.name().into(),
            Value::Int(object.int("value")),
            object.flag("globalDefault").into(),
            table::age(object, now),
            object.text("preemptionPolicy").into(),
        ]
    },
    strategy: Strategy { generation: Generation::One, validate, validate_update, ..Strategy::PLAIN },
    ..Resource::new(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        &[Version::stored("v1", "io.k8s.api.scheduling.v1.PriorityClass")
            .with_default(|object| default_to(object, "preemptionPolicy", "PreemptLowerPriority"))],
    )
}];

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let name = object.name();
    if name.starts_with("system-") {
        let why = match system_priority(name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some(value) if value != object.int("value") => {
                Some(format!("value of {name} PriorityClass must be {value}"))
            }
            Some(_) if object.flag("globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            let meta = Path::ROOT.child("metadata");
            let text =
                format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
            out.push(FieldError::forbidden(&meta.child("name"), text));
        }
    } else if object.int("value") > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        out.push(FieldError::forbidden(&Path::ROOT.child("value"), why));
    }
    if object.has("preemptionPolicy") {
        check::required_one_of(object, "preemptionPolicy", &["PreemptLowerPriority", "Never"], &Path::ROOT, &mut out);
    }
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    if new.int("value") != old.int("value") {
        out.push(FieldError::forbidden(&Path::ROOT.child("value"), "may not be changed in an update."));
    }
    check::immutable(new, old, "preemptionPolicy", &Path::ROOT, &mut out);
    out
}
