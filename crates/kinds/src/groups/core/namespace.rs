//! Namespaces.

use crate::check::Errors;
use crate::finalize::finalizer_name;
use crate::read::Read;
use crate::resource::{
    CHANGE_VERBS, Column, Context, Generation, Resource, SelectableField, Strategy, Subresource, Version,
};
use crate::table;
use object::field::{FieldError, Path};
use object::{Value, map, names};

/// The label that carries the name of the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) const NAMESPACES: Resource = Resource {
    short_names: &["ns"],
    namespaced: false,
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    subresources: &[
        Subresource::new("finalize", "Namespace", &["update"]),
        Subresource::new("status", "Namespace", CHANGE_VERBS),
    ],
    columns: &[Column::NAME, Column::new("Status", "string"), Column::AGE],
    cells: |object, now| vec![object.name().into(), object.sub("status").text("phase").into(), table::age(object, now)],
    selectable: &[SelectableField {
        name: "status.phase",
        value: |object| object.sub("status").text("phase").to_owned(),
    }],
    strategy: Strategy {
        name: names::dns1123_label,
        generation: Generation::None,
        reset: &[&["status"]],
        reset_status: &[&["spec"]],
        prepare_create,
        prepare_update,
        validate,
        validate_status,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "",
        "Namespace",
        "namespaces",
        &[Version::stored("v1", "io.k8s.api.core.v1.Namespace").with_default(default)],
    )
};

fn default(object: &mut Value) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.metadata_mut().object_entry("labels").insert(NAME_LABEL, name);
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    default(object);
    object.set_at(&["status"], map! { "phase" => "Active" }.into());
    let has = object.sub("spec").strings("finalizers").contains(&"kubernetes");
    if !has {
        let finalizers = object.object_entry("spec").get_or_insert("finalizers", || Value::Array(Vec::new()));
        match finalizers {
            Value::Array(list) => list.push("kubernetes".into()),
            other => *other = vec!["kubernetes"].into(),
        }
    }
}

/// `spec.finalizers` change through `/finalize` only.
fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    default(object);
    object.set_at(&["spec"], old.sub("spec").clone());
}

fn validate(object: &Value) -> Errors {
    let spec = Path::ROOT.child("spec");
    let path = spec.child("finalizers");
    let mut out = Errors::new();
    for finalizer in object.sub("spec").strings("finalizers") {
        finalizer_name(finalizer, &path, &mut out);
    }
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let phase = new.sub("status").text("phase");
    let status = Path::ROOT.child("status");
    let path = status.child("Phase");
    let deleting = new.sub("metadata").has("deletionTimestamp");
    let why = match (deleting, phase) {
        (false, phase) if phase != "Active" => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, phase) if phase != "Terminating" => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return Errors::new(),
    };
    vec![FieldError::invalid(&path, phase, why)]
}
