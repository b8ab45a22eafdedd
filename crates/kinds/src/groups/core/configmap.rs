//! ConfigMaps.

use crate::check::{self, Errors};
use crate::read::Read;
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{ErrorKind, FieldError, Path};

/// The most bytes that the data of a ConfigMap or Secret may have.
pub(super) const MAX_DATA: usize = 1 << 20;

pub(super) const CONFIGMAPS: Resource = Resource {
    short_names: &["cm"],
    columns: &[Column::NAME, Column::new("Data", "string"), Column::AGE],
    cells: |object, now| {
        let count = object.members("data").len() + object.members("binaryData").len();
        vec![object.name().into(), Value::Int(count as i64), table::age(object, now)]
    },
    strategy: Strategy { validate, validate_update, ..Strategy::PLAIN },
    ..Resource::new("", "ConfigMap", "configmaps", &[Version::stored("v1", "io.k8s.api.core.v1.ConfigMap")])
};

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let mut total = 0;
    let binary = object.members("binaryData");
    let data = Path::ROOT.child("data");
    for (key, value) in object.members("data").iter() {
        check::name(check::config_key, key, &data.key(key), &mut out);
        if binary.contains_key(key) {
            out.push(FieldError::invalid(&data.key(key), key, "duplicate of key present in binaryData"));
        }
        total += value.as_str().unwrap_or_default().len();
    }
    let path = Path::ROOT.child("binaryData");
    for (key, value) in binary.iter() {
        check::name(check::config_key, key, &path.key(key), &mut out);
        total += decoded_length(value);
    }
    if total > MAX_DATA {
        let why = format!("may not be more than {MAX_DATA} bytes");
        out.push(FieldError { kind: ErrorKind::TooLong, field: String::new(), value: None, detail: why });
    }
    out
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    unchanged_if_immutable(new, old, &["data", "binaryData"], &mut out);
    out.extend(validate(new));
    out
}

/// What `immutable: true` forbids.
pub(super) fn unchanged_if_immutable(new: &Value, old: &Value, parts: &[&str], out: &mut Errors) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if !old.flag("immutable") {
        return;
    }
    if !new.flag("immutable") {
        out.push(FieldError::forbidden(&Path::ROOT.child("immutable"), WHY));
    }
    for part in parts {
        if new.members(part) != old.members(part) {
            out.push(FieldError::forbidden(&Path::ROOT.child(part), WHY));
        }
    }
}

/// How many bytes a base64 text stands for.
pub(super) fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|b| *b == b'=').count().min(2)
}
