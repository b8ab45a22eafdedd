//! Answers in protobuf, as typed Go clients ask for them.

#![allow(clippy::unwrap_used)]

use apiserver::answer::Body;
use apiserver::auth::UserInfo;
use apiserver::{Options, Server};
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use object::{Value, json};
use std::sync::Arc;
use store::Embedded;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"foos.x.io"},"spec":{"group":"x.io","scope":"Cluster","names":{"kind":"Foo","plural":"foos"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;

async fn server() -> Arc<Server> {
    let store = Arc::new(Embedded::in_memory(store::Options::default()));
    Server::new(store, Options::default()).await.unwrap()
}

async fn answer(server: &Arc<Server>, method: &str, path: &str, accept: &str, body: &str) -> http::Response<Body> {
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let request = request.header("content-type", "application/json");
    let request = request.body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
    server.handle(request, UserInfo { name: "me".into(), ..UserInfo::default() }).await
}

/// Code, content type and body.
async fn send(server: &Arc<Server>, method: &str, path: &str, accept: &str, body: &str) -> (u16, String, Bytes) {
    let response = answer(server, method, path, accept, body).await;
    let (code, ty) = (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap().to_owned());
    (code, ty, response.into_body().collect().await.unwrap().to_bytes())
}

fn read(body: &[u8]) -> Value {
    kinds::protobuf::read(body).unwrap()
}

#[tokio::test]
async fn objects_lists_and_failures_are_written_as_protobuf() {
    let server = server().await;
    let map = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let (code, ty, body) = send(&server, "POST", MAPS, BOTH, map).await;
    assert_eq!((code, ty.as_str()), (201, PROTOBUF));
    assert_eq!(read(&body).str_at(&["data", "k"]), Some("v"));
    let (_, _, body) = send(&server, "GET", MAPS, PROTOBUF, "").await;
    let list = read(&body);
    assert_eq!(list.str_at(&["kind"]), Some("ConfigMapList"));
    assert!(list.str_at(&["metadata", "resourceVersion"]).is_some_and(|v| !v.is_empty()));
    let items = list.get("items").and_then(Value::as_array).unwrap();
    assert_eq!(items[0].str_at(&["metadata", "name"]), Some("a"));
    let (code, ty, body) = send(&server, "GET", &format!("{MAPS}/b"), BOTH, "").await;
    assert_eq!((code, ty.as_str()), (404, PROTOBUF));
    assert_eq!(read(&body).str_at(&["message"]), Some("configmaps \"b\" not found"));
    let (_, ty, _) = send(&server, "DELETE", &format!("{MAPS}/a"), BOTH, "").await;
    assert_eq!(ty, PROTOBUF);
}

#[tokio::test]
async fn tables_and_custom_resources_stay_json() {
    let server = server().await;
    let table = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io");
    let (_, ty, _) = send(&server, "GET", MAPS, &table, "").await;
    assert_eq!(ty, "application/json");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, ty, _) = send(&server, "POST", path, BOTH, DEFINITION).await;
    assert_eq!((code, ty.as_str()), (201, PROTOBUF));
    let (code, _, body) = send(
        &server,
        "POST",
        "/apis/x.io/v1/foos",
        BOTH,
        r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"f"}}"#,
    )
    .await;
    assert_eq!((code, json::parse(&body).unwrap().name()), (201, "f"));
    let (code, ty, body) = send(&server, "GET", "/apis/x.io/v1/foos/f", PROTOBUF, "").await;
    assert_eq!((code, ty.as_str()), (406, PROTOBUF));
    assert_eq!(read(&body).str_at(&["reason"]), Some("NotAcceptable"));
    let partial = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let (code, ty, body) = send(&server, "GET", "/apis/x.io/v1/foos/f", &partial, "").await;
    assert_eq!((code, ty.as_str()), (200, PROTOBUF));
    assert!(body.windows(21).any(|w| w == b"PartialObjectMetadata"));
}

#[tokio::test]
async fn a_watch_sends_frames() {
    let server = server().await;
    for name in ["a", "b"] {
        let map = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{name}"}}}}"#);
        send(&server, "POST", MAPS, BOTH, &map).await;
    }
    let path = format!("{MAPS}?watch=1&timeoutSeconds=1");
    let response = answer(&server, "GET", &path, PROTOBUF, "").await;
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let mut body = response.into_body();
    let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let (mut rest, mut frames) = (&bytes[..], 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (frame, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        assert!(frame.starts_with(b"\n\x05ADDED\x12"), "{}", frame.escape_ascii());
        rest = after;
        frames += 1;
    }
    assert_eq!(frames, 2);
}
