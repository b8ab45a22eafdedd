//! Every expression of the language's conformance suite that should parse does.

use cel::parse::{ParserOptions, parse};
use std::path::PathBuf;

#[test]
fn expressions_of_the_conformance_suite_parse() {
    let shared = std::env::var_os("STANCHION_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let Ok(files) = std::fs::read_dir(shared.join("conformance/cel-spec")) else {
        println!("skipped: no conformance suite");
        return;
    };
    let (mut parsed, mut failed) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(file.expect("a folder entry").path()).expect("a readable file");
        let suite: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for case in suite["cases"].as_array().into_iter().flatten() {
            // Names in back quotes are an option that Kubernetes 1.33 leaves off.
            let Some(expr) = case["expr"].as_str().filter(|e| !e.contains('`')) else { continue };
            match parse(expr, &ParserOptions::default()) {
                Ok(_) => parsed += 1,
                Err(issues) => failed.push(format!("{}: {expr}: {issues}", case["name"])),
            }
        }
    }
    println!("{parsed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
