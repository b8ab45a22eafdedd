//! The resources of the group `events.k8s.io`.

use super::core::{EVENT_COLUMNS, event_cells, event_source, validate_event};
use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Conversion, Propagation, Resource, SelectableField, Storage, Strategy, Version};
use object::field::{FieldError, Path};
use object::{Value, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    short_names: &["ev"],
    storage: Some(Storage { group: "", version: "v1", resource: "events", expires: 3600 }),
    columns: EVENT_COLUMNS,
    cells: event_cells,
    selectable: FIELDS,
    strategy: Strategy {
        name: names::dns1123_subdomain,
        create_on_update: true,
        propagation: Propagation::Unsupported,
        validate,
        validate_update,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "events.k8s.io",
        "Event",
        "events",
        &[Version {
            convert: Some(Conversion { to_stored, from_stored }),
            ..Version::stored("v1", "io.k8s.api.events.v1.Event")
        }],
    )
}];

macro_rules! regarding {
    ($field:literal) => {
        SelectableField {
            name: concat!("regarding.", $field),
            value: |object| object.sub("involvedObject").text($field).to_owned(),
        }
    };
}

/// The group has its own names for some fields.
const FIELDS: &[SelectableField] = &[
    regarding!("kind"),
    regarding!("namespace"),
    regarding!("name"),
    regarding!("uid"),
    regarding!("apiVersion"),
    regarding!("resourceVersion"),
    regarding!("fieldPath"),
    SelectableField { name: "reason", value: |object| object.text("reason").to_owned() },
    SelectableField { name: "reportingController", value: |object| object.text("reportingComponent").to_owned() },
    SelectableField { name: "source", value: event_source },
    SelectableField { name: "type", value: |object| object.text("type").to_owned() },
];

/// Fields by their name here and in the core group.
const RENAMED: [(&str, &str); 6] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
];

fn to_stored(object: &mut Value) {
    for (here, there) in RENAMED.into_iter().chain([("deprecatedCount", "count")]) {
        rename(object, here, there);
    }
    object.set_at(&["apiVersion"], "v1".into());
    // Always written in the core group, left out when empty here.
    for key in ["reportingComponent", "reportingInstance"] {
        crate::read::default_to(object, key, "");
    }
}

fn from_stored(object: &mut Value) {
    for (here, there) in RENAMED.into_iter().chain([("deprecatedCount", "count")]) {
        rename(object, there, here);
    }
    object.set_at(&["apiVersion"], "events.k8s.io/v1".into());
    for key in ["reportingController", "reportingInstance"] {
        if object.text(key).is_empty() {
            object.remove_at(&[key]);
        }
    }
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(value) = object.remove_at(&[from]) {
        object.set_at(&[to], value);
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = validate_event(object, "reportingController");
    let at = |key: &'static str| Path::ROOT.child(key);
    if !object.has("eventTime") {
        out.push(FieldError::required(&at("eventTime"), ""));
    }
    let kind = object.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        out.push(FieldError::invalid(&at("type"), "", format!("has invalid value: {kind}")));
    }
    for (key, here) in [("firstTimestamp", "deprecatedFirstTimestamp"), ("lastTimestamp", "deprecatedLastTimestamp")] {
        if object.has(key) {
            out.push(FieldError::invalid(&Path::ROOT.child(here), "", "needs to be unset"));
        }
    }
    if object.int("count") != 0 {
        out.push(FieldError::invalid(&at("deprecatedCount"), "", "needs to be unset"));
    }
    let source = object.sub("source");
    if !source.text("component").is_empty() || !source.text("host").is_empty() {
        out.push(FieldError::invalid(&at("deprecatedSource"), "", "needs to be unset"));
    }
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_event(new, "reportingController");
    if new.sub("series") != old.sub("series")
        && let Some(count) = new.sub("series").opt_int("count")
    {
        let series = Path::ROOT.child("series");
        if count < 2 {
            out.push(FieldError::invalid(&series.child("count"), "", "should be at least 2"));
        }
        if !new.sub("series").has("lastObservedTime") {
            out.push(FieldError::required(&series.child("lastObservedTime"), ""));
        }
    }
    // Upstream looks at the reason twice, and names the fields as the core group does.
    for key in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ] {
        if new.sub(key) != old.sub(key) {
            let name = if key == "reportingComponent" { "reportingController" } else { key };
            out.push(FieldError::invalid(&Path::ROOT.child(name), new.sub(key), check::IMMUTABLE));
        }
    }
    out
}
