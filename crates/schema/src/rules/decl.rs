//! The CEL types of a schema, with the sizes that estimates assume.

use super::MAX_REQUEST;
use super::names::escape;
use crate::structural::{Additional, Node, Type as SchemaType};
use cel::env::TypeProvider;
use cel::estimate::{SizeEstimate, SizeEstimator, Step};
use cel::parse::is_reserved;
use cel::types::Type;
use object::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A type of a schema's part. Parts are shared.
#[derive(Debug)]
pub(crate) struct Decl {
    shape: Shape,
    /// The most elements, code points or bytes that a value can have. Zero for other scalars.
    max: u64,
    /// Whether the schema says so, and not only the size of a request.
    bounded: bool,
    /// The fewest bytes that a value takes in a request.
    pub(crate) min_bytes: u64,
}

#[derive(Debug)]
enum Shape {
    Simple(Type),
    List(Arc<Decl>),
    Map(Arc<Decl>),
    /// By the names that expressions use, sorted.
    Object(Vec<(Box<str>, Arc<Decl>)>),
}

/// The types of all nodes of a schema, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Decls(HashMap<usize, Option<Arc<Decl>>>);

impl Decls {
    /// Declares a whole schema.
    pub(crate) fn new(root: &Node) -> Self {
        let mut decls = Decls::default();
        decls.declare(root);
        decls
    }

    /// The type of a node; `None` where it, or a list or map around it, has none.
    pub(crate) fn get(&self, node: &Node) -> Option<&Arc<Decl>> {
        self.0.get(&address(node))?.as_ref()
    }

    fn declare(&mut self, node: &Node) -> Option<Arc<Decl>> {
        let decl = self.make(node).map(Arc::new);
        self.0.insert(address(node), decl.clone());
        if decl.is_some() {
            self.declare_strays(node);
        }
        decl
    }

    /// Declares what the schema has below a node whose type has nothing below it: it may have rules all the same.
    fn declare_strays(&mut self, node: &Node) {
        let typ = node.typ().filter(|_| !node.int_or_string());
        if typ != Some(SchemaType::Array) {
            node.items().map(|items| self.declare(items));
        }
        if typ != Some(SchemaType::Object) {
            let below = node.properties().map(|(_, property)| property).chain(node.additional_schema());
            below.for_each(|node| {
                self.declare(node);
            });
        }
    }

    fn make(&mut self, node: &Node) -> Option<Decl> {
        if node.int_or_string() {
            return Some(simple(Type::Dyn, MAX_REQUEST - 2, 1));
        }
        match node.typ()? {
            SchemaType::Array => {
                let item = self.declare(node.items()?)?;
                let limit = at_most(node.max_items());
                let max = limit.unwrap_or((MAX_REQUEST - 2) / (item.min_bytes + 1));
                Some(Decl { shape: Shape::List(item), max, bounded: limit.is_some(), min_bytes: 2 })
            }
            SchemaType::Object => match node.additional() {
                Additional::Schema(schema) => {
                    let value = self.declare(schema)?;
                    let limit = at_most(node.max_properties());
                    let max = limit.unwrap_or((MAX_REQUEST - 2) / (value.min_bytes + 6));
                    Some(Decl { shape: Shape::Map(value), max, bounded: limit.is_some(), min_bytes: 2 })
                }
                _ => Some(self.object(node)),
            },
            SchemaType::String => Some(string(node)),
            SchemaType::Boolean => Some(simple(Type::Bool, 0, 4)),
            SchemaType::Number => Some(simple(Type::Double, 0, 1)),
            SchemaType::Integer => Some(simple(Type::Int, 0, 1)),
        }
    }

    fn object(&mut self, node: &Node) -> Decl {
        let implied = node.is_resource() && !declares_meta(node);
        let mut fields: Vec<(Box<str>, Arc<Decl>)> = Vec::with_capacity(node.properties().len());
        let mut min_bytes = 2;
        let mut add = |name: &str, decl: Arc<Decl>, counts: bool| {
            if counts {
                min_bytes += name.len() as u64 + decl.min_bytes + 4;
            }
            if let Some(name) = escape(name) {
                fields.push((Box::from(&*name), decl));
            }
        };
        let required = |name: &str| node.required().iter().any(|r| r == name);
        for (name, property) in node.properties() {
            // Nodes below are declared even where a type of a resource takes their place.
            let decl = self.declare(property);
            if implied && matches!(name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            if let Some(decl) = decl {
                add(name, decl, required(name) && property.default_value().is_none());
            }
        }
        if implied {
            for name in ["apiVersion", "kind", "metadata"] {
                let decl = if name == "metadata" { &META } else { &STRING };
                add(name, (*decl).clone(), required(name));
            }
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Decl { shape: Shape::Object(fields), max: 0, bounded: true, min_bytes }
    }
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node) as usize
}

static STRING: LazyLock<Arc<Decl>> = LazyLock::new(|| Arc::new(simple(Type::String, MAX_REQUEST - 2, 2)));

static META: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let fields = vec![("generateName".into(), STRING.clone()), ("name".into(), STRING.clone())];
    Arc::new(Decl { shape: Shape::Object(fields), max: 0, bounded: true, min_bytes: 2 })
});

/// Whether a resource's schema says all that is said of every resource. Otherwise its `apiVersion`, `kind` and
/// `metadata` do not count.
pub(super) fn declares_meta(node: &Node) -> bool {
    let is = |node: Option<&Node>, ty| node.is_some_and(|n| n.typ() == Some(ty));
    let metadata = node.property("metadata");
    let inner = |name: &str| metadata.and_then(|m| m.property(name));
    is(node.property("kind"), SchemaType::String)
        && is(node.property("apiVersion"), SchemaType::String)
        && is(metadata, SchemaType::Object)
        && is(inner("name"), SchemaType::String)
        && is(inner("generateName"), SchemaType::String)
}

fn simple(ty: Type, max: u64, min_bytes: u64) -> Decl {
    Decl { shape: Shape::Simple(ty), max, bounded: max < MAX_REQUEST - 2, min_bytes }
}

fn at_most(limit: Option<i64>) -> Option<u64> {
    limit.map(|n| u64::try_from(n).unwrap_or(0))
}

fn string(node: &Node) -> Decl {
    let max_length = at_most(node.max_length());
    match node.format() {
        Some("byte") => simple(Type::Bytes, max_length.unwrap_or(MAX_REQUEST - 2), 2),
        Some("duration") => simple(Type::Duration, 32, 3),
        Some("date") => simple(Type::Timestamp, 12, 12),
        Some("date-time") => simple(Type::Timestamp, 32, 21),
        _ => {
            let longest = |values: &[Value]| values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0);
            let max = match (max_length, node.enum_values()) {
                (Some(n), _) => n.saturating_mul(4),
                (None, Some(values)) if !values.is_empty() => longest(values) as u64,
                _ => MAX_REQUEST - 2,
            };
            simple(Type::String, max, 2)
        }
    }
}

/// The types that one rule sees: those reachable from the type of `self`.
pub(super) struct Types {
    root: Type,
    /// The objects that were met, by the names that they got.
    objects: Mutex<HashMap<Arc<str>, Arc<Decl>>>,
}

impl Types {
    /// The name of the root's type carries a number; upstream's is the time of compilation.
    pub(super) fn new(decl: &Arc<Decl>) -> Self {
        let mut objects = HashMap::new();
        let root = name_type(decl, "selfType1".to_owned(), &mut objects);
        Types { root, objects: Mutex::new(objects) }
    }

    /// The type of `self`.
    pub(super) fn root(&self) -> &Type {
        &self.root
    }
}

/// The CEL type of a declaration. Objects get the name of the place where they stand.
fn name_type(decl: &Arc<Decl>, name: String, objects: &mut HashMap<Arc<str>, Arc<Decl>>) -> Type {
    match &decl.shape {
        Shape::Simple(ty) => ty.clone(),
        Shape::List(item) => Type::list(name_type(item, name + ".@idx", objects)),
        Shape::Map(value) => Type::map(Type::String, name_type(value, name + ".@elem", objects)),
        Shape::Object(_) => {
            let name: Arc<str> = name.into();
            objects.insert(name.clone(), decl.clone());
            Type::Object(name)
        }
    }
}

impl TypeProvider for Types {
    fn find_type(&self, name: &str) -> Option<Type> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get_key_value(name).map(|(name, _)| Type::Object(name.clone()))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let decl = objects.get(object)?.clone();
        // A reserved word may be selected as it stands; its type is named by how the property is spelled.
        let (spelled, decl) = match decl.field(field) {
            Some(decl) => (field.to_owned(), decl.clone()),
            None if is_reserved(field) => {
                let spelled = format!("__{field}__");
                let decl = decl.field(&spelled)?.clone();
                (spelled, decl)
            }
            None => return None,
        };
        Some(name_type(&decl, format!("{object}.{spelled}"), &mut objects))
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        match objects.get(object).map(|decl| &decl.shape) {
            Some(Shape::Object(fields)) => fields.iter().map(|(name, _)| Arc::from(&**name)).collect(),
            _ => Vec::new(),
        }
    }
}

impl Decl {
    fn field(&self, name: &str) -> Option<&Arc<Decl>> {
        let Shape::Object(fields) = &self.shape else { return None };
        let at = fields.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        fields.get(at).map(|(_, decl)| decl)
    }
}

impl Decl {
    /// What stands at a path, whose first step is a variable.
    pub(super) fn walk(&self, path: &[Step]) -> Option<&Decl> {
        let mut at = self;
        for step in path.get(1..)? {
            at = match (step, &at.shape) {
                (Step::Items | Step::Values, Shape::List(inner) | Shape::Map(inner)) => inner,
                // The type of keys is one for all maps, and says nothing of sizes.
                (Step::Keys, Shape::Map(_)) => &KEY,
                (Step::Field(name), Shape::Object(_)) => at.field(name)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// The greatest size.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Whether the schema bounds the size.
    pub(super) fn is_bounded(&self) -> bool {
        self.bounded
    }

    /// The keyword that bounds the size, and how much one of it adds to the size.
    pub(super) fn keyword(&self) -> Option<(&'static str, u64)> {
        match &self.shape {
            Shape::List(_) => Some(("maxItems", 1)),
            Shape::Map(_) => Some(("maxProperties", 1)),
            Shape::Simple(Type::String) if self.max > 0 => Some(("maxLength", 4)),
            Shape::Simple(Type::Bytes) => Some(("maxLength", 1)),
            _ => None,
        }
    }
}

/// Sizes by path from `self`.
impl SizeEstimator for Decl {
    fn size(&self, path: &[Step]) -> Option<SizeEstimate> {
        self.walk(path).map(|at| SizeEstimate::at_most(at.max))
    }
}

static KEY: LazyLock<Decl> = LazyLock::new(|| simple(Type::String, 0, 2));

#[cfg(test)]
mod tests {
    use super::Decls;
    use crate::Structural;
    use object::json;

    #[test]
    fn rules_below_a_value_without_parts_have_types() {
        for (schema, has_type) in [
            (r#"{"type":"object","x-kubernetes-int-or-string":true,"properties":{"a":{"type":"string"}}}"#, true),
            (r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, true),
            (r#"{"type":"string","properties":{"a":{"type":"string"}}}"#, true),
            (r#"{"properties":{"a":{"type":"string"}}}"#, false),
        ] {
            let schema_value = json::parse(schema.as_bytes()).unwrap();
            let structural = Structural::new(&schema_value).unwrap();
            let decls = Decls::new(structural.root());
            let property = structural.root().property("a").unwrap();
            assert_eq!(decls.get(property).is_some(), has_type, "{schema}");
        }
    }
}
