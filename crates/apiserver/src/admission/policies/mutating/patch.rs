//! Patches that expressions make, laid over objects.

use super::value::{Numbers, mismatches, to_json};
use cel::value::{Map as CelMap, Value as Cel};
use fields::path::PathElement;
use fields::schema::{ListKind, TypeId, TypeSchema};
use fields::typed::{Duplicates, merge, validate};
use object::{Map, Status, Value};
use patch::json_patch::JsonPatch;

/// Why a patch cannot be made.
#[derive(Debug)]
pub(super) enum Failed {
    /// A matter of the policy's failure policy; upstream's text.
    Policy(String),
    /// The request fails whatever the policy says.
    Request(Box<Status>),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Failed::Policy(why)
    }
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Failed::Request(Box::new(status))
    }
}

/// Lays an `Object` over an object as server-side apply would, but for what it owns.
pub(super) fn apply(schema: &TypeSchema, made: &Cel<'_>, object: &Value) -> Result<Value, String> {
    let mismatches = mismatches(made)?;
    if !mismatches.is_empty() {
        return Err(format!("type mismatch: {}", mismatches.join("\n")));
    }
    let mut config = to_json(made, Numbers::Kept)?;
    for key in ["apiVersion", "kind"] {
        if let Some(value) = object.get(key) {
            config.set_at(&[key], value.clone());
        }
    }
    let failed = |why: String| format!("error applying patch: {why}");
    validate(schema, &config, Duplicates::Forbid)
        .map_err(|why| failed(format!("failed to convert patch object to typed object: {why}")))?;
    let mut atomics = Vec::new();
    find_atomics(schema, schema.root(), &config, &mut Vec::new(), &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(failed(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        )));
    }
    validate(schema, object, Duplicates::Allow)
        .map_err(|why| failed(format!("failed to convert original object to typed object: {why}")))?;
    Ok(merge(schema, object, &config))
}

/// The paths of what would be replaced as a whole, so that nobody loses by accident what he did not name.
fn find_atomics(schema: &TypeSchema, ty: TypeId, value: &Value, path: &mut Vec<PathElement>, out: &mut Vec<String>) {
    let atom = schema.atom(ty);
    let shown = |path: &[PathElement]| path.iter().map(PathElement::to_string).collect::<String>();
    match (value, &atom.map, &atom.list) {
        (Value::Object(members), Some(map), _) => {
            if map.atomic {
                out.push(shown(path));
            }
            for (name, value) in members.iter() {
                if let Some(field) = map.field(name) {
                    path.push(PathElement::field(name));
                    find_atomics(schema, field.ty, value, path, out);
                    path.pop();
                }
            }
        }
        (Value::Array(items), _, Some(list)) => {
            if list.kind == ListKind::Atomic {
                out.push(shown(path));
            }
            for (index, value) in items.iter().enumerate() {
                path.push(PathElement::Index(index as i64));
                find_atomics(schema, list.element, value, path, out);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Patches an object with a list of `JSONPatch` operations; nothing if one of them tests for something else.
pub(super) fn json_patch(made: &Cel<'_>, object: &Value) -> Result<Option<Value>, Failed> {
    let Cel::List(list) = made else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned().into());
    };
    let mut operations = Vec::with_capacity(list.len());
    for item in list.iter() {
        match item.map_err(|why| why.to_string())? {
            Cel::Map(map) => operations.push(Value::Object(operation(&map)?)),
            _ => {
                let why = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
                return Err(why.to_owned().into());
            }
        }
    }
    let patch = JsonPatch::read(Value::Array(operations))?;
    match patch.apply(object.clone()) {
        Ok(new) => Ok(Some(new)),
        Err(why) if why.is_failed_test() => Ok(None),
        Err(why) => Err(format!("JSONPath: {why}").into()),
    }
}

fn operation(made: &CelMap<'_>) -> Result<Map, String> {
    let member = |name: &str| made.find_str(name).transpose().map_err(|why| why.to_string());
    let text =
        |name: &str| Ok::<_, String>(member(name)?.as_ref().and_then(Cel::as_str).unwrap_or_default().to_owned());
    let mut operation = Map::new();
    operation.insert("op", text("op")?);
    operation.insert("path", text("path")?);
    let from = text("from")?;
    if !from.is_empty() {
        operation.insert("from", from);
    }
    if let Some(value) = member("value")? {
        let mismatches = mismatches(&value)?;
        if !mismatches.is_empty() {
            return Err(format!("type mismatch: {}", mismatches.join("\n")));
        }
        let value = to_json(&value, Numbers::AsJson).map_err(|why| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        operation.insert("value", value);
    }
    Ok(operation)
}
