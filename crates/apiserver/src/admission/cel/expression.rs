//! Compiling expressions.

use super::patches::{self, PatchObjects, PatchTypes};
use super::types::Types;
use super::variables::{VARIABLES, VariableTypes};
use crate::admission::authorizer;
use cel::check::check;
use cel::env::{Env, TypeProvider, VariableDecl};
use cel::interpret::{Functions, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// What an expression may name beside `object`, `oldObject`, `namespaceObject` and `request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// `authorizer`.
    pub authorizer: bool,
    /// `params`.
    pub params: bool,
    /// `variables`.
    pub variables: bool,
    /// The types of patches, `Object{}` and `JSONPatch{}`, and `jsonpatch.escapeKey`.
    pub patches: bool,
}

impl Names {
    /// What match conditions of webhooks may name.
    pub const CONDITION: Names = Names { authorizer: true, params: false, variables: false, patches: false };

    fn declarations(self) -> Vec<VariableDecl> {
        let mut all = vec![
            VariableDecl::new("object", Type::Dyn),
            VariableDecl::new("oldObject", Type::Dyn),
            VariableDecl::new("namespaceObject", Type::object("kubernetes.Namespace")),
            VariableDecl::new("request", Type::object("kubernetes.AdmissionRequest")),
        ];
        if self.authorizer {
            all.push(VariableDecl::new("authorizer", Type::object("kubernetes.authorization.Authorizer")));
            let check = Type::object("kubernetes.authorization.ResourceCheck");
            all.push(VariableDecl::new("authorizer.requestResource", check));
        }
        if self.params {
            all.push(VariableDecl::new("params", Type::Dyn));
        }
        if self.variables {
            all.push(VariableDecl::new("variables", Type::object(VARIABLES)));
        }
        all
    }
}

/// The environment of expressions that may use a set of the language and name what `names` says; `types` are the types of
/// `variables`.
pub(crate) fn environment(set: ExpressionSet, names: Names, types: &Arc<VariableTypes>) -> Env {
    let env = if names.patches { patches::library(set) } else { Env::kubernetes(set) };
    let known: Arc<dyn TypeProvider> = if names.variables { types.clone() } else { Arc::new(Types) };
    let env = env.with_provider(if names.patches { Arc::new(PatchTypes(known)) } else { known });
    env.with_variables(names.declarations())
}

fn of_conditions(set: ExpressionSet) -> Env {
    environment(set, Names::CONDITION, &Arc::default())
}

static NEW: LazyLock<Env> = LazyLock::new(|| of_conditions(ExpressionSet::New));
static STORED: LazyLock<Env> = LazyLock::new(|| of_conditions(ExpressionSet::Stored));
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| authorizer::functions().with_objects(Arc::new(PatchObjects)));

/// Why an expression does not compile, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It is wrong.
    Invalid(String),
    /// It is right, and cannot be run.
    Internal(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failed::Invalid(why) | Failed::Internal(why)) = self;
        f.write_str(why)
    }
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// What runs.
    pub program: Program,
    /// The type of its result.
    pub ty: Type,
}

/// Compiles an expression that gives one of `types`, or anything where there are none.
pub(crate) fn compile(env: &Env, expression: &str, types: &[Type]) -> Result<Compiled, Failed> {
    let failed = |why: String| Failed::Invalid(format!("compilation failed: {why}"));
    let parsed = parse(expression, &ParserOptions::default()).map_err(|e| failed(e.to_string()))?;
    let checked = check(env, parsed).map_err(|e| failed(e.to_string()))?;
    let ty = checked.result_type().clone();
    if !types.is_empty() && !types.contains(&ty) {
        return Err(Failed::Invalid(match types {
            [wanted] => format!("must evaluate to {wanted} but got {ty}"),
            types => {
                let name = |ty: &Type| if *ty == Type::Null { "null_type".to_owned() } else { ty.to_string() };
                let names: Vec<String> = types.iter().map(name).collect();
                format!("must evaluate to one of [{}] but got {ty}", names.join(" "))
            }
        }));
    }
    let program = Program::with_functions(&checked, &FUNCTIONS);
    let program = program.map_err(|e| Failed::Internal(format!("program instantiation failed: {e}")))?;
    Ok(Compiled { program, ty })
}

/// Compiles a match condition of a webhook. `set` is what it may use.
pub(crate) fn condition(expression: &str, set: ExpressionSet) -> Result<Compiled, Failed> {
    let env: &Env = match set {
        ExpressionSet::New => &NEW,
        ExpressionSet::Stored => &STORED,
    };
    compile(env, expression, &[Type::Bool])
}

/// An expression of a stored configuration, compiled as far as it can be.
#[derive(Debug)]
pub(crate) struct Expression {
    /// Its text.
    pub text: Box<str>,
    /// What runs, or why nothing does.
    pub program: Result<Program, Failed>,
}

impl Expression {
    /// Keeps what came of compiling an expression.
    pub fn new(text: &str, compiled: Result<Compiled, Failed>) -> Self {
        Expression { text: text.into(), program: compiled.map(|c| c.program) }
    }

    /// A match condition of a webhook.
    pub fn condition(text: &str) -> Self {
        Expression::new(text, condition(text, ExpressionSet::Stored))
    }

    /// Whether it may ask for a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.program.as_ref().is_ok_and(|program| program.variables().any(|name| name == variable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_to_be_boolean() {
        let failed = |text: &str| condition(text, ExpressionSet::New).unwrap_err().to_string();
        assert_eq!(failed("1"), "must evaluate to bool but got int");
        assert!(failed("nope").starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'"));
    }

    #[test]
    fn what_cannot_be_run_is_told_apart_from_what_is_wrong() {
        let failed = condition("'a'.find('(') == ''", ExpressionSet::New).unwrap_err();
        assert!(
            matches!(failed, Failed::Internal(ref why) if why.starts_with("program instantiation failed: ")),
            "{failed}"
        );
    }
}
