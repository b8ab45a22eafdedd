//! The subresource `scale`, of built-in and of custom objects.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use object::Value;
use support::Fixture;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const FOOS: &str = "/apis/x.io/v1/namespaces/default/foos";

const SET: &str = r#"{"metadata":{"name":"a"},"spec":{"replicas":2,
    "selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;

const DEFINITION: &str = r#"{"metadata":{"name":"foos.x.io"},"spec":{"group":"x.io","scope":"Namespaced",
    "names":{"kind":"Foo","plural":"foos"},"versions":[{"name":"v1","served":true,"storage":true,
    "subresources":{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
    "schema":{"openAPIV3Schema":{"type":"object","properties":{
    "spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},
    "status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}"#;

fn message(answer: &Value) -> &str {
    answer.str_at(&["message"]).unwrap_or_default()
}

#[tokio::test]
async fn a_scale_of_another_object_is_refused_as_upstream_does() {
    let f = Fixture::new(Options::default()).await;
    let set = f.make(SETS, SET).await;
    let scale = format!("{SETS}/a/scale");
    let (uid, other) = (set.meta_str("uid"), "11111111-2222-3333-4444-555555555555");
    let body = |uid: &str| format!(r#"{{"metadata":{{"name":"a","uid":"{uid}"}},"spec":{{"replicas":3}}}}"#);
    let whole = format!(
        "Operation cannot be fulfilled on replicasets.apps \"a\": StorageError: invalid object, Code: 4, \
         Key: /registry/replicasets/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {other}, UID in object meta: {uid}"
    );
    let patched = format!(
        "Operation cannot be fulfilled on replicasets/scale.apps \"a\": Precondition failed: \
         UID in precondition: {other}, UID in object meta: {uid}"
    );
    for (method, uid, code, said) in [
        ("PUT", other, 409, whole.as_str()),
        ("PATCH", other, 409, patched.as_str()),
        ("PUT", uid, 200, ""),
        ("PATCH", uid, 200, ""),
    ] {
        let (got, answer) = f.send(method, &scale, &body(uid)).await;
        assert_eq!((got, message(&answer)), (code, said), "{method} {uid}");
    }
    let (_, shown) = f.send("GET", &scale, "").await;
    assert_eq!(shown.str_at(&["status", "selector"]), Some("a=b,a in (b)"));
}

#[tokio::test]
async fn a_scale_of_a_custom_object_needs_a_number() {
    let f = Fixture::new(Options::default()).await;
    f.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION).await;
    f.make(FOOS, r#"{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"name":"a"},"spec":{}}"#).await;
    let scale = format!("{FOOS}/a/scale");
    let empty = "the spec replicas field \".spec.replicas\" cannot be empty";
    for (method, body, code, said) in [
        ("PATCH", r#"{"metadata":{"labels":{"a":"b"}}}"#, 400, empty),
        // Nobody asks whose scale this is.
        ("PATCH", r#"{"metadata":{"uid":"other"},"spec":{"replicas":2}}"#, 200, ""),
        ("PATCH", r#"{"metadata":{"labels":{"a":"b"}}}"#, 200, ""),
        ("PUT", r#"{"metadata":{"name":"a"}}"#, 200, ""),
    ] {
        let (got, answer) = f.send(method, &scale, body).await;
        assert_eq!((got, message(&answer)), (code, said), "{method} {body}");
    }
}
