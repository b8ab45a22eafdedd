//! CEL types of objects whose schemas are known, for checking expressions that run without them.
//!
//! Source of the rules: `SchemaDeclType` and `PopulateRefs` of `k8s.io/apiserver/pkg/cel`.

use super::Names;
use super::expression::environment;
use super::variables::VariableTypes;
use crate::catalogue::Resource;
use crate::openapi;
use cel::env::{Env, TypeProvider, VariableDecl};
use cel::library::ExpressionSet;
use cel::parse::is_reserved;
use cel::types::Type;
use kinds::definitions::Dialect;
use object::{Map, Value, map};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const REFERENCE: &str = "#/components/schemas/";

/// The types of some kinds' objects, and of all that is in them. An object's type is named after the kind and the path at
/// which it stands.
#[derive(Debug, Default)]
pub(crate) struct SchemaTypes {
    /// The schemas that definitions bring along.
    own: Map,
    /// The object types that were met.
    objects: Mutex<HashMap<Arc<str>, Node>>,
}

/// A schema without a reference at its top, and the references on the way to it.
#[derive(Clone, Debug)]
struct Node {
    schema: Arc<Value>,
    on_the_way: Arc<[String]>,
}

impl SchemaTypes {
    /// Learns the schema of a resource's objects; gives their type.
    pub fn learn(&mut self, resource: &Resource) -> Type {
        let (name, own) = openapi::published(resource);
        for (name, schema) in own {
            self.own.insert(name, schema);
        }
        let reference = Value::Object(map! { "$ref" => format!("{REFERENCE}{name}") });
        let mut node = self.resolve(&reference, &Arc::from([]));
        if !has_metadata(self, &node) {
            node.schema = Arc::new(with_metadata(&node.schema));
        }
        self.name(&node, resource.kind.clone()).unwrap_or(Type::Dyn)
    }

    /// A schema as it stands below others. One that refers to itself ends as an object without fields.
    fn resolve(&self, schema: &Value, on_the_way: &Arc<[String]>) -> Node {
        let Some(name) = reference(schema) else {
            return Node { schema: Arc::new(schema.clone()), on_the_way: on_the_way.clone() };
        };
        let known = || match self.own.get(name) {
            Some(schema) => Some(schema.clone()),
            None => kinds::definitions().get(name).map(|d| d.to_openapi(Dialect::V3)),
        };
        let found = if on_the_way.iter().any(|n| n == name) { None } else { known() };
        let schema = found.unwrap_or_else(|| Value::Object(map! { "type" => "object" }));
        let on_the_way = on_the_way.iter().cloned().chain([name.to_owned()]).collect();
        Node { schema: Arc::new(schema), on_the_way }
    }

    fn below(&self, node: &Node, schema: &Value) -> Node {
        self.resolve(schema, &node.on_the_way)
    }

    /// The type of a schema; nothing where expressions cannot reach. Objects get the name.
    fn name(&self, node: &Node, name: String) -> Option<Type> {
        let schema = &*node.schema;
        let text = |key: &str| schema.str_at(&[key]).unwrap_or_default();
        let set = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
        if text("format") == "int-or-string" || set("x-kubernetes-int-or-string") {
            return Some(Type::Dyn);
        }
        Some(match (text("type"), text("format")) {
            ("array", _) => {
                let items = self.below(node, schema.get("items")?);
                Type::list(self.name(&items, name + ".@idx")?)
            }
            ("object", _) => match schema.get("additionalProperties").filter(|s| s.as_object().is_some()) {
                Some(values) => {
                    let values = self.below(node, values);
                    Type::map(Type::String, self.name(&values, name + ".@elem")?)
                }
                None => {
                    let mut node = node.clone();
                    if set("x-kubernetes-embedded-resource") && !has_metadata(self, &node) {
                        node.schema = Arc::new(with_metadata(&node.schema));
                    }
                    let name: Arc<str> = name.into();
                    self.objects.lock().insert(name.clone(), node);
                    Type::Object(name)
                }
            },
            ("string", "byte") => Type::Bytes,
            ("string", "duration") => Type::Duration,
            ("string", "date" | "date-time") => Type::Timestamp,
            ("string", _) => Type::String,
            ("boolean", _) => Type::Bool,
            ("number", _) => Type::Double,
            ("integer", _) => Type::Int,
            // Quantities, which expressions see as text.
            _ if schema.get("oneOf").is_some() => Type::String,
            _ => return None,
        })
    }

    fn node(&self, name: &str) -> Option<Node> {
        self.objects.lock().get(name).cloned()
    }
}

/// What a schema refers to, itself or by a wrapping that keeps its own words.
fn reference(schema: &Value) -> Option<&str> {
    let direct = |schema: &'_ Value| schema.str_at(&["$ref"]).is_some();
    let all = schema.get("allOf").and_then(Value::as_array).unwrap_or_default();
    let found = if direct(schema) { schema } else { all.iter().find(|s| direct(s))? };
    found.str_at(&["$ref"])?.strip_prefix(REFERENCE)
}

/// Whether a schema says of a resource what is said of every one.
fn has_metadata(types: &SchemaTypes, node: &Node) -> bool {
    let property = |node: &Node, name: &str| {
        let schema = node.schema.at(&["properties", name])?;
        Some(types.below(node, schema))
    };
    let is = |node: Option<Node>, ty: &str| node.is_some_and(|n| n.schema.str_at(&["type"]) == Some(ty));
    let metadata = property(node, "metadata");
    let inner = |name: &str| metadata.as_ref().and_then(|m| property(m, name));
    is(property(node, "kind"), "string")
        && is(property(node, "apiVersion"), "string")
        && is(inner("name"), "string")
        && is(inner("generateName"), "string")
}

fn with_metadata(schema: &Value) -> Value {
    let string = || map! { "type" => "string" };
    let inner = map! { "name" => string(), "generateName" => string() };
    let mut schema = schema.clone();
    for (name, property) in
        [("kind", string()), ("apiVersion", string()), ("metadata", map! { "type" => "object", "properties" => inner })]
    {
        schema.set_at(&["properties", name], property.into());
    }
    schema
}

impl TypeProvider for SchemaTypes {
    fn find_type(&self, name: &str) -> Option<Type> {
        self.node(name).map(|_| Type::object(name))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        let node = self.node(object)?;
        let properties = node.schema.get("properties").and_then(Value::as_object)?;
        let spelled = |name: &str| schema::escape(name).is_some_and(|spelled| spelled == field);
        // A reserved word may be selected as it stands; its type is named by how the property is spelled.
        let direct = properties.get(field).and_then(|property| match schema::escape(field) {
            Some(spelled) if spelled == field || is_reserved(field) => Some((spelled.into_owned(), property)),
            _ => None,
        });
        let (name, property) = direct.or_else(|| {
            let (_, property) = properties.iter().find(|(name, _)| spelled(name))?;
            Some((field.to_owned(), property))
        })?;
        self.name(&self.below(&node, property), format!("{object}.{name}"))
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        let Some(node) = self.node(object) else { return Vec::new() };
        let properties = node.schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(Map::keys).filter_map(schema::escape);
        names.map(|name| Arc::from(&*name)).collect()
    }
}

/// Types of two providers; the first goes before.
struct Both(Arc<SchemaTypes>, Arc<VariableTypes>);

impl TypeProvider for Both {
    fn find_type(&self, name: &str) -> Option<Type> {
        self.0.find_type(name).or_else(|| self.1.find_type(name))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        if self.0.find_type(object).is_some() {
            return self.0.field_type(object, field);
        }
        self.1.field_type(object, field)
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        if self.0.find_type(object).is_some() { self.0.field_names(object) } else { self.1.field_names(object) }
    }
}

/// The environment of a policy's expressions on objects and parameters of known types.
pub(crate) fn typed_environment(
    types: &Arc<SchemaTypes>,
    variables: &Arc<VariableTypes>,
    object: &Type,
    params: Option<&Type>,
) -> Env {
    let names = Names { authorizer: true, params: params.is_some(), variables: true, patches: false };
    let env = environment(ExpressionSet::Stored, names, variables);
    let typed = [("object", Some(object)), ("oldObject", Some(object)), ("params", params)];
    let typed = typed.into_iter().filter_map(|(name, ty)| Some(VariableDecl::new(name, ty?.clone())));
    env.with_variables(typed).with_provider(Arc::new(Both(types.clone(), variables.clone())))
}
