//! Field managers of built-in kinds, from their published definitions.

use super::SharedSchema;
use crate::catalogue::api_version;
use crate::strategy::Part;
use compact_str::CompactString;
use fields::managed::{self, ConvertError, FieldManager, VersionConverter};
use fields::path::{FieldPath, PathElement};
use fields::schema::{Atom, Field, ListKind, ListType, MapType, Scalar, SchemaBuilder, TypeId, TypeSchema};
use fields::set::{FieldFilter, FieldSet, Pattern};
use kinds::definitions::{self, Definition, Type};
use object::Value;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

static SCHEMAS: LazyLock<Mutex<HashMap<&'static str, SharedSchema>>> = LazyLock::new(Mutex::default);

/// The merge schema of a definition, made once.
pub(super) fn schema(definition: &'static str) -> SharedSchema {
    let mut schemas = SCHEMAS.lock();
    schemas.entry(definition).or_insert_with(|| Arc::new(convert(definition))).clone()
}

/// The manager of a part of a kind in one version.
pub(super) fn manager(
    resource: &'static kinds::Resource,
    version: &'static kinds::Version,
    part: Part,
) -> FieldManager {
    let name = |v: &kinds::Version| api_version(resource.group, v.name);
    let kind = managed::Kind {
        group: resource.group.to_owned(),
        version: version.name.to_owned(),
        kind: resource.kind.to_owned(),
    };
    let schemas = resource.versions.iter().map(|v| (name(v), schema(v.definition)));
    let excluding = |parts: kinds::Parts| {
        let paths: Vec<FieldPath> = parts.iter().map(|p| FieldPath::fields(p)).collect();
        FieldFilter::Exclude(FieldSet::of(&paths))
    };
    let filter = match part {
        Part::Main => excluding(resource.strategy.reset),
        Part::Finalize => excluding(&[&["status"]]),
        Part::Other("ephemeralcontainers") => including(&[&["spec", "ephemeralContainers"]]),
        Part::Other("resize") => including(&[
            &["spec", "containers", "*", "resources"],
            &["spec", "containers", "*", "resizePolicy"],
            &["spec", "initContainers", "*", "resources"],
            &["spec", "initContainers", "*", "resizePolicy"],
        ]),
        Part::Other("approval") => excluding(kinds::approval::RESET_BY_APPROVAL),
        _ if resource.plural == "certificatesigningrequests" => excluding(kinds::approval::RESET_BY_STATUS),
        _ => excluding(resource.strategy.reset_status),
    };
    let filters: Vec<(String, FieldFilter)> = resource.versions.iter().map(|v| (name(v), filter.clone())).collect();
    let mut empty = Value::Object(version.definition().map(Definition::zero).unwrap_or_default());
    empty.set_at(&["apiVersion"], Value::from(name(version)));
    empty.set_at(&["kind"], Value::from(resource.kind));
    FieldManager::new(kind, schemas, Arc::new(Converter { resource })).with_filters(filters).with_empty_object(empty)
}

/// Only the fields at these paths; `*` is any item of a list.
fn including(paths: &[&[&str]]) -> FieldFilter {
    let step = |name: &&str| match *name {
        "*" => Pattern::Any,
        name => Pattern::Is(PathElement::field(name)),
    };
    FieldFilter::Include(paths.iter().map(|path| path.iter().map(step).collect()).collect())
}

/// Conversion between the versions of a built-in kind, by way of the stored one.
struct Converter {
    resource: &'static kinds::Resource,
}

impl VersionConverter for Converter {
    fn convert(&self, object: &Value, wanted: &str) -> Result<Value, ConvertError> {
        let version = |name: &str| {
            let found = self.resource.versions.iter().find(|v| api_version(self.resource.group, v.name) == name);
            found.ok_or(ConvertError::MissingVersion)
        };
        let from = version(object.str_at(&["apiVersion"]).unwrap_or_default())?;
        let to = version(wanted)?;
        let mut out = object.clone();
        if let Some(conversion) = &from.convert {
            (conversion.to_stored)(&mut out);
        }
        if let Some(conversion) = &to.convert {
            (conversion.from_stored)(&mut out);
        }
        out.set_at(&["apiVersion"], Value::from(wanted));
        Ok(out)
    }
}

fn convert(root: &'static str) -> TypeSchema {
    let mut c = Conversion { builder: SchemaBuilder::new(), named: HashMap::new() };
    let root = c.reference(root, None);
    c.builder.build(root)
}

struct Conversion {
    builder: SchemaBuilder,
    /// What is converted, by name and by the map type that a field puts in the place of its own.
    named: HashMap<(&'static str, Option<bool>), TypeId>,
}

impl Conversion {
    fn reference(&mut self, name: &'static str, atomic: Option<bool>) -> TypeId {
        if let Some(ty) = self.named.get(&(name, atomic)) {
            return *ty;
        }
        let ty = self.builder.reserve();
        self.named.insert((name, atomic), ty);
        let atom = match definitions::definitions().get(name) {
            Some(definition) => self.definition(definition, atomic),
            None => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
        };
        self.builder.define(ty, atom);
        ty
    }

    fn definition(&mut self, definition: &'static Definition, atomic: Option<bool>) -> Atom {
        if !matches!(definition.schema.ty, Type::Object) {
            return self.atom(&definition.schema);
        }
        let fields: Vec<Field> = definition
            .fields
            .iter()
            .map(|f| Field { name: f.name.into(), ty: self.ty(&f.schema), default: f.schema.default() })
            .collect();
        let element = fields.is_empty().then(|| self.builder.deduced());
        let mut map = MapType::of_fields(fields);
        map.element = element;
        map.atomic = atomic.unwrap_or(definition.schema.map_type == "atomic");
        map_atom(map)
    }

    fn ty(&mut self, schema: &'static definitions::Schema) -> TypeId {
        if let Type::Ref(to) = &schema.ty {
            let atomic = match schema.map_type {
                "atomic" => Some(true),
                "granular" => Some(false),
                _ => None,
            };
            return self.reference(to.name(), atomic);
        }
        let atom = self.atom(schema);
        self.builder.add(atom)
    }

    fn atom(&mut self, schema: &'static definitions::Schema) -> Atom {
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        match &schema.ty {
            Type::String | Type::Bytes => scalar(Scalar::String),
            Type::Int32 | Type::Int64 | Type::Double => scalar(Scalar::Numeric),
            Type::Bool => scalar(Scalar::Boolean),
            Type::DateTime | Type::IntOrString | Type::Quantity => scalar(Scalar::Untyped),
            Type::Any => {
                let element = self.builder.deduced();
                Atom {
                    scalar: Some(Scalar::Untyped),
                    list: Some(ListType { element: self.builder.untyped(), kind: ListKind::Atomic }),
                    map: Some(MapType::of_elements(element)),
                }
            }
            Type::Object | Type::Map(_) => {
                let element = match &schema.ty {
                    Type::Map(item) => self.ty(item),
                    _ => self.builder.deduced(),
                };
                let mut map = MapType::of_elements(element);
                map.atomic = schema.map_type == "atomic";
                map_atom(map)
            }
            Type::List(item) => {
                let element = self.ty(item);
                Atom { list: Some(ListType { element, kind: list_kind(schema) }), ..Atom::default() }
            }
            // Definitions that stand for another have no content of their own.
            Type::Ref(to) => map_atom(MapType::of_elements(self.reference(to.name(), None))),
        }
    }
}

fn map_atom(map: MapType) -> Atom {
    Atom { map: Some(map), ..Atom::default() }
}

/// The published list type, else what strategic merge patches do.
fn list_kind(schema: &definitions::Schema) -> ListKind {
    match schema.list_type {
        Some(definitions::ListType::Atomic) => ListKind::Atomic,
        Some(definitions::ListType::Set) => ListKind::Set,
        Some(definitions::ListType::Map) => ListKind::Map(schema.list_map_keys().map(CompactString::from).collect()),
        None if schema.patch_strategy.starts_with("merge") => match schema.patch_merge_key {
            "" => ListKind::Set,
            key => ListKind::Map(vec![key.into()]),
        },
        None => ListKind::Atomic,
    }
}
