//! Bindings of pods to nodes, and the statuses of components.

use crate::check::Errors;
use crate::read::Read;
use crate::resource::{Resource, Strategy, Version};
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
    ..Resource::new(
        "",
        "ComponentStatus",
        "componentstatuses",
        &[Version::stored("v1", "io.k8s.api.core.v1.ComponentStatus")
            .deprecated("v1 ComponentStatus is deprecated in v1.19+")],
    )
};
