//! A mutating policy: which requests it is about, and what it makes of their objects.

use crate::admission::cel::{Expression, JSON_PATCH, Names, OBJECT, VariableTypes, Variables, environment};
use crate::admission::policies::definition::{NAMESPACE, compile_first, expression, text};
use crate::admission::policies::policy::{Policy, Sort};
use cel::library::ExpressionSet;
use cel::types::Type;
use object::Value;
use std::sync::{Arc, OnceLock};

/// A MutatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct Definition {
    /// Which requests it is about.
    pub policy: Policy,
    /// Whether it sees an object again that was changed after it saw it.
    pub reinvoked: bool,
    /// What there is to compile.
    spec: Value,
    expressions: OnceLock<Expressions>,
}

/// The compiled expressions of a policy.
#[derive(Debug)]
pub(super) struct Expressions {
    /// What has to be true for the policy to apply.
    pub conditions: Vec<Expression>,
    /// What others use.
    pub variables: Variables,
    /// What it makes, one after the other.
    pub mutations: Vec<Mutation>,
    /// Whether any may ask for the namespace of the request.
    pub namespace: bool,
}

/// An expression that makes a patch.
#[derive(Debug)]
pub(super) enum Mutation {
    /// It makes an `Object` that is applied.
    Apply(Expression),
    /// It makes a list of `JSONPatch` operations.
    JsonPatch(Expression),
}

impl Mutation {
    /// The expression.
    pub fn expression(&self) -> &Expression {
        let (Mutation::Apply(expression) | Mutation::JsonPatch(expression)) = self;
        expression
    }
}

impl Sort for Definition {
    const POLICIES: &'static str = "/registry/mutatingadmissionpolicies/";
    const BINDINGS: &'static str = "/registry/mutatingadmissionpolicybindings/";

    fn read(policy: Policy, spec: Value) -> Self {
        let reinvoked = spec.str_at(&["reinvocationPolicy"]) == Some("IfNeeded");
        Definition { policy, reinvoked, spec, expressions: OnceLock::new() }
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl Definition {
    /// Its expressions, compiled when first asked for.
    pub fn expressions(&self) -> &Expressions {
        self.expressions.get_or_init(|| Expressions::compile(&self.spec, self.policy.param_kind.is_some()))
    }
}

impl Expressions {
    fn compile(spec: &Value, params: bool) -> Self {
        let types: Arc<VariableTypes> = Arc::default();
        let names = Names { authorizer: true, params, variables: true, patches: false };
        let env = environment(ExpressionSet::Stored, names, &types);
        let (conditions, variables) = compile_first(spec, &env, &types);
        let env = environment(ExpressionSet::Stored, Names { patches: true, ..names }, &types);
        let list = spec.get("mutations").and_then(Value::as_array).unwrap_or_default();
        let mutations = list.iter().filter_map(|mutation| {
            let of = |member: &str| mutation.get(member).map(|m| text(m, "expression"));
            Some(match text(mutation, "patchType") {
                "ApplyConfiguration" => {
                    Mutation::Apply(expression(&env, of("applyConfiguration")?, &[Type::object(OBJECT)]))
                }
                "JSONPatch" => {
                    Mutation::JsonPatch(expression(&env, of("jsonPatch")?, &[Type::list(Type::object(JSON_PATCH))]))
                }
                _ => return None,
            })
        });
        let mutations: Vec<Mutation> = mutations.collect();
        let namespace = variables.mention(NAMESPACE) || mutations.iter().any(|m| m.expression().mentions(NAMESPACE));
        Expressions { conditions, variables, mutations, namespace }
    }
}
