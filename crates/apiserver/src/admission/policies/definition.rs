//! A validating policy: which requests it is about, and what has to be true of them.

use super::policy::{Policy, Sort};
use crate::admission::cel::{Expression, Names, VariableTypes, Variables, compile, environment};
use cel::env::Env;
use cel::library::ExpressionSet;
use cel::types::Type;
use object::Value;
use std::sync::{Arc, OnceLock};

/// The reason of the answer where a policy names none.
pub(super) const INVALID: &str = "Invalid";

/// A ValidatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct Definition {
    /// Which requests it is about.
    pub policy: Policy,
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
    /// What has to be true of a request.
    pub validations: Vec<Validation>,
    /// What is recorded about it.
    pub annotations: Vec<Annotation>,
    /// Whether any may ask for the namespace of the request.
    pub namespace: bool,
}

/// What has to be true of a request.
#[derive(Debug)]
pub(super) struct Validation {
    /// Whether it is.
    pub expression: Expression,
    /// What the client is told if it is not, where that has to be worked out.
    pub message_expression: Option<Expression>,
    /// What the client is told otherwise.
    pub message: String,
    /// The reason of the answer.
    pub reason: &'static str,
}

/// What is recorded about a request.
#[derive(Debug)]
pub(super) struct Annotation {
    /// Under which key.
    pub key: String,
    /// The value: a string, or null for nothing.
    pub value: Expression,
}

impl Sort for Definition {
    const POLICIES: &'static str = "/registry/validatingadmissionpolicies/";
    const BINDINGS: &'static str = "/registry/validatingadmissionpolicybindings/";

    fn read(policy: Policy, spec: Value) -> Self {
        Definition { policy, spec, expressions: OnceLock::new() }
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
        let list = |key: &str| spec.get(key).and_then(Value::as_array).unwrap_or_default();
        let types: Arc<VariableTypes> = Arc::default();
        let names = |authorizer| Names { authorizer, params, variables: true, patches: false };
        let env = environment(ExpressionSet::Stored, names(true), &types);
        let (conditions, variables) = compile_first(spec, &env, &types);
        let messages = environment(ExpressionSet::Stored, names(false), &types);
        let validations = list("validations").iter().map(|v| Validation::compile(v, &env, &messages));
        let validations: Vec<_> = validations.collect();
        let annotations = list("auditAnnotations").iter().map(|annotation| Annotation {
            key: text(annotation, "key").to_owned(),
            value: expression(&env, text(annotation, "valueExpression"), &[Type::String, Type::Null]),
        });
        let annotations: Vec<_> = annotations.collect();
        let of_validation = |v: &Validation| {
            v.expression.mentions(NAMESPACE) || v.message_expression.as_ref().is_some_and(|m| m.mentions(NAMESPACE))
        };
        let namespace = variables.mention(NAMESPACE)
            || validations.iter().any(of_validation)
            || annotations.iter().any(|a| a.value.mentions(NAMESPACE));
        Expressions { conditions, variables, validations, annotations, namespace }
    }
}

/// What shows the namespace of the request.
pub(super) const NAMESPACE: &str = "namespaceObject";

/// The conditions and the variables of a policy.
pub(super) fn compile_first(spec: &Value, env: &Env, types: &VariableTypes) -> (Vec<Expression>, Variables) {
    let list = |key: &str| spec.get(key).and_then(Value::as_array).unwrap_or_default();
    let mut variables = Variables::default();
    for variable in list("variables") {
        variables.compile(env, types, text(variable, "name"), text(variable, "expression"));
    }
    let conditions = list("matchConditions").iter();
    (conditions.map(|c| expression(env, text(c, "expression"), &[Type::Bool])).collect(), variables)
}

impl Validation {
    fn compile(validation: &Value, env: &Env, messages: &Env) -> Self {
        let source = text(validation, "expression");
        let message = match text(validation, "message").trim() {
            "" => format!("failed expression: {}", source.trim()),
            message => message.to_owned(),
        };
        let message_expression = Some(text(validation, "messageExpression")).filter(|text| !text.is_empty());
        Validation {
            expression: expression(env, source, &[Type::Bool]),
            message_expression: message_expression.map(|text| expression(messages, text, &[Type::String])),
            message,
            reason: match text(validation, "reason") {
                "Forbidden" => "Forbidden",
                "RequestEntityTooLarge" => "RequestEntityTooLarge",
                _ => INVALID,
            },
        }
    }
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.str_at(&[key]).unwrap_or_default()
}

pub(super) fn expression(env: &Env, text: &str, types: &[Type]) -> Expression {
    Expression::new(text, compile(env, text, types))
}
