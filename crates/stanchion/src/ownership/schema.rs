//! The merge schema of an object: from the cluster's OpenAPI document, or from the built-in kinds.

use crate::cluster::{Cluster, Failure, Found};
use fields::openapi;
use fields::schema::TypeSchema;
use kinds::definitions::{Dialect, definitions};
use object::{Map, Value};

/// The schema that a cluster publishes for a resource.
pub async fn of_cluster(cluster: &Cluster, found: &Found) -> Result<TypeSchema, Failure> {
    let document = cluster.get(&format!("/openapi/v3{}", found.root())).await?;
    let none = Map::new();
    let schemas = document.at(&["components", "schemas"]).and_then(Value::as_object).unwrap_or(&none);
    let is_kind = |schema: &Value| {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).unwrap_or_default();
        kinds.iter().any(|k| {
            let text = |key: &str| k.str_at(&[key]).unwrap_or_default();
            (text("group"), text("version"), text("kind")) == (&*found.group, &*found.version, &*found.kind)
        })
    };
    let name = schemas.iter().find(|(_, schema)| is_kind(schema)).map(|(name, _)| name);
    let schema = name.and_then(|name| openapi::definitions_schema(schemas, name));
    Ok(schema.unwrap_or_else(|| openapi::crd_schema(None, true)))
}

/// The schema of a built-in kind; for others one that takes everything as it comes.
pub fn offline(object: &Value) -> TypeSchema {
    let api_version = object.str_at(&["apiVersion"]).unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    let built_in = kinds::find_kind(group, version, kind).and_then(|(_, version)| {
        let all: Map = definitions().iter().map(|d| (d.name, d.to_openapi(Dialect::V3))).collect();
        openapi::definitions_schema(&all, version.definition)
    });
    built_in.unwrap_or_else(|| openapi::crd_schema(None, true))
}
