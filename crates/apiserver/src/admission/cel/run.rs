//! Evaluating expressions.

use super::expression::Expression;
use super::variables::{VARIABLES, Variables};
use crate::admission::authorizer::{Check, Who};
use cel::interpret::{Activation, Limits};
use cel::value::{Data, Error, Map, MapAdapter, Result as CelResult, Value as Cel};
use cel_object::dynamic;
use object::{Value, go};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What one evaluation may cost.
const PER_CALL: u64 = 1_000_000;

/// How deep variables may refer to each other, counted in what their texts could nest: it bounds the stack.
const MAX_DEPTH: usize = 8 * 1024;

/// What upstream says when a budget is spent.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A budget is spent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// What the variables of expressions stand for.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'o> {
    /// `object`; null for a delete.
    pub object: &'o Value,
    /// `oldObject`; null for a create.
    pub old: &'o Value,
    /// `request`
    pub request: &'o Value,
    /// `namespaceObject`; null where there is none.
    pub namespace: &'o Value,
    /// `params`; null where there are none.
    pub params: &'o Value,
    /// `authorizer` and `authorizer.requestResource`, for those that may ask.
    pub authorizer: Option<(&'o Who, &'o Check)>,
}

/// Evaluates expressions over a scope. What a variable is, is worked out once in a run, when it is first asked for.
pub(crate) struct Run<'o> {
    scope: Scope<'o>,
    variables: &'o Variables,
    values: Box<[OnceLock<CelResult<Cel<'o>>>]>,
    /// What variables cost that was not counted yet.
    cost: AtomicU64,
    /// How deep the present evaluation is in variables.
    depth: AtomicUsize,
    view: OnceLock<View<'o>>,
}

impl<'o> Run<'o> {
    /// A run without any value yet.
    pub fn new(scope: Scope<'o>, variables: &'o Variables) -> Self {
        let values = std::iter::repeat_with(OnceLock::new).take(variables.len()).collect();
        let (cost, depth) = (AtomicU64::new(0), AtomicUsize::new(0));
        Run { scope, variables, values, cost, depth, view: OnceLock::new() }
    }

    /// Evaluates an expression and takes its cost, and that of the variables it used first, from a budget. The inner
    /// error is upstream's text.
    pub fn evaluate(
        &'o self,
        expression: &'o Expression,
        budget: &mut u64,
    ) -> Result<Result<Cel<'o>, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let evaluation = program.eval(&self.view(), Limits::cost(PER_CALL));
        for cost in [self.cost.swap(0, Ordering::Relaxed), evaluation.cost] {
            *budget = budget.checked_sub(cost).ok_or(OutOfBudget)?;
        }
        Ok(evaluation.result.map_err(|why| format!("expression '{}' resulted in error: {why}", expression.text)))
    }

    fn view(&'o self) -> &'o View<'o> {
        self.view.get_or_init(|| View(self))
    }

    /// The value of a variable.
    fn variable(&'o self, name: &str) -> Option<CelResult<Cel<'o>>> {
        let index = self.variables.find(name)?;
        let (name, expression) = self.variables.get(index)?;
        let value = self.values.get(index)?;
        if let Some(value) = value.get() {
            return Some(value.clone());
        }
        let made = self.make(name, expression);
        Some(value.get_or_init(|| made).clone())
    }

    fn make(&'o self, name: &str, expression: &'o Expression) -> CelResult<Cel<'o>> {
        let failed = |what: &str, why: &dyn std::fmt::Display| {
            Error::new(format!("composited variable {} fails to {what}: {why}", go::quote(name)))
        };
        let program = expression.program.as_ref().map_err(|why| failed("compile", why))?;
        // An expression nests no deeper than its text is long, and no deeper than the parser allows.
        let depth = 16 + expression.text.len().min(256);
        if self.depth.fetch_add(depth, Ordering::Relaxed) > MAX_DEPTH {
            self.depth.fetch_sub(depth, Ordering::Relaxed);
            return Err(failed("evaluate", &"variables refer to each other too deeply"));
        }
        let evaluation = program.eval(&self.view(), Limits::cost(PER_CALL));
        self.depth.fetch_sub(depth, Ordering::Relaxed);
        let add = |spent: u64| Some(spent.saturating_add(evaluation.cost));
        let _ = self.cost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        evaluation.result.map_err(|why| failed("evaluate", &why))
    }
}

/// A run as the activation of its expressions, and as the map `variables`.
struct View<'o>(&'o Run<'o>);

/// The map `variables` finds everything in its run.
static NOTHING: () = ();

impl<'o> Activation<'o> for &'o View<'o> {
    fn resolve(&self, name: &str) -> Option<CelResult<Cel<'o>>> {
        let scope = &self.0.scope;
        Some(Ok(match name {
            "object" => dynamic(scope.object),
            "oldObject" => dynamic(scope.old),
            "namespaceObject" => dynamic(scope.namespace),
            "request" => dynamic(scope.request),
            "params" => dynamic(scope.params),
            "authorizer" => Cel::opaque(scope.authorizer?.0.clone()),
            "authorizer.requestResource" => Cel::opaque(scope.authorizer?.1.clone()),
            "variables" => Cel::Map(Map::Adapted { adapter: *self, data: &NOTHING }),
            _ => return None,
        }))
    }
}

impl MapAdapter for View<'_> {
    fn len(&self, _: &Data) -> usize {
        self.0.variables.len()
    }

    fn get<'a>(&'a self, _: &'a Data, key: &str) -> Option<CelResult<Cel<'a>>> {
        self.0.variable(key)
    }

    fn contains(&self, _: &Data, key: &str) -> bool {
        self.0.variables.find(key).is_some()
    }

    fn key<'a>(&'a self, _: &'a Data, index: usize) -> Option<&'a str> {
        self.0.variables.get(index).map(|(name, _)| name)
    }

    fn type_name(&self) -> Option<&str> {
        Some(VARIABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Names, VariableTypes, environment};
    use super::*;
    use cel::library::ExpressionSet;
    use object::json;
    use std::sync::Arc;

    /// Evaluates expressions one after the other with variables; gives texts and what is left of the budget.
    fn run(variables: &[(&str, &str)], expressions: &[&str], mut budget: u64) -> (Vec<String>, u64) {
        let types: Arc<VariableTypes> = Arc::default();
        let names = Names { authorizer: true, params: true, variables: true, patches: false };
        let env = environment(ExpressionSet::Stored, names, &types);
        let mut compiled = Variables::default();
        for (name, text) in variables {
            compiled.compile(&env, &types, name, text);
        }
        let compile = |text: &&str| Expression::new(text, super::super::compile(&env, text, &[]));
        let expressions: Vec<Expression> = expressions.iter().map(compile).collect();
        let object = json::parse(br#"{"n":1,"list":["a","b"]}"#).unwrap();
        let null = &Value::Null;
        let scope =
            Scope { object: &object, old: null, request: null, namespace: null, params: null, authorizer: None };
        let run = Run::new(scope, &compiled);
        let mut out = Vec::new();
        for expression in &expressions {
            out.push(match run.evaluate(expression, &mut budget) {
                Ok(Ok(value)) => value.to_string(),
                Ok(Err(why)) => why,
                Err(OutOfBudget) => "out of budget".to_owned(),
            });
        }
        (out, budget)
    }

    #[test]
    fn variables_are_evaluated_once_and_only_when_used() {
        let variables = [("x", "object.n + 1"), ("y", "variables.x * 2"), ("bad", "object.nope")];
        let (values, left) = run(&variables, &["variables.y", "variables.x + variables.y"], 1000);
        assert_eq!(values, ["4", "6"]);
        // y: 3, x: 3, then twice the use alone.
        let (_, again) = run(&variables, &["variables.y"], 1000);
        assert!(1000 - left > 1000 - again, "{left} {again}");
        let (values, _) = run(&variables, &["true || variables.bad", "has(variables.bad)", "variables.bad"], 1000);
        let why = r#"expression 'variables.bad' resulted in error: composited variable "bad" fails to evaluate: no such key: nope"#;
        assert_eq!(values, ["true", "true", why]);
    }

    #[test]
    fn what_variables_cost_comes_from_the_budget() {
        let variables = [("long", "object.list.all(a, object.list.all(b, a != b || true))")];
        let (values, left) = run(&variables, &["variables.long"], 1000);
        assert_eq!(values, ["true"]);
        let cost = 1000 - left;
        assert!(cost > 10, "{cost}");
        assert_eq!(run(&variables, &["variables.long"], cost), (vec!["true".to_owned()], 0));
        assert_eq!(run(&variables, &["variables.long"], cost - 1).0, ["out of budget"]);
    }

    #[test]
    fn a_variable_that_does_not_compile_says_so_where_it_is_used() {
        let (values, _) = run(&[("x", "nope")], &["variables.x"], 1000);
        assert!(
            values[0].contains(r#"composited variable "x" fails to compile: compilation failed: ERROR"#),
            "{values:?}"
        );
    }

    #[test]
    fn without_an_authorizer_there_is_none_to_be_asked() {
        let (values, _) = run(&[], &["authorizer.group('').resource('x').check('get').allowed()"], 1000);
        assert!(values[0].ends_with("resulted in error: no such attribute(s): authorizer"), "{values:?}");
    }

    #[test]
    fn deep_chains_of_variables_end_in_an_error_not_in_an_overflow() {
        let deep = |n: usize| {
            format!("{}variables.v{n}{}", "(".repeat(80) + &"[".repeat(100), "]".repeat(100) + &")".repeat(80))
        };
        let chain = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
            let texts: Vec<(String, String)> =
                (0..120).map(|n| (format!("v{}", n + 1), if n == 0 { "1".to_owned() } else { deep(n) })).collect();
            let variables: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let itself = run(&[("me", "dyn(variables).me")], &["variables.me"], 1_000_000).0;
            (run(&variables, &["variables.v120 == variables.v120"], 1_000_000).0, itself)
        });
        let (values, itself) = chain.unwrap().join().unwrap();
        assert!(values[0].ends_with("variables refer to each other too deeply"), "{values:?}");
        assert!(itself[0].ends_with("variables refer to each other too deeply"), "{itself:?}");
    }
}
