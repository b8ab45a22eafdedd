//! Patches that are none, and patches that grow.

use crate::support::*;
use compat::client::{Client, Request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_no_patch() {
    let server = server().await;
    let bodies = [
        "",
        "null",
        "1",
        "\"x\"",
        "[]",
        "{}",
        "[null]",
        "[1]",
        "[{}]",
        "[[]]",
        "{\"a\":",
        "\u{0}",
        "[{\"op\":1}]",
        "[{\"op\":\"nope\",\"path\":\"/a\"}]",
        r#"[{"op":"add"}]"#,
        r#"[{"op":"add","path":"a","value":1}]"#,
        r#"[{"op":"add","path":"","value":1}]"#,
        r#"[{"op":"replace","path":"","value":[]}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"remove","path":"/metadata"}]"#,
        r#"[{"op":"remove","path":"/apiVersion"}]"#,
        r#"[{"op":"add","path":"/spec/-1/x","value":1}]"#,
        r#"[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"a/b"}]"#,
        r#"[{"op":"add","path":"/metadata/finalizers/-","value":"a/b"}]"#,
        r#"[{"op":"test","path":"/spec","value":null}]"#,
        r#"[{"op":"move","from":"/spec","path":"/spec/a/b"}]"#,
        r#"[{"op":"copy","from":"","path":"/spec/a"}]"#,
        r#"[{"op":"move","from":"","path":"/spec"}]"#,
        r#"[{"op":"copy","from":"/none","path":"/spec"}]"#,
        r#"[{"op":"add","path":"/a~2b~","value":1}]"#,
        r#"{"metadata":null}"#,
        r#"{"metadata":[]}"#,
        r#"{"spec":[1]}"#,
        r#"{"apiVersion":"v9"}"#,
        r#"{"kind":null}"#,
        r#"{"$patch":"nope"}"#,
        r#"{"$patch":"delete"}"#,
        r#"{"data":{"$patch":"replace"}}"#,
        r#"{"$setElementOrder/a":1}"#,
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":1}}"#,
        r#"{"metadata":{"$setElementOrder/finalizers":[{}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"$patch":"delete"}]}}"#,
        r#"{"metadata":{"ownerReferences":[{"uid":1},2]}}"#,
        r#"{"metadata":{"$retainKeys":"x"}}"#,
        r#"{"metadata":{"ownerReferences":[{"$patch":"replace"},1]}}"#,
        "a: [b",
        "&a [*a]",
    ];
    let mut requests = Vec::new();
    for body in bodies {
        for media_type in PATCHES.into_iter().chain(["application/json", "", "application/apply-patch+cbor"]) {
            for one in [
                format!("{CONFIG_MAPS}/a?fieldManager=m"),
                format!("{CONFIG_MAPS}/none?fieldManager=m"),
                format!("{CONFIG_MAPS}?fieldManager=m"),
                format!("{FOOS}/a?fieldManager=m"),
                format!("{FOOS}/a/status?fieldManager=m"),
                format!("{FOOS}/a/scale?fieldManager=m"),
                format!("{DEFINITIONS}/foos.hostile.example.com?fieldManager=m&dryRun=All"),
                "/api/v1/namespaces/default?fieldManager=m&dryRun=All".to_owned(),
                "/api/v1/namespaces/default/pods/a?fieldManager=m".to_owned(),
            ] {
                requests.push(Request::new("PATCH", one).body(media_type, body));
            }
        }
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_patches_are_refused_or_kept_whole() {
    let server = server().await;
    let mut requests = Vec::new();
    for depth in [900, 10_000, 400_000] {
        let maps = nested(r#"{"a":"#, "1", "}", depth);
        let lists = nested("[", "1", "]", depth);
        for value in [maps, lists] {
            let operation = format!(r#"[{{"op":"add","path":"/spec/a","value":{value}}}]"#);
            requests.push(Request::new("PATCH", format!("{FOOS}/a")).body(PATCHES[0], operation));
            let merge = format!(r#"{{"spec":{{"a":{value}}}}}"#);
            for place in [FOOS, CONFIG_MAPS] {
                for media_type in &PATCHES[1..] {
                    let path = format!("{place}/a?fieldManager=m&force=true");
                    requests.push(Request::new("PATCH", path).body(media_type, merge.clone()));
                }
            }
        }
        let path = "/a".repeat(depth);
        let operation =
            format!(r#"[{{"op":"add","path":"/spec{path}","value":1}},{{"op":"test","path":"{path}","value":1}}]"#);
        requests.push(Request::new("PATCH", format!("{FOOS}/a")).body(PATCHES[0], operation));
    }
    send_all(&server.target, requests).await;
    well(&server).await;
}

/// What is stored can be read again, also when it got deeper than a body may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_do_not_grow_beyond_what_can_be_read() {
    let server = server().await;
    let mut client = Client::new(server.target.clone());
    let path = format!("{FOOS}/a");
    let start = nested(r#"{"a":"#, "{}", "}", 100);
    let first = format!(r#"{{"spec":{{"a":{start}}}}}"#);
    assert_eq!(send(&mut client, &Request::new("PATCH", &path).body(PATCHES[1], first)).await.code, 200);
    // Each round hangs the object's tree onto its deepest leaf.
    let mut depth = 101;
    for _ in 0..14 {
        let place = "/a".repeat(depth);
        if place.len() > 2 << 20 {
            break;
        }
        let operation = format!(r#"[{{"op":"copy","from":"/spec/a","path":"/spec{place}/a"}}]"#);
        let response = send(&mut client, &Request::new("PATCH", &path).body(PATCHES[0], operation)).await;
        if response.code == 200 {
            depth *= 2;
        }
        assert_eq!(send(&mut client, &Request::new("GET", &path)).await.code, 200);
        assert_eq!(send(&mut client, &Request::new("GET", FOOS)).await.code, 200);
    }
    // Each operation doubles the object.
    let operations: Vec<String> =
        (0..60).map(|i| format!(r#"{{"op":"copy","from":"/spec","path":"/spec/c{i}"}}"#)).collect();
    let patch = format!("[{}]", operations.join(","));
    let response = send(&mut client, &Request::new("PATCH", &path).body(PATCHES[0], patch)).await;
    assert!(matches!(response.code, 413 | 422 | 400), "{} {}", response.code, text(&response));
    let patch = format!("[{}]", [r#"{"op":"test","path":"/kind","value":"Foo"}"#; 20_000].join(","));
    let response = send(&mut client, &Request::new("PATCH", &path).body(PATCHES[0], patch)).await;
    assert_eq!(response.code, 413, "{}", text(&response));
    well(&server).await;
}
