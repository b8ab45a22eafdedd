//! What the tests share: a server with something in it, and what makes an answer a proper one.

use compat::client::{Client, Request, Response, Target};
use compat::server::Server;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Objects with a schema that takes nearly everything.
pub const FOOS: &str = "/apis/hostile.example.com/v1/namespaces/default/foos";
/// The media types of patches.
pub const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// What any answer may take here, in a debug build beside other tests.
const LIMIT: Duration = Duration::from_secs(10);

/// A definition, its schema given.
pub fn definition(group: &str, schema: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"foos.{group}"}},
        "spec":{{"group":"{group}","scope":"Namespaced","names":{{"plural":"foos","kind":"Foo"}},"versions":[{{"name":"v1",
        "served":true,"storage":true,"subresources":{{"status":{{}}}},"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    )
}

/// A server in memory with a definition, an object of it and a ConfigMap, all called `a`.
pub async fn server() -> Server {
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap();
    let mut client = Client::new(server.target.clone());
    let schema = r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
        "properties":{"size":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 100"}]}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}"#;
    let object = r#"{"apiVersion":"hostile.example.com/v1","kind":"Foo","metadata":{"name":"a","labels":{"l":"x"}},"spec":{"a":{}}}"#;
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"x"}},"data":{"k":"v"}}"#;
    for (path, body) in
        [(DEFINITIONS, definition("hostile.example.com", schema).as_str()), (FOOS, object), (CONFIG_MAPS, map)]
    {
        let response = client.send(&Request::new("POST", path).body(JSON, body)).await.unwrap();
        assert_eq!(response.code, 201, "{path}: {}", text(&response));
    }
    server
}

pub fn text(response: &Response) -> String {
    let text = String::from_utf8_lossy(&response.body);
    text.chars().take(600).collect()
}

fn shown(request: &Request) -> String {
    let body = request.body.as_deref().unwrap_or_default();
    let body: String = String::from_utf8_lossy(body).chars().take(400).collect();
    let path: String = request.path.chars().take(400).collect();
    format!("{} {path} {:?}\n{body}", request.method, request.headers)
}

/// Whether an answer is what a client was to blame for, or a fault of which upstream says as much. A handler that
/// panicked says something of its own.
fn is_proper(response: &Response) -> bool {
    let body = String::from_utf8_lossy(&response.body);
    match response.code {
        200..500 | 504 => true,
        500 => !body.contains("could not finish this request"),
        _ => false,
    }
}

/// Sends a request; what comes must be a proper answer in time.
async fn attempt(client: &mut Client, request: &Request) -> Result<Response, String> {
    let start = Instant::now();
    let response = client.send(request).await.map_err(|error| format!("no answer ({error}) to {}", shown(request)))?;
    if start.elapsed() > LIMIT {
        return Err(format!("{:?} for {}", start.elapsed(), shown(request)));
    }
    if !is_proper(&response) {
        return Err(format!("{} {}\nto {}", response.code, text(&response), shown(request)));
    }
    Ok(response)
}

/// Sends a request and makes sure that what comes is a proper answer in time.
pub async fn send(client: &mut Client, request: &Request) -> Response {
    attempt(client, request).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Sends requests over a few connections at once, and makes sure that each gets a proper answer in time. Gives the
/// answers' codes, in no particular order.
pub async fn send_all(target: &Target, requests: impl IntoIterator<Item = Request>) -> Vec<u16> {
    let queue = Arc::new(Mutex::new(requests.into_iter().collect::<VecDeque<_>>()));
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let (queue, mut client) = (queue.clone(), Client::new(target.clone()));
            tokio::spawn(async move {
                let (mut codes, mut errors) = (Vec::new(), Vec::new());
                // After a few errors the rest says nothing new.
                while errors.len() < 5 {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(request) = next else { break };
                    match attempt(&mut client, &request).await {
                        Ok(response) => codes.push(response.code),
                        Err(error) => errors.push(error),
                    }
                }
                (codes, errors)
            })
        })
        .collect();
    let (mut codes, mut errors) = (Vec::new(), Vec::new());
    for worker in workers {
        let (some, wrong) = worker.await.unwrap();
        codes.extend(some);
        errors.extend(wrong);
    }
    assert!(errors.is_empty(), "{}", errors.join("\n\n"));
    codes
}

/// Whether the server still does all its work: writes, reads, lists, watches.
pub async fn well(server: &Server) {
    let mut client = Client::new(server.target.clone());
    let stamp = Instant::now();
    for (path, body) in [
        (CONFIG_MAPS, r#"{"metadata":{"generateName":"well-"},"data":{"a":"b"}}"#),
        (
            FOOS,
            r#"{"apiVersion":"hostile.example.com/v1","kind":"Foo","metadata":{"generateName":"well-"},"spec":{"size":1}}"#,
        ),
    ] {
        let response = send(&mut client, &Request::new("POST", path).body(JSON, body)).await;
        assert_eq!(response.code, 201, "{path}: {}", text(&response));
        for query in ["", "?limit=1", "?watch=true&timeoutSeconds=1"] {
            let response = send(&mut client, &Request::new("GET", format!("{path}{query}"))).await;
            assert_eq!(response.code, 200, "{path}{query}: {}", text(&response));
        }
    }
    for path in ["/readyz", "/openapi/v2", "/apis", "/metrics"] {
        assert_eq!(send(&mut client, &Request::new("GET", path)).await.code, 200, "{path}");
    }
    assert!(stamp.elapsed() < LIMIT);
}

/// `open` as often as `times`, `inner`, and as many times `close`.
pub fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}
