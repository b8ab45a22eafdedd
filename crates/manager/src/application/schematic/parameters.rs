//! Properties against the schema of a definition.

use object::{Map, Value};

use crate::permit::params::{check_schema_at, validate_at};

/// How deep defaults are looked for.
const DEEPEST: usize = 64;

/// Properties with the defaults of a schema filled in, and checked.
///
/// # Errors
///
/// What is wrong with the properties, or with the schema.
pub(super) fn complete(schema: Option<&Value>, properties: &Value) -> Result<Value, String> {
    let mut properties = if properties.is_null() { Map::new().into() } else { properties.clone() };
    let Some(schema) = schema else { return Ok(properties) };
    check_schema_at(schema, "schematic.parameterSchema")?;
    fill(schema, &mut properties, 0);
    validate_at(Some(schema), &properties, "properties")?;
    Ok(properties)
}

fn fill(schema: &Value, value: &mut Value, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
                if !members.contains_key(name)
                    && let Some(default) = schema.get("default")
                {
                    members.insert(name, default.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    fill(schema, member, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(schema, item, depth + 1));
            }
        }
        _ => {}
    }
}
