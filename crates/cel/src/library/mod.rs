//! The libraries of Kubernetes 1.33, as declarations, and the registry that chooses among them by version.
//!
//! A library is plain data. Another program adds its own to a [`Registry`] and binds implementations to the
//! overload ids in the runtime.

mod authorizer;
mod extensions;
mod kubernetes;
mod network;
mod standard;
pub(crate) mod well_known;

use std::sync::LazyLock;

use crate::env::{Env, FunctionDecl, Validators, VariableDecl};
use crate::types::Type;

/// A Kubernetes minor version, such as 1.33.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(
    /// Major.
    pub u16,
    /// Minor.
    pub u16,
);

impl Version {
    /// The version of the server whose behaviour this crate has.
    pub const SERVER: Version = Version(1, 33);
    /// The version new expressions must be compatible with: one before the server's, so that a rollback of the
    /// server still understands everything stored.
    pub const COMPATIBILITY: Version = Version(1, 32);
}

/// Functions, variables and types that belong together.
#[derive(Clone, Debug)]
pub struct Library {
    /// The name, `kubernetes.quantity`.
    pub name: String,
    /// The first version with it.
    pub introduced: Version,
    /// The first version without it, if there is one.
    pub removed: Option<Version>,
    /// The functions.
    pub functions: Vec<FunctionDecl>,
    /// Variables with a value of the library's own.
    pub variables: Vec<VariableDecl>,
    /// Types whose names can be written in expressions.
    pub types: Vec<Type>,
}

impl Library {
    /// A library of functions only.
    pub fn new(name: impl Into<String>, introduced: Version, functions: Vec<FunctionDecl>) -> Library {
        Library { name: name.into(), introduced, removed: None, functions, variables: Vec::new(), types: Vec::new() }
    }

    /// The library with types whose names can be written.
    pub fn with_types(mut self, types: impl IntoIterator<Item = Type>) -> Library {
        self.types.extend(types);
        self
    }
}

/// Which libraries an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionSet {
    /// Of an expression that is new or changed: what the compatibility version knows.
    New,
    /// Of an expression that is stored already, and of every expression that is run: all libraries.
    Stored,
}

/// The libraries a program knows.
#[derive(Clone, Debug)]
pub struct Registry {
    libraries: Vec<Library>,
}

impl Registry {
    /// The libraries of Kubernetes 1.33 for CRD rules and admission policies.
    pub fn kubernetes() -> Registry {
        Registry {
            libraries: vec![
                standard::library(),
                network::url(),
                kubernetes::regex(),
                kubernetes::lists(),
                authorizer::authorizer(),
                kubernetes::quantity(),
                extensions::optionals(),
                extensions::strings(),
                extensions::sets(),
                network::ip(),
                network::cidr(),
                kubernetes::format(),
                authorizer::selectors(),
                extensions::two_variable_comprehensions(),
                kubernetes::semver(),
            ],
        }
    }

    /// The registry with one more library.
    pub fn with(mut self, library: Library) -> Registry {
        self.libraries.push(library);
        self
    }

    /// All libraries.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// The environment for expressions of a set, on a server whose compatibility version is given. A library
    /// that was removed at or before that version is in neither set.
    pub fn env(&self, compatibility: Version, set: ExpressionSet) -> Env {
        let chosen = self.libraries.iter().filter(|library| {
            library.removed.is_none_or(|removed| removed > compatibility)
                && (set == ExpressionSet::Stored || library.introduced <= compatibility)
        });
        Env::new(chosen, Validators::ALL)
    }
}

impl Env {
    /// The environment of a 1.33 server for expressions of a set; built once.
    pub fn kubernetes(set: ExpressionSet) -> &'static Env {
        static NEW: LazyLock<Env> =
            LazyLock::new(|| Registry::kubernetes().env(Version::COMPATIBILITY, ExpressionSet::New));
        static STORED: LazyLock<Env> =
            LazyLock::new(|| Registry::kubernetes().env(Version::COMPATIBILITY, ExpressionSet::Stored));
        match set {
            ExpressionSet::New => &NEW,
            ExpressionSet::Stored => &STORED,
        }
    }
}

/// `jsonpatch.escapeKey`, which only mutating admission policies have; not in [`Registry::kubernetes`].
pub fn json_patch() -> Library {
    kubernetes::json_patch()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn semver_is_for_stored_expressions_only() {
        assert!(Env::kubernetes(ExpressionSet::New).function("semver").is_none());
        assert!(Env::kubernetes(ExpressionSet::Stored).function("semver").is_some());
        assert!(Env::kubernetes(ExpressionSet::New).function("quantity").is_some());
    }

    #[test]
    fn overload_ids_are_unique() {
        let mut seen = HashSet::new();
        for library in Registry::kubernetes().libraries() {
            for overload in library.functions.iter().flat_map(|function| &function.overloads) {
                assert!(seen.insert(overload.id.clone()), "{} twice", overload.id);
            }
        }
    }

    #[test]
    fn every_declared_function_can_run() {
        use crate::operators::{
            CONDITIONAL, EQUALS, INDEX, LOGICAL_AND, LOGICAL_OR, NOT_EQUALS, NOT_STRICTLY_FALSE, OPT_INDEX, OPT_SELECT,
        };
        // Evaluated by the interpreter itself, or by the embedding program.
        let special = [
            CONDITIONAL,
            EQUALS,
            INDEX,
            LOGICAL_AND,
            LOGICAL_OR,
            NOT_EQUALS,
            NOT_STRICTLY_FALSE,
            OPT_INDEX,
            OPT_SELECT,
        ];
        for library in Registry::kubernetes().libraries() {
            for function in &library.functions {
                let is_special = special.contains(&&*function.name)
                    || matches!(&*function.name, "or" | "orValue" | "cel.@mapInsert")
                    || crate::runtime::regex::RegexFunction::named(&function.name).is_some()
                    || library.name.starts_with("kubernetes.authz");
                assert!(is_special || crate::runtime::lookup(&function.name).is_some(), "{}", function.name);
            }
        }
    }

    #[test]
    fn a_removed_library_is_in_no_set() {
        let mut gone = Library::new("gone", Version(1, 20), vec![FunctionDecl::new("gone", [])]);
        gone.removed = Some(Version(1, 30));
        let registry = Registry::kubernetes().with(gone);
        assert!(registry.env(Version(1, 29), ExpressionSet::New).function("gone").is_some());
        assert!(registry.env(Version(1, 30), ExpressionSet::Stored).function("gone").is_none());
    }
}
