//! The types of which the expressions of mutating policies make patches: `Object` and everything below it, of which
//! nothing but the names is known, and `JSONPatch`.

use cel::env::{Env, TypeProvider};
use cel::interpret::ObjectTypes;
use cel::library::{ExpressionSet, Registry, Version, json_patch};
use cel::types::Type;
use cel::value::{Error, Result, Value};
use std::sync::{Arc, LazyLock};

/// The type of the whole object; a field's type has the field's path behind it: `Object.spec.template`.
pub(crate) const OBJECT: &str = "Object";
/// The type of one operation of a JSON patch.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

const OPERATION: [(&str, Type); 4] =
    [("from", Type::String), ("op", Type::String), ("path", Type::String), ("value", Type::Dyn)];

/// What expressions that make patches may use.
pub(super) fn library(set: ExpressionSet) -> &'static Env {
    fn env(set: ExpressionSet) -> Env {
        Registry::kubernetes().with(json_patch()).env(Version::COMPATIBILITY, set)
    }
    static NEW: LazyLock<Env> = LazyLock::new(|| env(ExpressionSet::New));
    static STORED: LazyLock<Env> = LazyLock::new(|| env(ExpressionSet::Stored));
    match set {
        ExpressionSet::New => &NEW,
        ExpressionSet::Stored => &STORED,
    }
}

fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The types of patches beside others.
pub(super) struct PatchTypes(pub Arc<dyn TypeProvider>);

impl TypeProvider for PatchTypes {
    fn find_type(&self, name: &str) -> Option<Type> {
        if is_object(name) || name == JSON_PATCH { Some(Type::object(name)) } else { self.0.find_type(name) }
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        match object {
            name if is_object(name) => Some(Type::Dyn),
            JSON_PATCH => OPERATION.iter().find(|(name, _)| *name == field).map(|(_, ty)| ty.clone()),
            _ => self.0.field_type(object, field),
        }
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        match object {
            name if is_object(name) => Vec::new(),
            JSON_PATCH => OPERATION.iter().map(|(name, _)| (*name).into()).collect(),
            _ => self.0.field_names(object),
        }
    }
}

/// Makes objects of these types.
pub(super) struct PatchObjects;

impl ObjectTypes for PatchObjects {
    fn makes(&self, name: &str) -> bool {
        is_object(name) || name == JSON_PATCH
    }

    fn check_field(&self, name: &str, field: &str, value: &Value<'_>) -> Result<()> {
        // What is declared as dyn fits a string until it is there.
        if name != JSON_PATCH || field == "value" || value.as_str().is_some() {
            return Ok(());
        }
        let found = match value {
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Uint(_) => "uint64",
            Value::Double(_) => "float64",
            Value::Bytes(_) => "[]uint8",
            Value::List(_) => "[]ref.Val",
            Value::Map(_) => "map[ref.Val]ref.Val",
            _ => return Err(Error::no_such_overload()),
        };
        Err(Error::new(format!("unexpected type {found} for JSONPatchType '{field}' field")))
    }
}
