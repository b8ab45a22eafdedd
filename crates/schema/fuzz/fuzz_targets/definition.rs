//! Any text of a definition, JSON or YAML, gets a verdict; one that is accepted can be served and published.
//!
//! Run with `cargo +nightly fuzz run definition` in `crates/schema`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Value, json, yaml};
use schema::{Version, crd};

fuzz_target!(|text: &[u8]| {
    let body = if text.first() == Some(&b'{') { json::parse(text).ok() } else { yaml::parse(text).ok() };
    let Some(Ok(decoded)) = body.map(|body| crd::decode(&body)) else { return };
    let mut definition = decoded.definition;
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    let errors = crd::validate(&definition);
    crd::rule_costs(&definition);
    assert!(errors.iter().all(|e| !e.to_string().is_empty()));
    let _ = crd::validate_update(&definition, &definition);
    if !errors.is_empty() {
        return;
    }
    let versions = definition.get("spec").and_then(|s| s.get("versions")).and_then(Value::as_array);
    for version in versions.into_iter().flatten() {
        let name = version.get("name").and_then(Value::as_str).expect("a valid version has a name");
        assert!(matches!(Version::new(&definition, name), Ok(Some(_))), "{name}");
        let _ = schema::openapi::publish(&definition, name, schema::openapi::Dialect::V2);
    }
});
