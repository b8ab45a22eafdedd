//! The language's own conformance cases, as far as they need no protobuf messages.

#![allow(clippy::unwrap_used, reason = "a case that cannot be read is a failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use cel::check::check;
use cel::env::{Env, FunctionDecl, OverloadDecl, Validators, VariableDecl};
use cel::interpret::{Functions, Limits, Program};
use cel::library::{Library, Registry, Version};
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{Map, Octets, Text, Value};
use serde_json::Value as Json;

const BACKSLASH: &str = "the expected octets have a backslash the expression lacks";
const CONTAINER: &str = "Kubernetes declares no container that names are completed with";
const FOLDED: &str = "Kubernetes folds constants, so that a key of such a type is found when the program is made";
const FORMAT: &str = "the output of format() is that of newer versions of the strings extension than Kubernetes uses";
const MAP_KEYS: &str = "cel-go accepts keys of any scalar type and takes the last of equal keys";
const NULL_JOIN: &str = "cel-go deduces null (its own conformance run skips the case)";
const PRESENCE: &str = "Kubernetes does not ask for errors when something is optionally selected from a scalar";
const QUOTED: &str = "Kubernetes does not enable field names in backquotes";
const SHADOWING: &str = "cel-go 0.23 resolves these names the other way";
const STRINGS_3: &str = "newer than version 2 of the strings extension";
const UNCHECKED: &str = "Kubernetes checks every expression before it runs";

/// Cases that ask for what a Kubernetes 1.33 server does not have, with the reason.
const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("fields/quoted_map_fields/field_access_slash", QUOTED),
    ("fields/quoted_map_fields/field_access_dash", QUOTED),
    ("fields/quoted_map_fields/field_access_dot", QUOTED),
    ("fields/quoted_map_fields/has_field_slash", QUOTED),
    ("fields/quoted_map_fields/has_field_dash", QUOTED),
    ("fields/quoted_map_fields/has_field_dot", QUOTED),
    ("fields/qualified_identifier_resolution/qualified_identifier_resolution_unchecked", UNCHECKED),
    ("fields/map_fields/map_bad_key_type_or_true", FOLDED),
    ("fields/map_fields/map_bad_key_type_and_false", FOLDED),
    ("fields/qualified_identifier_resolution/map_key_float", MAP_KEYS),
    ("fields/qualified_identifier_resolution/map_value_repeat_key", MAP_KEYS),
    ("fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous", MAP_KEYS),
    ("namespace/namespace/self_eval_container_lookup", CONTAINER),
    ("namespace/namespace/self_eval_container_lookup_unchecked", CONTAINER),
    ("namespace/namespace_shadowing/basic", CONTAINER),
    ("namespace/namespace_shadowing/comprehension_shadowing_disambiguation", SHADOWING),
    ("namespace/namespace_shadowing/comprehension_shadowing_selector", SHADOWING),
    ("optionals/optionals/map_null_entry_no_such_key", PRESENCE),
    ("optionals/optionals/map_present_key_invalid_field", PRESENCE),
    ("parse/bytes_literals/triple_single_quoted_unescaped_punctuation", BACKSLASH),
    ("parse/bytes_literals/triple_double_quoted_unescaped_punctuation", BACKSLASH),
    ("type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate", NULL_JOIN),
    ("string_ext/format/scientific notation formatting clause", FORMAT),
    ("string_ext/format/default precision for fixed-point clause with int", FORMAT),
    ("string_ext/format/default precision for fixed-point clause with uint", FORMAT),
    ("string_ext/format/default precision for scientific notation", FORMAT),
    ("string_ext/format/default precision for scientific notation with int", FORMAT),
    ("string_ext/format/default precision for scientific notation with uint", FORMAT),
    ("string_ext/format/NaN support for scientific notation", FORMAT),
    ("string_ext/format/positive infinity support for scientific notation", FORMAT),
    ("string_ext/format/negative infinity support for scientific notation", FORMAT),
    ("string_ext/format/NaN support for decimal", FORMAT),
    ("string_ext/format/positive infinity support for decimal", FORMAT),
    ("string_ext/format/negative infinity support for decimal", FORMAT),
    ("string_ext/format/positive infinity support for fixed-point", FORMAT),
    ("string_ext/format/negative infinity support for fixed-point", FORMAT),
    ("string_ext/format/list support for string", FORMAT),
    ("string_ext/format/map support for string", FORMAT),
    ("string_ext/format/map support (all key types)", FORMAT),
    ("string_ext/format/dyntype support for scientific notation", FORMAT),
    ("string_ext/format/dyntype NaN/infinity support", FORMAT),
    ("string_ext/format/dyntype support for lists", FORMAT),
    ("string_ext/format/dyntype support for maps", FORMAT),
    ("string_ext/format/scientific notation formatting clause in a string variable", FORMAT),
    ("string_ext/value_errors/indexof_out_of_range", STRINGS_3),
    ("string_ext/value_errors/lastindexof_out_of_range", STRINGS_3),
    ("string_ext/reverse/empty", STRINGS_3),
    ("string_ext/reverse/single_character", STRINGS_3),
    ("string_ext/reverse/multiple", STRINGS_3),
];

fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("STANCHION_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = shared.join("conformance/cel-spec");
    folder.is_dir().then_some(folder)
}

#[test]
fn conformance_cases_hold() {
    let Some(folder) = data() else {
        println!("skipped: the conformance cases are not here");
        return;
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut failures = Vec::new();
    let mut unused: BTreeMap<&str, &str> = NOT_APPLICABLE.iter().copied().collect();
    let (mut passed, mut skipped) = (0, 0);
    for file in files {
        let content: Json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let theme = file.file_stem().unwrap().to_string_lossy().into_owned();
        for case in content["cases"].as_array().unwrap() {
            let id = format!("{theme}/{}/{}", text(&case["section"]), text(&case["name"]));
            if NOT_APPLICABLE.iter().any(|(known, _)| *known == id) {
                unused.remove(&*id);
                skipped += 1;
                continue;
            }
            match run(case) {
                Ok(()) => passed += 1,
                Err(why) => failures.push(format!("{id}: {}\n    {why}", text(&case["expr"]))),
            }
        }
    }
    println!("{passed} passed, {skipped} do not apply");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(unused.is_empty(), "listed but not there: {unused:?}");
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

fn run(case: &Json) -> Result<(), String> {
    let source = text(&case["expr"]);
    let ast = parse(source, &ParserOptions::default()).map_err(|issues| format!("does not parse: {issues}"))?;
    let bindings: Vec<(String, Value<'static>)> = case["bindings"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, binding)| (name.clone(), value(&binding["value"])))
        .collect();
    let program = if case["disable_check"] == Json::Bool(true) {
        Program::unchecked(&ast, &Functions::new())
    } else {
        let checked = match check(&environment(case), ast) {
            Ok(checked) => checked,
            // Where an error is expected, the checker may find it.
            Err(_) if !case["eval_error"].is_null() => return Ok(()),
            Err(issues) => return Err(format!("does not check: {issues}")),
        };
        let deduced = &case["typed_result"]["deduced_type"];
        if !deduced.is_null() {
            let expected = type_of(deduced);
            if *checked.result_type() != expected {
                return Err(format!("has type {:?}, not {expected:?}", checked.result_type()));
            }
            if case["check_only"] == Json::Bool(true) {
                return Ok(());
            }
        }
        Program::new(&checked)
    };
    let expects_error = !case["eval_error"].is_null();
    let program = match program {
        Ok(program) => program,
        Err(_) if expects_error => return Ok(()),
        Err(error) => return Err(format!("cannot be planned: {error}")),
    };
    let activation: Vec<(&str, Value<'_>)> = bindings.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let result = program.eval(&activation[..], Limits::NONE).result;
    if expects_error {
        return result.map_or(Ok(()), |got| Err(format!("gives {got:?}, not an error")));
    }
    let expected = if case["value"].is_null() { &case["typed_result"]["result"] } else { &case["value"] };
    let expected = if expected.is_null() { Value::Bool(true) } else { value(expected) };
    let got = result.map_err(|error| format!("fails: {error}"))?;
    if same(&got, &expected) { Ok(()) } else { Err(format!("gives {got:?}, not {expected:?}")) }
}

/// Equality that tells types apart and takes NaN for equal to itself.
fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a == b || (a.is_nan() && b.is_nan()),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a.unwrap(), &b.unwrap()))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.find(&key).is_some_and(|other| same(&value.unwrap(), &other.unwrap())))
        }
        _ => a.type_name().eq(&*b.type_name()) && a.equals(b) == Ok(true),
    }
}

fn environment(case: &Json) -> Env {
    let mut libraries = Registry::kubernetes().libraries().to_vec();
    let mut variables = Vec::new();
    for declaration in case["type_env"].as_array().into_iter().flatten() {
        let name = text(&declaration["name"]);
        if declaration["ident"].is_object() {
            variables.push(VariableDecl::new(name, type_of(&declaration["ident"]["type"])));
        }
        for overload in declaration["function"]["overloads"].as_array().into_iter().flatten() {
            let params = overload["params"].as_array().into_iter().flatten().map(type_of);
            let result = type_of(&overload["result_type"]);
            let overload = OverloadDecl::global(text(&overload["overload_id"]), params, result);
            let function = FunctionDecl::new(name, [overload]);
            libraries.push(Library::new(name, Version(1, 0), vec![function]));
        }
    }
    let validators = Validators { literals: false, homogeneous_aggregates: false, format_strings: false };
    Env::new(&libraries, validators).with_variables(variables)
}

fn type_of(json: &Json) -> Type {
    match text(&json["primitive"]) {
        "BOOL" => return Type::Bool,
        "INT64" => return Type::Int,
        "UINT64" => return Type::Uint,
        "DOUBLE" => return Type::Double,
        "STRING" => return Type::String,
        "BYTES" => return Type::Bytes,
        _ => {}
    }
    if json.get("null").is_some() {
        return Type::Null;
    }
    if let Some(list) = json.get("list_type") {
        return Type::list(type_of(&list["elem_type"]));
    }
    if let Some(map) = json.get("map_type") {
        return Type::map(type_of(&map["key_type"]), type_of(&map["value_type"]));
    }
    if let Some(abstract_type) = json.get("abstract_type") {
        let params = abstract_type["parameter_types"].as_array().into_iter().flatten().map(type_of).collect();
        return Type::opaque(text(&abstract_type["name"]), params);
    }
    if let Some(of) = json.get("type") {
        return Type::type_of(type_of(of));
    }
    Type::Dyn
}

fn value(json: &Json) -> Value<'static> {
    let Some((kind, json)) = json.as_object().and_then(|object| object.iter().next()) else { return Value::Null };
    match &**kind {
        "bool_value" => Value::Bool(json.as_bool().unwrap()),
        "int64_value" => Value::Int(text(json).parse().unwrap()),
        "uint64_value" => Value::Uint(text(json).parse().unwrap()),
        "double_value" => Value::Double(json.as_f64().unwrap_or_else(|| match text(json) {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => f64::NAN,
        })),
        "string_value" => Value::shared(text(json)),
        "bytes_value" => {
            let octets = base64::engine::general_purpose::STANDARD.decode(text(json)).unwrap();
            Value::Bytes(Octets::Shared(octets.into()))
        }
        "type_value" => Value::Type(Text::Shared(Arc::from(text(json)))),
        "list_value" => Value::list(json["values"].as_array().into_iter().flatten().map(value).collect()),
        "map_value" => {
            let entries = json["entries"].as_array().into_iter().flatten();
            Value::Map(Map::new(entries.map(|entry| (value(&entry["key"]), value(&entry["value"])))))
        }
        _ => Value::Null,
    }
}
