//! Discovery and the OpenAPI documents say what a real server's say, texts for people apart.

use compat::client::{Client, Request};
use object::{Map, Value, json};

/// How many differences are printed.
const SHOWN: usize = 60;
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A client, and what it found to differ.
struct Comparison {
    client: Client,
    differences: Vec<String>,
}

impl Comparison {
    fn run(name: &str, compare: impl AsyncFnOnce(&mut Comparison, Value)) {
        let Some(text) = super::shared(&format!("openapi/{name}.json.gz")) else { return };
        let server = super::server();
        let mut comparison = Comparison { client: Client::new(server.target.clone()), differences: Vec::new() };
        super::runtime().block_on(compare(&mut comparison, json::parse(text.as_bytes()).unwrap()));
        let differences = comparison.differences;
        let shown = differences.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
        assert!(differences.is_empty(), "{} differences\n{shown}", differences.len());
    }

    async fn get(&mut self, path: &str, accept: &str) -> Value {
        let answer = self.client.send(&Request::new("GET", path).header("Accept", accept)).await.unwrap();
        assert_eq!(answer.code, 200, "{path}");
        without_texts(json::parse(&answer.body).unwrap())
    }

    async fn compare_page(&mut self, path: &str, accept: &str, want: &Value) {
        let got = self.get(path, accept).await;
        self.compare(path, want, &got);
    }

    fn compare(&mut self, at: &str, want: &Value, got: &Value) {
        match (want, got) {
            (Value::Object(want), Value::Object(got)) => {
                for (key, want) in want.iter() {
                    match got.get(key) {
                        Some(got) => self.compare(&format!("{at} {key}"), want, got),
                        None => self.differences.push(format!("{at}: {key} is missing: {}", json::to_string(want))),
                    }
                }
                for (key, got) in got.iter().filter(|(key, _)| !want.contains_key(key)) {
                    self.differences.push(format!("{at}: {key} is too much: {}", json::to_string(got)));
                }
            }
            (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
                for (place, (want, got)) in want.iter().zip(got).enumerate() {
                    self.compare(&format!("{at} {place}"), want, got);
                }
            }
            _ if want == got => {}
            _ => self.differences.push(format!("{at}: {} is {}", json::to_string(want), json::to_string(got))),
        }
    }
}

#[test]
fn discovery_is_that_of_a_real_server() {
    Comparison::run("discovery", async |comparison, want| {
        for (form, accept) in [("legacy", "application/json"), ("aggregated", AGGREGATED)] {
            for (path, want) in want.get(form).and_then(Value::as_object).unwrap().iter() {
                let mut got = comparison.get(path, accept).await;
                let mut want = without_texts(want.clone());
                // Each server has an address of its own.
                for page in [&mut want, &mut got] {
                    page.remove_at(&["serverAddressByClientCIDRs"]);
                }
                comparison.compare(path, &want, &got);
            }
        }
    });
}

#[test]
fn version_2_is_that_of_a_real_server() {
    Comparison::run("openapi-v2", async |comparison, want| {
        let got = comparison.get("/openapi/v2", "application/json").await;
        comparison.compare("v2", &with_parameters(want), &with_parameters(got));
    });
}

#[test]
fn version_3_is_that_of_a_real_server() {
    Comparison::run("openapi-v3", async |comparison, want| {
        let index = comparison.get("/openapi/v3", "application/json").await;
        let places = |index: &Value| index.as_object().unwrap().keys().map(str::to_owned).collect::<Vec<_>>();
        let paths = index.get("paths").unwrap();
        assert_eq!(places(paths), places(&want));
        for (place, want) in want.as_object().unwrap().iter() {
            let path = paths.str_at(&[place, "serverRelativeURL"]).unwrap();
            comparison.compare_page(path, "application/json", want).await;
        }
    });
}

/// The value without descriptions.
fn without_texts(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_text = |key: &str, value: &Value| key == "description" && value.as_str().is_some();
            let kept = members.into_iter().filter(|(key, value)| !is_text(key, value));
            Value::Object(kept.map(|(key, value)| (key, without_texts(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_texts).collect()),
        scalar => scalar,
    }
}

/// A document of version 2 with its shared parameters where they are referred to: their names hold a hash of their texts.
fn with_parameters(mut document: Value) -> Value {
    let shared = document.remove_at(&["parameters"]).and_then(|p| p.as_object().cloned()).unwrap_or_default();
    fn resolve(value: Value, shared: &Map) -> Value {
        match value {
            Value::Object(members) => {
                let target = members.get("$ref").and_then(Value::as_str);
                if let Some(name) = target.and_then(|target| target.strip_prefix("#/parameters/")) {
                    return shared.get(name).cloned().unwrap_or_default();
                }
                Value::Object(members.into_iter().map(|(key, value)| (key, resolve(value, shared))).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| resolve(item, shared)).collect()),
            scalar => scalar,
        }
    }
    resolve(document, &shared)
}
