//! A policy: which requests it is about, and what has to be true of them.

use super::params::ParamKind;
use crate::admission::cel::{Expression, Names, VariableTypes, Variables, compile, environment};
use crate::admission::matching::Criteria;
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
    /// Its name.
    pub name: String,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// Whether what cannot be told refuses a request.
    pub required: bool,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
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

impl Definition {
    /// Reads a policy.
    pub fn read(policy: &Value) -> Self {
        let spec = policy.get("spec").cloned().unwrap_or_default();
        Definition {
            name: policy.name().to_owned(),
            criteria: Criteria::of_policy(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            required: spec.str_at(&["failurePolicy"]) != Some("Ignore"),
            param_kind: spec.get("paramKind").filter(|kind| !kind.is_null()).map(ParamKind::read),
            spec,
            expressions: OnceLock::new(),
        }
    }

    /// Its expressions, compiled when first asked for.
    pub fn expressions(&self) -> &Expressions {
        self.expressions.get_or_init(|| Expressions::compile(&self.spec, self.param_kind.is_some()))
    }
}

impl Expressions {
    fn compile(spec: &Value, params: bool) -> Self {
        let list = |key: &str| spec.get(key).and_then(Value::as_array).unwrap_or_default();
        let types: Arc<VariableTypes> = Arc::default();
        let names = |authorizer| Names { authorizer, params, variables: true };
        let env = environment(ExpressionSet::Stored, names(true), &types);
        let mut variables = Variables::default();
        for variable in list("variables") {
            variables.compile(&env, &types, text(variable, "name"), text(variable, "expression"));
        }
        let conditions = list("matchConditions").iter();
        let conditions: Vec<_> = conditions.map(|c| expression(&env, text(c, "expression"), &[Type::Bool])).collect();
        let messages = environment(ExpressionSet::Stored, names(false), &types);
        let validations = list("validations").iter().map(|v| Validation::compile(v, &env, &messages));
        let validations: Vec<_> = validations.collect();
        let annotations = list("auditAnnotations").iter().map(|annotation| Annotation {
            key: text(annotation, "key").to_owned(),
            value: expression(&env, text(annotation, "valueExpression"), &[Type::String, Type::Null]),
        });
        let annotations: Vec<_> = annotations.collect();
        const NAMESPACE: &str = "namespaceObject";
        let of_validation = |v: &Validation| {
            v.expression.mentions(NAMESPACE) || v.message_expression.as_ref().is_some_and(|m| m.mentions(NAMESPACE))
        };
        let namespace = variables.mention(NAMESPACE)
            || validations.iter().any(of_validation)
            || annotations.iter().any(|a| a.value.mentions(NAMESPACE));
        Expressions { conditions, variables, validations, annotations, namespace }
    }
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

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.str_at(&[key]).unwrap_or_default()
}

fn expression(env: &Env, text: &str, types: &[Type]) -> Expression {
    Expression::new(text, compile(env, text, types))
}
