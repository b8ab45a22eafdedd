//! Objects of every kind with something in every field.

use kinds::definitions::{Definition, Schema, Type};
use object::{Map, Value};

/// How often a type may stand within itself (schemas of definitions, for example).
const NESTED: usize = 2;

/// An object of a definition in which every field holds something that differs by `seed` and place.
pub fn object(definition: &Definition, api_version: &str, kind: &str, seed: usize) -> Value {
    let mut filler = Filler { count: seed, open: Vec::new() };
    let mut object = filler.structure(definition);
    object.insert("apiVersion", api_version);
    object.insert("kind", kind);
    Value::Object(object)
}

struct Filler {
    count: usize,
    /// The definitions around the value that is made.
    open: Vec<&'static str>,
}

impl Filler {
    fn structure(&mut self, definition: &Definition) -> Map {
        self.open.push(definition.name);
        // Protobuf says the type of the outermost object only, which gets it afterwards.
        let is_kind = !definition.kinds.is_empty();
        let fields = definition.fields.iter().filter(|f| !is_kind || !matches!(f.name, "apiVersion" | "kind"));
        let fields = fields.filter_map(|f| Some((f.name, self.value(&f.schema, f.name)?)));
        let made = fields.collect();
        self.open.pop();
        made
    }

    /// A value of a type; none where the type stands within itself too often.
    fn value(&mut self, schema: &Schema, field: &str) -> Option<Value> {
        self.count += 1;
        let n = self.count;
        Some(match &schema.ty {
            Type::Ref(to) => {
                let name = &to.name();
                let definition = schema.ty.definition()?;
                if self.open.iter().filter(|open| *open == name).count() >= NESTED {
                    return None;
                }
                match (definition.type_name(), definition.fields.is_empty()) {
                    ("MicroTime", _) => format!("2024-01-02T03:04:{:02}.{:06}Z", n % 60, n).into(),
                    ("JSON", _) => [Value::Int(n as i64), "text".into(), Value::Bool(true)][n % 3].clone(),
                    ("JSONSchemaPropsOrBool", _) => Value::Bool(n.is_multiple_of(2)),
                    ("JSONSchemaPropsOrArray", _) => Value::Object(Map::from_iter([("type", "string")])),
                    ("JSONSchemaPropsOrStringArray", _) => Value::Array(vec!["a".into()]),
                    ("FieldsV1", _) => Value::Object(Map::from_iter([("f:x", Value::Object(Map::new()))])),
                    ("CustomResourceSubresourceStatus", _) => Value::Object(Map::new()),
                    // What is inside has to be an object with a type.
                    ("RawExtension", _) => {
                        Value::Object(Map::from_iter([("apiVersion", "example.com/v1"), ("kind", "Any")]))
                    }
                    (_, true) => return self.scalar(&definition.schema.ty, field),
                    (_, false) => Value::Object(self.structure(definition)),
                }
            }
            Type::List(item) => {
                let items: Vec<_> = (0..1 + n % 3).filter_map(|_| self.value(item, field)).collect();
                return (!items.is_empty()).then_some(Value::Array(items));
            }
            Type::Map(item) => {
                let members = (0..1 + n % 2).filter_map(|i| Some((format!("key-{i}"), self.value(item, field)?)));
                let members: Map = members.collect();
                return (!members.is_empty()).then_some(Value::Object(members));
            }
            other => return self.scalar(other, field),
        })
    }

    fn scalar(&mut self, ty: &Type, field: &str) -> Option<Value> {
        let n = self.count;
        Some(match ty {
            Type::String => format!("{field}-{n}").into(),
            Type::Bytes => "Ynl0ZXM=".into(),
            Type::DateTime => format!("2024-01-02T03:04:{:02}Z", n % 60).into(),
            Type::Int32 | Type::Int64 => Value::Int(if n.is_multiple_of(4) { -(n as i64) } else { n as i64 }),
            Type::Double => Value::Float(n as f64 + 0.5),
            Type::Bool => Value::Bool(true),
            Type::IntOrString if n.is_multiple_of(2) => Value::Int(n as i64),
            Type::IntOrString => format!("{}%", n % 100).into(),
            Type::Quantity => format!("{n}m").into(),
            Type::Any => Value::Object(Map::from_iter([("any", "thing")])),
            Type::Object => Value::Object(Map::from_iter([("apiVersion", "example.com/v1"), ("kind", "Any")])),
            Type::List(_) | Type::Map(_) | Type::Ref(_) => return None,
        })
    }
}
