//! Any object of any schema gets a verdict, and what was pruned and defaulted once stays as it is.
//!
//! The input is `{"schema": SCHEMA of spec, "new": SPEC, "old": SPEC}`.
//! Run with `cargo +nightly fuzz run object` in `crates/schema`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Value, json};
use schema::{Version, crd};

const DEFINITION: &[u8] = br#"{"metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Cluster",
    "names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{}}}}}]}}"#;
const OBJECT: &[u8] = br#"{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"a"}}"#;

fuzz_target!(|text: &[u8]| {
    let Ok(input) = json::parse(text) else { return };
    let Some(schema) = input.get("schema") else { return };
    let mut body = json::parse(DEFINITION).expect("it is JSON");
    let versions = body.get_mut("spec").and_then(|s| s.get_mut("versions")).and_then(Value::as_array_mut);
    let version = versions.and_then(|v| v.first_mut()).expect("there is a version");
    version.set_at(&["schema", "openAPIV3Schema", "properties", "spec"], schema.clone());
    let Ok(decoded) = crd::decode(&body) else { return };
    let mut definition = decoded.definition;
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    if !crd::validate(&definition).is_empty() {
        return;
    }
    let version = Version::new(&definition, "v1").expect("it is valid").expect("it is there");
    let read = |part: &str| {
        let mut object = json::parse(OBJECT).expect("it is JSON");
        object.set_at(&["spec"], input.get(part).cloned().unwrap_or(Value::Null));
        version.receive(&mut object, true).ok().map(|_| object)
    };
    let (Some(new), Some(old)) = (read("new"), read("old")) else { return };
    let mut again = new.clone();
    let dropped = version.receive(&mut again, true).expect("it was received before");
    assert!(dropped.is_empty(), "{dropped:?}");
    assert_eq!(again, new);
    for error in version.validate(&new).errors {
        assert!(!error.to_string().is_empty());
    }
    version.validate_update(&new, &old);
    version.validate_status_update(&new, &old);
});
