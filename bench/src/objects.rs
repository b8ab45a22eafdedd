//! Writes of one object by each connection: server-side applies against plain updates, by what is written.

use crate::load::request;
use crate::ruled;
use bench::report;
use compat::client::{Client, Request, Target};
use object::json;
use std::fmt;
use std::time::{Duration, Instant};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What is written.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A Deployment of 5 KB.
    Deployment,
    /// A custom object with a list of this many items that are merged by their name.
    List(usize),
    /// A custom object of 10 KB that 20 rules look at.
    Ruled,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Server-side apply.
    Apply,
    /// Update of the whole, by the version of the last answer.
    Update,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Deployment => f.write_str("a Deployment of 5 KB"),
            Subject::List(items) => write!(f, "a list of {items} keyed items"),
            Subject::Ruled => f.write_str("10 KB under 20 rules"),
        }
    }
}

impl Subject {
    /// What has to be there first.
    pub async fn prepare(self, target: &Target) -> Result<(), String> {
        let (plural, kind, schema) = match self {
            Subject::Deployment => return Ok(()),
            Subject::List(_) => ("keyeds", "Keyed", LIST_SCHEMA.to_owned()),
            Subject::Ruled => ("ruleds", "Ruled", ruled::schema()),
        };
        let definition = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.bench.example.com"}},"spec":{{"group":"bench.example.com","scope":"Namespaced","names":{{"plural":"{plural}","kind":"{kind}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{schema}}}}}}}}}]}}}}"#
        );
        let answer =
            Client::new(target.clone()).send(&request("POST", DEFINITIONS.to_owned(), Some(definition))).await?;
        match answer.code {
            201 | 409 => Ok(()),
            code => Err(format!("{code}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    fn collection(self) -> &'static str {
        match self {
            Subject::Deployment => "/apis/apps/v1/namespaces/default/deployments",
            Subject::List(_) => "/apis/bench.example.com/v1/namespaces/default/keyeds",
            Subject::Ruled => "/apis/bench.example.com/v1/namespaces/default/ruleds",
        }
    }

    /// The object, a field of it differing by `salt`.
    fn body(self, name: &str, salt: usize, version: &str) -> String {
        let metadata = match version {
            "" => format!(r#""metadata":{{"name":"{name}"}}"#),
            version => format!(r#""metadata":{{"name":"{name}","resourceVersion":"{version}"}}"#),
        };
        let join = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(",");
        match self {
            Subject::Deployment => {
                let variables = join(
                    &mut (0..75).map(|i| format!(r#"{{"name":"VARIABLE_{i}","value":"the value of variable {i}"}}"#)),
                );
                let replicas = salt % 1000;
                format!(
                    r#"{{"apiVersion":"apps/v1","kind":"Deployment",{metadata},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"load"}}}},"template":{{"metadata":{{"labels":{{"app":"load"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.example.com/load:1","ports":[{{"containerPort":80,"protocol":"TCP"}}],"env":[{variables}]}}]}}}}}}}}"#
                )
            }
            Subject::List(items) => {
                let items = join(&mut (0..items).map(|i| format!(r#"{{"name":"item-{i}","value":"value {i}"}}"#)));
                format!(
                    r#"{{"apiVersion":"bench.example.com/v1","kind":"Keyed",{metadata},"spec":{{"salt":{salt},"items":[{items}]}}}}"#
                )
            }
            Subject::Ruled => {
                let spec = ruled::spec(salt);
                format!(r#"{{"apiVersion":"bench.example.com/v1","kind":"Ruled",{metadata},"spec":{spec}}}"#)
            }
        }
    }

    fn write(self, way: Way, name: &str, salt: usize, version: &str) -> Request {
        let path = format!("{}/{name}", self.collection());
        match way {
            Way::Update => request("PUT", path, Some(self.body(name, salt, version))),
            Way::Apply => {
                let path = format!("{path}?fieldManager=bench&force=true");
                let mut request = request("PATCH", path, Some(self.body(name, salt, "")));
                request.headers.retain(|(name, _)| name != "Content-Type");
                request.headers.push(("Content-Type".to_owned(), "application/apply-patch+yaml".to_owned()));
                request
            }
        }
    }
}

const LIST_SCHEMA: &str = r#"{"type":"object","properties":{"salt":{"type":"integer"},"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}}"#;

/// Writes for a while, one object a connection, prints what came of it, and gives how many writes were answered.
pub async fn run(
    target: &Target,
    connections: usize,
    period: Duration,
    subject: Subject,
    way: Way,
) -> Result<usize, String> {
    subject.prepare(target).await?;
    let end = Instant::now() + period;
    let mut workers = Vec::new();
    for worker in 0..connections {
        let mut client = Client::new(target.clone());
        workers.push(tokio::spawn(async move {
            let name = format!("load-{worker}");
            let first = client.send(&subject.write(Way::Apply, &name, 0, "")).await?;
            let mut version = version_of(&first.body)?;
            let (mut took, mut failed) = (Vec::new(), 0);
            for salt in 1.. {
                if Instant::now() >= end {
                    break;
                }
                let request = subject.write(way, &name, salt, &version);
                let began = Instant::now();
                let answer = client.send(&request).await?;
                took.push(began.elapsed());
                failed += usize::from(answer.code >= 300);
                if way == Way::Update {
                    version = version_of(&answer.body)?;
                }
            }
            Ok::<_, String>((took, failed))
        }));
    }
    let (mut took, mut failed) = (Vec::new(), 0);
    for worker in workers {
        let (times, failures) = worker.await.map_err(|e| e.to_string())??;
        took.extend(times);
        failed += failures;
    }
    let way = if way == Way::Apply { "apply" } else { "update" };
    let answered = took.len();
    report::latencies(&format!("{way} {subject}"), took, period, failed);
    Ok(answered)
}

fn version_of(answer: &[u8]) -> Result<String, String> {
    let answer = json::parse(answer).map_err(|e| e.to_string())?;
    match answer.str_at(&["metadata", "resourceVersion"]) {
        Some(version) => Ok(version.to_owned()),
        None => Err(format!("no object: {}", answer.str_at(&["message"]).unwrap_or_default())),
    }
}
