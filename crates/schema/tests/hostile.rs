//! Input made to hurt: deep, wide, and broken definitions and objects.

#![allow(clippy::unwrap_used, reason = "a test that cannot make its input has failed")]

use object::{Value, json};
use proptest::prelude::*;
use schema::{Version, crd};
use std::time::{Duration, Instant};

/// What an answer may take here, in a debug build beside other tests; a release build is at least ten times as fast.
const LIMIT: Duration = Duration::from_secs(20);

fn definition(schema: &str) -> Value {
    let text = format!(
        r#"{{"metadata":{{"name":"foos.example.com"}},"spec":{{"group":"example.com","scope":"Cluster","names":{{"plural":"foos","kind":"Foo"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    );
    json::parse(text.as_bytes()).unwrap()
}

/// Decodes and checks a definition as a create does; gives it with the number of its errors.
fn judge(body: &Value) -> Option<(Value, usize)> {
    let mut definition = crd::decode(body).ok()?.definition;
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    let errors = crd::validate(&definition).len();
    Some((definition, errors))
}

fn object(spec: &str) -> Value {
    let text = format!(r#"{{"apiVersion":"example.com/v1","kind":"Foo","metadata":{{"name":"a"}},"spec":{spec}}}"#);
    json::parse(text.as_bytes()).unwrap()
}

#[test]
fn deep_schemas_and_objects_overflow_no_stack() {
    let (mut schema, mut value) = (r#"{"type":"string","default":"x"}"#.to_owned(), "null".to_owned());
    for _ in 0..480 {
        schema = format!(
            r#"{{"type":"object","properties":{{"a":{schema}}},"x-kubernetes-validations":[{{"rule":"has(self.a)"}}]}}"#
        );
        value = format!(r#"{{"a":{value}}}"#);
    }
    let body = definition(&format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#));
    let start = Instant::now();
    let (definition, errors) = judge(&body).unwrap();
    assert_eq!(errors, 0);
    crd::rule_costs(&definition);
    let version = Version::new(&definition, "v1").unwrap().unwrap();
    let mut deep = object(&value);
    assert!(version.receive(&mut deep, true).unwrap().is_empty());
    assert!(version.validate(&deep).errors.is_empty());
    assert!(version.validate_update(&deep, &deep).errors.iter().all(|e| e.field.starts_with("metadata")));
    schema::openapi::publish(&definition, "v1", schema::openapi::Dialect::V2).unwrap();
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn deep_branches_overflow_no_stack() {
    let mut branch = r#"{"minLength":1}"#.to_owned();
    for _ in 0..900 {
        branch = format!(r#"{{"not":{branch}}}"#);
    }
    let body =
        definition(&format!(r#"{{"type":"object","properties":{{"spec":{{"type":"string","not":{branch}}}}}}}"#));
    let (definition, errors) = judge(&body).unwrap();
    assert_eq!(errors, 0);
    let version = Version::new(&definition, "v1").unwrap().unwrap();
    version.validate(&object("\"x\""));
}

#[test]
fn wide_objects_full_of_errors_take_bounded_time() {
    let body = definition(
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
            "l":{"type":"array","maxItems":1000000,"items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 5"}]}},
            "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
            "m":{"type":"object","additionalProperties":{"type":"string","pattern":"^a+$"}}}}}}"#,
    );
    let (definition, errors) = judge(&body).unwrap();
    assert_eq!(errors, 0);
    let version = Version::new(&definition, "v1").unwrap().unwrap();
    let list: Vec<&str> = vec!["1"; 200_000];
    let set: Vec<&str> = vec!["\"x\""; 100_000];
    let map: Vec<String> = (0..100_000).map(|i| format!("\"k{i}\":\"b\"")).collect();
    let start = Instant::now();
    for spec in [
        format!(r#"{{"l":[{}]}}"#, list.join(",")),
        format!(r#"{{"s":[{}]}}"#, set.join(",")),
        format!(r#"{{"m":{{{}}}}}"#, map.join(",")),
    ] {
        let mut new = object(&spec);
        version.receive(&mut new, true).unwrap();
        assert!(!version.validate(&new).errors.is_empty());
        // Nothing changed: what was wrong stays.
        version.validate_update(&new, &new);
    }
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
}

#[test]
fn definitions_full_of_rules_take_bounded_time() {
    let rules: Vec<String> = (0..5_000).map(|i| format!(r#"{{"rule":"self.a != {i} || self.zz == {i}"}}"#)).collect();
    let body = definition(&format!(
        r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{"a":{{"type":"integer"}}}},"x-kubernetes-validations":[{}]}}}}}}"#,
        rules.join(",")
    ));
    let start = Instant::now();
    let (_, errors) = judge(&body).unwrap();
    assert_eq!(errors, 5_000);
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
}

/// A JSON value with the words of schemas in it.
fn schema_like() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 34] = [
        "type",
        "object",
        "array",
        "string",
        "integer",
        "properties",
        "items",
        "additionalProperties",
        "default",
        "required",
        "enum",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "nullable",
        "format",
        "pattern",
        "maxItems",
        "maxLength",
        "minimum",
        "x-kubernetes-validations",
        "rule",
        "self == oldSelf",
        "message",
        "fieldPath",
        ".a",
        "x-kubernetes-list-type",
        "map",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
        "metadata",
    ];
    let word = prop::sample::select(WORDS.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<f64>().prop_map(|f| Value::Float(if f.is_finite() { f } else { 0.5 })),
        word.clone().prop_map(Value::from),
        "[a-z({\\[]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_gets_a_verdict(inner in schema_like(), spec in schema_like()) {
        let mut body = definition(r#"{"type":"object","properties":{"spec":{}}}"#);
        let versions = body.get_mut("spec").and_then(|s| s.get_mut("versions")).and_then(Value::as_array_mut);
        if let Some(version) = versions.and_then(|v| v.first_mut()) {
            version.set_at(&["schema", "openAPIV3Schema", "properties", "spec"], inner);
        }
        if let Some((definition, errors)) = judge(&body) {
            crd::rule_costs(&definition);
            crd::validate_update(&definition, &definition);
            if let (0, Ok(Some(version))) = (errors, Version::new(&definition, "v1")) {
                let mut new = object("{}");
                let old = new.clone();
                new.set_at(&["spec"], spec);
                if version.receive(&mut new, true).is_ok() {
                    version.validate(&new);
                    version.validate_update(&new, &old);
                    version.validate_status_update(&new, &old);
                }
            }
        }
    }

    #[test]
    fn any_body_is_decoded_or_refused(body in schema_like()) {
        let _ = crd::decode(&body);
    }
}
