//! How long rules take. Run with `cargo test --release -p cel --test speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, reason = "a rule that does not compile is a failure")]

use std::hint::black_box;
use std::time::Instant;

use cel::check::check;
use cel::env::VariableDecl;
use cel::interpret::{Limits, Program};
use cel::library::{ExpressionSet, Registry};
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{Map, Value};

/// Rules, and the nanoseconds each may take on a machine of the slow kind.
const RULES: &[(&str, u128)] = &[
    ("self.items.all(x, self.items.exists(y, y == x) && x.size() < 50)", 60_000),
    ("self.items.map(x, x + 'y').filter(x, x.startsWith('item')).size() == 30", 20_000),
    ("self.replicas <= self.max", 1_000),
    ("has(self.name) && self.name.startsWith('item') && self.replicas in [1, 2, 3]", 1_000),
    ("self.name.matches('^[a-z0-9]+$')", 1_500),
    ("quantity(self.memory).isLessThan(quantity('2Gi'))", 2_000),
    ("self.replicas > 1 || self.max / (self.replicas - 1) > 2", 1_500),
];

#[test]
#[ignore = "measures time; only a release build means anything"]
fn rules_take_microseconds() {
    let env = Registry::kubernetes()
        .env(cel::library::Version(1, 33), ExpressionSet::Stored)
        .with_variables([VariableDecl::new("self", Type::map(Type::String, Type::Dyn))]);
    let names: Vec<String> = (0..30).map(|index| format!("item{index}")).collect();
    let items = Value::list(names.iter().map(|name| Value::borrowed(name)).collect());
    let root = Value::Map(Map::new([
        (Value::borrowed("items"), items),
        (Value::borrowed("name"), Value::borrowed("item1")),
        (Value::borrowed("memory"), Value::borrowed("1500Mi")),
        (Value::borrowed("replicas"), Value::Int(2)),
        (Value::borrowed("max"), Value::Int(5)),
    ]));
    for (rule, limit) in RULES {
        let ast = parse(rule, &ParserOptions::default()).unwrap();
        let program = Program::new(&check(&env, ast).unwrap()).unwrap();
        let rounds = 2_000;
        let mut best = u128::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..rounds / 10 {
                black_box(program.eval(&[("self", black_box(root.clone()))], Limits::cost(1_000_000)).result.unwrap());
            }
            best = best.min(start.elapsed().as_nanos() / (rounds / 10));
        }
        println!("{best:>8} ns  {rule}");
        assert!(best < *limit, "{rule}: {best} ns");
    }
}
