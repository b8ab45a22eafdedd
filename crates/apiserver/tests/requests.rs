//! Requests and their answers, from the head of a request to the store and back, without sockets.

#![allow(clippy::unwrap_used)]

use apiserver::answer::Body;
use apiserver::auth::UserInfo;
use apiserver::{Options, Server};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use object::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{Embedded, Store};

struct Fixture {
    store: Arc<dyn Store>,
    server: Arc<Server>,
}

impl Fixture {
    async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(store::Options::default()));
        let server = Server::new(store.clone(), Options::default()).await.unwrap();
        Fixture { store, server }
    }

    async fn response(&self, method: &str, path: &str, content_type: &str, body: &str) -> http::Response<Body> {
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        self.server.handle(request, UserInfo { name: "me".into(), ..UserInfo::default() }).await
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let response = self.response(method, path, content_type, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, json::parse(&bytes).unwrap_or_default())
    }

    /// Asks again and again until the code is another one; the controllers work in the background.
    async fn until(&self, path: &str, code: u16) -> Value {
        for _ in 0..200 {
            let (got, value) = self.send("GET", path, "").await;
            if got == code {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} never answered {code}");
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/x.io/v1/namespaces/default/foos";

fn definition(default: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"foos.x.io"}},
        "spec":{{"group":"x.io","scope":"Namespaced","names":{{"kind":"Foo","plural":"foos"}},"versions":[
        {{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","properties":{{"a":{{"type":"string"{default}}}}}}}}}}}}}}},
        {{"name":"v2","served":true,"storage":false,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","properties":{{"a":{{"type":"string"{default}}}}}}}}}}}}}}}]}}}}"#
    )
}

#[tokio::test]
async fn an_object_lives() {
    let f = Fixture::new().await;
    let (code, made) = f.send("POST", MAPS, r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#).await;
    assert_eq!((code, made.str_at(&["data", "k"])), (201, Some("v")));
    let path = format!("{MAPS}/a");
    let (code, changed) = f.send("PATCH", &path, r#"{"data":{"k":"w"}}"#).await;
    assert_eq!((code, changed.str_at(&["data", "k"])), (200, Some("w")));
    assert_ne!(changed.meta_str("resourceVersion"), made.meta_str("resourceVersion"));
    let (_, same) = f.send("PATCH", &path, r#"{"data":{"k":"w"}}"#).await;
    assert_eq!(same.meta_str("resourceVersion"), changed.meta_str("resourceVersion"), "nothing changed");
    let old = json::to_string(&made);
    assert_eq!(f.send("PUT", &path, &old).await.0, 409);
    assert_eq!(f.send("DELETE", &path, "").await.0, 200);
    assert_eq!(f.send("GET", &path, "").await.0, 404);
}

#[tokio::test]
async fn a_definition_serves_when_its_create_is_answered() {
    let f = Fixture::new().await;
    assert_eq!(f.send("GET", FOOS, "").await.0, 404);
    assert_eq!(f.send("POST", DEFINITIONS, &definition("")).await.0, 201);
    let foo = r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"a":"1","b":2}}"#;
    let response = f.response("POST", FOOS, "application/json", foo).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers().get("warning").unwrap(), r#"299 - "unknown field \"spec.b\"""#);
    let (_, other) = f.send("GET", "/apis/x.io/v2/namespaces/default/foos/a", "").await;
    assert_eq!((other.str_at(&["apiVersion"]), other.str_at(&["spec", "a"])), (Some("x.io/v2"), Some("1")));
    // Its end takes the objects along.
    assert_eq!(f.send("DELETE", &format!("{DEFINITIONS}/foos.x.io"), "").await.0, 200);
    f.until(&format!("{DEFINITIONS}/foos.x.io"), 404).await;
    assert_eq!(f.send("GET", FOOS, "").await.0, 404);
}

#[tokio::test]
async fn objects_show_the_defaults_of_the_present_schema() {
    let f = Fixture::new().await;
    f.send("POST", DEFINITIONS, &definition("")).await;
    let foo = r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{}}"#;
    assert_eq!(f.send("POST", FOOS, foo).await.0, 201);
    let (_, held) = f.send("GET", &format!("{DEFINITIONS}/foos.x.io"), "").await;
    let mut changed = json::parse(definition(r#","default":"d""#).as_bytes()).unwrap();
    changed.metadata_mut().insert("resourceVersion", held.meta_str("resourceVersion"));
    let (code, _) = f.send("PUT", &format!("{DEFINITIONS}/foos.x.io"), &json::to_string(&changed)).await;
    assert_eq!(code, 200);
    let (_, foo) = f.send("GET", &format!("{FOOS}/a"), "").await;
    assert_eq!(foo.str_at(&["spec", "a"]), Some("d"));
    let (_, list) = f.send("GET", FOOS, "").await;
    assert_eq!(list.at(&["items"]).unwrap().as_array().unwrap()[0].str_at(&["spec", "a"]), Some("d"));
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let f = Fixture::new().await;
    f.send("POST", DEFINITIONS, &definition("")).await;
    let foo = r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"a":"1"}}"#;
    f.send("POST", FOOS, foo).await;
    let server = Server::new(f.store.clone(), Options::default()).await.unwrap();
    let again = Fixture { store: f.store.clone(), server };
    assert_eq!(again.send("GET", &format!("{FOOS}/a"), "").await.0, 200);
}

#[tokio::test]
async fn pages_are_of_one_moment() {
    let f = Fixture::new().await;
    for name in ["a", "b", "c"] {
        f.send("POST", MAPS, &format!(r#"{{"metadata":{{"name":"{name}","labels":{{"l":"{name}"}}}}}}"#)).await;
    }
    let (_, first) = f.send("GET", &format!("{MAPS}?limit=2"), "").await;
    assert_eq!(first.at(&["metadata", "remainingItemCount"]), Some(&Value::Int(1)));
    f.send("DELETE", &format!("{MAPS}/c"), "").await;
    let token = first.str_at(&["metadata", "continue"]).unwrap();
    let (_, second) = f.send("GET", &format!("{MAPS}?limit=2&continue={token}"), "").await;
    let items = second.get("items").unwrap().as_array().unwrap();
    assert_eq!(items.iter().map(Value::name).collect::<Vec<_>>(), ["c"]);
    let (_, some) = f.send("GET", &format!("{MAPS}?labelSelector=l%20in%20(a,c)"), "").await;
    assert_eq!(some.get("items").unwrap().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_watch_sees_what_was_committed() {
    let f = Fixture::new().await;
    let (_, list) = f.send("GET", MAPS, "").await;
    let version = list.str_at(&["metadata", "resourceVersion"]).unwrap();
    f.send("POST", MAPS, r#"{"metadata":{"name":"a"}}"#).await;
    f.send("PATCH", &format!("{MAPS}/a"), r#"{"data":{"x":"1"}}"#).await;
    f.send("DELETE", &format!("{MAPS}/a"), "").await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let response = f.response("GET", &path, "application/json", "").await;
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let events: Vec<Value> =
        text.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| json::parse(l).unwrap()).collect();
    let types: Vec<&str> = events.iter().filter_map(|e| e.str_at(&["type"])).collect();
    assert_eq!(types, ["ADDED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn watches_end_with_the_server() {
    let f = Fixture::new().await;
    let response = f.response("GET", &format!("{MAPS}?watch=true"), "application/json", "").await;
    f.server.shutdown();
    let end = tokio::time::timeout(Duration::from_secs(5), response.into_body().collect()).await;
    assert!(end.is_ok());
}

#[tokio::test]
async fn a_finalizer_holds_an_object() {
    let f = Fixture::new().await;
    f.send("POST", MAPS, r#"{"metadata":{"name":"a","finalizers":["x.io/y"]}}"#).await;
    let path = format!("{MAPS}/a");
    let (code, going) = f.send("DELETE", &path, "").await;
    assert_eq!(code, 200);
    assert_ne!(going.meta_str("deletionTimestamp"), "");
    assert_eq!(f.send("PATCH", &path, r#"{"metadata":{"finalizers":null}}"#).await.0, 200);
    assert_eq!(f.send("GET", &path, "").await.0, 404);
}

#[tokio::test]
async fn a_collection_is_deleted_whole_in_order_and_answered_as_it_was() {
    let f = Fixture::new().await;
    for i in 0..150 {
        let held = if i == 70 { r#","finalizers":["x.io/hold"]"# } else { "" };
        let body = format!(r#"{{"metadata":{{"name":"m-{i:03}","labels":{{"of":"many"}}{held}}}}}"#);
        assert_eq!(f.send("POST", MAPS, &body).await.0, 201);
    }
    let before = f.store.revision();
    let (code, answer) = f.send("DELETE", &format!("{MAPS}?labelSelector=of%3Dmany"), "").await;
    assert_eq!((code, answer.get("items").unwrap().as_array().unwrap().len()), (200, 150));
    let (_, left) = f.send("GET", &format!("{MAPS}?labelSelector=of%3Dmany"), "").await;
    let [held] = left.get("items").unwrap().as_array().unwrap() else { panic!("{left:?}") };
    assert_eq!(held.name(), "m-070");
    assert!(!held.meta_str("deletionTimestamp").is_empty());
    // Each was written once.
    assert_eq!(f.store.revision(), before + 150);
}

#[tokio::test]
async fn a_namespace_that_goes_takes_nothing_new_and_is_gone_when_finalized() {
    let f = Fixture::new().await;
    f.send("POST", "/api/v1/namespaces", r#"{"metadata":{"name":"n"}}"#).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    assert_eq!(f.send("DELETE", "/api/v1/namespaces/n", "").await.0, 200);
    let (code, refused) = f.send("POST", maps, r#"{"metadata":{"name":"c"}}"#).await;
    assert_eq!(code, 403);
    assert!(refused.str_at(&["message"]).unwrap().ends_with("because it is being terminated"));
    let finalized = r#"{"metadata":{"name":"n"},"spec":{"finalizers":[]}}"#;
    assert_eq!(f.send("PUT", "/api/v1/namespaces/n/finalize", finalized).await.0, 200);
    assert_eq!(f.send("GET", "/api/v1/namespaces/n", "").await.0, 404);
}

#[tokio::test]
async fn nonsense_is_refused_and_harms_nobody() {
    let f = Fixture::new().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (method, path, body, code) in [
        ("POST", MAPS, "{", 400),
        ("POST", MAPS, deep.as_str(), 400),
        ("POST", MAPS, r#"{"metadata":{"name":5}}"#, 400),
        ("POST", MAPS, "\u{fffd}", 400),
        ("GET", "/api/v1/namespaces/default/configmaps?limit=x", "", 400),
        ("GET", "/api/v1/namespaces/default/configmaps?continue=!!", "", 400),
        ("GET", "/api/v1/namespaces/default/configmaps?resourceVersion=99999999999999999999", "", 400),
        ("GET", "/apis/x.io/v1/namespaces/%2e%2e/foos", "", 404),
        ("PATCH", "/api/v1/namespaces/default/configmaps/a", "[1]", 404),
        ("BREW", MAPS, "", 405),
    ] {
        assert_eq!(f.send(method, path, body).await.0, code, "{method} {path}");
    }
    assert_eq!(f.send("POST", MAPS, r#"{"metadata":{"name":"a"}}"#).await.0, 201);
}

#[tokio::test]
async fn the_statuses_of_components_are_made_when_asked_for() {
    let f = Fixture::new().await;
    let (code, list) = f.send("GET", "/api/v1/componentstatuses", "").await;
    assert_eq!((code, list.str_at(&["kind"])), (200, Some("ComponentStatusList")));
    let items = list.get("items").and_then(Value::as_array).unwrap();
    // Nothing of what the store holds is among them.
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].str_at(&["metadata", "name"]), Some("etcd-0"));
    let (code, one) = f.send("GET", "/api/v1/componentstatuses/etcd-0", "").await;
    assert_eq!((code, one.str_at(&["kind"])), (200, Some("ComponentStatus")));
    // No key of the store can be named.
    for name in ["cluster-admin", "x", "..%2Fsecrets"] {
        let (code, _) = f.send("GET", &format!("/api/v1/componentstatuses/{name}"), "").await;
        assert_ne!(code, 200, "{name}");
    }
    let (code, none) = f.send("GET", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Dx", "").await;
    assert_eq!((code, none.get("items").and_then(Value::as_array).map(<[_]>::len)), (200, Some(0)));
}

#[tokio::test]
async fn nobody_owns_empty_lists_and_maps_of_built_in_objects() {
    let f = Fixture::new().await;
    let owners = |object: &Value| json::to_string(object.at(&["metadata", "managedFields"]).unwrap());
    let map =
        r#"{"metadata":{"name":"a","labels":{},"annotations":{},"finalizers":[]},"data":{"k":"v"},"binaryData":{}}"#;
    let (code, made) = f.send("POST", MAPS, map).await;
    assert_eq!(code, 201);
    assert!(owners(&made).contains(r#""fieldsV1":{"f:data":{".":{},"f:k":{}}}"#), "{}", owners(&made));
    let (_, patched) = f.send("PATCH", &format!("{MAPS}/a"), r#"{"metadata":{"labels":{}},"binaryData":{}}"#).await;
    assert_eq!(owners(&patched), owners(&made));
    let (code, none) = f.send("POST", MAPS, r#"{"metadata":{"name":"b","labels":{}},"data":{}}"#).await;
    assert_eq!((code, none.at(&["metadata", "managedFields"])), (201, None));
}

#[tokio::test]
async fn watches_of_custom_objects_end_when_their_definition_changes_or_goes() {
    let f = Fixture::new().await;
    let definition = r#"{"metadata":{"name":"as.x.io"},"spec":{"group":"x.io","scope":"Cluster",
        "names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let own = format!("{definitions}/as.x.io");
    let watch = || f.response("GET", "/apis/x.io/v1/as?watch=true", "application/json", "");
    let types = async |response: http::Response<Body>| -> Vec<String> {
        let body = tokio::time::timeout(Duration::from_secs(5), response.into_body().collect()).await.unwrap();
        let text = body.unwrap().to_bytes();
        let events = text.split(|b| *b == b'\n').filter_map(|line| json::parse(line).ok());
        events.filter_map(|event| event.str_at(&["type"]).map(str::to_owned)).collect()
    };
    assert_eq!(f.send("POST", definitions, definition).await.0, 201);
    assert_eq!(
        f.send("POST", "/apis/x.io/v1/as", r#"{"apiVersion":"x.io/v1","kind":"A","metadata":{"name":"a"}}"#).await.0,
        201
    );
    let (first, second) = (watch().await, watch().await);
    assert_eq!(f.send("PATCH", &own, r#"{"metadata":{"labels":{"a":"b"}}}"#).await.0, 200);
    assert!(tokio::time::timeout(Duration::from_millis(100), types(first)).await.is_err());
    assert_eq!(f.send("PATCH", &own, r#"{"spec":{"names":{"shortNames":["s"]}}}"#).await.0, 200);
    assert_eq!(types(second).await, ["ADDED"]);
    let third = watch().await;
    assert_eq!(f.send("DELETE", &own, "").await.0, 200);
    assert_eq!(types(third).await, ["ADDED", "DELETED"]);
}

#[tokio::test]
async fn what_stands_for_fields_and_what_selects_is_refused_in_upstreams_words() {
    let f = Fixture::new().await;
    let sets = "/apis/apps/v1/namespaces/default/daemonsets";
    let replicas = "/apis/apps/v1/namespaces/default/replicasets?fieldSelector=status.replicas%3D0";
    let jobs = "/apis/batch/v1/namespaces/default/jobs?fieldSelector=status.active%3D0";
    let odd = r#"{"metadata":{"name":"a","annotations":{"deprecated.daemonset.template.generation":"x"}}}"#;
    for (method, path, body, said) in [
        (
            "POST",
            sets,
            odd,
            "DaemonSet in version \"v1\" cannot be handled as a DaemonSet: strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        (
            "GET",
            replicas,
            "",
            "\"status.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("GET", jobs, "", "field label \"status.active\" not supported for batchv1.Job"),
    ] {
        let (code, answer) = f.send(method, path, body).await;
        assert_eq!((code, answer.str_at(&["message"])), (400, Some(said)), "{method} {path}");
    }
}
