//! The schemas of custom resources as OpenAPI documents show them.

use crate::stack;
use object::{Map, Value, map};

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 2.0, in which much of a schema cannot be said.
    V2,
    /// 3.0
    V3,
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// What a document knows of one version of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The name of the object's schema: `com.example.v1.Foo`.
    pub name: String,
    /// The object's schema.
    pub object: Value,
    /// The name of the list's schema: `com.example.v1.FooList`.
    pub list_name: String,
    /// The list's schema.
    pub list: Value,
}

/// The schemas of the version `version` of a definition; `None` where it has no such version.
pub fn publish(definition: &Value, version: &str, dialect: Dialect) -> Option<Published> {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array)?;
    let described = versions.iter().find(|v| v.str_at(&["name"]) == Some(version))?;
    let text = |path: &[&str]| definition.str_at(path).unwrap_or_default();
    let group = text(&["spec", "group"]);
    let kind = text(&["spec", "names", "kind"]);
    let list_kind = text(&["spec", "names", "listKind"]);
    let publisher = Publisher { dialect };
    let schema = described.at(&["schema", "openAPIV3Schema"]);
    let mut object = publisher.object(schema);
    publisher.describe(&mut object, group, version, kind);
    let selectable = described.get("selectableFields").and_then(Value::as_array).unwrap_or_default();
    if !selectable.is_empty() {
        let fields: Vec<Value> = selectable
            .iter()
            .filter_map(|field| field.str_at(&["jsonPath"]))
            .map(|path| Value::Object(map! { "fieldPath" => path.trim_start_matches('.') }))
            .collect();
        object.insert("x-kubernetes-selectable-fields", Value::Array(fields));
    }
    let reversed: Vec<&str> = group.split('.').rev().collect();
    let name = |kind: &str| format!("{}.{version}.{kind}", reversed.join("."));
    let mut list = publisher.list(&name(kind), kind, list_kind, text(&["spec", "names", "plural"]));
    publisher.describe(&mut list, group, version, list_kind);
    Some(Published {
        name: name(kind),
        object: Value::Object(object),
        list_name: name(list_kind),
        list: Value::Object(list),
    })
}

struct Publisher {
    dialect: Dialect,
}

impl Publisher {
    fn object(&self, schema: Option<&Value>) -> Map {
        let bare = || map! { "type" => "object" };
        let Some(schema) = schema else { return bare() };
        if self.dialect == Dialect::V2 && flag(schema, "x-kubernetes-preserve-unknown-fields") {
            return bare();
        }
        let mut out = stack::with_room(stack::depth(schema), || self.schema(schema));
        let properties = out.object_entry("properties");
        properties.insert("metadata", self.reference(OBJECT_META, METADATA));
        self.type_meta(properties, API_VERSION, KIND);
        out
    }

    fn list(&self, name: &str, kind: &str, list_kind: &str, plural: &str) -> Map {
        let items = format!(
            "List of {plural}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
        );
        let mut properties = map! {
            "items" => map! { "type" => "array", "description" => items, "items" => self.bare_reference(name) },
            "metadata" => self.reference(LIST_META, LIST_METADATA),
        };
        self.type_meta(&mut properties, API_VERSION, KIND);
        map! {
            "type" => "object", "description" => format!("{list_kind} is a list of {kind}"),
            "required" => vec!["items"], "properties" => properties,
        }
    }

    fn describe(&self, schema: &mut Map, group: &str, version: &str, kind: &str) {
        let this = map! { "group" => group, "kind" => kind, "version" => version };
        schema.insert("x-kubernetes-group-version-kind", Value::Array(vec![Value::Object(this)]));
    }

    fn type_meta(&self, properties: &mut Map, api_version: &str, kind: &str) {
        for (key, description) in [("apiVersion", api_version), ("kind", kind)] {
            properties.insert(key, map! { "type" => "string", "description" => description });
        }
    }

    fn bare_reference(&self, name: &str) -> Map {
        let place = if self.dialect == Dialect::V2 { "definitions" } else { "components/schemas" };
        map! { "$ref" => format!("#/{place}/{name}") }
    }

    /// A reference with a description beside it, which in 3.0 has to be wrapped.
    fn reference(&self, name: &str, description: &str) -> Map {
        let mut reference = self.bare_reference(name);
        if self.dialect == Dialect::V2 {
            reference.insert("description", description);
            return reference;
        }
        map! { "description" => description, "allOf" => Value::Array(vec![Value::Object(reference)]) }
    }

    fn schema(&self, schema: &Value) -> Map {
        // What a structural schema does not hold.
        const DROPPED: [&str; 4] = ["externalDocs", "example", "id", "$schema"];
        const JUNCTORS: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
        let members = match schema {
            Value::Object(members) => members,
            _ => return Map::new(),
        };
        let v2 = self.dialect == Dialect::V2;
        let keeps_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
        // Clients of 2.0 cannot cope with fields or items of what has no type, or may hold others.
        let bare = v2 && (flag(schema, "nullable") || keeps_unknown);
        let has_items = schema.get("items").is_some() && !bare;
        let untyped = v2 && (flag(schema, "nullable") || schema.str_at(&["type"]) == Some("array") && !has_items);
        let mut out = Map::new();
        for (key, value) in members.iter() {
            let dropped = DROPPED.contains(&key)
                || v2 && (JUNCTORS.contains(&key) || key == "nullable")
                || bare && matches!(key, "items" | "properties")
                || untyped && key == "type";
            if !dropped {
                out.insert(key, self.keyword(key, value));
            }
        }
        if v2 {
            self.drop_nullable_required(schema, &mut out);
        }
        if flag(schema, "x-kubernetes-embedded-resource") && !(v2 && keeps_unknown) {
            self.embedded(&mut out);
        }
        out
    }

    fn keyword(&self, key: &str, value: &Value) -> Value {
        match (key, value) {
            ("properties", Value::Object(members)) => {
                Value::Object(members.iter().map(|(name, inner)| (name, Value::Object(self.schema(inner)))).collect())
            }
            ("items" | "additionalProperties" | "not", Value::Object(_)) => Value::Object(self.schema(value)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                Value::Array(items.iter().map(|inner| Value::Object(self.schema(inner))).collect())
            }
            _ => value.clone(),
        }
    }

    /// 2.0 knows no null: a property that may be null must not be required.
    fn drop_nullable_required(&self, schema: &Value, out: &mut Map) {
        if schema.get("additionalProperties").is_some_and(|values| flag(values, "nullable")) {
            out.remove("required");
        }
        let nullable = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            schema.at(&["properties", name]).is_some_and(|property| flag(property, "nullable"))
        };
        let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) else { return };
        required.retain(|name| !nullable(name));
        if required.is_empty() {
            out.remove("required");
        }
    }

    fn embedded(&self, out: &mut Map) {
        let properties = out.object_entry("properties");
        self.type_meta(properties, EMBEDDED_API_VERSION, EMBEDDED_KIND);
        properties.insert("metadata", self.reference(OBJECT_META, METADATA));
        let required = out.get_or_insert("required", || Value::Array(Vec::new()));
        if let Some(required) = required.as_array_mut() {
            for key in ["kind", "apiVersion"] {
                if !required.iter().any(|name| name.as_str() == Some(key)) {
                    required.push(Value::from(key));
                }
            }
        }
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn definition() -> Value {
        json::parse(
            br#"{"spec":{"group":"example.com","names":{"kind":"Foo","listKind":"FooList","plural":"foos"},"versions":[{"name":"v1",
            "selectableFields":[{"jsonPath":".spec.a"}],
            "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["a","b"],"properties":{
                "a":{"type":"string","nullable":true,"anyOf":[{"minLength":1}]},"b":{"type":"string"}}}}}}}]}}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_schema_of_3_0_says_all() {
        let published = publish(&definition(), "v1", Dialect::V3).unwrap();
        assert_eq!(
            (published.name.as_str(), published.list_name.as_str()),
            ("com.example.v1.Foo", "com.example.v1.FooList")
        );
        let a = published.object.at(&["properties", "spec", "properties", "a"]).unwrap();
        assert_eq!(json::to_string(a), r#"{"anyOf":[{"minLength":1}],"nullable":true,"type":"string"}"#);
        assert!(published.object.at(&["properties", "metadata", "allOf"]).is_some());
        assert_eq!(
            json::to_string(published.object.get("x-kubernetes-selectable-fields").unwrap()),
            r#"[{"fieldPath":"spec.a"}]"#
        );
    }

    #[test]
    fn a_schema_of_2_0_leaves_out_what_it_cannot_say() {
        let published = publish(&definition(), "v1", Dialect::V2).unwrap();
        let spec = published.object.at(&["properties", "spec"]).unwrap();
        assert_eq!(
            json::to_string(spec),
            r#"{"properties":{"a":{},"b":{"type":"string"}},"required":["b"],"type":"object"}"#
        );
        let publisher = Publisher { dialect: Dialect::V2 };
        for (text, expected) in [
            (
                r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"c":{"type":"string"}}}"#,
                r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#,
            ),
            (
                r#"{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{}}"#,
                r#"{"x-kubernetes-preserve-unknown-fields":true}"#,
            ),
            (r#"{"type":"integer","default":3}"#, r#"{"default":3,"type":"integer"}"#),
        ] {
            let schema = json::parse(text.as_bytes()).unwrap();
            assert_eq!(json::to_string(&Value::Object(publisher.schema(&schema))), expected);
        }
        assert_eq!(
            published.list.str_at(&["properties", "items", "items", "$ref"]),
            Some("#/definitions/com.example.v1.Foo")
        );
    }
}
