//! Any expression is refused with words, or has a cost and a result within its limit.
//!
//! Run with `cargo +nightly fuzz run evaluate` in `crates/cel`.
#![no_main]

use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::estimate::{estimate, explain};
use cel::interpret::{Functions, Limits, Program};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{Map, Value};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    Env::kubernetes(ExpressionSet::Stored).with_variables([
        VariableDecl::new("self", Type::Dyn),
        VariableDecl::new("x", Type::Int),
        VariableDecl::new("s", Type::String),
        VariableDecl::new("l", Type::list(Type::String)),
        VariableDecl::new("m", Type::map(Type::String, Type::list(Type::String))),
    ])
});

fn variables() -> [(&'static str, Value<'static>); 5] {
    let list = || Value::list(vec![Value::borrowed("ab"), Value::borrowed("b")]);
    let fields = [(Value::borrowed("p"), Value::borrowed("ab")), (Value::borrowed("q"), list())];
    [
        ("self", Value::Map(Map::new(fields))),
        ("x", Value::Int(1)),
        ("s", Value::borrowed("http://user@[::1]:80/a?b=c#d 10.0.0.0/8 1.2.3-rc.1 2024-02-29T00:00:00Z é")),
        ("l", list()),
        ("m", Value::Map(Map::new([(Value::borrowed("ab"), list())]))),
    ]
}

fuzz_target!(|text: &str| {
    let Ok(ast) = parse(text, &ParserOptions::default()) else { return };
    let limits = Limits::cost(50_000);
    let functions = Functions::new();
    if let Ok(program) = Program::unchecked(&ast, &functions) {
        let _ = format!("{:?}", program.eval(&variables(), limits).result);
    }
    match check(&ENV, ast) {
        Err(issues) => assert!(!issues.to_string().is_empty()),
        Ok(checked) => {
            let cost = estimate(&checked, &());
            assert!(cost.min <= cost.max);
            assert_eq!(explain(&checked, &()).0, cost);
            if let Ok(program) = Program::new(&checked) {
                let _ = format!("{:?}", program.eval(&variables(), limits).result);
            }
        }
    }
});
