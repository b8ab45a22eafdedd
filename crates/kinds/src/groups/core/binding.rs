//! Bindings of pods to nodes, and the statuses of components.

use crate::check::Errors;
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use jiff::Timestamp;
use object::Value;
use object::field::{FieldError, Path};

/// What `bindings` takes, and `pods/binding`.
pub(super) const BINDINGS: Resource = Resource {
    strategy: Strategy { validate, ..Strategy::PLAIN },
    ..Resource::review("", "Binding", "bindings", &[Version::stored("v1", "io.k8s.api.core.v1.Binding")])
};

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let target = object.sub("target");
    let path = Path::ROOT.child("target");
    let kind = target.text("kind");
    if !matches!(kind, "" | "Node") {
        out.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    crate::check::required(target, "name", &path, &mut out);
    out
}

pub(super) const COMPONENT_STATUSES: Resource = Resource {
    short_names: &["cs"],
    namespaced: false,
    verbs: &["get", "list"],
    storage: None,
    columns: &[
        Column::NAME,
        Column::new("Status", "string"),
        Column::new("Message", "string"),
        Column::new("Error", "string"),
    ],
    cells: component_cells,
    ..Resource::new(
        "",
        "ComponentStatus",
        "componentstatuses",
        &[Version::stored("v1", "io.k8s.api.core.v1.ComponentStatus")
            .deprecated("v1 ComponentStatus is deprecated in v1.19+")],
    )
};

/// What the condition `Healthy` says.
fn component_cells(object: &Value, _: Timestamp) -> Vec<Value> {
    let healthy = object.list("conditions").iter().find(|c| c.text("type") == "Healthy");
    let text = |key: &str| healthy.map_or("", |c| c.text(key));
    let status = match healthy.map(|c| c.text("status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    vec![object.name().into(), status.into(), text("message").into(), text("error").into()]
}
