//! Compiles every rule of the recorded CRDs and compares with what a real 1.33 server said of them.

mod schema;
mod vectors;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use cel::env::{Env, VariableDecl};
use cel::interpret::Program;
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use serde_json::Value;

use schema::{DeclType, Objects, convert, is_embedded};

const RULE_LIMIT: u64 = 10_000_000;
const TOTAL_LIMIT: u64 = 100_000_000;
const REQUEST: u64 = 3 * 1024 * 1024;
const HINT: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
                    and strings are declared)";

/// Cases known to differ; one that no longer does is an error, so that the list only shrinks.
const KNOWN: [&str; 0] = [];

#[test]
fn compile_errors_are_those_of_a_real_server() {
    replay("cel-compile.json");
}

#[test]
fn costs_are_those_of_a_real_server() {
    replay("cel-cost.json");
}

fn replay(file: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../compat/golden").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let recorded: Value = serde_json::from_str(&text).expect("golden cases are JSON");
    let (mut same, mut skipped, mut wrong) = (0, 0, Vec::new());
    for case in recorded["cases"].as_array().into_iter().flatten() {
        for step in case["steps"].as_array().into_iter().flatten() {
            let is_known = case["id"].as_str().is_some_and(|id| KNOWN.contains(&id));
            match compare(step) {
                None => skipped += 1,
                Some(Ok(())) if is_known => wrong.push(format!("{}: no longer differs", case["id"])),
                Some(Ok(())) => same += 1,
                Some(Err(_)) if is_known => skipped += 1,
                Some(Err(difference)) => wrong.push(format!("{}: {difference}", case["id"])),
            }
        }
    }
    println!("{file}: {same} same, {} wrong, {skipped} skipped", wrong.len());
    let shown = std::env::var("SHOW").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(shown)].join("\n\n"));
}

type Findings = BTreeSet<(String, String)>;

/// Nothing for a step that is not about rules of a new CRD.
fn compare(step: &Value) -> Option<Result<(), String>> {
    if !step["send"].as_str()?.starts_with("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions") {
        return None;
    }
    let versions = step["body"]["spec"]["versions"].as_array()?;
    let mut expected = Findings::new();
    match step["expect"]["code"].as_i64()? {
        201 => {}
        422 => {
            for cause in step["expect"]["body"]["details"]["causes"].as_array()? {
                let (field, message) = (cause["field"].as_str()?, cause["message"].as_str()?);
                let is_rule =
                    field.contains("x-kubernetes-validations") || message.contains("x-kubernetes-validations");
                if !is_rule {
                    return None;
                }
                // The value before the text is the whole rule in Go syntax.
                let text = match message.find(")}: ").or(message.find("\"}: ")) {
                    Some(at) => &message[at + 4..],
                    None => message.split_once(": ").map_or(message, |(_, text)| text),
                };
                let path = field.split_once("openAPIV3Schema").map_or(field, |(_, path)| path);
                expected.insert((path.to_owned(), normalised(text)));
            }
        }
        _ => return None,
    }
    let mut found = Findings::new();
    for version in versions {
        let mut walk = Walk { findings: &mut found, total: 0, dear: Vec::new() };
        walk.visit("", &version["schema"]["openAPIV3Schema"], true, Some(1));
        walk.finish();
    }
    if found == expected {
        return Some(Ok(()));
    }
    let missing: Vec<_> = expected.difference(&found).map(|(path, text)| format!("{path} {text}")).collect();
    let surplus: Vec<_> = found.difference(&expected).map(|(path, text)| format!("{path} {text}")).collect();
    Some(Err(format!("\n-- not found:\n{}\n-- instead:\n{}", missing.join("\n"), surplus.join("\n"))))
}

/// The text as the recorder stored it: without the number of `selfType123`, times replaced.
fn normalised(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str("selfType");
        result.push_str(part.trim_start_matches("<N>"));
    }
    let mut rest = result.as_str();
    let mut replaced = String::new();
    while let Some(at) = rest.find("20") {
        replaced.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if is_time(rest) { "2006-01-02T15:04:05Z".len() } else { 2 };
        replaced.push_str(if length > 2 { "<time>" } else { "20" });
        rest = &rest[length..];
    }
    replaced.push_str(rest);
    replaced
}

fn is_time(text: &str) -> bool {
    let shape: String =
        text.chars().take("2006-01-02T15:04:05Z".len()).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00Z"
}

struct Walk<'a> {
    findings: &'a mut Findings,
    total: u64,
    dear: Vec<(u64, String)>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &str, schema: &Value, is_root: bool, cardinality: Option<u64>) {
        if let Some(rules) = schema["x-kubernetes-validations"].as_array() {
            self.check_rules(path, schema, is_root, cardinality, rules);
        }
        let times = |bound: &str| {
            let bound = schema[bound].as_i64().map(|bound| u64::try_from(bound).unwrap_or(0));
            cardinality.and_then(|cardinality| Some(cardinality.saturating_mul(bound?)))
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.visit(&format!("{path}.properties[{name}]"), property, is_embedded(property), cardinality);
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            self.visit(&format!("{path}.additionalProperties"), values, is_embedded(values), times("maxProperties"));
        }
        if let Some(items) = schema.get("items") {
            self.visit(&format!("{path}.items"), items, is_embedded(items), times("maxItems"));
        }
    }

    fn check_rules(&mut self, path: &str, schema: &Value, is_root: bool, cardinality: Option<u64>, rules: &[Value]) {
        let path = format!("{path}.x-kubernetes-validations");
        let Some(decl) = convert(schema, is_root) else {
            let text = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                        unable to convert structural schema to CEL declarations";
            self.findings.insert((path, text.to_owned()));
            return;
        };
        let cardinality = cardinality.unwrap_or(REQUEST / (decl.min_size + 1));
        let (objects, self_type) = Objects::of(&decl, "selfType");
        let env = Env::kubernetes(ExpressionSet::New).with_provider(Arc::new(objects));
        for (i, rule) in rules.iter().enumerate() {
            let old = match rule["optionalOldSelf"].as_bool() {
                Some(true) => Type::optional(self_type.clone()),
                _ => self_type.clone(),
            };
            let env =
                env.with_variables([VariableDecl::new("self", self_type.clone()), VariableDecl::new("oldSelf", old)]);
            let path = format!("{path}[{i}]");
            let text = rule["rule"].as_str().unwrap_or_default();
            match compile(&env, text, &Type::Bool, &decl) {
                Ok(cost) => self.observe(format!("{path}.rule"), "rule", cost.saturating_mul(cardinality)),
                Err(failure) => {
                    let text = match failure {
                        Failure::Issues(issues) => format!("compilation failed: {issues}"),
                        Failure::Type => "cel expression must evaluate to a bool".to_owned(),
                        Failure::Program(error) => format!("program instantiation failed: {error}"),
                    };
                    self.findings.insert((path + ".rule", text));
                    continue;
                }
            }
            let Some(text) = rule["messageExpression"].as_str().filter(|text| !text.is_empty()) else { continue };
            let path = path + ".messageExpression";
            match compile(&env, text, &Type::String, &decl) {
                Ok(cost) => self.observe(path, "messageExpression", cost),
                Err(failure) => {
                    let text = match failure {
                        Failure::Issues(issues) => format!("messageExpression compilation failed: {issues}"),
                        Failure::Type => "messageExpression must evaluate to a string".to_owned(),
                        Failure::Program(error) => format!("messageExpression instantiation failed: {error}"),
                    };
                    self.findings.insert((path, text));
                }
            }
        }
    }

    fn observe(&mut self, path: String, what: &str, cost: u64) {
        if cost > RULE_LIMIT {
            let text = format!("estimated {what} cost exceeds budget by factor of {} {HINT}", factor(cost, RULE_LIMIT));
            self.findings.insert((path.clone(), text));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.dear.push((cost, path));
        }
    }

    fn finish(mut self) {
        if self.total <= TOTAL_LIMIT {
            return;
        }
        self.dear.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        let text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        for (_, path) in self.dear.into_iter().take(4) {
            self.findings.insert((path, text.to_owned()));
        }
        let factor = factor(self.total, TOTAL_LIMIT);
        let text = format!(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor \
             of {factor} {HINT}"
        );
        self.findings.insert((String::new(), text));
    }
}

enum Failure {
    Issues(String),
    Type,
    Program(String),
}

fn compile(env: &Env, text: &str, result: &Type, decl: &DeclType) -> Result<u64, Failure> {
    let issues = |issues: cel::issues::Issues| Failure::Issues(normalised(&issues.to_string()));
    let ast = parse(text, &ParserOptions::default()).map_err(issues)?;
    let checked = cel::check::check(env, ast).map_err(issues)?;
    // A wrapper is as good as its primitive to the checker, but not here.
    if std::mem::discriminant(checked.result_type()) != std::mem::discriminant(result) {
        return Err(Failure::Type);
    }
    Program::new(&checked).map_err(|error| Failure::Program(error.to_string()))?;
    Ok(cel::estimate::estimate(&checked, decl).max)
}

fn factor(cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    }
}
