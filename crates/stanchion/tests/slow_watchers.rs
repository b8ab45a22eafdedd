//! Clients that watch and do not read: they cost the server no memory, delay nobody, are told that they missed something,
//! and know everything again after a list.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]
#![cfg(target_os = "linux")]

use compat::client::{Client, Request};
use compat::server::Server;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use object::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many clients do not read.
const STUCK: usize = 20;
// Who writes, how often, and how much: together more than the history keeps (64 MiB).
const WRITERS: usize = 6;
const WRITES: usize = 100;
const BYTES: usize = 150_000;
/// What the server may need beyond what it had: its history, and as much again for what is on its way.
const MOST: u64 = 256 << 20;
/// How many writes the quick client may be behind: it is not to be one of the slow ones where the machine is busy.
const AHEAD: usize = 100;
/// How long anything may take on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(240);

async fn ask(client: &mut Client, method: &str, path: &str, body: Option<String>) -> Value {
    let mut request = Request::new(method, path);
    if let Some(body) = body {
        request = request.body("application/json", body);
    }
    let response = timeout(PATIENCE, client.send(&request)).await.unwrap().unwrap();
    assert!(response.code < 300, "{}", String::from_utf8_lossy(&response.body));
    json::parse(&response.body).unwrap()
}

fn version(object: &Value) -> u64 {
    object.meta_str("resourceVersion").parse().unwrap()
}

async fn watch(server: &Server, after: u64) -> Incoming {
    let request = Request::new("GET", format!("{MAPS}?watch=true&resourceVersion={after}"));
    Client::new(server.target.clone()).stream(&request).await.unwrap()
}

/// A map as the `number`th write makes it.
fn map(writer: usize, number: usize) -> String {
    let filler = "x".repeat(BYTES);
    format!(r#"{{"metadata":{{"name":"w{writer}"}},"data":{{"number":"{number}","filler":"{filler}"}}}}"#)
}

/// The next events of a watch; none at its end.
async fn events(watch: &mut Incoming, rest: &mut Vec<u8>) -> Option<Vec<Value>> {
    loop {
        let frame = timeout(PATIENCE, watch.frame()).await.expect("nothing comes")?.unwrap();
        rest.extend_from_slice(frame.data_ref().unwrap());
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = rest.drain(..=end).collect();
            return Some(whole[..end].split(|byte| *byte == b'\n').map(|line| json::parse(line).unwrap()).collect());
        }
    }
}

/// The server's memory, in bytes.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_cost_nothing_delay_nobody_and_lose_nothing_after_a_list() {
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap();
    let mut client = Client::new(server.target.clone());
    for writer in 0..WRITERS {
        ask(&mut client, "POST", MAPS, Some(map(writer, 0))).await;
    }
    let start = version(&ask(&mut client, "GET", &format!("{MAPS}?limit=1"), None).await);
    let mut stuck = Vec::new();
    for _ in 0..STUCK {
        stuck.push(watch(&server, start).await);
    }
    let mut quick = watch(&server, start).await;
    let before = memory(&server);

    let turns = Arc::new(Semaphore::new(AHEAD));
    let seen_one = turns.clone();
    let reading = tokio::spawn(async move {
        let (mut seen, mut rest, mut last) = (BTreeMap::new(), Vec::new(), start);
        while seen.len() < WRITERS || seen.values().any(|number| *number < WRITES) {
            for event in events(&mut quick, &mut rest).await.expect("the quick watch ends") {
                let object = event.get("object").unwrap();
                let number: usize = object.str_at(&["data", "number"]).unwrap_or("0").parse().unwrap();
                if object.name().starts_with('w') {
                    let known = seen.insert(object.name().to_owned(), number).unwrap_or(0);
                    assert_eq!(number, known + 1, "{} after {known}", object.name());
                    seen_one.add_permits(1);
                }
                assert!(version(object) > last);
                last = version(object);
            }
        }
    });
    let writing: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (mut client, turns) = (Client::new(server.target.clone()), turns.clone());
            tokio::spawn(async move {
                for number in 1..=WRITES {
                    timeout(PATIENCE, turns.acquire()).await.expect("the quick watch is delayed").unwrap().forget();
                    ask(&mut client, "PUT", &format!("{MAPS}/w{writer}"), Some(map(writer, number))).await;
                }
            })
        })
        .collect();
    for one in writing {
        one.await.unwrap();
    }
    reading.await.unwrap();
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < MOST, "the server grew by {} MB", grown >> 20);

    // One reads on: what comes is in order, and at the end it is told that something is missing.
    let (mut slow, mut rest, mut last, mut ended) = (stuck.remove(0), Vec::new(), start, false);
    while let Some(events) = events(&mut slow, &mut rest).await {
        for event in events {
            assert!(!ended, "something comes after the error");
            let object = event.get("object").unwrap();
            if event.str_at(&["type"]) == Some("ERROR") {
                let reason = (object.get("code").and_then(Value::as_int), object.str_at(&["reason"]));
                assert_eq!(reason, (Some(410), Some("Expired")));
                ended = true;
                continue;
            }
            assert!(version(object) > last);
            last = version(object);
        }
    }
    assert!(ended, "nobody tells that something is missing");

    // After a list it knows all, and a watch from there has what comes.
    let list = ask(&mut client, "GET", MAPS, None).await;
    let numbers = list.get("items").and_then(Value::as_array).unwrap().iter();
    let numbers: Vec<&str> = numbers.filter_map(|map| map.str_at(&["data", "number"])).collect();
    assert_eq!(numbers, vec![WRITES.to_string(); WRITERS]);
    let mut again = watch(&server, version(&list)).await;
    let body = r#"{"metadata":{"name":"last"}}"#.to_owned();
    ask(&mut client, "POST", MAPS, Some(body)).await;
    let next = events(&mut again, &mut Vec::new()).await.unwrap();
    assert_eq!(next[0].get("object").unwrap().name(), "last");
}
