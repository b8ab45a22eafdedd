//! Texts a real server refused to parse are refused with the same words.

use cel::parse::{ParserOptions, parse};
use serde_json::Value;
use std::collections::BTreeSet;

/// What only the parser complains about.
const PARSER_WORDS: [&str; 12] = [
    "Syntax error",
    "reserved identifier",
    "recursion",
    "invalid int literal",
    "invalid uint literal",
    "invalid double literal",
    "unescape",
    "invalid unicode code point",
    "unsupported",
    "simple name",
    "overwrites accumulator",
    "duplicate variable name",
];

/// All values of `key` in `value`.
fn find<'v>(value: &'v Value, key: &str, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner {
                    Value::String(text) if name == key => {
                        found.insert(text);
                    }
                    _ => find(inner, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find(item, key, found)),
        _ => {}
    }
}

#[test]
fn refusals_of_a_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compat/golden/cel-compile.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no recorded cases");
        return;
    };
    let golden: Value = serde_json::from_str(&text).expect("JSON");
    let (mut passed, mut failed) = (0, Vec::new());
    for case in golden["cases"].as_array().into_iter().flatten() {
        for step in case["steps"].as_array().into_iter().flatten() {
            let (mut rules, mut messages) = (BTreeSet::new(), BTreeSet::new());
            find(&step["body"], "rule", &mut rules);
            find(&step["body"], "messageExpression", &mut messages);
            for cause in step["expect"]["body"]["details"]["causes"].as_array().into_iter().flatten() {
                let message = cause["message"].as_str().unwrap_or_default();
                let Some((_, expected)) = message.split_once("ompilation failed: ") else { continue };
                let is_rule = cause["field"].as_str().is_some_and(|field| field.ends_with(".rule"));
                let texts = if is_rule { &rules } else { &messages };
                let answers: Vec<String> = texts
                    .iter()
                    .filter_map(|text| parse(text, &ParserOptions::default()).err())
                    .map(|issues| issues.to_string())
                    .collect();
                if answers.iter().any(|answer| answer == expected) {
                    passed += 1;
                } else if answers.len() == texts.len() || PARSER_WORDS.iter().any(|word| expected.contains(word)) {
                    failed.push(format!("{} expected:\n{expected}\nfound:\n{}\n", case["id"], answers.join("\nor\n")));
                }
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
