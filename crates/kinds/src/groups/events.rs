//! The resources of the group `events.k8s.io`.

use super::core::{EVENT_COLUMNS, event_cells, event_source, validate_event};
use crate::check::{self, Errors};
use crate::gostruct;
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
    series(object, &mut out);
    let at = |key: &'static str| Path::ROOT.child(key);
    if !object.has("eventTime") {
        out.push(FieldError::required(&at("eventTime"), ""));
    }
    let kind = object.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        out.push(FieldError::invalid(&at("type"), "", format!("has invalid value: {kind}")));
    }
    // Upstream names the fields as the core group does.
    for key in ["firstTimestamp", "lastTimestamp"].into_iter().filter(|key| object.has(key)) {
        out.push(FieldError::invalid(&at(key), "", "needs to be unset"));
    }
    if object.int("count") != 0 {
        out.push(FieldError::invalid(&at("count"), "", "needs to be unset"));
    }
    let source = object.sub("source");
    if !source.text("component").is_empty() || !source.text("host").is_empty() {
        out.push(FieldError::invalid(&at("source"), "", "needs to be unset"));
    }
    out
}

fn series(object: &Value, out: &mut Errors) {
    let series = object.sub("series");
    if !object.has("series") {
        return;
    }
    let path = Path::ROOT.child("series");
    if series.int("count") < 2 {
        out.push(FieldError::invalid(&path.child("count"), "", "should be at least 2"));
    }
    if !series.has("lastObservedTime") {
        out.push(FieldError::required(&path.child("lastObservedTime"), ""));
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_event(new, "reportingController");
    if new.sub("series") != old.sub("series") {
        series(new, &mut out);
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
            let value = new.sub(key);
            let shown = match key {
                "involvedObject" | "related" => gostruct::object_reference(value),
                "source" => gostruct::event_source(value),
                "firstTimestamp" | "lastTimestamp" | "eventTime" => gostruct::time(value.as_str().unwrap_or_default()),
                "count" => new.int(key).into(),
                _ => new.text(key).into(),
            };
            out.push(FieldError::invalid(&Path::ROOT.child(name), shown, check::IMMUTABLE));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    /// An event in its stored form, with more fields.
    fn event(more: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"namespace":"default"}},"eventTime":"2025-01-01T00:00:00.000000Z","type":"Normal",
                "action":"a","reason":"r","reportingComponent":"c","reportingInstance":"i","message":"m",
                "involvedObject":{{"kind":"Pod","name":"p","namespace":"default"}}{more}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    fn texts(errors: Errors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn new_events_have_nothing_of_old_ones() {
        for (more, expected) in [
            ("", vec![]),
            (
                r#","firstTimestamp":"2025-01-01T00:00:00Z","lastTimestamp":"2025-01-01T00:00:00Z","count":1,"source":{"host":"h"}"#,
                vec![
                    r#"firstTimestamp: Invalid value: "": needs to be unset"#,
                    r#"lastTimestamp: Invalid value: "": needs to be unset"#,
                    r#"count: Invalid value: "": needs to be unset"#,
                    r#"source: Invalid value: "": needs to be unset"#,
                ],
            ),
            (
                r#","series":{"count":1}"#,
                vec![
                    r#"series.count: Invalid value: "": should be at least 2"#,
                    "series.lastObservedTime: Required value",
                ],
            ),
        ] {
            assert_eq!(texts(validate(&event(more))), expected, "{more}");
        }
    }

    #[test]
    fn what_an_event_says_stays_as_it_is() {
        let old = event("");
        for (path, value, expected) in [
            (vec!["reason"], "x", r#"reason: Invalid value: "x": field is immutable"#),
            (
                vec!["involvedObject", "name"],
                "q",
                r#"involvedObject: Invalid value: core.ObjectReference{Kind:"Pod", Namespace:"default", Name:"q", UID:"", APIVersion:"", ResourceVersion:"", FieldPath:""}: field is immutable"#,
            ),
            (
                vec!["source", "host"],
                "h",
                r#"source: Invalid value: core.EventSource{Component:"", Host:"h"}: field is immutable"#,
            ),
            (
                vec!["eventTime"],
                "2025-01-02T00:00:00.500000Z",
                "eventTime: Invalid value: 2025-01-02 00:00:00.5 +0000 UTC: field is immutable",
            ),
            (
                vec!["firstTimestamp"],
                "2025-01-02T00:00:00Z",
                "firstTimestamp: Invalid value: 2025-01-02 00:00:00 +0000 UTC: field is immutable",
            ),
        ] {
            let mut new = old.clone();
            new.set_at(&path, value.into());
            let mut found = texts(validate_update(&new, &old));
            found.dedup();
            // The reason is looked at twice.
            assert_eq!(found.first().map(String::as_str), Some(expected), "{path:?}");
        }
    }
}
