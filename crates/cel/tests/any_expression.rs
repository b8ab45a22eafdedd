//! Properties every expression has, whatever it says.

use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::estimate::{SizeEstimate, SizeEstimator, Step, estimate, explain};
use cel::interpret::{Functions, Limits, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{ErrorKind, Map, Value};
use proptest::prelude::*;

/// A size that differs by the last step.
struct ByLastStep;

impl SizeEstimator for ByLastStep {
    fn size(&self, path: &[Step]) -> Option<SizeEstimate> {
        match path.last()? {
            Step::Field(name) => Some(SizeEstimate::at_most(name.bytes().map(u64::from).sum())),
            Step::Items | Step::Values => Some(SizeEstimate::at_most(3)),
            Step::Keys | Step::Indices => None,
        }
    }
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just("self".to_owned()),
        1 => Just("m".to_owned()),
        1 => Just("l".to_owned()),
        1 => Just("x".to_owned()),
        1 => Just("1".to_owned()),
        1 => Just("'ab'".to_owned()),
        1 => Just("[]".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("1.5".to_owned()),
        1 => Just("2u".to_owned()),
        1 => Just("int".to_owned()),
        1 => Just("b'a'".to_owned()),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        let operator = prop::sample::select(vec!["+", "==", "!=", "<", "in", "&&", "||", "-", "*"]);
        let field = prop::sample::select(vec!["p", "q", "?p", "size()", "first()", "min()", "value()", "trim()"]);
        let one_variable = prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter"]);
        let function = prop::sample::select(vec!["dyn", "size", "string", "type", "quantity", "optional.of", "url"]);
        prop_oneof![
            (two.clone(), operator).prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            three.prop_map(|(a, b, c)| format!("(({a}) == 1 ? {b} : {c})")),
            (inner.clone(), field).prop_map(|(a, field)| format!("({a}).{field}")),
            (two.clone(), one_variable).prop_map(|((a, b), name)| format!("({a}).{name}(x, {b})")),
            two.clone().prop_map(|(a, b)| format!("({a}).transformMap(k, x, {b})")),
            two.clone().prop_map(|(a, b)| format!("({a}).optMap(x, {b})")),
            two.clone().prop_map(|(a, b)| format!("({a})[{b}]")),
            two.clone().prop_map(|(a, b)| format!("[{a}, ?{b}]")),
            two.clone().prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            two.prop_map(|(a, b)| format!("({a}).contains({b})")),
            (inner.clone(), function).prop_map(|(a, function)| format!("{function}({a})")),
            inner.prop_map(|a| format!("'%s'.format([{a}])")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checking_is_total_and_an_explanation_agrees_with_the_estimate(text in expression(), is_dyn in any::<bool>()) {
        let element = if is_dyn { Type::Dyn } else { Type::String };
        let env = Env::kubernetes(ExpressionSet::Stored).with_variables([
            VariableDecl::new("self", Type::Dyn),
            VariableDecl::new("x", Type::Dyn),
            VariableDecl::new("l", Type::list(element.clone())),
            VariableDecl::new("m", Type::map(Type::String, Type::list(element))),
        ]);
        let Ok(ast) = parse(&text, &ParserOptions::default()) else { return Ok(()) };
        match check(&env, ast) {
            Err(issues) => prop_assert!(!issues.to_string().is_empty()),
            Ok(checked) => {
                let cost = estimate(&checked, &ByLastStep);
                prop_assert!(cost.min <= cost.max, "{text}: {cost:?}");
                let (explained, nodes) = explain(&checked, &ByLastStep);
                prop_assert_eq!(explained, cost);
                prop_assert!(!nodes.is_empty());
            }
        }
    }
}

/// Values of the variables.
fn variables() -> [(&'static str, Value<'static>); 4] {
    let list = || Value::list(vec![Value::borrowed("ab"), Value::borrowed("b")]);
    let fields = [(Value::borrowed("p"), Value::borrowed("ab")), (Value::borrowed("q"), list())];
    [
        ("self", Value::Map(Map::new(fields))),
        ("x", Value::Int(1)),
        ("l", list()),
        ("m", Value::Map(Map::new([(Value::borrowed("ab"), list())]))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_checker_found_out_does_not_change_the_result(text in expression()) {
        let env = Env::kubernetes(ExpressionSet::Stored).with_variables([
            VariableDecl::new("self", Type::Dyn),
            VariableDecl::new("x", Type::Dyn),
            VariableDecl::new("l", Type::list(Type::String)),
            VariableDecl::new("m", Type::map(Type::String, Type::list(Type::String))),
        ]);
        // Only a checked search in an empty list skips what it looks for; see the test below.
        prop_assume!(!text.contains(" in [])"));
        let Ok(ast) = parse(&text, &ParserOptions::default()) else { return Ok(()) };
        let Ok(checked) = check(&env, ast.clone()) else { return Ok(()) };
        let functions = Functions::new();
        let programs = (Program::new(&checked), Program::unchecked(&ast, &functions));
        let (Ok(planned), Ok(parsed)) = programs else {
            prop_assert!(programs.0.is_err(), "{text} can be planned only once checked");
            return Ok(());
        };
        let limits = Limits::cost(50_000);
        let result = planned.eval(&variables(), limits).result;
        let other = parsed.eval(&variables(), limits).result;
        match (result, other) {
            (Ok(a), Ok(b)) => prop_assert!(a.equals(&b) != Ok(false) || format!("{a:?}") == format!("{b:?}"), "{text}: {a:?}, {b:?}"),
            (Err(a), Err(b)) if a.kind() == b.kind() => prop_assert_eq!(a.message(), b.message(), "{}", text),
            // Costs differ.
            (Err(error), _) | (_, Err(error)) => prop_assert!(error.kind() == ErrorKind::CostLimit, "{text}: {error}"),
        }
    }
}

/// cel-go's planner makes `false` of a search in an empty constant list, whatever is looked for, where the checker chose
/// the overload `in_list` (`maybeOptimizeSetMembership`); without a checker no overload is known and the search is run.
#[test]
fn a_checked_search_in_an_empty_list_does_not_evaluate_what_it_looks_for() {
    let env = Env::kubernetes(ExpressionSet::Stored).with_variables([VariableDecl::new("self", Type::Dyn)]);
    let refused = "cannot initialize optional value from non-optional value: map";
    for (text, checked_result, parsed_result) in [
        ("[self, ?self] in []", Ok(false), Err(refused)),
        ("!([self, ?self] in [])", Ok(true), Err(refused)),
        ("1 / 0 in []", Ok(false), Err("division by zero")),
        // A list that holds something is searched for a value.
        ("1 / 0 in [1]", Err("division by zero"), Err("division by zero")),
        // The checker cannot choose between a list and a map here.
        ("1 / 0 in dyn([])", Err("division by zero"), Err("division by zero")),
    ] {
        let ast = parse(text, &ParserOptions::default()).unwrap();
        let checked = check(&env, ast.clone()).unwrap();
        let programs = [Program::new(&checked).unwrap(), Program::unchecked(&ast, &Functions::new()).unwrap()];
        for (program, expected) in programs.iter().zip([checked_result, parsed_result]) {
            let result = program.eval(&variables(), Limits::NONE).result;
            let shown = result.as_ref().map(|value| format!("{value:?}")).map_err(|error| error.message().to_string());
            assert_eq!(
                shown,
                expected.map(|value| format!("{:?}", Value::Bool(value))).map_err(str::to_owned),
                "{text}"
            );
        }
    }
}
