//! The published definitions of the built-in types: fields, types, list and map types, merge keys, defaults.
//!
//! The table is a text of one line a field (`definitions.txt`, made by `examples/definitions.rs`), read once when the
//! first definition is asked for; names and attributes are slices of that text, so that reading it costs well under a
//! millisecond and few allocations.

mod openapi;

use object::{Map, Value, json};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub use openapi::Dialect;

static TEXT: &str = include_str!("definitions.txt");
static TABLE: OnceLock<Definitions> = OnceLock::new();

/// All definitions, sorted by name.
pub fn definitions() -> &'static Definitions {
    TABLE.get_or_init(|| Definitions::read(TEXT))
}

/// The table of definitions.
#[derive(Debug)]
pub struct Definitions {
    /// Sorted by name.
    table: Vec<Definition>,
    /// Where in the table a kind is.
    by_kind: HashMap<GroupVersionKind<'static>, usize>,
}

impl Definitions {
    /// The definition of a name such as `io.k8s.api.core.v1.Pod`.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.table.binary_search_by(|d| d.name.cmp(name)).ok().and_then(|i| self.table.get(i))
    }

    /// The definition that a kind is published under. Kinds that every group has (`DeleteOptions`, `WatchEvent`)
    /// are found by any of their groups.
    pub fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Definition> {
        let place = self.by_kind.get(&GroupVersionKind { group, version, kind })?;
        self.table.get(*place)
    }

    /// All definitions in order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Definition> {
        self.table.iter()
    }

    fn read(text: &'static str) -> Self {
        let mut table: Vec<Definition> = Vec::with_capacity(520);
        for line in text.lines() {
            match line.strip_prefix(' ') {
                None => table.push(Definition::read(line)),
                Some(line) => {
                    if let (Some(definition), Some(field)) = (table.last_mut(), Field::read(line)) {
                        definition.fields.push(field);
                    }
                }
            }
        }
        for definition in &mut table {
            let required = definition.required;
            for field in &mut definition.fields {
                field.settle(required.split(',').any(|r| r == field.name));
            }
        }
        table.sort_by_key(|d| d.name);
        let mut by_kind = HashMap::new();
        for (place, definition) in table.iter().enumerate() {
            for kind in definition.kinds.iter().filter(|k| definition.name.ends_with(k.kind)) {
                by_kind.entry(*kind).or_insert(place);
            }
        }
        Definitions { table, by_kind }
    }
}

/// A group, a version and a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupVersionKind<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// One published type.
#[derive(Debug)]
pub struct Definition {
    /// The name, for example `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// What it is; [`Type::Object`] for a structure with [`Definition::fields`] and for one without a schema.
    pub schema: Schema,
    /// The fields of a structure in order of their names.
    pub fields: Vec<Field>,
    /// The kinds that are published as this.
    pub kinds: Vec<GroupVersionKind<'static>>,
    /// The `x-kubernetes-unions` entry as JSON; empty where there is none.
    pub union: &'static str,
    required: &'static str,
}

impl Definition {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|f| f.name.cmp(name)).ok().and_then(|i| self.fields.get(i))
    }

    /// Whether this is a structure, be it without fields, and not a scalar or what reads itself.
    pub fn is_structure(&self) -> bool {
        !self.fields.is_empty() || (matches!(self.schema.ty, Type::Object) && !is_scalar(self.name))
    }

    /// The required fields in the order in which they are published.
    pub fn required(&self) -> impl Iterator<Item = &'static str> {
        self.required.split(',').filter(|r| !r.is_empty())
    }

    /// Whether only kinds that have to be switched on ([`crate::optional`]) lead to it.
    pub fn is_optional(&self) -> bool {
        self.name.contains(".v1alpha1.")
    }

    /// The name of the Go type: the last part of [`Definition::name`].
    pub fn type_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The name of the Go type with its package as Go's error texts print it: `v1.PodSpec`.
    pub fn go_name(&self) -> &'static str {
        let dot = self.name.rfind('.').and_then(|last| self.name.get(..last)?.rfind('.'));
        dot.and_then(|dot| self.name.get(dot + 1..)).unwrap_or(self.name)
    }

    /// What Go writes for the empty value: the fields that are written even when empty.
    pub fn zero(&self) -> Map {
        self.fields.iter().filter_map(|f| Some((f.name, f.zero()?))).collect()
    }

    fn read(line: &'static str) -> Self {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let typed = rest.split(' ').next().is_some_and(|first| !first.is_empty() && !first.contains('='));
        let text = if typed { rest } else { "" };
        let mut definition = Definition {
            name,
            schema: Schema::new(Type::read(text.split(' ').next().unwrap_or_default())),
            fields: Vec::new(),
            kinds: Vec::new(),
            union: "",
            required: "",
        };
        for attribute in rest.split(' ') {
            match attribute.split_once('=') {
                Some(("required", v)) => definition.required = v,
                Some(("union", v)) => definition.union = v,
                Some(("kind", v)) => {
                    let mut parts = v.splitn(3, '/');
                    let mut part = || parts.next().unwrap_or_default();
                    definition.kinds.push(GroupVersionKind { group: part(), version: part(), kind: part() });
                }
                Some((key, v)) => definition.schema.attribute(key, v),
                None => {}
            }
        }
        definition
    }
}

/// A field of a structure.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub schema: Schema,
    /// Whether absent and zero differ (a pointer in Go).
    pub pointer: bool,
    /// Whether it is left out when empty (`omitempty` in Go).
    pub omit_empty: bool,
    /// The name of its type in Go where that is a type of its own, `v1.PullPolicy`; empty otherwise.
    pub go_type: &'static str,
}

impl Field {
    fn read(line: &'static str) -> Option<Self> {
        // The values are the rest of the line, because some hold spaces.
        let (line, values) = line.split_once(" enum=").map_or((line, None), |(line, values)| (line, Some(values)));
        let mut words = line.split(' ');
        let mut field = Field {
            name: words.next()?,
            schema: Schema::new(Type::read(words.next()?)),
            pointer: false,
            omit_empty: false,
            go_type: "",
        };
        let mut by_value = false;
        let mut kept = None;
        for word in words {
            match word {
                "*" => field.pointer = true,
                "value" => by_value = true,
                "keep" => kept = Some(true),
                "omit" => kept = Some(false),
                _ => match word.split_once('=') {
                    Some(("go", v)) => field.go_type = v,
                    Some((key, v)) => field.schema.attribute(key, v),
                    None => {}
                },
            }
        }
        if let Some(values) = values {
            field.schema.attribute("enum", values);
        }
        // Until the list of required fields is known, `omit_empty` says what the facts say: settled by `settle`.
        field.omit_empty = kept == Some(false);
        field.schema.by_value = by_value;
        field.schema.kept = kept == Some(true);
        Some(field)
    }

    /// Completes what the text leaves to the rule, see `generate/facts.txt`.
    fn settle(&mut self, required: bool) {
        let written = (required && !self.omit_empty) || self.schema.kept;
        self.omit_empty = !written;
        let structure = matches!(&self.schema.ty, Type::Ref(to) if !is_scalar(to.name));
        if structure {
            self.schema.by_value |= required && !self.pointer;
            self.pointer = !self.schema.by_value;
        }
        self.schema.published_zero = if structure { self.schema.by_value } else { written && !self.pointer };
    }

    /// What Go writes for the empty value, or nothing if it writes nothing.
    pub fn zero(&self) -> Option<Value> {
        if self.pointer {
            return (!self.omit_empty).then_some(Value::Null);
        }
        match &self.schema.ty {
            Type::Ref(to) => {
                let definition = to.definition()?;
                match definition.schema.ty {
                    Type::Object if !definition.fields.is_empty() || self.schema.by_value => {
                        Some(Value::Object(definition.zero()))
                    }
                    // Structures that marshal themselves are never empty for omitempty.
                    Type::Quantity => Some("0".into()),
                    Type::IntOrString => Some(Value::Int(0)),
                    Type::DateTime => Some(Value::Null),
                    _ => Some(Value::Null),
                }
            }
            _ if self.omit_empty => None,
            Type::String => Some("".into()),
            Type::Int32 | Type::Int64 | Type::Double => Some(Value::Int(0)),
            Type::Bool => Some(Value::Bool(false)),
            _ => Some(Value::Null),
        }
    }
}

/// Whether the definition of this name stands for a scalar or for raw JSON, not for a structure with fields.
fn is_scalar(name: &str) -> bool {
    const SCALARS: [&str; 10] = [
        "Quantity",
        "Time",
        "MicroTime",
        "RawExtension",
        "IntOrString",
        "FieldsV1",
        "JSON",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrStringArray",
    ];
    name.rsplit('.').next().is_some_and(|last| SCALARS.contains(&last))
}

/// The shape of a value.
#[derive(Clone, Debug)]
pub enum Type {
    /// Anything.
    Any,
    /// An object without a schema; the type of structures too.
    Object,
    /// A string.
    String,
    /// Bytes, in base64.
    Bytes,
    /// A time (RFC 3339).
    DateTime,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A number.
    Double,
    /// A boolean.
    Bool,
    /// An integer or a string.
    IntOrString,
    /// A quantity: a number with a unit.
    Quantity,
    /// A list of items.
    List(Box<Schema>),
    /// A map from strings to values.
    Map(Box<Schema>),
    /// Another definition.
    Ref(Reference),
}

/// A definition, by its name.
#[derive(Debug)]
pub struct Reference {
    name: &'static str,
    /// One more than its place in the table, once it was looked up: every value of a request asks for it.
    place: AtomicU32,
}

impl Reference {
    /// Names a definition.
    fn new(name: &'static str) -> Self {
        Reference { name, place: AtomicU32::new(0) }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The definition.
    pub fn definition(&self) -> Option<&'static Definition> {
        let all = definitions();
        // No more is read than the number itself, which is always the same.
        let known = self.place.load(Ordering::Relaxed);
        if known > 0 {
            return all.table.get(known as usize - 1);
        }
        let place = all.table.binary_search_by(|d| d.name.cmp(self.name)).ok()?;
        self.place.store(u32::try_from(place + 1).unwrap_or(0), Ordering::Relaxed);
        all.table.get(place)
    }
}

impl Clone for Reference {
    fn clone(&self) -> Self {
        Reference::new(self.name)
    }
}

impl Type {
    fn read(text: &'static str) -> Self {
        let inner = || text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        match text {
            "" | "object" => Type::Object,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "date-time" => Type::DateTime,
            "int32" => Type::Int32,
            "int64" | "integer" => Type::Int64,
            "double" => Type::Double,
            "bool" => Type::Bool,
            "int-or-string" => Type::IntOrString,
            "quantity" => Type::Quantity,
            _ if text.starts_with('@') => Type::Ref(Reference::new(text.get(1..).unwrap_or_default())),
            _ if text.starts_with('[') => Type::List(Box::new(Schema::inner(Type::read(inner())))),
            _ if text.starts_with('{') => Type::Map(Box::new(Schema::inner(Type::read(inner())))),
            _ => Type::Any,
        }
    }

    /// The definition referred to, if this is a reference.
    pub fn definition(&self) -> Option<&'static Definition> {
        match self {
            Type::Ref(to) => to.definition(),
            _ => None,
        }
    }
}

/// How the items of a list belong together (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// A set of scalars.
    Set,
    /// Items told apart by [`Schema::list_map_keys`].
    Map,
}

/// A type with what is published about it.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The type.
    pub ty: Type,
    /// `x-kubernetes-list-type`, where given.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-map-type`, `atomic` or `granular`; empty where it is not given.
    pub map_type: &'static str,
    /// `x-kubernetes-patch-merge-key`; empty where there is none.
    pub patch_merge_key: &'static str,
    /// `x-kubernetes-patch-strategy`, for example `merge,retainKeys`; empty where there is none.
    pub patch_strategy: &'static str,
    keys: &'static str,
    values: Option<&'static str>,
    default: &'static str,
    published_zero: bool,
    by_value: bool,
    kept: bool,
}

impl Schema {
    fn new(ty: Type) -> Self {
        Schema {
            ty,
            list_type: None,
            map_type: "",
            patch_merge_key: "",
            patch_strategy: "",
            keys: "",
            values: None,
            default: "",
            published_zero: false,
            by_value: false,
            kept: false,
        }
    }

    /// The schema of an item or a map's value, which are held by value.
    fn inner(ty: Type) -> Self {
        let published_zero = match &ty {
            Type::Ref(to) => !is_scalar(to.name),
            Type::Bytes | Type::List(_) | Type::Map(_) => false,
            _ => true,
        };
        Schema { by_value: true, published_zero, ..Schema::new(ty) }
    }

    fn attribute(&mut self, key: &str, value: &'static str) {
        match key {
            "list" => {
                self.list_type = match value {
                    "atomic" => Some(ListType::Atomic),
                    "set" => Some(ListType::Set),
                    "map" => Some(ListType::Map),
                    _ => None,
                }
            }
            "map" => self.map_type = value,
            "merge" => self.patch_merge_key = value,
            "strategy" => self.patch_strategy = value,
            "keys" => self.keys = value,
            "enum" => match &mut self.ty {
                Type::List(item) | Type::Map(item) => item.values = Some(value),
                _ => self.values = Some(value),
            },
            "" => self.default = value,
            _ => {}
        }
    }

    /// `x-kubernetes-list-map-keys` in the order given.
    pub fn list_map_keys(&self) -> impl Iterator<Item = &'static str> {
        self.keys.split(',').filter(|k| !k.is_empty())
    }

    /// The values allowed, where they are published.
    pub fn enum_values(&self) -> Option<impl Iterator<Item = &'static str>> {
        self.values.map(|v| v.split('|'))
    }

    /// The published default: the one declared, or the zero value of a field that is always written.
    pub fn default(&self) -> Option<Value> {
        if !self.default.is_empty() {
            return json::parse(self.default.as_bytes()).ok();
        }
        if !self.published_zero {
            return None;
        }
        match &self.ty {
            Type::String => Some("".into()),
            Type::Int32 | Type::Int64 | Type::Double => Some(Value::Int(0)),
            Type::Bool => Some(Value::Bool(false)),
            Type::Ref(to) if !is_scalar(to.name) => Some(Value::Object(Map::new())),
            _ => None,
        }
    }

    /// The default that the declaration gives, apart from the zero value: `TCP` for a port's protocol.
    pub fn declared_default(&self) -> Option<Value> {
        if self.default.is_empty() { None } else { json::parse(self.default.as_bytes()).ok() }
    }
}

#[cfg(test)]
mod tests;
