//! The schemas of definitions' resources as OpenAPI publishes them.

use crate::catalogue::{Definition, Resource};
use kinds::definitions::Dialect;
use object::{Map, Value, map};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The name of a schema: the group's parts in reverse, the version and the kind.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.rsplit('.').collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The schemas of a resource's objects and of their lists, by name.
pub(super) fn schemas(
    definition: &Definition,
    resource: &Resource,
    name: &str,
    dialect: Dialect,
) -> [(String, Value); 2] {
    let object = definition.object();
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let version = versions.iter().find(|v| v.str_at(&["name"]) == Some(&resource.version));
    let mut schema = version
        .and_then(|v| v.at(&["schema", "openAPIV3Schema"]))
        .cloned()
        .unwrap_or_else(|| Value::Object(map! { "type" => "object", "x-kubernetes-preserve-unknown-fields" => true }));
    // A root that keeps everything says nothing of its fields in version 2.
    let opaque = dialect == Dialect::V2 && keeps_unknown(&schema);
    if dialect == Dialect::V2 {
        simplify(&mut schema);
    }
    embed(&mut schema, dialect, true);
    if opaque {
        schema = Value::Object(map! { "type" => "object" });
    }
    let kinds = |kind: &str| {
        let kind = map! { "group" => resource.group.as_str(), "version" => resource.version.as_str(), "kind" => kind };
        vec![kind]
    };
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("x-kubernetes-group-version-kind", kinds(&resource.kind));
        if let Some(fields) = version.and_then(|v| v.get("selectableFields")).and_then(Value::as_array) {
            let paths = fields.iter().filter_map(|f| f.str_at(&["jsonPath"]));
            let fields: Vec<Map> = paths.map(|p| map! { "fieldPath" => p.strip_prefix('.').unwrap_or(p) }).collect();
            if !fields.is_empty() {
                schema.insert("x-kubernetes-selectable-fields", fields);
            }
        }
    }
    let items = map! { "type" => "array", "items" => reference(name, dialect) };
    let list = map! {
        "type" => "object",
        "required" => vec!["items"],
        "properties" => map! {
            "apiVersion" => map! { "type" => "string" },
            "kind" => map! { "type" => "string" },
            "metadata" => reference(&format!("{META}ListMeta"), dialect),
            "items" => items,
        },
        "x-kubernetes-group-version-kind" => kinds(&resource.list_kind),
    };
    [(name.to_owned(), schema), (format!("{name}List"), Value::Object(list))]
}

fn reference(name: &str, dialect: Dialect) -> Map {
    match dialect {
        Dialect::V3 => map! { "allOf" => vec![map! { "$ref" => format!("#/components/schemas/{name}") }] },
        Dialect::V2 => map! { "$ref" => format!("#/definitions/{name}") },
    }
}

/// Gives the root, and every embedded resource, the fields that objects have.
fn embed(schema: &mut Value, dialect: Dialect, root: bool) {
    for (key, child) in schema.as_object_mut().into_iter().flat_map(Map::iter_mut) {
        match key {
            "properties" => {
                child.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(|v| embed(v, dialect, false))
            }
            "items" | "additionalProperties" => embed(child, dialect, false),
            _ => {}
        }
    }
    let embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true);
    if (root || embedded)
        && let Some(schema) = schema.as_object_mut()
    {
        let properties = schema.object_entry("properties");
        properties.get_or_insert("apiVersion", || Value::Object(map! { "type" => "string" }));
        properties.get_or_insert("kind", || Value::Object(map! { "type" => "string" }));
        properties.insert("metadata", reference(&format!("{META}ObjectMeta"), dialect));
    }
}

fn keeps_unknown(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true)
}

/// Takes out what version 2 cannot say: junctors, nullable values, fields that are kept without being known, defaults.
fn simplify(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for key in ["oneOf", "anyOf", "allOf", "not", "default"] {
        members.remove(key);
    }
    let flag = |members: &Map, key: &str| members.get(key).and_then(Value::as_bool) == Some(true);
    let nullable = flag(members, "nullable");
    members.remove("nullable");
    if nullable || flag(members, "x-kubernetes-preserve-unknown-fields") {
        for key in ["type", "items", "properties", "additionalProperties"] {
            members.remove(key);
        }
    }
    if flag(members, "x-kubernetes-int-or-string") {
        members.remove("type");
    }
    let optional: Vec<String> = members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(_, p)| p.get("nullable").and_then(Value::as_bool) == Some(true))
        .map(|(name, _)| name.to_owned())
        .collect();
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(|name| !optional.iter().any(|o| o == name)));
        if required.is_empty() {
            members.remove("required");
        }
    }
    for (key, child) in members.iter_mut() {
        match key {
            "properties" => child.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(simplify),
            "items" | "additionalProperties" => simplify(child),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn names_are_reversed_groups() {
        assert_eq!(name("example.com", "v1", "Foo"), "com.example.v1.Foo");
    }

    #[test]
    fn version_2_says_less() {
        let mut schema = json::parse(
            br#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"c":{"type":"string"}}}},"anyOf":[{}]}"#,
        )
        .unwrap();
        simplify(&mut schema);
        assert_eq!(
            json::to_string(&schema),
            r#"{"properties":{"a":{},"b":{"x-kubernetes-preserve-unknown-fields":true}},"required":["b"],"type":"object"}"#
        );
    }
}
