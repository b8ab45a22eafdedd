//! Exact costs, measured on a real 1.33.13 server: the factor a rule on the items of a long list is refused by,
//! printed with six decimals, gives the cost.

use std::sync::Arc;

use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::estimate::{estimate, explain};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use serde_json::{Value, json};

use crate::schema::{DeclType, Objects, convert};

fn node() -> DeclType {
    let string = |max: u64| json!({"type": "string", "maxLength": max});
    let list = |items: Value, max: u64| json!({"type": "array", "items": items, "maxItems": max});
    let item = json!({"type": "object", "properties": {
        "p": list(string(10), 1000), "q": list(string(10), 2), "s": string(3), "t": string(250),
    }});
    let schema = json!({"type": "object", "properties": {
        "a": string(10),
        "u": string(100),
        "i": {"type": "integer"},
        "b": {"type": "boolean"},
        "e": {"type": "string", "enum": ["abc", "defgh"]},
        "l": list(string(5), 7),
        "m": {"type": "object", "additionalProperties": string(5), "maxProperties": 6},
        "ls": list(item, 10),
        "x": {"x-kubernetes-int-or-string": true},
        "d": {"type": "string", "format": "date-time"},
    }});
    convert(&schema, false).expect("the schema has a type")
}

fn checked(rule: &str, decl: &DeclType) -> cel::checked::CheckedAst {
    let (objects, ty) = Objects::of(decl, "selfType");
    let env = Env::kubernetes(ExpressionSet::New)
        .with_provider(Arc::new(objects))
        .with_variables([VariableDecl::new("self", ty)]);
    let ast = parse(rule, &ParserOptions::default()).unwrap_or_else(|issues| panic!("{rule}: {issues}"));
    check(&env, ast).unwrap_or_else(|issues| panic!("{rule}: {issues}"))
}

#[test]
fn costs_are_exact() {
    let decl = node();
    for (rule, cost) in [
        (r#"self.i == 5"#, 2),
        (r#"self.a == "x""#, 3),
        (r#"self.a == "1234567890123456789012""#, 5),
        (r#"self.b"#, 2),
        (r#"has(self.a)"#, 1),
        (r#"self.a.contains("abcdefghijkl")"#, 10),
        (r#"self.a.matches("^a+$")"#, 7),
        (r#"matches(self.a,"^a+$")"#, 3),
        (r#"self.l.all(x, x == "ab")"#, 38),
        (r#"self.l.exists(x, x.startsWith("abc"))"#, 45),
        (r#"self.m.all(k, k.matches("^[a-z]+$"))"#, 39),
        (r#"self.m.all(k, self.m[k] == "a")"#, 51),
        (r#"self.m.all(k, v, v == "a")"#, 33),
        (r#"self.ls.all(l, l.p.all(x, l.q.size() > 0))"#, 203),
        (r#"self.ls.all(l, l.p.all(x, l.p.size() > 0))"#, 70063),
        (r#"self.ls.all(l, l.p.all(x, true))"#, 30063),
        (r#"self.ls.all(l, l.q.all(x, l.p.size() > 0))"#, 70063),
        (r#"self.l.size() == 3"#, 4),
        (r#"self.l == ["a"]"#, 13),
        (r#""a" in self.l"#, 9),
        (r#"self.l.isSorted()"#, 23),
        (r#"self.a.replace("a","bcd") == "x""#, 11),
        (r#"quantity(self.a).isLessThan(quantity("1"))"#, 8),
        (r#"self.a.lowerAscii() == "abc""#, 7),
        (r#"self.e == "abc""#, 3),
        (r#"self.d > timestamp("2020-01-01T00:00:00Z")"#, 4),
        (r#"self.d == timestamp("2020-01-01T00:00:00Z")"#, 4),
        (r#"type(self.x) == int"#, 4),
        (r#"self.?a.hasValue()"#, 3),
        (r#"self.?a.orValue("x").size() > 1"#, 5),
        (r#"self.?a.orValue("x") == "y""#, 4),
        (r#"[1,2,3].all(x, x > 0)"#, 26),
        (r#"{"a":1}.all(k, k == "a")"#, 35),
        (r#"self.a == "a" && self.b"#, 5),
        (r#"self.b ? self.a == "abcdefghijklmnopqrstuvwxyz" : true"#, 7),
        (r#"sets.contains(self.l, ["a","b"])"#, 27),
        (r#"self.l.map(x, x + "a").size() > 1"#, 127),
        (r#"self.l.filter(x, x == "a").size() > 1"#, 120),
        (r#"self.l.join(",") == "a""#, 18),
        (r#"self.a.split(",").size() > 1"#, 12),
        (r#"self.a.split(",", 3).size() > 1"#, 12),
        (r#"ip(self.a).family() == 4"#, 8),
        (r#"isIP(self.a)"#, 6),
        (r#"cidr(self.a).containsIP("1.2.3.4")"#, 11),
        (r#"url(self.u) == url(self.a)"#, 52),
        (r#"self.a.format([self.i]) == "a""#, 19),
        (r#"string(self.i) == "1""#, 4),
        // Of unknown size: a tenth of the greatest.
        (r#"(self.a + string(self.i)) == "a""#, 1_844_674_407_370_955_270),
        (r#"self.x.size() > 1"#, 4),
        (r#"dyn(self.a) == "a""#, 4),
        (r#"!format.dns1123Label().validate(self.a).hasValue()"#, 133),
        (r#"self.ls[0].p[1] == "a""#, 6),
        (r#"self.ls.all(l, l.p[l.q.size()] == "a")"#, 103),
        (r#"self.ls.exists_one(l, l.s == l.t)"#, 84),
    ] {
        let checked = checked(rule, &decl);
        assert_eq!(estimate(&checked, &decl).max, cost, "{rule}");
        assert_eq!(explain(&checked, &decl).0.max, cost, "{rule}, explained");
    }
}

#[test]
fn an_explanation_names_the_cost_of_every_part() {
    let decl = node();
    let checked = checked("self.l.all(x, x.startsWith(self.a))", &decl);
    let (cost, nodes) = explain(&checked, &decl);
    assert_eq!(cost, estimate(&checked, &decl));
    let root = nodes.last().expect("there are nodes");
    assert_eq!((root.id, root.cost), (checked.expr().id, cost));
    let list = nodes.iter().find(|node| node.path.len() == 2 && node.size.is_some_and(|size| size.max == 7));
    assert!(list.is_some(), "self.l has a path and a size");
}
