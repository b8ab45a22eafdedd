//! The metadata that every object has.

use super::{STRING, Struct, Ty, always, optional, pointer};
use object::go;

pub(crate) static OBJECT_META: Ty = Ty::Struct(&FIELDS);

pub(super) static FIELDS: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        optional("name", STRING),
        optional("generateName", STRING),
        optional("namespace", STRING),
        optional("selfLink", STRING),
        optional("uid", Ty::Str("types.UID")),
        optional("resourceVersion", STRING),
        optional("generation", Ty::Int64),
        optional("creationTimestamp", Ty::Time),
        pointer("deletionTimestamp", Ty::Time),
        pointer("deletionGracePeriodSeconds", Ty::Int64),
        optional("labels", Ty::Map(&STRING)),
        optional("annotations", Ty::Map(&STRING)),
        optional("ownerReferences", Ty::List(&Ty::Struct(&OWNER_REFERENCE))),
        optional("finalizers", Ty::List(&STRING)),
        optional("managedFields", Ty::List(&Ty::Struct(&MANAGED_FIELDS))),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        always("apiVersion", STRING),
        always("kind", STRING),
        always("name", STRING),
        always("uid", Ty::Str("types.UID")),
        pointer("controller", Ty::Bool),
        pointer("blockOwnerDeletion", Ty::Bool),
    ],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        optional("manager", STRING),
        optional("operation", Ty::Str("v1.ManagedFieldsOperationType")),
        optional("apiVersion", STRING),
        pointer("time", Ty::Time),
        optional("fieldsType", STRING),
        pointer("fieldsV1", Ty::Any),
        optional("subresource", STRING),
    ],
};

/// A time of RFC 3339, written again in UTC without fractions; the error is Go's.
pub(super) fn parse_time(text: &str) -> Result<String, String> {
    let parsed = crate::format::parse_date_time(text)
        .filter(|_| !text.ends_with(|c: char| c.is_ascii_digit()) || has_offset(text));
    let Some((seconds, _, _)) = parsed else {
        let layout = go::quote("2006-01-02T15:04:05Z07:00");
        return Err(format!("parsing time {0} as {layout}: cannot parse {0} as \"2006\"", go::quote(text)));
    };
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => Ok(time.to_string()),
        Err(_) => Err(format!("parsing time {}: out of range", go::quote(text))),
    }
}

fn has_offset(text: &str) -> bool {
    text.get(text.len().saturating_sub(6)..).is_some_and(|tail| tail.starts_with(['+', '-']))
}
