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

/// Functions of the embedding program, by name. They are asked where the language has none of the name.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: HashMap<Arc<str>, Arc<dyn ExternalFunction>>,
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

    pub(super) fn get(&self, name: &str) -> Option<Arc<dyn ExternalFunction>> {
        self.by_name.get(name).cloned()
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
