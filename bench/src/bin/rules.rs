//! How long validation rules take: to compile (parse, check, estimate, plan) and to run.
//!
//! `cargo run --release -p bench --bin rules`

#[path = "../ruled.rs"]
mod ruled;

use object::{Value, json};
use schema::{Version, crd};
use std::time::{Duration, Instant};

/// The rules: their names and texts. A server refuses `string`: the parts that `split` makes count as unbounded, so its
/// estimated cost exceeds the budget; it compiles and runs all the same.
const RULES: [(&str, &str); 4] = [
    ("small", "self.replicas <= self.maxReplicas && self.name.startsWith('a')"),
    ("loop", "self.items.all(x, self.items.exists(y, y == x) && x.size() < 50)"),
    (
        "string",
        "self.text.matches('^[a-z0-9-]{3,200}$') && self.text.split('-').map(s, s.upperAscii()).join('_').contains('ABC')",
    ),
    (
        "bounded",
        "self.text.matches('^[a-z0-9-]{3,200}$') && self.text.replace('-', '_').upperAscii().contains('ABC') && self.items.all(x, x.startsWith('item-'))",
    ),
];

/// What a server's words about an estimated cost have in common; such a rule runs all the same.
const OVER_BUDGET: &str = "estimated rule cost";

/// How long each figure is measured.
const PERIOD: Duration = Duration::from_millis(700);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let without = definition("")?;
    let base = time(|| crd::validate(&without).len());
    println!("{:<8} {:>14} {:>14}  accepted", "rule", "compile", "validate");
    for (name, rule) in RULES {
        let definition = definition(rule)?;
        let errors = crd::validate(&definition);
        if let Some(error) = errors.iter().find(|error| !error.to_string().contains(OVER_BUDGET)) {
            return Err(format!("{name}: {error}").into());
        }
        let accepted = if errors.is_empty() { "yes" } else { "over budget" };
        let compile = time(|| crd::validate(&definition).len()).saturating_sub(base);
        let version = Version::new(&definition, "v1")?.ok_or("the version is not there")?;
        let object = object()?;
        let outcome = version.validate(&object);
        if let Some(error) = outcome.errors.first() {
            return Err(format!("{name}: {error}").into());
        }
        let validate = time(|| version.validate(&object).errors.len());
        println!("{name:<8} {:>11.1} µs {:>11.1} µs  {accepted}", micros(compile), micros(validate));
    }
    let definition = definition_of(&ruled::schema())?;
    let version = Version::new(&definition, "v1")?.ok_or("the version is not there")?;
    let text = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Foo","metadata":{{"name":"a","namespace":"default"}},"spec":{}}}"#,
        ruled::spec(1)
    );
    let object = json::parse(text.as_bytes())?;
    if let Some(error) = version.validate(&object).errors.first() {
        return Err(error.to_string().into());
    }
    let validate = time(|| version.validate(&object).errors.len());
    println!("20 rules, an object of {} KB: {:.1} µs to validate", text.len() / 1000, micros(validate));
    Ok(())
}

/// The median time of a call.
fn time<T>(mut call: impl FnMut() -> T) -> Duration {
    let end = Instant::now() + PERIOD;
    let mut took = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        std::hint::black_box(call());
        took.push(began.elapsed());
    }
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A definition whose objects have the fields that the rules read, with one rule at their spec.
fn definition(rule: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let rules = match rule {
        "" => String::new(),
        rule => {
            let mut text = String::new();
            json::write_string(&mut text, rule);
            format!(r#","x-kubernetes-validations":[{{"rule":{text}}}]"#)
        }
    };
    definition_of(&format!(
        r#"{{"type":"object","properties":{{
        "replicas":{{"type":"integer"}},"maxReplicas":{{"type":"integer"}},"name":{{"type":"string","maxLength":50}},"text":{{"type":"string","maxLength":200}},
        "items":{{"type":"array","maxItems":30,"items":{{"type":"string","maxLength":50}}}}}}{rules}}}"#
    ))
}

/// A definition whose objects have a spec of this schema.
fn definition_of(spec: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"foos.example.com"}},
        "spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"foos","kind":"Foo"}},"versions":[{{"name":"v1","served":true,"storage":true,
        "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec}}}}}}}}}]}}}}"#
    );
    let mut definition = crd::decode(&json::parse(text.as_bytes())?)?.definition;
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    Ok(definition)
}

fn object() -> Result<Value, Box<dyn std::error::Error>> {
    let items: Vec<String> = (0..30).map(|i| format!("\"item-{i}\"")).collect();
    let text = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Foo","metadata":{{"name":"a","namespace":"default"}},"spec":{{"replicas":3,"maxReplicas":5,"name":"abc","text":"abc-def-ghi-jkl-mno-pqr-stu-vwx","items":[{}]}}}}"#,
        items.join(",")
    );
    Ok(json::parse(text.as_bytes())?)
}
