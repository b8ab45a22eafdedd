//! Functions of the embedding program.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::value::{Result, Value};

/// A function the embedding program implements: an authorization check, say. Its cost is known by its name.
pub trait ExternalFunction: Send + Sync {
    /// Applies the function; the receiver comes first. Values it does not take are
    /// [`crate::value::Error::no_such_overload`].
    fn call<'a>(&self, args: &[Value<'a>]) -> Result<Value<'a>>;
}

impl fmt::Debug for dyn ExternalFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExternalFunction")
    }
}

/// Object types of the embedding program that expressions make objects of: `Name{field: value}`. That the types and their
/// fields exist is the business of the [`crate::env::TypeProvider`].
pub trait ObjectTypes: Send + Sync {
    /// Whether objects of a type can be made.
    fn makes(&self, name: &str) -> bool;

    /// Checks a value that a field is to have, where its declared type says too little.
    fn check_field(&self, name: &str, field: &str, value: &Value<'_>) -> Result<()> {
        let _ = (name, field, value);
        Ok(())
    }
}

impl fmt::Debug for dyn ObjectTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectTypes")
    }
}

/// Functions of the embedding program, by name. They are asked where the language has none of the name.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: HashMap<Arc<str>, Arc<dyn ExternalFunction>>,
    objects: Option<Arc<dyn ObjectTypes>>,
}

impl Functions {
    /// No functions.
    pub fn new() -> Self {
        Functions::default()
    }

    /// Adds the function called `name`, in place of one so called.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, function: Arc<dyn ExternalFunction>) {
        self.by_name.insert(name.into(), function);
    }

    /// These functions, and objects of some types.
    pub fn with_objects(mut self, objects: Arc<dyn ObjectTypes>) -> Self {
        self.objects = Some(objects);
        self
    }

    /// What makes objects of a type.
    pub(super) fn maker(&self, name: &str) -> Option<Arc<dyn ObjectTypes>> {
        self.objects.clone().filter(|objects| objects.makes(name))
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<dyn ExternalFunction>> {
        self.by_name.get(name).cloned()
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
