//! The server is killed under a load of writes over HTTP; what it acknowledged is there when it is back, and watches go on.
//!
//! `STANCHION_CRASH_ROUNDS` sets how often (3 by default).

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request, Target};
use compat::server::Server;
use http_body_util::BodyExt;
use object::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

const WRITERS: u64 = 6;
const KEYS: u64 = 8;
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// What a writer knows of its objects: the last number and version that were acknowledged, and the last that was sent.
#[derive(Clone, Debug, Default)]
struct Known {
    number: u64,
    version: u64,
    sent: u64,
}

/// The data of a ConfigMap, from which it can be seen whether it is whole.
fn data(number: u64) -> String {
    format!("{number} {}", "x".repeat((number * 7919 % 5000) as usize))
}

/// Writes until the server is gone. Numbers only grow.
async fn write(target: Target, writer: u64, mut known: HashMap<String, Known>) -> HashMap<String, Known> {
    let mut client = Client::new(target);
    let mut count = known.values().map(|k| k.sent).max().unwrap_or(0);
    loop {
        count += 1;
        let name = format!("w{writer}-{}", count % KEYS);
        let entry = known.entry(name.clone()).or_default();
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"{0}","b":"{0}"}}}}"#, data(count));
        let request = match entry.sent {
            0 => Request::new("POST", COLLECTION),
            _ => Request::new("PUT", format!("{COLLECTION}/{name}")),
        };
        entry.sent = count;
        let Ok(response) = client.send(&request.body("application/json", body)).await else { return known };
        // What was sent twice, because the connection broke off, may be there already; what never arrived is not.
        if response.code == 409 || response.code == 404 {
            return known;
        }
        assert!(matches!(response.code, 200 | 201), "{}", String::from_utf8_lossy(&response.body));
        let object = json::parse(&response.body).unwrap();
        entry.number = count;
        entry.version = text(&object, &["metadata", "resourceVersion"]).parse().unwrap();
    }
}

/// The objects as they are stored, by name: number and version; with the version of the list.
async fn stored(client: &mut Client) -> (BTreeMap<String, (u64, u64)>, u64) {
    let response = client.send(&Request::new("GET", COLLECTION)).await.unwrap();
    assert_eq!(response.code, 200);
    let list = json::parse(&response.body).unwrap();
    let mut found = BTreeMap::new();
    for item in list.get("items").and_then(Value::as_array).unwrap() {
        let (name, both) = (text(item, &["metadata", "name"]), text(item, &["data", "a"]));
        let Some(number) = both.split(' ').next().and_then(|n| n.parse().ok()) else { continue };
        assert_eq!(both, data(number), "{name} is half there");
        assert_eq!(both, text(item, &["data", "b"]), "{name} is half there");
        let version = text(item, &["metadata", "resourceVersion"]).parse().unwrap();
        found.insert(name.to_owned(), (number, version));
    }
    (found, text(&list, &["metadata", "resourceVersion"]).parse().unwrap())
}

/// The last version of each object that a watch from a version tells of within a second.
async fn watched(client: &mut Client, from: u64) -> BTreeMap<String, u64> {
    let path = format!("{COLLECTION}?watch=true&resourceVersion={from}&timeoutSeconds=1");
    let response = client.send(&Request::new("GET", path)).await.unwrap();
    assert_eq!(response.code, 200);
    let mut last = BTreeMap::new();
    for line in response.body.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let event = json::parse(line).unwrap();
        assert_ne!(text(&event, &["type"]), "ERROR", "{}", String::from_utf8_lossy(line));
        let version = text(&event, &["object", "metadata", "resourceVersion"]).parse().unwrap();
        let name = text(&event, &["object", "metadata", "name"]);
        // The controllers write there, too.
        if name.starts_with('w') {
            last.insert(name.to_owned(), version);
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_kill() {
    let rounds: u64 = std::env::var("STANCHION_CRASH_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    let mut server = Server::start_durable(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap();
    let mut known: Vec<HashMap<String, Known>> = vec![HashMap::new(); WRITERS as usize];
    let mut writes = 0;
    for round in 0..rounds {
        let mut client = Client::new(server.target.clone());
        let (before, from) = stored(&mut client).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(server.target.clone(), writer, known[writer as usize].clone())))
            .collect();
        tokio::time::sleep(Duration::from_millis(250 + round * 97 % 400)).await;
        server.kill();
        for (writer, task) in writers.into_iter().enumerate() {
            known[writer] = task.await.unwrap();
        }
        let took = server.restart().unwrap();
        assert!(took < Duration::from_secs(5), "ready after {took:?}");
        let mut client = Client::new(server.target.clone());
        let (found, version) = stored(&mut client).await;
        for (name, known) in known.iter().flatten() {
            match found.get(name) {
                // Stored, but the acknowledgement did not arrive any more.
                Some((number, at)) if *number == known.sent => assert!(*at >= known.version),
                Some((number, at)) => {
                    assert_eq!((*number, *at), (known.number, known.version), "round {round}: {name}")
                }
                None => assert_eq!(known.number, 0, "round {round}: {name} is lost"),
            }
        }
        writes += version - from;
        // A watch goes on where it was before, and ends up with what is stored.
        let news: BTreeMap<String, u64> = found
            .iter()
            .filter(|(name, now)| before.get(*name) != Some(now))
            .map(|(name, (_, version))| (name.clone(), *version))
            .collect();
        assert!(!news.is_empty());
        assert_eq!(watched(&mut client, from).await, news, "round {round}");
        // The writers go on from what they find.
        for known in known.iter_mut() {
            known.retain(|name, _| found.contains_key(name));
            for (name, known) in known.iter_mut() {
                (known.number, known.version) = found[name];
            }
        }
    }
    println!("{rounds} rounds, {writes} writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_the_server_within_a_second_with_watches_open() {
    let mut server = Server::start_durable(Path::new(env!("CARGO_BIN_EXE_stanchion")), &[]).unwrap();
    let mut watches = Vec::new();
    for _ in 0..50 {
        let mut client = Client::new(server.target.clone());
        let watch = client.stream(&Request::new("GET", format!("{COLLECTION}?watch=true"))).await.unwrap();
        watches.push((client, watch));
    }
    let start = Instant::now();
    let pid = server.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(server.ended_within(Duration::from_secs(5)).unwrap(), "it ended badly");
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    for (_, watch) in watches {
        let end = tokio::time::timeout(Duration::from_secs(1), watch.collect()).await;
        assert!(end.is_ok(), "a watch is open still");
    }
}
