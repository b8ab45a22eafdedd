//! What an evaluation costs never exceeds what was estimated, over data within the sizes the estimate assumed.
#![allow(clippy::unwrap_used, reason = "a rule that does not compile is a failure")]

use cel::check::check;
use cel::env::VariableDecl;
use cel::estimate::{SizeEstimate, SizeEstimator, Step, estimate};
use cel::interpret::{Limits, Program};
use cel::library::{ExpressionSet, Registry, Version};
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{Map, Value};
use proptest::prelude::*;

const MAX_ITEMS: u64 = 6;
const MAX_LENGTH: u64 = 25;

/// Rules over `s` (text), `l` (texts), `n` (integers), `m` (texts to integers) and `i`.
const RULES: &[&str] = &[
    "s == 'abcdefghijklmnop'",
    "s + s + 'x' != s",
    "s.contains('abcdefghijkl') || s.startsWith('abc') && s.endsWith('bcdefghijklmnop')",
    "s.matches('^[a-z]+$') ? s.size() > 3 : s.lowerAscii() == 'x'",
    "s.replace('a', 'bcd').size() > 3 && s.split('b').size() > 1 && s.trim() == s",
    "s.find('[a-z]+') == s && s.findAll('b', 2).size() < 3",
    "s.substring(0) == s && s.indexOf('b') > 0",
    "l.all(x, x.size() < 10)",
    "l.exists(x, x == s) || l.exists_one(x, x.startsWith('ab'))",
    "l.all(x, l.exists(y, y == x) && x.size() < 50)",
    "l.map(x, x + 'a').size() > 1",
    "l.filter(x, x.contains('abcdefghijk')).size() > 1",
    "l.all(i, v, v.size() > i)",
    "l.transformMap(i, v, v.size()).size() > 1",
    "l.isSorted() && l.join(',') != s",
    "l == ['a', 'b'] || s in l",
    "sets.contains(l, ['a', 'b']) || sets.equivalent(l, l)",
    "n.sum() > 3 || n.max() == n.min()",
    "n.map(x, x * 2).filter(x, x > 3).all(x, x < 100)",
    "n[0] > 1 && n[n.size() - 1] > 1 && n[?i].orValue(1) == 1",
    "m.all(k, m[k] > 1 && k.matches('^[a-z]+$'))",
    "m.exists(k, v, v > 3 && k.size() > 2)",
    "has(m.a) && m.a > 3 || m.?b.hasValue()",
    "isQuantity(s) && quantity(s).isLessThan(quantity('1Gi'))",
    "isIP(s) || isCIDR(s) || isURL(s)",
    "format.dns1123Label().validate(s).hasValue()",
    "'%s %d'.format([s, i]) == s",
    "i > 3 && i < 5 || i + 2 * 3 == -i",
    "type(i) == int && dyn(s) == 'abc' && string(i) == s",
    "optional.of(s).optMap(x, x.size()).orValue(0) > 1",
];

struct Sizes;

impl SizeEstimator for Sizes {
    fn size(&self, path: &[Step]) -> Option<SizeEstimate> {
        let max = match path {
            [Step::Field(name)] => match &**name {
                "s" => MAX_LENGTH,
                "l" | "n" | "m" => MAX_ITEMS,
                _ => return None,
            },
            [Step::Field(name), ..] if matches!(&**name, "l" | "m") => MAX_LENGTH,
            _ => return None,
        };
        Some(SizeEstimate { min: 0, max })
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,25}",
        (0..=MAX_LENGTH as usize).prop_map(|length| "abcdefghijklmnopqrstuvwxyz"[..length].to_owned()),
        Just("10.0.0.1".to_owned()),
        Just("500Mi".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evaluations_stay_within_their_estimates(
        s in text(),
        l in prop::collection::vec(text(), 0..=MAX_ITEMS as usize),
        n in prop::collection::vec(-9i64..9, 0..=MAX_ITEMS as usize),
        m in prop::collection::btree_map(text(), -9i64..9, 0..=MAX_ITEMS as usize),
        i in -9i64..9,
    ) {
        let env = Registry::kubernetes().env(Version(1, 33), ExpressionSet::Stored).with_variables([
            VariableDecl::new("s", Type::String),
            VariableDecl::new("l", Type::list(Type::String)),
            VariableDecl::new("n", Type::list(Type::Int)),
            VariableDecl::new("m", Type::map(Type::String, Type::Int)),
            VariableDecl::new("i", Type::Int),
        ]);
        for rule in RULES {
            let checked = check(&env, parse(rule, &ParserOptions::default()).unwrap()).unwrap();
            let bound = estimate(&checked, &Sizes).max;
            let program = Program::new(&checked).unwrap();
            let entries = m.iter().map(|(key, value)| (Value::borrowed(key), Value::Int(*value)));
            let variables = [
                ("s", Value::borrowed(&s)),
                ("l", Value::list(l.iter().map(|text| Value::borrowed(text)).collect())),
                ("n", Value::list(n.iter().copied().map(Value::Int).collect())),
                ("m", Value::Map(Map::new(entries))),
                ("i", Value::Int(i)),
            ];
            let evaluation = program.eval(&variables, Limits::NONE);
            prop_assert!(evaluation.cost <= bound, "{rule} cost {}, estimated {bound}: {:?}", evaluation.cost, evaluation.result);
        }
    }
}
