//! ControllerRevisions.

use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};

pub(super) const CONTROLLER_REVISIONS: Resource = Resource {
    columns: &[Column::NAME, Column::new("Controller", "string"), Column::new("Revision", "string"), Column::AGE],
    cells: |object, now| {
        let owners = object.sub("metadata").list("ownerReferences");
        let controller = owners.iter().find(|o| o.flag("controller")).map_or("<none>".to_owned(), |owner| {
            let kind = owner.text("kind").to_lowercase();
            match owner.text("apiVersion").split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", owner.text("name")),
                None => format!("{kind}/{}", owner.text("name")),
            }
        });
        vec![object.name().into(), controller.into(), Value::Int(object.int("revision")), table::age(object, now)]
    },
    strategy: Strategy { validate, validate_update, ..Strategy::PLAIN },
    ..Resource::new(
        "apps",
        "ControllerRevision",
        "controllerrevisions",
        &[Version::stored("v1", "io.k8s.api.apps.v1.ControllerRevision")],
    )
};

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    if !object.has("data") {
        out.push(FieldError::required(&Path::ROOT.child("data"), "data is mandatory"));
    }
    check::not_negative(object, "revision", &Path::ROOT, &mut out);
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate(new);
    check::immutable(new, old, "data", &Path::ROOT, &mut out);
    out
}
