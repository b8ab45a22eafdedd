//! Several servers over one etcd. Servers and etcd are killed at random under writes and watches, and a checker compares:
//! no acknowledged write is lost; every watch sees every event once, in order. Skipped where etcd is not installed.
//!
//! `STANCHION_ETCD_SECONDS` sets how long things are killed (15 by default).

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request, Target};
use compat::etcd::Etcd;
use compat::server::Server;
use http_body_util::BodyExt;
use object::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const WRITERS: u64 = 6;
const KEYS: u64 = 5;
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    value.str_at(path).unwrap_or_default()
}

fn version(object: &Value) -> u64 {
    text(object, &["metadata", "resourceVersion"]).parse().unwrap()
}

fn start(etcd: &Etcd) -> Server {
    let storage = format!("etcd://{}", etcd.endpoint);
    Server::start_durable(Path::new(env!("CARGO_BIN_EXE_stanchion")), &["--storage", &storage]).unwrap()
}

/// The code and the object of an answer; nothing if there is none.
async fn ask(client: &mut Client, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let mut request = Request::new(method, path);
    if !body.is_empty() {
        request = request.body("application/json", body);
    }
    let response = client.send(&request).await.ok()?;
    Some((response.code, json::parse(&response.body).unwrap_or_default()))
}

/// Asks until the answer is as wanted.
async fn until(client: &mut Client, path: &str, what: &str, wanted: impl Fn(u16, &Value) -> bool) -> Value {
    let asking = async {
        loop {
            if let Some((code, object)) = ask(client, "GET", path, "").await
                && wanted(code, &object)
            {
                return object;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(40), asking).await.unwrap_or_else(|_| panic!("{path}: not {what} in time"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_over_one_etcd_agree_and_one_leads() {
    let Some(mut etcd) = Etcd::start() else { return };
    let (mut first, second) = (start(&etcd), start(&etcd));
    let (mut a, mut b) = (Client::new(first.target.clone()), Client::new(second.target.clone()));

    // What one wrote the other reads, at once.
    for n in 0..20 {
        let body = format!(r#"{{"metadata":{{"name":"c{n}"}}}}"#);
        let (code, made) = ask(&mut a, "POST", COLLECTION, &body).await.unwrap();
        assert_eq!(code, 201);
        let (code, read) = ask(&mut b, "GET", &format!("{COLLECTION}/c{n}"), "").await.unwrap();
        assert_eq!((code, version(&read)), (200, version(&made)));
    }

    // Definitions, policies and roles are in effect on the other one a moment later.
    let definition = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"pets.x.io"},
        "spec":{"group":"x.io","scope":"Cluster","names":{"plural":"pets","kind":"Pet"},"versions":[{"name":"v1","served":true,
        "storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(ask(&mut a, "POST", definitions, definition).await.unwrap().0, 201);
    let pet = r#"{"apiVersion":"x.io/v1","kind":"Pet","metadata":{"name":"rex"}}"#;
    assert_eq!(ask(&mut a, "POST", "/apis/x.io/v1/pets", pet).await.unwrap().0, 201);
    until(&mut b, "/apis/x.io/v1/pets/rex", "served", |code, _| code == 200).await;
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let policy = r#"{"metadata":{"name":"no"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["x.io"],"apiVersions":["*"],
        "resources":["pets"],"operations":["CREATE"]}]},"validations":[{"expression":"false"}]}}"#;
    let binding = r#"{"metadata":{"name":"no"},"spec":{"policyName":"no","validationActions":["Deny"]}}"#;
    for (plural, body) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        assert_eq!(ask(&mut a, "POST", &format!("{policies}/{plural}"), body).await.unwrap().0, 201);
    }
    let refused = async {
        for n in 0.. {
            let pet = format!(r#"{{"apiVersion":"x.io/v1","kind":"Pet","metadata":{{"name":"p{n}"}}}}"#);
            if ask(&mut b, "POST", "/apis/x.io/v1/pets", &pet).await.unwrap().0 == 422 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), refused).await.unwrap();
    assert_eq!(ask(&mut a, "DELETE", &format!("{definitions}/pets.x.io"), "").await.unwrap().0, 200);
    until(&mut b, "/apis/x.io/v1/pets", "gone", |code, _| code == 404).await;

    // One of them does the controllers' work. When it ends, the other one takes over without waiting for the lease.
    let lease = until(&mut a, LEASE, "held", |_, lease| !text(lease, &["spec", "holderIdentity"]).is_empty()).await;
    let holder = text(&lease, &["spec", "holderIdentity"]).to_owned();
    let pid = first.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(first.ended_within(Duration::from_secs(5)).unwrap());
    let ended = Instant::now();
    until(&mut b, LEASE, "taken", |_, lease| {
        !["", holder.as_str()].contains(&text(lease, &["spec", "holderIdentity"]))
    })
    .await;
    assert!(ended.elapsed() < Duration::from_secs(12), "{:?}", ended.elapsed());
    let namespaces = "/api/v1/namespaces";
    assert_eq!(ask(&mut b, "POST", namespaces, r#"{"metadata":{"name":"n"}}"#).await.unwrap().0, 201);
    assert_eq!(ask(&mut b, "DELETE", &format!("{namespaces}/n"), "").await.unwrap().0, 200);
    until(&mut b, &format!("{namespaces}/n"), "gone", |code, _| code == 404).await;

    // Without etcd the server says so, and goes on when etcd is back.
    etcd.kill();
    until(&mut b, "/readyz/etcd", "failed", |code, _| code == 500).await;
    assert!(etcd.restart());
    until(&mut b, "/readyz", "ready", |code, _| code == 200).await;
    assert_eq!(ask(&mut b, "GET", &format!("{COLLECTION}/c0"), "").await.unwrap().0, 200);
}

/// Where the servers are at the moment.
type Targets = Arc<Mutex<Vec<Target>>>;

fn client(targets: &Targets, index: usize) -> Client {
    let targets = targets.lock().unwrap();
    Client::new(targets[index % targets.len()].clone())
}

/// What was acknowledged to a writer: the versions that got an answer, and the number of each object that is there.
#[derive(Default)]
struct Acknowledged {
    versions: Vec<(u64, String)>,
    present: BTreeMap<String, u64>,
}

/// Creates, updates and deletes objects of its own until told to stop. What was not acknowledged is looked up.
async fn write(targets: Targets, writer: u64, stop: Arc<AtomicBool>) -> Acknowledged {
    let mut known = Acknowledged::default();
    let mut index = writer as usize;
    let mut http = client(&targets, index);
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w{writer}-{}", number % KEYS);
        let path = format!("{COLLECTION}/{name}");
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"n":"{number}"}}}}"#);
        let is_there = known.present.contains_key(&name);
        let delete = is_there && number % 7 == 0;
        let answer = match (is_there, delete) {
            (false, _) => ask(&mut http, "POST", COLLECTION, &body).await,
            (true, false) => ask(&mut http, "PUT", &path, &body).await,
            (true, true) => ask(&mut http, "DELETE", &path, "").await,
        };
        match answer {
            Some((200 | 201, _)) if delete => drop(known.present.remove(&name)),
            Some((200 | 201, object)) => {
                known.versions.push((version(&object), name.clone()));
                known.present.insert(name, number);
            }
            // It may have happened or not. What a killed server had sent already may take a moment.
            _ => loop {
                sleep(Duration::from_millis(200)).await;
                index += 1;
                http = client(&targets, index);
                match ask(&mut http, "GET", &path, "").await {
                    Some((200, object)) => {
                        let found: u64 = text(&object, &["data", "n"]).parse().unwrap();
                        let before = known.present.insert(name.clone(), found);
                        assert!(found == number || before == Some(found), "{name}: {before:?}, then {found}");
                        break;
                    }
                    Some((404, _)) => {
                        let before = known.present.remove(&name);
                        assert!(before.is_none() || delete, "{name} is lost: {before:?}");
                        break;
                    }
                    _ => {}
                }
            },
        }
    }
    known
}

/// The events of the collection from a version on, up to that of the object `last`, over as many connections as it takes.
async fn watch(targets: Targets, mut index: usize, mut from: u64) -> Vec<(u64, String, String)> {
    let mut seen = Vec::new();
    loop {
        index += 1;
        let mut http = client(&targets, index);
        let path = format!("{COLLECTION}?watch=true&resourceVersion={from}");
        let Ok(Ok(mut body)) = timeout(Duration::from_secs(10), http.stream(&Request::new("GET", path))).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let mut buffer = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            buffer.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let event = json::parse(&line).unwrap();
                let kind = text(&event, &["type"]).to_owned();
                assert_ne!(kind, "ERROR", "after {from}: {}", String::from_utf8_lossy(&line));
                let object = event.get("object").unwrap();
                from = version(object);
                let name = object.name().to_owned();
                let is_last = name == "last";
                seen.push((from, name, kind));
                if is_last {
                    return seen;
                }
            }
        }
    }
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Makes services one after the other, until there are so many or a server does not answer; gives their addresses and ports.
async fn make_services(target: Target, name: String, count: usize) -> Vec<(String, i64)> {
    let (mut client, mut made) = (Client::new(target), Vec::new());
    for i in 0..count {
        let body =
            format!(r#"{{"metadata":{{"name":"{name}-{i}"}},"spec":{{"type":"NodePort","ports":[{{"port":80}}]}}}}"#);
        let Some((code, service)) = ask(&mut client, "POST", SERVICES, &body).await else { return made };
        assert_eq!(code, 201, "{service:?}");
        made.push(taken(&service));
    }
    made
}

/// The address and the node port of a service.
fn taken(service: &Value) -> (String, i64) {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap();
    let port = ports[0].get("nodePort").and_then(Value::as_int).unwrap();
    (text(service, &["spec", "clusterIP"]).to_owned(), port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_made_on_several_servers_at_once_share_nothing() {
    let Some(etcd) = Etcd::start() else { return };
    let (first, mut second) = (start(&etcd), start(&etcd));
    let makers: Vec<_> = (0..8)
        .map(|i| {
            let target = if i % 2 == 0 { first.target.clone() } else { second.target.clone() };
            tokio::spawn(make_services(target, format!("s{i}"), 10))
        })
        .collect();
    let mut all = Vec::new();
    for maker in makers {
        all.extend(maker.await.unwrap());
    }
    assert_eq!(all.len(), 80);
    distinct(&all);

    // One is killed while both give away; what it began is there in full or not at all.
    let dying: Vec<_> =
        (0..4).map(|i| tokio::spawn(make_services(second.target.clone(), format!("d{i}"), 30))).collect();
    let living = make_services(first.target.clone(), "l".to_owned(), 10);
    let mut watcher = Client::new(first.target.clone());
    let killed = async {
        // In the middle of it: each of them has made something.
        for i in 0..4 {
            let (path, begun) = (format!("{SERVICES}/d{i}-0"), Instant::now());
            loop {
                let (code, answer) = ask(&mut watcher, "GET", &path, "").await.unwrap();
                if code == 200 {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "GET {path}: still {code}: {answer:?}");
                sleep(Duration::from_millis(5)).await;
            }
        }
        second.kill();
    };
    let (living, ()) = tokio::join!(living, killed);
    assert_eq!(living.len(), 10);
    for one in dying {
        one.await.unwrap();
    }
    let mut client = Client::new(first.target.clone());
    let (_, list) = ask(&mut client, "GET", SERVICES, "").await.unwrap();
    let services = list.get("items").and_then(Value::as_array).unwrap();
    let nodes = services.iter().filter(|service| text(service, &["spec", "type"]) == "NodePort");
    let held: Vec<(String, i64)> = nodes.map(taken).collect();
    distinct(&held);

    // What one of them had is free when it is gone.
    let (address, port) = held[0].clone();
    let name = services.iter().find(|s| text(s, &["spec", "clusterIP"]) == address).unwrap().name().to_owned();
    assert_eq!(ask(&mut client, "DELETE", &format!("{SERVICES}/{name}"), "").await.unwrap().0, 200);
    let body = format!(
        r#"{{"metadata":{{"name":"again"}},"spec":{{"type":"NodePort","clusterIP":"{address}","ports":[{{"port":80,"nodePort":{port}}}]}}}}"#
    );
    let (code, again) = ask(&mut client, "POST", SERVICES, &body).await.unwrap();
    assert_eq!((code, taken(&again)), (201, (address, port)));
}

/// No address and no port is there twice.
fn distinct(all: &[(String, i64)]) {
    let addresses: BTreeSet<_> = all.iter().map(|(address, _)| address).collect();
    let ports: BTreeSet<_> = all.iter().map(|(_, port)| port).collect();
    assert_eq!((addresses.len(), ports.len()), (all.len(), all.len()), "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_repeated_or_out_of_order_when_servers_and_etcd_are_killed() {
    let seconds: u64 = std::env::var("STANCHION_ETCD_SECONDS").map_or(15, |seconds| seconds.parse().unwrap());
    let Some(mut etcd) = Etcd::start() else { return };
    let mut servers = [start(&etcd), start(&etcd)];
    let targets: Targets = Arc::new(Mutex::new(servers.iter().map(|server| server.target.clone()).collect()));
    let (_, list) = ask(&mut client(&targets, 0), "GET", COLLECTION, "").await.unwrap();
    let from = version(&list);
    let stop = Arc::new(AtomicBool::new(false));
    let watches: Vec<_> = (0..6).map(|index| tokio::spawn(watch(targets.clone(), index, from))).collect();
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(targets.clone(), writer, stop.clone()))).collect();

    let (began, mut round) = (Instant::now(), 0u64);
    while began.elapsed() < Duration::from_secs(seconds) {
        round += 1;
        sleep(Duration::from_millis(500 + round * 7919 % 1000)).await;
        match round * 31 % 5 {
            0 | 3 => {
                etcd.kill();
                sleep(Duration::from_millis(round * 613 % 900)).await;
                assert!(etcd.restart());
            }
            which => {
                let which = (which % 2) as usize;
                let server = &mut servers[which];
                tokio::task::block_in_place(|| server.restart()).unwrap();
                targets.lock().unwrap()[which] = server.target.clone();
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.push(timeout(Duration::from_secs(60), writer).await.unwrap().unwrap());
    }
    let mut http = client(&targets, 1);
    assert_eq!(ask(&mut http, "POST", COLLECTION, r#"{"metadata":{"name":"last"}}"#).await.unwrap().0, 201);

    // What is there is what was acknowledged.
    let (_, list) = ask(&mut client(&targets, 0), "GET", COLLECTION, "").await.unwrap();
    let items = list.get("items").and_then(Value::as_array).unwrap();
    let stored: BTreeMap<String, u64> = items
        .iter()
        .filter(|item| item.name().starts_with('w'))
        .map(|item| (item.name().to_owned(), text(item, &["data", "n"]).parse().unwrap()))
        .collect();
    let expected: BTreeMap<String, u64> = acknowledged.iter().flat_map(|known| known.present.clone()).collect();
    assert_eq!(stored, expected);

    // All watches saw the same, in order, and every acknowledged write is in it.
    let mut histories = Vec::new();
    for watch in watches {
        histories.push(timeout(Duration::from_secs(60), watch).await.unwrap().unwrap());
    }
    let history = &histories[0];
    assert!(history.is_sorted_by(|a, b| a.0 < b.0), "out of order, or repeated");
    for (index, other) in histories.iter().enumerate() {
        let differs = history.iter().zip(other).position(|(a, b)| a != b);
        assert!(differs.is_none() && history.len() == other.len(), "watch {index} differs at {differs:?}");
    }
    let writes: usize = acknowledged.iter().map(|known| known.versions.len()).sum();
    for (version, name) in acknowledged.iter().flat_map(|known| &known.versions) {
        let event = history.binary_search_by_key(version, |event| event.0).map(|at| &history[at].1);
        assert_eq!(event.ok(), Some(name), "no watch saw version {version}");
    }
    println!("{round} kills, {writes} acknowledged writes, {} events", history.len());
}
