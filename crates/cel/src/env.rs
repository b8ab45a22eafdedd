//! Declarations, and the environment an expression is checked and run in.
//!
//! An [`Env`] is put together once from libraries (see [`crate::library`]) and then extended per expression with
//! variables and a [`TypeProvider`]; extensions share the function tables.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::ast::Literal;
use crate::library::{Library, well_known};
use crate::types::Type;

/// One signature of a function. The runtime binds an implementation to its id.
#[derive(Clone, Debug)]
pub struct OverloadDecl {
    /// The identity, unique in an environment: `size_string`.
    pub id: Arc<str>,
    /// Types of the arguments; of a member overload the first is the receiver's.
    pub args: Vec<Type>,
    /// Type of the result.
    pub result: Type,
    /// Whether the call is written `receiver.function(...)`.
    pub member: bool,
    /// Names of the type parameters in `args` and `result`, in order of appearance.
    pub type_params: Vec<Arc<str>>,
}

impl OverloadDecl {
    /// An overload called `function(args)`.
    pub fn global(id: impl Into<Arc<str>>, args: impl IntoIterator<Item = Type>, result: Type) -> OverloadDecl {
        OverloadDecl::new(id.into(), args.into_iter().collect(), result, false)
    }

    /// An overload called `args[0].function(args[1..])`.
    pub fn member(id: impl Into<Arc<str>>, args: impl IntoIterator<Item = Type>, result: Type) -> OverloadDecl {
        OverloadDecl::new(id.into(), args.into_iter().collect(), result, true)
    }

    fn new(id: Arc<str>, args: Vec<Type>, result: Type, member: bool) -> OverloadDecl {
        let mut type_params = Vec::new();
        for ty in args.iter().chain([&result]) {
            collect_params(ty, &mut type_params);
        }
        OverloadDecl { id, args, result, member, type_params }
    }
}

fn collect_params(ty: &Type, into: &mut Vec<Arc<str>>) {
    match ty {
        Type::Param(name) if !into.contains(name) => into.push(name.clone()),
        Type::List(element) => collect_params(element, into),
        Type::Map(entry) => {
            collect_params(&entry.0, into);
            collect_params(&entry.1, into);
        }
        Type::Opaque(opaque) => opaque.params.iter().for_each(|param| collect_params(param, into)),
        Type::Type(Some(of)) => collect_params(of, into),
        _ => {}
    }
}

/// A function and its overloads, in the order they are tried.
#[derive(Clone, Debug)]
pub struct FunctionDecl {
    /// The (qualified) name: `size`, `sets.contains`, `_+_`.
    pub name: Arc<str>,
    /// The signatures.
    pub overloads: Vec<Arc<OverloadDecl>>,
}

impl FunctionDecl {
    /// A function with the given overloads.
    pub fn new(name: impl Into<Arc<str>>, overloads: impl IntoIterator<Item = OverloadDecl>) -> FunctionDecl {
        FunctionDecl { name: name.into(), overloads: overloads.into_iter().map(Arc::new).collect() }
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub struct VariableDecl {
    /// The (qualified) name.
    pub name: Arc<str>,
    /// The type.
    pub ty: Type,
}

impl VariableDecl {
    /// A variable of the given name and type.
    pub fn new(name: impl Into<Arc<str>>, ty: Type) -> VariableDecl {
        VariableDecl { name: name.into(), ty }
    }
}

/// What object types exist and which fields they have.
pub trait TypeProvider: Send + Sync {
    /// The type of the given name, if there is one. It becomes an identifier that denotes the type.
    fn find_type(&self, name: &str) -> Option<Type>;
    /// The type of a field, by the names of the object type and of the field.
    fn field_type(&self, object: &str, field: &str) -> Option<Type>;
    /// The names of all fields of an object type, in a stable order; empty for an unknown type.
    fn field_names(&self, object: &str) -> Vec<Arc<str>>;
}

/// Which checks run on an expression that type-checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators {
    /// Literal arguments of `duration`, `timestamp` and `matches` must be well formed.
    pub literals: bool,
    /// Elements of a list literal, and keys and values of a map literal, must have one type.
    pub homogeneous_aggregates: bool,
    /// `'literal'.format([...])` must fit its arguments.
    pub format_strings: bool,
}

impl Validators {
    /// None of them.
    pub const NONE: Validators = Validators { literals: false, homogeneous_aggregates: false, format_strings: false };
    /// All of them, as in Kubernetes.
    pub const ALL: Validators = Validators { literals: true, homogeneous_aggregates: true, format_strings: true };
}

/// What a name in an expression stands for.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name it resolved to.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
    /// The value, of a constant.
    pub value: Option<Literal>,
}

/// The declarations an expression is checked against. Cloning and extending share the tables.
#[derive(Clone)]
pub struct Env {
    base: Arc<Base>,
    variables: Vec<VariableDecl>,
    provider: Option<Arc<dyn TypeProvider>>,
    validators: Validators,
}

struct Base {
    functions: HashMap<Arc<str>, Arc<FunctionDecl>>,
    idents: HashMap<Arc<str>, Ident>,
    /// First parts of all dotted names.
    roots: HashSet<Arc<str>>,
}

impl Env {
    /// An environment with everything the libraries declare; overloads of one function are tried in the order of
    /// the libraries.
    pub fn new<'a>(libraries: impl IntoIterator<Item = &'a Library>, validators: Validators) -> Env {
        let mut functions: HashMap<Arc<str>, Arc<FunctionDecl>> = HashMap::new();
        let mut idents = HashMap::new();
        for ident in well_known::idents() {
            idents.insert(ident.name.clone(), ident);
        }
        for library in libraries {
            for function in &library.functions {
                let known = functions
                    .entry(function.name.clone())
                    .or_insert_with(|| Arc::new(FunctionDecl { name: function.name.clone(), overloads: Vec::new() }));
                let known = Arc::make_mut(known);
                for overload in &function.overloads {
                    if !known.overloads.iter().any(|other| other.id == overload.id) {
                        known.overloads.push(overload.clone());
                    }
                }
            }
            for ty in &library.types {
                let name: Arc<str> = ty.runtime_name().into();
                idents.insert(name.clone(), Ident { name, ty: Type::type_of(ty.clone()), value: None });
            }
            for variable in &library.variables {
                let ident = Ident { name: variable.name.clone(), ty: variable.ty.clone(), value: None };
                idents.insert(variable.name.clone(), ident);
            }
        }
        let dotted = functions.keys().chain(idents.keys()).filter_map(|name| name.split_once('.'));
        let roots = dotted.map(|(root, _)| root.into()).collect();
        Env { base: Arc::new(Base { functions, idents, roots }), variables: Vec::new(), provider: None, validators }
    }

    /// This environment with further variables, which hide earlier ones of the same name.
    pub fn with_variables(&self, variables: impl IntoIterator<Item = VariableDecl>) -> Env {
        let mut env = self.clone();
        env.variables.extend(variables);
        env
    }

    /// This environment with the given object types in place of those it had.
    pub fn with_provider(&self, provider: Arc<dyn TypeProvider>) -> Env {
        Env { provider: Some(provider), ..self.clone() }
    }

    /// This environment with other checks after the type check.
    pub fn with_validators(&self, validators: Validators) -> Env {
        Env { validators, ..self.clone() }
    }

    /// The checks that follow the type check.
    pub fn validators(&self) -> Validators {
        self.validators
    }

    /// The function of the given name.
    pub fn function(&self, name: &str) -> Option<&Arc<FunctionDecl>> {
        self.base.functions.get(name.strip_prefix('.').unwrap_or(name))
    }

    /// All functions, in no particular order.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<FunctionDecl>> {
        self.base.functions.values()
    }

    /// What a name stands for: a variable, a type or a constant.
    pub fn ident(&self, name: &str) -> Option<Ident> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(variable) = self.variables.iter().rev().find(|variable| &*variable.name == name) {
            return Some(Ident { name: variable.name.clone(), ty: variable.ty.clone(), value: None });
        }
        if let Some(ident) = self.base.idents.get(name) {
            return Some(ident.clone());
        }
        let ty = self.provider.as_ref()?.find_type(name)?;
        Some(Ident { name: name.into(), ty: Type::type_of(ty), value: None })
    }

    /// Whether a name that starts with `root` and a dot may stand for anything. Most selections start from a
    /// variable, of this environment or local, and need not be looked up as a whole.
    pub(crate) fn may_qualify(&self, root: &str, is_local: bool) -> bool {
        let root = root.strip_prefix('.').unwrap_or(root);
        let qualifies =
            |variable: &VariableDecl| variable.name.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'));
        self.base.roots.contains(root)
            || self.variables.iter().any(qualifies)
            || !(is_local || self.variables.iter().any(|variable| &*variable.name == root))
    }

    /// Whether an object type of the given name exists.
    pub fn has_object(&self, name: &str) -> bool {
        self.provider.as_ref().is_some_and(|provider| provider.find_type(name).is_some()) || well_known::is_object(name)
    }

    /// The type of a field of an object type.
    pub fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        if let Some(ty) = self.provider.as_ref().and_then(|provider| provider.field_type(object, field)) {
            return Some(ty);
        }
        well_known::field_type(object, field)
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("functions", &self.base.functions.len())
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}
