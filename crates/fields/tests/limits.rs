//! Large and deep objects.
#![allow(clippy::unwrap_used)]

use fields::managed::{FieldManager, Kind, NoConversion};
use fields::openapi::crd_schema;
use object::{Value, json};
use std::sync::Arc;
use std::time::Instant;

fn endpoint(schema: &str) -> FieldManager {
    let schema = json::parse(schema.as_bytes()).unwrap();
    let kind = Kind { group: "ex.com".into(), version: "v1".into(), kind: "Any".into() };
    let versions = vec!["ex.com/v1".to_owned()];
    let types = [("ex.com/v1".to_owned(), Arc::new(crd_schema(Some(&schema), false)))];
    FieldManager::new(kind, types, Arc::new(NoConversion { versions }))
}

fn any(spec: &str) -> Value {
    let text = format!(r#"{{"apiVersion":"ex.com/v1","kind":"Any","metadata":{{"name":"o"}},"spec":{spec}}}"#);
    json::parse(text.as_bytes()).unwrap()
}

#[test]
fn objects_may_be_as_deep_as_json_may_be() {
    let endpoint = endpoint(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#);
    let depth = json::MAX_DEPTH - 10;
    let deep = |leaf: &str| any(&format!("{}{leaf}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth)));
    let live = endpoint.apply(None, &deep("1"), "alice", false, 1).unwrap();
    let taken = endpoint.apply(Some(&live), &deep("2"), "bob", true, 2).unwrap();
    let mut changed = taken.clone();
    changed.remove_at(&["spec", "a", "a"]);
    endpoint.on_update(&taken, changed, "tool", 3);
    endpoint.apply(Some(&taken), &any("{}"), "bob", true, 4).unwrap();
}

const LIST: &str = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array",
    "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
    "items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"string"},"w":{"type":"integer"}}}}}}}}"#;

fn items(n: usize, v: &str) -> Value {
    // Keys in an order that is neither sorted nor its reverse.
    let item = |i: usize| format!(r#"{{"k":"item-{}","v":"{v}","w":{i}}}"#, i * 7919 % 1_000_003);
    any(&format!(r#"{{"l":[{}]}}"#, (0..n).map(item).collect::<Vec<_>>().join(",")))
}

/// Seconds of one apply that changes each of n items, the best of three.
fn apply_time(endpoint: &FieldManager, n: usize) -> f64 {
    let live = endpoint.apply(None, &items(n, "1"), "alice", false, 1).unwrap();
    let config = items(n, "2");
    let once = || {
        let start = Instant::now();
        endpoint.apply(Some(&live), &config, "bob", true, 2).unwrap();
        start.elapsed().as_secs_f64()
    };
    once().min(once()).min(once())
}

#[test]
fn the_cost_of_a_keyed_list_grows_as_its_length() {
    let endpoint = endpoint(LIST);
    let (small, large) = (apply_time(&endpoint, 500), apply_time(&endpoint, 8000));
    // Sixteen times the items; a quadratic step would take 256 times as long.
    assert!(large < small * 64.0, "500 items: {small} s, 8000 items: {large} s");
}

/// Prints times; run it with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn times() {
    let endpoint = endpoint(LIST);
    for n in [10, 100, 1000, 10_000] {
        println!("{n} items: {:.1} µs", apply_time(&endpoint, n) * 1e6);
    }
    let live = endpoint.apply(None, &items(100, "1"), "alice", false, 1).unwrap();
    println!("{} bytes", json::to_string(&live).len());
    for (what, config) in [("same", items(100, "1")), ("changed", items(100, "2"))] {
        let start = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(endpoint.apply(Some(&live), &config, "alice", false, 2).unwrap());
        }
        println!("apply, {what}: {:.1} µs", start.elapsed().as_secs_f64() * 1e3);
    }
    let start = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(endpoint.on_update(&live, live.clone(), "tool", 2));
    }
    println!("update: {:.1} µs", start.elapsed().as_secs_f64() * 1e3);
}
