//! CEL on admission requests: the variables `object`, `oldObject`, `request`, `authorizer` and what they are made of.
//! Objects have no schema here, so that mistakes show when an expression runs.

use super::authorizer::{self, Check, Who};
use cel::check::check;
use cel::env::{Env, TypeProvider, VariableDecl};
use cel::interpret::{Functions, Limits, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{AdaptedList, Data, List, ListAdapter, Map, MapAdapter, Result as CelResult, Value as Cel};
use object::{Map as Members, Value};
use std::sync::{Arc, LazyLock};

/// What one evaluation may cost.
const PER_CALL: u64 = 1_000_000;

/// The object types of requests: name, and fields with their types.
const TYPES: &[(&str, &[(&str, Field)])] = &[
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", Field::Object("kubernetes.GroupVersionKind")),
            ("resource", Field::Object("kubernetes.GroupVersionResource")),
            ("subResource", Field::Text),
            ("requestKind", Field::Object("kubernetes.GroupVersionKind")),
            ("requestResource", Field::Object("kubernetes.GroupVersionResource")),
            ("requestSubResource", Field::Text),
            ("name", Field::Text),
            ("namespace", Field::Text),
            ("operation", Field::Text),
            ("userInfo", Field::Object("kubernetes.UserInfo")),
            ("dryRun", Field::Bool),
            ("options", Field::Any),
        ],
    ),
    ("kubernetes.GroupVersionKind", &[("group", Field::Text), ("version", Field::Text), ("kind", Field::Text)]),
    ("kubernetes.GroupVersionResource", &[("group", Field::Text), ("version", Field::Text), ("resource", Field::Text)]),
    (
        "kubernetes.UserInfo",
        &[("username", Field::Text), ("uid", Field::Text), ("groups", Field::Texts), ("extra", Field::TextsMap)],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", Field::Object("kubernetes.NamespaceMetadata")),
            ("spec", Field::Object("kubernetes.NamespaceSpec")),
            ("status", Field::Object("kubernetes.NamespaceStatus")),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", Field::Text),
            ("generateName", Field::Text),
            ("namespace", Field::Text),
            ("labels", Field::TextMap),
            ("annotations", Field::TextMap),
            ("UID", Field::Text),
            ("creationTimestamp", Field::Time),
            ("deletionGracePeriodSeconds", Field::Int),
            ("deletionTimestamp", Field::Time),
            ("generation", Field::Int),
            ("resourceVersion", Field::Text),
            ("finalizers", Field::Texts),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", Field::Texts)]),
    ("kubernetes.NamespaceStatus", &[("phase", Field::Text)]),
];

#[derive(Clone, Copy)]
enum Field {
    Text,
    Bool,
    Int,
    Time,
    Any,
    Texts,
    TextMap,
    TextsMap,
    Object(&'static str),
}

impl Field {
    fn cel_type(self) -> Type {
        match self {
            Field::Text => Type::String,
            Field::Bool => Type::Bool,
            Field::Int => Type::Int,
            Field::Time => Type::Timestamp,
            Field::Any => Type::Dyn,
            Field::Texts => Type::list(Type::String),
            Field::TextMap => Type::map(Type::String, Type::String),
            Field::TextsMap => Type::map(Type::String, Type::list(Type::String)),
            Field::Object(name) => Type::object(name),
        }
    }
}

pub(super) struct Types;

fn fields(object: &str) -> &'static [(&'static str, Field)] {
    TYPES.iter().find(|(name, _)| *name == object).map_or(&[], |(_, fields)| fields)
}

impl TypeProvider for Types {
    fn find_type(&self, name: &str) -> Option<Type> {
        TYPES.iter().any(|(known, _)| *known == name).then(|| Type::object(name))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        fields(object).iter().find(|(name, _)| *name == field).map(|(_, ty)| ty.cel_type())
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        fields(object).iter().map(|(name, _)| (*name).into()).collect()
    }
}

/// What expressions on requests can name.
pub(super) fn variables() -> [VariableDecl; 6] {
    [
        VariableDecl::new("object", Type::Dyn),
        VariableDecl::new("oldObject", Type::Dyn),
        VariableDecl::new("namespaceObject", Type::object("kubernetes.Namespace")),
        VariableDecl::new("request", Type::object("kubernetes.AdmissionRequest")),
        VariableDecl::new("authorizer", Type::object("kubernetes.authorization.Authorizer")),
        VariableDecl::new("authorizer.requestResource", Type::object("kubernetes.authorization.ResourceCheck")),
    ]
}

fn environment(set: ExpressionSet) -> Env {
    Env::kubernetes(set).with_provider(Arc::new(Types)).with_variables(variables())
}

static NEW: LazyLock<Env> = LazyLock::new(|| environment(ExpressionSet::New));
static STORED: LazyLock<Env> = LazyLock::new(|| environment(ExpressionSet::Stored));
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(authorizer::functions);

/// A condition that was compiled.
#[derive(Debug)]
pub(crate) struct Condition {
    expression: String,
    program: Result<Program, String>,
}

impl Condition {
    /// Compiles a condition as it is stored.
    pub fn new(expression: &str) -> Self {
        let program = compile(expression, ExpressionSet::Stored);
        Condition { expression: expression.to_owned(), program }
    }
}

/// Compiles an expression that gives a boolean. `set` is what it may use. The error is what upstream says of the
/// expression in a configuration.
pub(crate) fn compile(expression: &str, set: ExpressionSet) -> Result<Program, String> {
    let failed = |why: String| format!("compilation failed: {why}");
    let env: &Env = match set {
        ExpressionSet::New => &NEW,
        ExpressionSet::Stored => &STORED,
    };
    let parsed = parse(expression, &ParserOptions::default()).map_err(|e| failed(e.to_string()))?;
    let checked = check(env, parsed).map_err(|e| failed(e.to_string()))?;
    let result = checked.result_type();
    if *result != Type::Bool {
        return Err(format!("must evaluate to bool but got {result}"));
    }
    Program::with_functions(&checked, &FUNCTIONS).map_err(|e| format!("instantiation failed: {e}"))
}

/// What conditions look at.
pub(crate) struct Variables<'a> {
    /// The object; null for a delete.
    pub object: &'a Value,
    /// The object as it was; null for a create.
    pub old: &'a Value,
    /// The request.
    pub request: &'a Value,
    /// Who is asked about.
    pub who: Who,
    /// The resource of the request.
    pub resource: Check,
}

/// What came of conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// All are true.
    Match,
    /// One is false.
    Other,
    /// None is false, and these could not be told.
    Errors(Vec<String>),
}

/// Evaluates conditions within a budget.
pub(crate) fn judge(conditions: &[Condition], variables: &Variables<'_>, budget: u64) -> Judgement {
    let values = [
        ("object", dynamic(variables.object)),
        ("oldObject", dynamic(variables.old)),
        ("namespaceObject", Cel::Null),
        ("request", dynamic(variables.request)),
        ("authorizer", Cel::opaque(variables.who.clone())),
        ("authorizer.requestResource", Cel::opaque(variables.resource.clone())),
    ];
    let (mut errors, mut left) = (Vec::new(), budget);
    for condition in conditions {
        let program = match &condition.program {
            Ok(program) => program,
            Err(why) => {
                errors.push(format!("compilation error: {why}"));
                continue;
            }
        };
        let evaluation = program.eval(&values, Limits::cost(PER_CALL));
        let Some(rest) = left.checked_sub(evaluation.cost) else {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return Judgement::Errors(vec![why.to_owned()]);
        };
        left = rest;
        match evaluation.result {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Judgement::Other,
            Ok(_) => {}
            Err(error) => {
                errors.push(format!("expression '{}' resulted in error: {error}", condition.expression));
            }
        }
    }
    if errors.is_empty() { Judgement::Match } else { Judgement::Errors(errors) }
}

/// A value without a schema, read in place.
fn dynamic(value: &Value) -> Cel<'_> {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Int(i) => Cel::Int(*i),
        Value::Float(f) => Cel::Double(*f),
        Value::String(s) => Cel::borrowed(s),
        Value::Array(_) => Cel::List(List::Adapted(AdaptedList { adapter: &Dynamic, data: value })),
        Value::Object(_) => Cel::Map(Map::Adapted { adapter: &Dynamic, data: value }),
    }
}

/// Reads values without a schema.
struct Dynamic;

fn items(data: &Data) -> &[Value] {
    data.downcast_ref::<Value>().and_then(Value::as_array).unwrap_or_default()
}

fn members(data: &Data) -> Option<&Members> {
    data.downcast_ref::<Value>().and_then(Value::as_object)
}

impl ListAdapter for Dynamic {
    fn len(&self, data: &Data) -> usize {
        items(data).len()
    }

    fn get<'a>(&'a self, data: &'a Data, index: usize) -> CelResult<Cel<'a>> {
        Ok(items(data).get(index).map_or(Cel::Null, dynamic))
    }
}

impl MapAdapter for Dynamic {
    fn len(&self, data: &Data) -> usize {
        members(data).map_or(0, Members::len)
    }

    fn get<'a>(&'a self, data: &'a Data, key: &str) -> Option<CelResult<Cel<'a>>> {
        members(data)?.get(key).map(|value| Ok(dynamic(value)))
    }

    fn key<'a>(&'a self, data: &'a Data, index: usize) -> Option<&'a str> {
        members(data)?.keys().nth(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;
    use crate::authorize::AlwaysAllow;
    use object::json;

    fn judged(expressions: &[&str]) -> Judgement {
        let value = |text: &str| json::parse(text.as_bytes()).unwrap();
        let conditions: Vec<Condition> = expressions.iter().map(|e| Condition::new(e)).collect();
        let who = Who::new(Arc::new(AlwaysAllow), Arc::new(UserInfo::default()));
        let variables = Variables {
            object: &value(r#"{"spec":{"n":1,"l":[1,2]}}"#),
            old: &Value::Null,
            request: &value(r#"{"operation":"CREATE","kind":{"group":"g"}}"#),
            resource: Check::new(who.clone(), "g", "r"),
            who,
        };
        judge(&conditions, &variables, 2_500_000)
    }

    #[test]
    fn conditions_are_judged_together() {
        let errors = |texts: &[&str]| Judgement::Errors(texts.iter().map(|t| (*t).to_owned()).collect());
        for (expressions, expected) in [
            (&["object.spec.n == 1", "oldObject == null", "object.spec.l.all(x, x > 0)"][..], Judgement::Match),
            (&["request.operation == 'CREATE' && request.kind.group == 'g'"], Judgement::Match),
            (&["object.spec.m == 1", "false"], Judgement::Other),
            (&["object.spec.m == 1"], errors(&["expression 'object.spec.m == 1' resulted in error: no such key: m"])),
            (&["authorizer.group('').resource('pods').check('get').allowed()"], Judgement::Match),
            (&["authorizer.requestResource.check('get').allowed()"], Judgement::Match),
        ] {
            assert_eq!(judged(expressions), expected, "{expressions:?}");
        }
    }

    #[test]
    fn expressions_have_to_be_boolean() {
        assert_eq!(compile("1", ExpressionSet::New).unwrap_err(), "must evaluate to bool but got int");
        let error = compile("nope", ExpressionSet::New).unwrap_err();
        assert!(error.starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'"), "{error}");
    }
}
