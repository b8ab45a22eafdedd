//! The metadata of objects and of the resources embedded in them: bringing it into the shape of Go's `ObjectMeta`.

use crate::structural::Node;
use crate::typed;
use object::field::{FieldError, Path};
use object::{Map, Told, Value};

/// What is done about metadata that has no such shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is an error: what a request sends.
    Refuse,
    /// What does not fit is dropped: what the storage holds.
    Drop,
}

/// Brings the `metadata` of an object into shape and gives the paths of members that it does not have
/// (`metadata.foo`). The error is Go's text.
pub(crate) fn coerce_object(object: &mut Value, malformed: Malformed) -> Result<Vec<String>, String> {
    let Some(members) = object.as_object_mut() else { return Ok(Vec::new()) };
    coerce_member(members, malformed)
}

fn coerce_member(members: &mut Map, malformed: Malformed) -> Result<Vec<String>, String> {
    let Some(metadata) = members.get_mut("metadata") else { return Ok(Vec::new()) };
    match typed::decode(metadata, &typed::OBJECT_META) {
        Ok(decoded) => {
            *metadata = decoded.value;
            Ok(decoded.unknown.iter().map(|path| format!("metadata.{path}")).collect())
        }
        Err(error) if malformed == Malformed::Refuse => Err(error),
        Err(_) => {
            *metadata = Value::Object(salvage(metadata));
            Ok(Vec::new())
        }
    }
}

/// Those members that fit by themselves.
fn salvage(metadata: &Value) -> Map {
    let mut out = Map::new();
    for (key, value) in metadata.as_object().into_iter().flat_map(Map::iter) {
        let alone = Value::Object([(key, value.clone())].into_iter().collect());
        if let Ok(typed::Decoded { value: Value::Object(fit), .. }) = typed::decode(&alone, &typed::OBJECT_META) {
            for (key, value) in fit {
                out.insert(key, value);
            }
        }
    }
    out
}

/// Brings the metadata of embedded resources into shape, and checks that their `apiVersion` and `kind` are strings.
/// Gives the paths of unknown members.
pub(crate) fn coerce_embedded(node: &Node, value: &mut Value, malformed: Malformed) -> Result<Vec<String>, FieldError> {
    coerce_part(node, value, malformed, false, &Path::ROOT)
}

/// Like [`coerce_embedded`], for a part that stands at `path` and may be a resource itself.
pub(crate) fn coerce_part(
    node: &Node,
    value: &mut Value,
    malformed: Malformed,
    resource: bool,
    path: &Path<'_>,
) -> Result<Vec<String>, FieldError> {
    let mut unknown = Told::default();
    coerce_at(node, value, malformed, resource, path, &mut unknown)?;
    Ok(unknown.into_vec())
}

fn coerce_at(
    node: &Node,
    value: &mut Value,
    malformed: Malformed,
    resource: bool,
    path: &Path<'_>,
    unknown: &mut Told,
) -> Result<(), FieldError> {
    match value {
        Value::Object(members) => {
            if resource || node.embedded() {
                coerce_resource(members, malformed, path, unknown)?;
            }
            for (key, value) in members.iter_mut().filter(|(_, v)| matches!(v, Value::Array(_) | Value::Object(_))) {
                if let Some(property) = node.property(key) {
                    coerce_at(property, value, malformed, false, &path.child(key), unknown)?;
                } else if let Some(schema) = node.additional_schema() {
                    coerce_at(schema, value, malformed, false, &path.key(key), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = node.items() else { return Ok(()) };
            for (i, item) in items.iter_mut().enumerate() {
                coerce_at(node, item, malformed, false, &path.index(i), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    members: &mut Map,
    malformed: Malformed,
    path: &Path<'_>,
    unknown: &mut Told,
) -> Result<(), FieldError> {
    for key in ["apiVersion", "kind"] {
        let Some(value) = members.get(key).filter(|v| v.as_str().is_none()) else { continue };
        match malformed {
            Malformed::Refuse => return Err(FieldError::invalid(&path.child(key), value, "must be a string")),
            Malformed::Drop => members.remove(key),
        };
    }
    match coerce_member(members, malformed) {
        Ok(paths) => {
            for p in paths {
                unknown.add_with(|| if path.is_root() { p } else { format!("{path}.{p}") });
            }
            Ok(())
        }
        Err(error) => Err(FieldError::invalid(&path.child("metadata"), members.get("metadata"), error)),
    }
}
