//! Evaluation as a whole: costs, limits, what is absorbed, what is evaluated at all.
#![allow(clippy::unwrap_used, reason = "an expression that does not compile is a failure")]

use std::cell::Cell;
use std::sync::Arc;

use cel::check::check;
use cel::env::{Env, FunctionDecl, OverloadDecl, VariableDecl};
use cel::interpret::{Activation, ExternalFunction, Functions, Limits, Program};
use cel::library::{ExpressionSet, Library, Registry, Version};
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{Error, ErrorKind, List, ListSemantics, Map, Result, Value};

fn env() -> Env {
    Registry::kubernetes().env(Version(1, 33), ExpressionSet::Stored).with_variables([
        VariableDecl::new("s", Type::String),
        VariableDecl::new("i", Type::Int),
        VariableDecl::new("b", Type::Bool),
        VariableDecl::new("l", Type::list(Type::String)),
        VariableDecl::new("n", Type::list(Type::Int)),
        VariableDecl::new("m", Type::map(Type::String, Type::Int)),
        VariableDecl::new("d", Type::Dyn),
        VariableDecl::new("o", Type::optional(Type::map(Type::String, Type::Int))),
    ])
}

fn variables() -> [(&'static str, Value<'static>); 8] {
    let map = || Value::Map(Map::new([(Value::borrowed("a"), Value::Int(1)), (Value::borrowed("b"), Value::Int(2))]));
    [
        ("s", Value::borrowed("0123456789")),
        ("i", Value::Int(7)),
        ("b", Value::Bool(true)),
        ("l", Value::list(vec![Value::borrowed("a"), Value::borrowed("b"), Value::borrowed("c")])),
        ("n", Value::list(vec![Value::Int(1), Value::Int(2), Value::Int(3)])),
        ("m", map()),
        ("d", Value::Int(1)),
        ("o", Value::some(map())),
    ]
}

fn program(source: &str) -> Program {
    let ast = parse(source, &ParserOptions::default()).unwrap_or_else(|issues| panic!("{issues}"));
    let checked = check(&env(), ast).unwrap_or_else(|issues| panic!("{issues}"));
    Program::new(&checked).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn evaluate(source: &str) -> (String, u64) {
    let program = program(source);
    let evaluation = program.eval(&variables(), Limits::NONE);
    (evaluation.result.map_or_else(|error| error.to_string(), |value| value.to_string()), evaluation.cost)
}

#[test]
fn evaluations_cost_what_upstream_charges() {
    let mut wrong = Vec::new();
    for (source, cost) in [
        // Constants are free, even within lists and maps; variables and selections cost 1 each.
        ("true", 0),
        ("[1, 2, 3] == [1, 2, 3]", 1),
        ("i == 7", 2),
        ("m.a == 1", 3),
        ("m['a'] == 1", 3),
        ("m[l[0]] == 1", 4),
        ("n[i - 6] == 2", 5),
        ("has(m.a)", 1),
        ("has(m.a) && has(m.b)", 2),
        // A selection from what is no variable is charged for twice.
        ("{'a': i}.a == 7", 34),
        // Branches of a conditional are not charged for as variables.
        ("b ? i : i", 1),
        ("b ? m.a : m.b", 2),
        ("(b ? m : m).a == 1", 3),
        // Calls.
        ("s.startsWith('0123456789x')", 3),
        ("s.contains('0123456789x')", 3),
        ("s.matches('^[0-9]+$')", 5),
        ("s + s == s", 6),
        ("s < 'x'", 2),
        ("!b", 2),
        ("-i", 2),
        ("size(l)", 2),
        ("dyn(i) == 7", 3),
        ("type(i) == int", 3),
        // A search in a constant list is free.
        ("i in [1, 2, 3]", 1),
        ("i in n", 5),
        ("'a' in m", 2),
        // Loops: for each element the condition (2, or 3 for exists), the accumulator and the predicate.
        ("n.all(x, x > 0)", 17),
        ("n.exists(x, x > 5)", 20),
        ("n.exists(x, x == 1)", 11),
        ("[].all(x, x > 0)", 1),
        ("n.exists_one(x, x == 1)", 11),
        ("n.map(x, x)", 41),
        ("n.map(x, 1)", 8),
        ("n.filter(x, x > 1)", 34),
        ("n.all(k, v, v > k)", 20),
        ("n.transformMap(k, v, v)", 14),
        // Optionals.
        ("o.?a.orValue(0) == 1", 3),
        ("o.a.orValue(0) == 1", 3),
        ("o[?'z'].orValue(0) == 1", 2),
        ("o.hasValue()", 2),
        ("optional.of(i).optMap(x, x + 1).value() == 8", 11),
        // Libraries.
        ("l.isSorted()", 1),
        ("n.sum() == 6", 5),
        ("l.join('') == 'abc'", 3),
        ("sets.contains(l, ['a'])", 5),
        ("quantity('1Gi').isLessThan(quantity('2Gi'))", 3),
        ("quantity('1Gi') == quantity('1Gi')", 3),
        ("ip('1.2.3.4').family() == 4", 3),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3),
        ("format.dns1123Label().validate('abc').hasValue()", 10),
        ("'%s'.format([i]) == '7'", 13),
    ] {
        let (result, got) = evaluate(source);
        if got != cost {
            wrong.push(format!("{source} gives {result} for {got}, not {cost}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_are_absorbed_where_another_term_decides() {
    for (source, expected) in [
        ("1 / (i - 7) > 0 && false", "false"),
        ("1 / (i - 7) > 0 || true", "true"),
        ("1 / (i - 7) > 0 && 2 % (i - 7) > 0", "division by zero"),
        ("dyn('x') && true", "no such overload"),
        ("n.exists(x, x == 3 || 6 / (x - 1) > 0)", "true"),
        ("n.all(x, 6 / (x - 1) > 5)", "false"),
        ("n.all(x, 6 / (x - 1) > 0)", "division by zero"),
        ("n.filter(x, 6 / (x - 1) > 0)", "division by zero"),
        ("b ? 1 : 1 / 0", "1"),
        ("optional.of(1).orValue(1 / 0)", "1"),
        ("optional.none().optMap(x, 1 / 0).hasValue()", "false"),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn values_no_overload_takes_are_named_by_type_where_upstream_names_them() {
    for (source, expected) in [
        ("dyn(i).charAt(0) == ''", "no such overload: charAt(int, int)"),
        ("dyn(s).getHours() == 1", "no such overload: getHours(string)"),
        ("int(dyn(b)) == 1", "no such overload: int(bool)"),
        ("string([dyn(null)][0]) == ''", "no such overload: string(null_type)"),
        ("duration(dyn(i)) == duration('1s')", "type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("dyn(i).startsWith('a')", "no such overload"),
        ("dyn(i).matches('a')", "no such overload"),
        ("dyn(i).matches(s)", "no such overload"),
        ("dyn(i).find(s) == ''", "no such overload: find(int, string)"),
        ("l.all(x, l.exists(y, x.matches(y)))", "true"),
        ("dyn(i).size() == 1", "no such overload: size"),
        ("dyn(i) < 'a'", "no such overload"),
        ("cidr('10.0.0.0/8').containsIP('bad')", "no such overload"),
        ("dyn(i).orValue(1) == 1", "no such overload"),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn an_optional_selection_reaches_to_the_end_of_its_chain() {
    for (source, expected) in [
        ("o.?a.value()", "1"),
        ("o.a.value()", "1"),
        ("o.?z.hasValue()", "false"),
        ("o.z.hasValue()", "false"),
        ("has(o.a) && !has(o.z)", "true"),
        ("optional.none().?x.y.hasValue()", "false"),
        ("{'a': {'b': 1}}.?a.b.value()", "1"),
        ("(b ? m.?a : m.?z).hasValue()", "true"),
        ("[?m[?'a'], ?m[?'z']].size()", "1"),
        ("{?'x': m[?'z']}.size()", "0"),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn the_cost_limit_ends_an_evaluation_whatever_surrounds_it() {
    for source in ["n.all(x, n.all(y, x + y > 0))", "true || n.size() > 0 || n.all(x, x > 0)", "n.map(x, n.map(y, y))"]
    {
        let program = program(source);
        let full = program.eval(&variables(), Limits::NONE).cost;
        for limit in 0..full {
            let evaluation = program.eval(&variables(), Limits::cost(limit));
            let error = evaluation.result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CostLimit);
            assert_eq!(error.message(), "operation cancelled: actual cost limit exceeded");
            assert!(evaluation.cost > limit);
        }
        assert!(program.eval(&variables(), Limits::cost(full)).result.is_ok());
    }
}

#[test]
fn values_that_would_be_huge_end_the_evaluation() {
    // Thirty doublings of a list, of which the price counts none.
    let doubled = format!("[[s]]{}", ".map(x, [x, x])".repeat(30));
    for source in [
        format!("{doubled} == {doubled}"),
        format!("'%s'.format([{doubled}]) == s"),
        format!("{doubled}.map(x, {{'k': x}}).map(x, '%s'.format([x])) == l"),
        "l.map(x, s.replace('', s).replace('', s).replace('', s).replace('', s).replace('', s).replace('', s)) == l"
            .to_owned(),
    ] {
        let error = program(&source).eval(&variables(), Limits::cost(1_000_000)).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CostLimit, "{error}: {source}");
    }
}

#[test]
fn joining_long_lists_copies_nothing() {
    let program =
        program("d.map(x, d + d).all(x, x.size() == 2 * d.size() && x[d.size()] == d[0]) && (d + d)[1999] == 999");
    let numbers = Value::list((0..1000).map(Value::Int).collect());
    assert!(matches!(program.eval(&[("d", numbers)], Limits::NONE).result, Ok(Value::Bool(true))));
}

#[test]
fn an_interruption_is_asked_for_every_hundred_iterations() {
    let program = program("d.all(x, d.exists(y, y == x))");
    let numbers = Value::list((0..100).map(Value::Int).collect());
    let asked = Cell::new(0);
    let interrupt = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let limits = Limits { cost: u64::MAX, interrupt: Some(&interrupt) };
    let error = program.eval(&[("d", numbers)], limits).result.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Interrupted, "operation interrupted"));
    assert_eq!(asked.get(), 3);
}

#[test]
fn variables_are_asked_for_once_and_only_when_used() {
    struct Counting(Cell<usize>);
    impl<'a> Activation<'a> for Counting {
        fn resolve(&self, name: &str) -> Option<Result<Value<'a>>> {
            self.0.set(self.0.get() + 1);
            match name {
                "i" => Some(Ok(Value::Int(1))),
                "b" => Some(Err(Error::new("b is broken"))),
                _ => None,
            }
        }
    }
    for (source, asked, expected) in [
        ("i + i + i == 3", 1, "true"),
        ("true || b", 0, "true"),
        ("b || b", 1, "b is broken"),
        ("s == ''", 1, "no such attribute(s): s"),
    ] {
        let activation = Counting(Cell::new(0));
        let program = program(source);
        let result = program.eval(&activation, Limits::NONE).result;
        assert_eq!(result.map_or_else(|error| error.to_string(), |value| value.to_string()), expected, "{source}");
        assert_eq!(activation.0.get(), asked, "{source}");
    }
}

#[test]
fn values_that_cannot_be_compared_are_an_error_of_the_left_side_only() {
    let overload = "no such overload";
    for (source, expected) in [
        // A sum of quantities is not known on the right.
        ("quantity('2') == quantity('1').add(1)", overload),
        ("quantity('1').add(1) == quantity('2')", "true"),
        ("quantity('2') != quantity('1').add(quantity('1'))", "true"),
        ("quantity('2') in [quantity('3').sub(1)]", "false"),
        ("[quantity('2')] == [quantity('3').sub(1)]", "true"),
        ("optional.of(quantity('2')) == optional.of(quantity('1').add(1))", overload),
        ("dyn(quantity('1')) == dyn(ip('::1'))", overload),
        ("dyn(quantity('1')) != dyn(ip('::1'))", "true"),
        ("dyn(1) == dyn(quantity('1'))", "false"),
        ("dyn(quantity('1')) == null", "false"),
        ("[dyn(1)].indexOf(dyn(quantity('1')))", "-1"),
        ("sets.contains([dyn(quantity('1'))], [dyn(1)])", "false"),
        // Types with functions of their own do not name the operator that they lack.
        ("dyn('a') % dyn(1)", overload),
        ("dyn(duration('1s')) * dyn(1)", overload),
        ("size(dyn(duration('1s')))", overload),
        ("-dyn(true)", overload),
        ("-dyn(1u)", "no such overload: -_"),
        ("-dyn(null)", "no such overload: -_"),
        ("size(dyn(1))", "no such overload: size"),
        ("dyn([1]) % dyn(1)", "no such overload: _%_"),
        // The first element decides whether a list has an overload.
        ("dyn([true, false]).sum()", "no such overload: sum(list)"),
        ("[dyn(null)].min()", "no such overload: min(list)"),
        ("[dyn([1])].isSorted()", "no such overload: isSorted(list)"),
        ("dyn([1]).join(',')", "no such overload: join(list, string)"),
        ("'%s'.format(dyn(1))", "no such overload: format(string, int)"),
        ("n[dyn(n)]", "invalid qualifier type: *types.baseList"),
        ("dyn(quantity('1')).all(x, true)", "got 'cel.Quantity', expected iterable type"),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn constants_that_cannot_be_converted_are_found_when_the_program_is_made() {
    for (source, expected) in [
        ("string(int('abc')) == 'x'", "type conversion error from 'string' to 'int'"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("int(null) == 1", "no such overload: int(null_type)"),
        ("string(null) == 'null'", "no such overload: string(null_type)"),
        ("timestamp(dyn('x')) == timestamp(0)", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        (
            "duration(string('x')) == duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        ("{}[null] == 1", "invalid qualifier type: types.Null"),
        ("dyn({'a': 1})[[1]] == 1", "invalid qualifier type: *types.baseList"),
        ("d[?b'x'] == optional.none()", "invalid qualifier type: types.Bytes"),
        ("{1: 2}[dyn(int)] == 1", "invalid qualifier type: *types.Type"),
        ("string(b'\\xff') == 'x'", "invalid UTF-8 in bytes, cannot convert to string"),
    ] {
        let checked = check(&env(), parse(source, &ParserOptions::default()).unwrap()).unwrap();
        assert_eq!(Program::new(&checked).unwrap_err().message(), expected, "{source}");
    }
}

#[test]
fn literals_of_well_known_messages_are_values_of_the_language() {
    for (source, expected) in [
        ("google.protobuf.Int64Value{value: 3} == 3", "true"),
        ("google.protobuf.BoolValue{}", "false"),
        ("google.protobuf.Duration{seconds: 1, nanos: 5} == duration('1.000000005s')", "true"),
        ("google.protobuf.Timestamp{seconds: 60} == timestamp(60)", "true"),
        ("google.protobuf.Struct{} == {}", "true"),
        ("google.protobuf.Value{string_value: s} == s", "true"),
        (
            "google.protobuf.Int32Value{value: 3000000000}",
            "range error setting field 'value' of google.protobuf.Int32Value",
        ),
        (
            "google.protobuf.Any{} == 1",
            "anypb.UnmarshalNew() failed during type conversion: proto: invalid empty type URL",
        ),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn functions_of_the_embedding_program_are_called_by_name() {
    struct Double;
    impl ExternalFunction for Double {
        fn call<'a>(&self, args: &[Value<'a>]) -> Result<Value<'a>> {
            match args {
                [Value::Int(value)] => Ok(Value::Int(value * 2)),
                _ => Err(Error::no_such_overload()),
            }
        }
    }
    let overload = OverloadDecl::global("double_it_int", [Type::Int], Type::Int);
    let library = Library::new("test", Version(1, 0), vec![FunctionDecl::new("doubleIt", [overload])]);
    let env = Registry::kubernetes().with(library).env(Version(1, 33), ExpressionSet::Stored);
    let checked = check(&env, parse("doubleIt(21)", &ParserOptions::default()).unwrap()).unwrap();
    let mut functions = Functions::new();
    functions.insert("doubleIt", Arc::new(Double));
    let program = Program::with_functions(&checked, &functions).unwrap();
    assert!(matches!(program.eval(&[], Limits::NONE).result, Ok(Value::Int(42))));
    let program = Program::new(&checked).unwrap();
    assert_eq!(program.eval(&[], Limits::NONE).result.unwrap_err().message(), "no such overload: doubleIt");
}

#[test]
fn lists_with_rules_of_their_own_keep_them_when_added_to() {
    struct Set;
    impl ListSemantics for Set {
        fn equals(&self, list: &List<'_>, other: &List<'_>) -> Result<bool> {
            Ok(list.len() == other.len()
                && list.iter().all(|a| other.iter().any(|b| a.as_ref().unwrap().equals(&b.unwrap()) == Ok(true))))
        }
        fn add<'a>(&'a self, list: &List<'a>, other: &List<'a>) -> Result<Value<'a>> {
            let mut elements = list.iter().collect::<Result<Vec<_>>>()?;
            for element in other.iter() {
                let element = element?;
                if !elements.iter().any(|known| known.equals(&element) == Ok(true)) {
                    elements.push(element);
                }
            }
            Ok(Value::List(List::Ruled(Arc::new(elements), self)))
        }
    }
    let set = Value::List(List::Ruled(Arc::new(vec![Value::borrowed("a"), Value::borrowed("b")]), &Set));
    let program = program("l + ['b', 'c'] == ['c', 'b', 'a'] && (l + l).size() == 2");
    assert!(matches!(program.eval(&[("l", set)], Limits::NONE).result, Ok(Value::Bool(true))));
}

#[test]
fn lists_and_maps_made_by_loops_do_not_change_what_they_were_made_of() {
    for (source, expected) in [
        ("n.map(x, n.map(y, x * y)).map(r, r.sum()).sum()", "36"),
        ("n.map(x, [x]).map(r, r + r).size()", "3"),
        ("n.filter(x, x > 1).map(x, x) == [2, 3]", "true"),
        ("[n, n].map(x, x.map(y, y)) == [[1, 2, 3], [1, 2, 3]]", "true"),
        ("n.transformMap(k, v, n.transformMap(j, w, w * v)).size()", "3"),
        ("n.transformMapEntry(k, v, {'x': v})", "insert failed: key x already exists"),
    ] {
        assert_eq!(evaluate(source).0, expected, "{source}");
    }
}

#[test]
fn the_deepest_expressions_run_on_a_small_stack() {
    let nested =
        [("[", "1", "]"), ("-(", "i", ")"), ("dyn(", "1", ")"), ("b ? (", "i", ") : i"), ("n.map(x, ", "i", ")")];
    for (open, inner, close) in nested {
        // Reading the text is not what is tested.
        let checked = on_stack(64 << 20, move || {
            let sources = (10..250).rev().map(|depth| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
            let ast = sources.filter_map(|source| parse(&source, &ParserOptions::default()).ok()).next().unwrap();
            check(&env(), ast).unwrap()
        });
        let program = on_stack(1536 << 10, move || Program::new(&checked).unwrap());
        // Nested loops would run for ever: their cost ends them.
        let result = on_stack(1 << 20, move || {
            program.eval(&variables(), Limits::cost(100_000)).result.map(|_| ()).map_err(|error| error.kind())
        });
        assert!(matches!(result, Ok(()) | Err(ErrorKind::CostLimit)), "{open} {result:?}");
    }
}

fn on_stack<T: Send + 'static>(size: usize, run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(size).spawn(run).unwrap().join().unwrap()
}
