//! `stanchion export` and `stanchion import`: from a folder to a folder, to etcd and back.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request};
use compat::etcd::Etcd;
use compat::server::Server;
use object::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stanchion");
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

/// Runs a command that works, and gives what it says.
fn works(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    said
}

fn end(server: &mut Server) {
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(server.ended_within(Duration::from_secs(10)).unwrap());
}

async fn ask(server: &Server, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = Request::new(method, path).body("application/json", body);
    let response = Client::new(server.target.clone()).send(&request).await.unwrap();
    (response.code, json::parse(&response.body).unwrap())
}

/// Objects of all kinds of life: updated, deleted, custom.
async fn furnish(server: &Server) {
    let definition = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"pets.x.io"},
        "spec":{"group":"x.io","scope":"Cluster","names":{"plural":"pets","kind":"Pet"},"versions":[{"name":"v1","served":true,
        "storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let pet = r#"{"apiVersion":"x.io/v1","kind":"Pet","metadata":{"name":"rex"},"weight":1.5}"#;
    let event = r#"{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"reason":"r","message":"m"}"#;
    for (method, path, body) in [
        ("POST", definitions, definition),
        ("POST", "/apis/x.io/v1/pets", pet),
        ("POST", "/api/v1/namespaces/default/events", event),
        ("POST", COLLECTION, r#"{"metadata":{"name":"a"},"data":{"k":"ü\u0000"}}"#),
        ("PUT", &format!("{COLLECTION}/a"), r#"{"metadata":{"name":"a"},"data":{"k":"2"}}"#),
        ("POST", COLLECTION, r#"{"metadata":{"name":"b"}}"#),
        ("DELETE", &format!("{COLLECTION}/b"), "{}"),
    ] {
        let (code, answer) = ask(server, method, path, body).await;
        assert!(code < 300, "{method} {path}: {answer:?}");
    }
}

async fn version_of(server: &Server, path: &str) -> u64 {
    let (code, object) = ask(server, "GET", path, "").await;
    assert_eq!(code, 200, "{path}");
    object.meta_str("resourceVersion").parse().unwrap()
}

/// A server with its data in a folder that a test has filled.
async fn shows_all(server: &Server) {
    let (_, a) = ask(server, "GET", &format!("{COLLECTION}/a"), "").await;
    assert_eq!(a.str_at(&["data", "k"]), Some("2"));
    let (code, rex) = ask(server, "GET", "/apis/x.io/v1/pets/rex", "").await;
    assert_eq!((code, rex.get("weight")), (200, json::parse(b"1.5").ok().as_ref()));
    assert_eq!(ask(server, "GET", &format!("{COLLECTION}/b"), "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_data_moves_there_and_back() {
    let space = tempfile::tempdir().unwrap();
    let path = |name: &str| space.path().join(name).display().to_string();
    let mut server = Server::start_durable(Path::new(PROGRAM), &[]).unwrap();
    furnish(&server).await;
    let old = version_of(&server, &format!("{COLLECTION}/a")).await;
    let running = run(&["export", "--data-dir", &server.folder().display().to_string()]);
    assert!(String::from_utf8_lossy(&running.stderr).contains("is in use by another process"));
    end(&mut server);

    // A folder's copy is the same to the byte, versions and all.
    let (one, two, three) = (path("one"), path("two"), path("three"));
    let said = works(&["export", "--data-dir", &server.folder().display().to_string(), "-o", &one]);
    assert!(said.starts_with("exported "), "{said}");
    works(&["import", "--data-dir", &path("copy"), &one]);
    works(&["export", "--data-dir", &path("copy"), "-o", &two]);
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
    let again = run(&["import", "--data-dir", &path("copy"), &one]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("there is data already"));

    // What was changed on the way is refused.
    let text = std::fs::read_to_string(&one).unwrap();
    std::fs::write(path("bad"), text.replace("\"rex\"", "\"max\"")).unwrap();
    let bad = run(&["import", "--data-dir", &path("other"), &path("bad")]);
    assert!(String::from_utf8_lossy(&bad.stderr).contains("the checksum is another one"));

    let Some(etcd) = Etcd::start() else { return };
    let storage = format!("etcd://{}", etcd.endpoint);
    let said = works(&["import", "--storage", &storage, &one]);
    assert!(said.contains("with new versions from"), "{said}");
    let again = run(&["import", "--storage", &storage, &one]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("below the prefix already"));
    {
        let mut server = Server::start_durable(Path::new(PROGRAM), &["--storage", &storage]).unwrap();
        shows_all(&server).await;
        assert!(version_of(&server, &format!("{COLLECTION}/a")).await > old, "no new version is an old one");
        end(&mut server);
    }

    // And back into a folder, where a server goes on.
    works(&["export", "--storage", &storage, "-o", &three]);
    let mut server = Server::start_durable(Path::new(PROGRAM), &[]).unwrap();
    end(&mut server);
    std::fs::remove_dir_all(server.folder().join("store")).unwrap();
    works(&["import", "--data-dir", &server.folder().display().to_string(), &three]);
    server.restart().unwrap();
    shows_all(&server).await;
    assert_eq!(ask(&server, "POST", COLLECTION, r#"{"metadata":{"name":"new"}}"#).await.0, 201);
}
