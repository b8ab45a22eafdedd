//! What a real server computed: the value cases of the recorded theme `cel-eval`, evaluated over the objects' JSON read
//! in place. The checker sees `self` as dyn here; the schema crate replays the cases with their types.

#![allow(clippy::unwrap_used, reason = "a case that cannot be read is a failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use cel::check::check;
use cel::env::{Env, VariableDecl};
use cel::interpret::{Limits, Program};
use cel::library::{ExpressionSet, Registry};
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use cel::value::{
    AdaptedList, Data, Duration, Error, List, ListAdapter, Map, MapAdapter, Octets, Result, Timestamp, Value,
};
use serde_json::Value as Json;

/// Cases that need the schema crate: what lists that are sets or maps do, how preserved objects compare.
const NEEDS_SCHEMA: &[&str] = &["cel-eval-131", "cel-eval-132"];

/// A part of a schema, as far as values depend on it.
#[derive(Default)]
struct Schema {
    format: String,
    number: bool,
    /// By escaped name.
    properties: BTreeMap<String, (String, Schema)>,
    items: Option<Box<Schema>>,
    values: Option<Box<Schema>>,
}

impl Schema {
    fn new(json: &Json) -> Schema {
        let part = |name: &str| json.get(name).filter(|part| part.is_object()).map(|part| Box::new(Schema::new(part)));
        let properties = json["properties"].as_object().into_iter().flatten();
        Schema {
            format: json["format"].as_str().unwrap_or_default().to_owned(),
            number: json["type"] == "number",
            properties: properties.map(|(name, json)| (escaped(name), (name.clone(), Schema::new(json)))).collect(),
            items: part("items"),
            values: part("additionalProperties"),
        }
    }

    fn adapt<'a>(&'a self, json: &'a Json) -> Result<Value<'a>> {
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64().filter(|_| !self.number) {
                Some(int) => Value::Int(int),
                None => Value::Double(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => match &*self.format {
                "byte" => {
                    let octets = base64::engine::general_purpose::URL_SAFE.decode(text);
                    Value::Bytes(Octets::Shared(octets.map_err(|_| Error::new("bad byte string"))?.into()))
                }
                "date-time" => Timestamp::parse(text).map(Value::Timestamp).ok_or_else(|| Error::new("bad time"))?,
                "date" => {
                    let time = Timestamp::parse(&format!("{text}T00:00:00Z"));
                    time.map(Value::Timestamp).ok_or_else(|| Error::new("bad date"))?
                }
                "duration" => Duration::parse(text).map(Value::Duration).ok_or_else(|| Error::new("bad duration"))?,
                _ => Value::borrowed(text),
            },
            Json::Array(_) => Value::List(List::Adapted(AdaptedList { adapter: self, data: json })),
            Json::Object(_) => Value::Map(Map::Adapted { adapter: self, data: json }),
        })
    }
}

fn escaped(name: &str) -> String {
    const KEYWORDS: [&str; 7] = ["if", "in", "namespace", "null", "package", "true", "false"];
    if KEYWORDS.contains(&name) {
        return format!("__{name}__");
    }
    let escaped = name.replace("__", "__underscores__");
    escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

fn json(data: &Data) -> &Json {
    data.downcast_ref().expect("the adapter is given JSON")
}

impl ListAdapter for Schema {
    fn len(&self, data: &Data) -> usize {
        json(data).as_array().map_or(0, Vec::len)
    }

    fn get<'a>(&'a self, data: &'a Data, index: usize) -> Result<Value<'a>> {
        let items = self.items.as_deref().unwrap_or(self);
        items.adapt(&json(data)[index])
    }
}

impl MapAdapter for Schema {
    fn len(&self, data: &Data) -> usize {
        json(data).as_object().map_or(0, serde_json::Map::len)
    }

    fn get<'a>(&'a self, data: &'a Data, key: &str) -> Option<Result<Value<'a>>> {
        let object = json(data).as_object()?;
        if let Some(values) = &self.values {
            return Some(values.adapt(object.get(key)?));
        }
        let (name, schema) = self.properties.get(key)?;
        Some(schema.adapt(object.get(name).filter(|value| !value.is_null())?))
    }

    fn key<'a>(&'a self, data: &'a Data, index: usize) -> Option<&'a str> {
        let (name, _) = json(data).as_object()?.iter().nth(index)?;
        Some(name)
    }
}

#[test]
fn expressions_give_the_recorded_values() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden/cel-eval.json");
    let Ok(content) = std::fs::read(&file) else {
        println!("skipped: the recorded cases are not here");
        return;
    };
    let content: Json = serde_json::from_slice(&content).unwrap();
    let env = Registry::kubernetes()
        .env(cel::library::Version(1, 33), ExpressionSet::Stored)
        .with_variables([VariableDecl::new("self", Type::Dyn)]);
    let mut failures = Vec::new();
    let mut passed = 0;
    for case in content["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        if !case["about"].as_str().unwrap().starts_with("values") || NEEDS_SCHEMA.contains(&id) {
            continue;
        }
        let mut node = &Json::Null;
        for step in case["steps"].as_array().unwrap() {
            if step["body"]["kind"] == "CustomResourceDefinition" {
                node = &step["body"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
                continue;
            }
            let causes = step["expect"]["body"]["details"]["causes"].as_array();
            let mut expected: Vec<String> =
                causes.into_iter().flatten().map(|cause| cause["message"].as_str().unwrap().to_owned()).collect();
            let mut object = step["body"]["spec"].clone();
            add_defaults(node, &mut object);
            let schema = Schema::new(node);
            for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let Some(message) = message(&env, rule, &schema, &object) else { continue };
                let message = format!("Invalid value: \"object\": {message}");
                match expected.iter().position(|expected| *expected == message) {
                    Some(at) => {
                        expected.swap_remove(at);
                        passed += 1;
                    }
                    None => failures.push(format!("{id} {}: {message}", rule["messageExpression"])),
                }
            }
            failures.extend(expected.into_iter().map(|missing| format!("{id} not given: {missing}")));
        }
    }
    println!("{passed} values and errors as recorded");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

fn add_defaults(node: &Json, object: &mut Json) {
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        if let (Some(default), Some(object)) = (property.get("default"), object.as_object_mut()) {
            object.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
}

/// The message of a rule that does not hold.
fn message(env: &Env, rule: &Json, schema: &Schema, object: &Json) -> Option<String> {
    let source = rule["rule"].as_str()?;
    match evaluate(env, source, schema, object) {
        Ok(text) if text == "true" => None,
        Ok(_) => {
            let expression = rule["messageExpression"].as_str()?;
            Some(
                evaluate(env, expression, schema, object)
                    .unwrap_or_else(|error| format!("({error})"))
                    .trim()
                    .to_owned(),
            )
        }
        Err(error) if error.contains("no such overload") => Some(format!(
            "'{error}': call arguments did not match a supported operator, function or macro signature for rule: \
             {source}"
        )),
        Err(error) => Some(format!("{error} evaluating rule: {source}")),
    }
}

fn evaluate(env: &Env, source: &str, schema: &Schema, object: &Json) -> std::result::Result<String, String> {
    let ast = parse(source, &ParserOptions::default()).map_err(|issues| issues.to_string())?;
    let checked = check(env, ast).map_err(|issues| issues.to_string())?;
    let program = Program::new(&checked).map_err(|error| error.to_string())?;
    let root = schema.adapt(object).map_err(|error| error.to_string())?;
    let result = program.eval(&[("self", root)], Limits::cost(1_000_000)).result;
    result.map(|value| value.to_string()).map_err(|error| error.to_string())
}
