//! Events: one storage for the core group and `events.k8s.io`.

use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Column, Propagation, Resource, SelectableField, Storage, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, names};

pub(super) const EVENTS: Resource = Resource {
    short_names: &["ev"],
    storage: Some(Storage { group: "", version: "v1", resource: "events", expires: 3600 }),
    columns: EVENT_COLUMNS,
    cells: event_cells,
    selectable: EVENT_FIELDS,
    strategy: Strategy {
        name: names::path_segment,
        create_on_update: true,
        propagation: Propagation::Unsupported,
        validate: |object| validate(object, "reportingComponent"),
        validate_update: |object, _| validate(object, "reportingComponent"),
        ..Strategy::PLAIN
    },
    ..Resource::new("", "Event", "events", &[Version::stored("v1", "io.k8s.api.core.v1.Event")])
};

pub(crate) const EVENT_COLUMNS: &[Column] = &[
    Column::new("Last Seen", "string"),
    Column::new("Type", "string"),
    Column::new("Reason", "string"),
    Column::new("Object", "string"),
    Column::wide("Subobject", "string"),
    Column::wide("Source", "string"),
    Column::new("Message", "string"),
    Column::wide("First Seen", "string"),
    Column::wide("Count", "string"),
    Column { priority: 1, ..Column::NAME },
];

macro_rules! involved {
    ($field:literal) => {
        SelectableField {
            name: concat!("involvedObject.", $field),
            value: |object| object.sub("involvedObject").text($field).to_owned(),
        }
    };
}

const EVENT_FIELDS: &[SelectableField] = &[
    involved!("kind"),
    involved!("namespace"),
    involved!("name"),
    involved!("uid"),
    involved!("apiVersion"),
    involved!("resourceVersion"),
    involved!("fieldPath"),
    SelectableField { name: "reason", value: |object| object.text("reason").to_owned() },
    SelectableField { name: "reportingComponent", value: |object| object.text("reportingComponent").to_owned() },
    SelectableField { name: "source", value: source },
    SelectableField { name: "type", value: |object| object.text("type").to_owned() },
];

pub(crate) fn source(object: &Value) -> String {
    match object.sub("source").text("component") {
        "" => object.text("reportingComponent").to_owned(),
        component => component.to_owned(),
    }
}

pub(crate) fn event_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let first = match object.has("firstTimestamp") {
        true => object.get("firstTimestamp"),
        false => object.get("eventTime"),
    };
    let series = object.sub("series");
    let last = match object.has("series") {
        true => series.get("lastObservedTime"),
        false => object.get("lastTimestamp").filter(|t| !t.is_null()).or(first),
    };
    let count = match (object.has("series"), object.int("count")) {
        (true, _) => series.int("count"),
        (false, 0) => 1,
        (false, count) => count,
    };
    let involved = object.sub("involvedObject");
    let about = match involved.text("name") {
        "" => involved.text("kind").to_lowercase(),
        name => format!("{}/{name}", involved.text("kind").to_lowercase()),
    };
    let component = source(object);
    let from = match object.sub("source").text("host") {
        "" => match object.text("reportingInstance") {
            "" => component,
            instance => format!("{component}, {instance}"),
        },
        host => format!("{component}, {host}"),
    };
    vec![
        table::since(last, now).into(),
        object.text("type").into(),
        object.text("reason").into(),
        about.into(),
        involved.text("fieldPath").into(),
        from.into(),
        object.text("message").trim().into(),
        table::since(first, now).into(),
        Value::Int(count),
        object.name().into(),
    ]
}

/// The rules of old events, and of new ones (those with an `eventTime`).
pub(crate) fn validate(object: &Value, controller_field: &str) -> Errors {
    let mut out = Errors::new();
    let involved = object.sub("involvedObject").text("namespace");
    let namespace = object.namespace();
    let mismatch = || {
        let path = Path::ROOT.child("involvedObject");
        FieldError::invalid(&path.child("namespace"), involved, "does not match event.namespace")
    };
    if !object.has("eventTime") {
        let wrong = if involved.is_empty() { !matches!(namespace, "" | "default") } else { namespace != involved };
        if wrong {
            out.push(mismatch());
        }
    } else {
        if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
            out.push(mismatch());
        }
        let controller = object.text("reportingComponent");
        let path = Path::ROOT.child(controller_field);
        if controller.is_empty() {
            out.push(FieldError::required(&path, ""));
        }
        check::label_name(controller, &path, &mut out);
        for (key, required, most) in
            [("reportingInstance", true, 128), ("action", true, 128), ("reason", true, 128), ("message", false, 1024)]
        {
            if required {
                check::required(object, key, &Path::ROOT, &mut out);
            }
            if object.text(key).len() > most {
                let why = format!("can have at most {most} characters");
                out.push(FieldError::invalid(&Path::ROOT.child(key), "", why));
            }
        }
    }
    check::name(names::dns1123_subdomain, namespace, &Path::ROOT.child("namespace"), &mut out);
    out
}
