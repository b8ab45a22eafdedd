//! The annotation of client-side apply, which server-side apply by `kubectl` takes over.

use crate::schema::TypeSchema;
use crate::set::FieldSet;
use crate::typed::{self, Duplicates};
use object::{Map, Value, json};

/// The manager for which all this is done.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The most bytes all annotations may have together.
const MAX_ANNOTATIONS_SIZE: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.str_at(&["metadata", "annotations", ANNOTATION]).filter(|text| !text.is_empty())
}

/// The fields of the last applied configuration that the live object still has with the same values. `None` where
/// there is no such configuration, or it is of another version or does not fit the schema.
pub(super) fn untouched(schema: &TypeSchema, api_version: &str, live: &Value) -> Option<FieldSet> {
    let config = json::parse(annotation(live)?.as_bytes()).ok()?;
    if config.get("apiVersion").and_then(Value::as_str) != Some(api_version)
        || config.get("kind").and_then(Value::as_str).is_none_or(str::is_empty)
    {
        return None;
    }
    typed::validate(schema, &config, Duplicates::Forbid).ok()?;
    typed::validate(schema, live, Duplicates::Forbid).ok()?;
    let change = typed::compare(schema, &config, live);
    let set = typed::to_field_set(schema, &config);
    Some(set.difference(&change.modified).difference(&change.added).difference(&change.removed))
}

/// Brings the annotation, where there is one, up to the configuration just applied. One that would make the
/// annotations too large goes away.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        match strings(metadata.get("annotations")) {
            Some(mut annotations) => {
                annotations.remove(ANNOTATION);
                metadata.insert("annotations", annotations);
            }
            None => {
                metadata.remove("annotations");
            }
        }
    }
    let mut text = json::to_string(&config);
    text.push('\n');
    let Some(annotations) = object.get_mut("metadata").and_then(|m| m.get_mut("annotations")) else { return };
    let Some(annotations) = annotations.as_object_mut() else { return };
    annotations.insert(ANNOTATION, text);
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS_SIZE {
        annotations.remove(ANNOTATION);
    }
}

/// A map of strings, null read as empty; `None` where it is none.
fn strings(value: Option<&Value>) -> Option<Map> {
    value?
        .as_object()?
        .iter()
        .map(|(key, value)| match value {
            Value::Null => Some((key, Value::from(""))),
            Value::String(_) => Some((key, value.clone())),
            _ => None,
        })
        .collect()
}
