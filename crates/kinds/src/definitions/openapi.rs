//! Definitions as OpenAPI publishes them.

use super::{Definition, ListType, Schema, Type};
use object::{Map, Value, json, map};

/// Which OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Version 2 (Swagger): no defaults, one type each.
    V2,
    /// Version 3.
    V3,
}

impl Definition {
    /// The schema that OpenAPI documents carry under this definition's name, without sentences.
    pub fn to_openapi(&self, dialect: Dialect) -> Value {
        let mut out = self.schema.to_openapi(dialect);
        if !self.fields.is_empty() {
            let properties: Map = self.fields.iter().map(|f| (f.name, f.schema.to_openapi(dialect))).collect();
            out.insert("properties", properties);
        }
        let required: Vec<&str> = self.required().collect();
        if !required.is_empty() {
            out.insert("required", required);
        }
        if !self.kinds.is_empty() {
            let kinds =
                self.kinds.iter().map(|k| map! { "group" => k.group, "version" => k.version, "kind" => k.kind });
            out.insert("x-kubernetes-group-version-kind", kinds.collect::<Vec<Map>>());
        }
        if let Ok(union) = json::parse(self.union.as_bytes()) {
            out.insert("x-kubernetes-unions", Value::Array(vec![union]));
        }
        Value::Object(out)
    }

    /// Collects the names of the definitions that this one refers to.
    pub fn references(&self, out: &mut Vec<&'static str>) {
        self.schema.references(out);
        self.fields.iter().for_each(|f| f.schema.references(out));
    }
}

impl Schema {
    fn references(&self, out: &mut Vec<&'static str>) {
        match &self.ty {
            Type::Ref(to) => out.push(to.name()),
            Type::List(inner) | Type::Map(inner) => inner.references(out),
            _ => {}
        }
    }

    fn to_openapi(&self, dialect: Dialect) -> Map {
        let v3 = dialect == Dialect::V3;
        let one_of = |types: [&str; 2]| types.iter().map(|t| map! { "type" => *t }).collect::<Vec<Map>>();
        let typed = |t: &str, format: &str| map! { "type" => t, "format" => format };
        let mut out = match &self.ty {
            Type::Any => Map::new(),
            Type::Object => map! { "type" => "object" },
            Type::String => map! { "type" => "string" },
            Type::Bytes => typed("string", "byte"),
            Type::DateTime => typed("string", "date-time"),
            Type::Int32 => typed("integer", "int32"),
            Type::Int64 => typed("integer", "int64"),
            Type::Double => typed("number", "double"),
            Type::Bool => map! { "type" => "boolean" },
            Type::IntOrString if v3 => map! { "format" => "int-or-string", "oneOf" => one_of(["integer", "string"]) },
            Type::IntOrString => typed("string", "int-or-string"),
            Type::Quantity if v3 => map! { "oneOf" => one_of(["string", "number"]) },
            Type::Quantity => map! { "type" => "string" },
            Type::List(item) => map! { "type" => "array", "items" => item.to_openapi(dialect) },
            Type::Map(value) => map! { "type" => "object", "additionalProperties" => value.to_openapi(dialect) },
            Type::Ref(to) if v3 => {
                map! { "allOf" => vec![map! { "$ref" => format!("#/components/schemas/{}", to.name()) }] }
            }
            Type::Ref(to) => map! { "$ref" => format!("#/definitions/{}", to.name()) },
        };
        if v3 && let Some(default) = self.default() {
            out.insert("default", default);
        }
        if let Some(values) = self.enum_values() {
            out.insert("enum", values.collect::<Vec<_>>());
        }
        let list_type = match self.list_type {
            Some(ListType::Atomic) => "atomic",
            Some(ListType::Set) => "set",
            Some(ListType::Map) => "map",
            None => "",
        };
        let keys: Vec<&str> = self.list_map_keys().collect();
        if !keys.is_empty() {
            out.insert("x-kubernetes-list-map-keys", keys);
        }
        for (key, value) in [
            ("x-kubernetes-list-type", list_type),
            ("x-kubernetes-map-type", self.map_type),
            ("x-kubernetes-patch-merge-key", self.patch_merge_key),
            ("x-kubernetes-patch-strategy", self.patch_strategy),
        ] {
            if !value.is_empty() {
                out.insert(key, value);
            }
        }
        out
    }
}
