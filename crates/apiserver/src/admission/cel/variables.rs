//! The `variables` of policies: expressions with names, which others may use.

use super::expression::{Compiled, Expression, Failed, compile};
use super::types::Types;
use cel::env::{Env, TypeProvider};
use cel::types::Type;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The object type of `variables`.
pub(crate) const VARIABLES: &str = "kubernetes.variables";

/// The types of requests, and of the variables of a policy as far as they are compiled.
#[derive(Debug, Default)]
pub(crate) struct VariableTypes(Mutex<HashMap<Arc<str>, Type>>);

impl VariableTypes {
    /// Lets later expressions use a variable. One that does not compile may be anything.
    pub fn declare(&self, name: &str, ty: Option<&Type>) {
        self.0.lock().insert(name.into(), ty.map_or(Type::Dyn, declared));
    }
}

/// The type under which upstream declares a variable: simple types, lists and maps; of others nothing is known.
fn declared(ty: &Type) -> Type {
    match ty {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(element) => Type::list(declared(element)),
        Type::Map(entry) => Type::map(declared(&entry.0), declared(&entry.1)),
        _ => Type::Dyn,
    }
}

impl TypeProvider for VariableTypes {
    fn find_type(&self, name: &str) -> Option<Type> {
        if name == VARIABLES { Some(Type::object(VARIABLES)) } else { Types.find_type(name) }
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        if object == VARIABLES { self.0.lock().get(field).cloned() } else { Types.field_type(object, field) }
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        if object != VARIABLES {
            return Types.field_names(object);
        }
        let mut names: Vec<_> = self.0.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

/// The compiled variables of a policy.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    all: Vec<(Arc<str>, Expression)>,
    index: HashMap<Arc<str>, usize>,
}

impl Variables {
    /// Compiles a variable, which may use those before it, and lets later expressions use it.
    pub fn compile(&mut self, env: &Env, types: &VariableTypes, name: &str, text: &str) {
        let compiled = compile(env, text, &[]);
        types.declare(name, compiled.as_ref().ok().map(|c| &c.ty));
        self.push(name, text, compiled);
    }

    fn push(&mut self, name: &str, text: &str, compiled: Result<Compiled, Failed>) {
        let name: Arc<str> = name.into();
        self.index.insert(name.clone(), self.all.len());
        self.all.push((name, Expression::new(text, compiled)));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The place of the variable of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// The name and the expression of the variable at a place.
    pub fn get(&self, index: usize) -> Option<(&str, &Expression)> {
        self.all.get(index).map(|(name, expression)| (&**name, expression))
    }

    /// Whether one may ask for a variable of requests.
    pub fn mention(&self, variable: &str) -> bool {
        self.all.iter().any(|(_, expression)| expression.mentions(variable))
    }
}
