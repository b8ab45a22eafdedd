//! A minimal conversion of structural schemas to types and sizes, for tests; the real one is in the schema crate.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cel::env::TypeProvider;
use cel::estimate::{SizeEstimate, SizeEstimator, Step};
use cel::parse::is_reserved;
use cel::types::Type;
use serde_json::Value;

const REQUEST: u64 = 3 * 1024 * 1024;

/// A type with what cost estimates need to know of it.
#[derive(Debug)]
pub struct DeclType {
    kind: DeclKind,
    pub max_elements: u64,
    pub min_size: u64,
}

#[derive(Debug)]
enum DeclKind {
    Scalar(Type),
    List(Rc<DeclType>),
    Map(Rc<DeclType>),
    Object(BTreeMap<String, Rc<DeclType>>),
}

fn scalar(ty: Type, max_elements: u64, min_size: u64) -> Option<DeclType> {
    Some(DeclType { kind: DeclKind::Scalar(ty), max_elements, min_size })
}

fn bound(schema: &Value, key: &str) -> Option<u64> {
    schema[key].as_i64().map(|bound| u64::try_from(bound).unwrap_or(0))
}

fn flag(schema: &Value, key: &str) -> bool {
    schema[key].as_bool() == Some(true)
}

pub fn is_embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

/// The type of a schema; nothing for one rules cannot see.
pub fn convert(schema: &Value, is_root: bool) -> Option<DeclType> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return scalar(Type::Dyn, REQUEST - 2, 1);
    }
    match schema["type"].as_str()? {
        "array" => {
            let item = convert(schema.get("items")?, is_embedded(&schema["items"]))?;
            let max_elements = bound(schema, "maxItems").unwrap_or((REQUEST - 2) / (item.min_size + 1));
            Some(DeclType { kind: DeclKind::List(Rc::new(item)), max_elements, min_size: 2 })
        }
        "object" if schema["additionalProperties"].is_object() => {
            let values = &schema["additionalProperties"];
            let value = convert(values, is_embedded(values))?;
            let max_elements = bound(schema, "maxProperties").unwrap_or((REQUEST - 2) / (value.min_size + 6));
            Some(DeclType { kind: DeclKind::Map(Rc::new(value)), max_elements, min_size: 2 })
        }
        "object" => Some(convert_object(schema, is_root)),
        "string" => {
            let max_length = bound(schema, "maxLength");
            match schema["format"].as_str() {
                Some("byte") => scalar(Type::Bytes, max_length.unwrap_or(REQUEST - 2), 2),
                Some("duration") => scalar(Type::Duration, 32, 3),
                Some("date") => scalar(Type::Timestamp, 12, 12),
                Some("date-time") => scalar(Type::Timestamp, 32, 21),
                _ => {
                    let longest = schema["enum"]
                        .as_array()
                        .filter(|values| !values.is_empty())
                        .map(|values| values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64);
                    let max = max_length.map(|length| length.saturating_mul(4)).or(longest).unwrap_or(REQUEST - 2);
                    scalar(Type::String, max, 2)
                }
            }
        }
        "boolean" => scalar(Type::Bool, 0, 4),
        "number" => scalar(Type::Double, 0, 1),
        "integer" => scalar(Type::Int, 0, 1),
        _ => None,
    }
}

fn convert_object(schema: &Value, is_root: bool) -> DeclType {
    let mut properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let declared = |pointer: &str| schema.pointer(pointer).is_some_and(|ty| ty == "string");
    let declares_all = declared("/properties/kind/type")
        && declared("/properties/apiVersion/type")
        && declared("/properties/metadata/properties/name/type")
        && declared("/properties/metadata/properties/generateName/type");
    if is_root && !declares_all {
        let string = serde_json::json!({"type": "string"});
        properties.insert("kind".to_owned(), string.clone());
        properties.insert("apiVersion".to_owned(), string.clone());
        let names = serde_json::json!({"name": string, "generateName": string});
        properties.insert("metadata".to_owned(), serde_json::json!({"type": "object", "properties": names}));
    }
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut min_size = 2;
    let mut fields = BTreeMap::new();
    for (name, property) in &properties {
        let Some(field) = convert(property, is_embedded(property)) else { continue };
        if required.contains(&name.as_str()) && property.get("default").is_none_or(Value::is_null) {
            min_size += name.len() as u64 + field.min_size + 4;
        }
        if let Some(escaped) = escape(name) {
            let field = Rc::new(field);
            if is_reserved(name) {
                // They may be written plainly too.
                fields.insert(name.clone(), field.clone());
            }
            fields.insert(escaped, field);
        }
    }
    DeclType { kind: DeclKind::Object(fields), max_elements: 0, min_size }
}

fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '$'))
        || name.contains('$')
    {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

/// The object types below a node with rules, by name.
#[derive(Default)]
pub struct Objects(BTreeMap<String, BTreeMap<String, Type>>);

impl Objects {
    /// The types of a node whose own type has the given name, and the node's type.
    pub fn of(root: &DeclType, name: &str) -> (Objects, Type) {
        let mut objects = Objects::default();
        let ty = objects.declare(root, name);
        (objects, ty)
    }

    fn declare(&mut self, decl: &DeclType, name: &str) -> Type {
        match &decl.kind {
            DeclKind::Scalar(ty) => ty.clone(),
            DeclKind::List(item) => Type::list(self.declare(item, &format!("{name}.@idx"))),
            DeclKind::Map(value) => Type::map(Type::String, self.declare(value, &format!("{name}.@elem"))),
            DeclKind::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(field, decl)| (field.clone(), self.declare(decl, &format!("{name}.{field}"))))
                    .collect();
                self.0.insert(name.to_owned(), fields);
                Type::object(name)
            }
        }
    }
}

impl TypeProvider for Objects {
    fn find_type(&self, name: &str) -> Option<Type> {
        self.0.contains_key(name).then(|| Type::object(name))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        self.0.get(object)?.get(field).cloned()
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        self.0.get(object).into_iter().flat_map(BTreeMap::keys).map(|name| name.as_str().into()).collect()
    }
}

impl SizeEstimator for DeclType {
    fn size(&self, path: &[Step]) -> Option<SizeEstimate> {
        let mut at = self;
        for step in &path[1..] {
            at = match (step, &at.kind) {
                (Step::Items | Step::Values, DeclKind::List(part) | DeclKind::Map(part)) => part,
                (Step::Keys, DeclKind::Map(_)) => return Some(SizeEstimate::at_most(0)),
                (Step::Field(name), DeclKind::Object(fields)) => fields.get(&**name)?,
                _ => return None,
            };
        }
        Some(SizeEstimate::at_most(at.max_elements))
    }
}
