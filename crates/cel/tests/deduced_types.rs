//! The public cel-spec suite as far as the checker is concerned: what must check, and the types it must deduce.

use std::path::PathBuf;

use cel::check::check;
use cel::env::{Env, FunctionDecl, OverloadDecl, Validators, VariableDecl};
use cel::library::{ExpressionSet, Library, Registry, Version};
use cel::parse::{ParserOptions, parse};
use cel::types::{Primitive, Type};
use serde_json::Value;

#[test]
fn types_are_deduced_as_the_specification_says() {
    let Some(cases) = cases("type_deduction") else { return };
    for case in &cases {
        // cel-go, and so Kubernetes, takes the later of an optional and null; it skips this case as well.
        if case["name"] == "null_assignable_to_abstract_parameter_candidate" {
            continue;
        }
        let env = environment(case);
        let expr = case["expr"].as_str().unwrap_or_default();
        let ast = parse(expr, &ParserOptions::default()).unwrap_or_else(|issues| panic!("{expr}: {issues}"));
        let checked = check(&env, ast).unwrap_or_else(|issues| panic!("{expr}: {issues}"));
        let expected = type_of(&case["typed_result"]["deduced_type"]);
        assert_eq!(checked.result_type().to_string(), expected.to_string(), "{expr}");
    }
}

#[test]
fn expressions_with_a_value_check() {
    let files = [
        "basic",
        "comparisons",
        "conversions",
        "fp_math",
        "integer_math",
        "lists",
        "logic",
        "macros",
        "macros2",
        "optionals",
        "parse",
        "plumbing",
        "string",
        "string_ext",
        "timestamps",
    ];
    let (mut good, mut bad) = (0, Vec::new());
    for file in files {
        let Some(cases) = cases(file) else { return };
        for case in &cases {
            let expr = case["expr"].as_str().unwrap_or_default();
            if case.get("value").is_none() || case["disable_check"] == true || needs_messages(case) {
                continue;
            }
            let result = parse(expr, &ParserOptions::default()).and_then(|ast| check(&environment(case), ast));
            match result {
                Ok(_) => good += 1,
                Err(issues) => bad.push(format!("{file} {}: {issues}", case["name"])),
            }
        }
    }
    println!("{good} good");
    assert!(bad.is_empty(), "{} do not check:\n{}", bad.len(), bad.join("\n"));
}

/// Protocol buffers other than the well-known ones are not for Kubernetes.
fn needs_messages(case: &Value) -> bool {
    let text = case.to_string();
    text.contains("TestAllTypes") || text.contains("cel.expr.conformance")
}

fn cases(file: &str) -> Option<Vec<Value>> {
    let shared = match std::env::var_os("STANCHION_SHARED") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let path = shared.join("conformance/cel-spec").join(format!("{file}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no {}", path.display());
        return None;
    };
    let mut suite: Value = serde_json::from_str(&text).expect("the suite is JSON");
    match suite["cases"].take() {
        Value::Array(cases) => Some(cases),
        _ => None,
    }
}

fn environment(case: &Value) -> Env {
    let mut variables = Vec::new();
    let mut functions = Vec::new();
    for decl in case["type_env"].as_array().into_iter().flatten() {
        let name = decl["name"].as_str().unwrap_or_default();
        if let Some(function) = decl.get("function") {
            let overloads = function["overloads"].as_array().into_iter().flatten().map(|overload| {
                let args = overload["params"].as_array().into_iter().flatten().map(type_of);
                let id = overload["overload_id"].as_str().unwrap_or_default();
                OverloadDecl::global(id, args, type_of(&overload["result_type"]))
            });
            functions.push(FunctionDecl::new(name, overloads));
        } else {
            variables.push(VariableDecl::new(name, type_of(&decl["ident"]["type"])));
        }
    }
    let env = if functions.is_empty() {
        Env::kubernetes(ExpressionSet::Stored).clone()
    } else {
        let registry = Registry::kubernetes().with(Library::new("test", Version(1, 0), functions));
        registry.env(Version::COMPATIBILITY, ExpressionSet::Stored)
    };
    env.with_validators(Validators::NONE).with_variables(variables)
}

fn type_of(ty: &Value) -> Type {
    let Some((kind, value)) = ty.as_object().and_then(|ty| ty.iter().next()) else { return Type::Dyn };
    let primitive = |name: &Value| match name.as_str() {
        Some("BOOL") => Primitive::Bool,
        Some("INT64") => Primitive::Int,
        Some("UINT64") => Primitive::Uint,
        Some("DOUBLE") => Primitive::Double,
        Some("BYTES") => Primitive::Bytes,
        _ => Primitive::String,
    };
    match kind.as_str() {
        "primitive" => primitive(value).unwrapped(),
        "wrapper" => Type::Wrapper(primitive(value)),
        "null" => Type::Null,
        "list_type" => Type::list(type_of(&value["elem_type"])),
        "map_type" => Type::map(type_of(&value["key_type"]), type_of(&value["value_type"])),
        "type_param" => Type::param(value.as_str().unwrap_or_default()),
        "well_known" => match value.as_str() {
            Some("TIMESTAMP") => Type::Timestamp,
            Some("DURATION") => Type::Duration,
            _ => Type::Any,
        },
        "message_type" => Type::object(value.as_str().unwrap_or_default()),
        "abstract_type" => {
            let params = value["parameter_types"].as_array().into_iter().flatten().map(type_of).collect();
            Type::opaque(value["name"].as_str().unwrap_or_default(), params)
        }
        _ => Type::Dyn,
    }
}
