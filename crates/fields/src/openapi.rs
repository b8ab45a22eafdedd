//! Merge schemas from OpenAPI schemas, as upstream's `schemaconv` makes them.

use crate::schema::{Atom, Field, ListKind, ListType, MapType, Scalar, SchemaBuilder, TypeId, TypeSchema};
use compact_str::CompactString;
use object::{Map, Value};
use std::collections::BTreeMap;

/// The schema of a custom resource from the `openAPIV3Schema` of one version of its definition. `apiVersion`, `kind`
/// and `metadata` are typed here and in embedded resources whatever the schema says. `preserve_unknown_fields` is the
/// definition's old field of this name.
///
/// ```
/// use fields::{openapi, typed};
/// let schema = object::json::parse(br#"{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}"#).unwrap();
/// let schema = openapi::crd_schema(Some(&schema), false);
/// let bad = object::json::parse(br#"{"spec":{"a":1}}"#).unwrap();
/// let error = typed::validate(&schema, &bad, typed::Duplicates::Forbid).unwrap_err();
/// assert_eq!(error.to_string(), ".spec.a: expected string, got &value.valueUnstructured{Value:1}");
/// ```
pub fn crd_schema(schema: Option<&Value>, preserve_unknown_fields: bool) -> TypeSchema {
    let mut c = Converter::new(None);
    let root = match schema.and_then(Value::as_object) {
        Some(schema) => {
            let mut atom = c.atom(schema, preserve_unknown_fields);
            c.type_as_object(&mut atom);
            c.builder.add(atom)
        }
        None => {
            let element = c.builder.deduced();
            c.builder.map(MapType::of_elements(element))
        }
    };
    c.builder.build(root)
}

/// The schema of a built-in kind: the definition `root` of an OpenAPI document's `definitions` or
/// `components.schemas`, and all that it refers to. `None` where there is no such definition.
pub fn definitions_schema(definitions: &Map, root: &str) -> Option<TypeSchema> {
    definitions.get(root)?;
    let mut c = Converter::new(Some(definitions));
    let root = c.reference(root, None);
    Some(c.builder.build(root))
}

/// What a new, empty object of a built-in kind has in it besides `apiVersion` and `kind`: upstream creates the Go
/// struct, and every field of it that is written even when empty is there before anybody set it, so that its creator
/// does not own it. Those are the structs held by value (`default: {}`), and all required fields: null where they are
/// lists, maps or pointers. `None` where there is no definition `root`.
pub fn empty_object(definitions: &Map, root: &str) -> Option<Value> {
    Some(empty_struct(definitions, definitions.get(root)?, root, 0))
}

/// Structs cannot hold themselves by value; the limit is for documents that are broken.
const MAX_EMPTY_DEPTH: usize = 32;

fn empty_struct(definitions: &Map, schema: &Value, name: &str, depth: usize) -> Value {
    let mut out = Map::new();
    if name.ends_with(".ObjectMeta") {
        out.insert("creationTimestamp", Value::Null);
    }
    let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        let is_required = required.iter().any(|r| r.as_str() == Some(key));
        let name = reference_of(property);
        match (property.get("default"), name.and_then(|n| definitions.get(n)).zip(name)) {
            (Some(Value::Object(default)), Some((schema, name))) if default.is_empty() && depth < MAX_EMPTY_DEPTH => {
                out.insert(key, empty_struct(definitions, schema, name, depth + 1));
            }
            (Some(default), _) if is_required => {
                out.insert(key, default.clone());
            }
            (None, _) if is_required => {
                out.insert(key, empty_scalar(property));
            }
            _ => {}
        }
    }
    Value::Object(out)
}

fn empty_scalar(schema: &Value) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Value::from(""),
        Some("integer" | "number") => Value::Int(0),
        Some("boolean") => Value::Bool(false),
        _ => Value::Null,
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

struct Converter<'d> {
    builder: SchemaBuilder,
    definitions: Option<&'d Map>,
    /// Converted definitions, by name and by the map type that a reference puts in the place of their own.
    named: BTreeMap<(String, Option<bool>), TypeId>,
    string: TypeId,
    metadata: TypeId,
}

impl<'d> Converter<'d> {
    fn new(definitions: Option<&'d Map>) -> Self {
        let mut builder = SchemaBuilder::new();
        let string = builder.scalar(Scalar::String);
        let metadata = if definitions.is_none() { builder.object_meta() } else { string };
        Converter { builder, definitions, named: BTreeMap::new(), string, metadata }
    }

    /// A type within another one: a reference, or described in place.
    fn ty(&mut self, schema: &Value, preserve: bool) -> TypeId {
        let Some(members) = schema.as_object() else { return self.builder.deduced() };
        if let Some(name) = reference_of(schema).filter(|_| self.definitions.is_some()) {
            return self.reference(name, map_type(members));
        }
        let mut atom = self.atom(members, preserve);
        if self.definitions.is_none() && is_true(members, "x-kubernetes-embedded-resource") {
            self.type_as_object(&mut atom);
        }
        self.builder.add(atom)
    }

    fn reference(&mut self, name: &str, atomic: Option<bool>) -> TypeId {
        let key = (name.to_owned(), atomic);
        if let Some(ty) = self.named.get(&key) {
            return *ty;
        }
        let ty = self.builder.reserve();
        self.named.insert(key, ty);
        if let Some(schema) = self.definitions.and_then(|d| d.get(name)).and_then(Value::as_object) {
            let mut atom = self.atom(schema, false);
            if name == QUANTITY {
                // The older form of the document calls it a string; it may be a number too.
                atom.scalar = Some(Scalar::Untyped);
            }
            if let (Some(map), Some(atomic)) = (&mut atom.map, atomic) {
                map.atomic = atomic;
            }
            self.builder.define(ty, atom);
        }
        ty
    }

    fn atom(&mut self, schema: &Map, preserve: bool) -> Atom {
        let preserve = preserve || is_true(schema, "x-kubernetes-preserve-unknown-fields");
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "" => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, preserve)),
                map: Some(self.map(schema, preserve)),
            },
            "object" => Atom { map: Some(self.map(schema, preserve)), ..Atom::default() },
            "array" => Atom { list: Some(self.list(schema, preserve)), ..Atom::default() },
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            // Formats of definitions are value validations, which upstream strips before it makes a merge schema.
            "string" if self.definitions.is_none() || matches!(format, "" | "byte") => scalar(Scalar::String),
            _ => scalar(Scalar::Untyped),
        }
    }

    fn map(&mut self, schema: &Map, preserve: bool) -> MapType {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields = Vec::with_capacity(properties.map_or(0, Map::len));
        for (name, property) in properties.into_iter().flat_map(Map::iter) {
            let default = property.get("default").filter(|d| !d.is_null()).cloned();
            fields.push(Field { name: name.into(), ty: self.ty(property, preserve), default });
        }
        let element = match schema.get("additionalProperties") {
            None | Some(Value::Null) => (preserve || fields.is_empty()).then(|| self.builder.deduced()),
            Some(Value::Bool(allowed)) => allowed.then(|| self.builder.deduced()),
            Some(schema) => Some(self.ty(schema, preserve)),
        };
        let mut map = MapType::of_fields(fields);
        map.element = element;
        map.atomic = map_type(schema).unwrap_or(false);
        map
    }

    fn list(&mut self, schema: &Map, preserve: bool) -> ListType {
        let element = match schema.get("items") {
            Some(items @ Value::Object(_)) => self.ty(items, preserve),
            _ => self.builder.untyped(),
        };
        ListType { element, kind: list_kind(schema) }
    }

    /// Types what every object has.
    fn type_as_object(&mut self, atom: &mut Atom) {
        if let Some(map) = &mut atom.map {
            for (name, ty) in [("apiVersion", self.string), ("kind", self.string), ("metadata", self.metadata)] {
                map.undeclare(name);
                map.declare(Field { name: name.into(), ty, default: None });
            }
        }
    }
}

/// The definition that a schema refers to, itself or by an `allOf` of one.
fn reference_of(schema: &Value) -> Option<&str> {
    let own = schema.get("$ref").and_then(Value::as_str);
    let all_of = || match schema.get("allOf")?.as_array()? {
        [only] => only.get("$ref")?.as_str(),
        _ => None,
    };
    own.or_else(all_of)?.rsplit('/').next()
}

fn is_true(schema: &Map, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// Whether a map type is atomic; `None` where the schema says nothing.
fn map_type(schema: &Map) -> Option<bool> {
    match schema.get("x-kubernetes-map-type")?.as_str()? {
        "atomic" => Some(true),
        "granular" => Some(false),
        _ => None,
    }
}

/// `x-kubernetes-list-type`, else what strategic merge patches do.
fn list_kind(schema: &Map) -> ListKind {
    if let Some(kind) = schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        let keys = || {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
            keys.iter().filter_map(Value::as_str).map(CompactString::from).collect()
        };
        return match kind {
            "set" => ListKind::Set,
            "map" => ListKind::Map(keys()),
            _ => ListKind::Atomic,
        };
    }
    match schema.get("x-kubernetes-patch-strategy").and_then(Value::as_str) {
        Some("merge" | "merge,retainKeys") => {
            match schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str) {
                Some(key) => ListKind::Map(vec![key.into()]),
                None => ListKind::Set,
            }
        }
        _ => ListKind::Atomic,
    }
}
