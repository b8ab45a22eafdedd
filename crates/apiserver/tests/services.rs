//! Addresses and node ports of services: nobody gets what somebody else has.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::{Options, Server};
use object::Value;
use std::collections::HashSet;
use std::sync::Arc;
use support::Fixture;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, more: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"type":"NodePort","ports":[{{"port":80{more}}}]}}}}"#)
}

fn address(service: &Value) -> String {
    service.str_at(&["spec", "clusterIP"]).unwrap().to_owned()
}

fn node_port(service: &Value) -> i64 {
    service.at(&["spec", "ports"]).unwrap().as_array().unwrap()[0].get("nodePort").unwrap().as_int().unwrap()
}

#[tokio::test]
async fn many_at_once_get_different_ones_that_are_free_again_later() {
    let f = Arc::new(Fixture::new(Options::default()).await);
    let tasks: Vec<_> = (0..30)
        .map(|i| {
            let f = f.clone();
            tokio::spawn(async move { f.make(SERVICES, &service(&format!("s{i}"), "")).await })
        })
        .collect();
    let (mut addresses, mut ports) = (HashSet::new(), HashSet::new());
    for task in tasks {
        let made = task.await.unwrap();
        assert!(addresses.insert(address(&made)) && ports.insert(node_port(&made)));
    }
    let (_, held) = f.send("GET", &format!("{SERVICES}/s0"), "").await;
    let wanted = format!(r#","nodePort":{}"#, node_port(&held));
    let (code, why) = f.message("POST", SERVICES, &service("other", &wanted)).await;
    assert_eq!(code, 422);
    assert!(why.ends_with("provided port is already allocated"), "{why}");
    assert_eq!(f.send("DELETE", &format!("{SERVICES}/s0"), "").await.0, 200);
    assert_eq!(node_port(&f.make(SERVICES, &service("other", &wanted)).await), node_port(&held));
}

#[tokio::test]
async fn what_is_taken_stays_so_over_a_restart() {
    let f = Fixture::new(Options::default()).await;
    let held = f.make(SERVICES, &service("a", "")).await;
    let again = Fixture { server: Server::new(f.server.store().clone(), Options::default()).await.unwrap() };
    let address = address(&held);
    let body = format!(r#"{{"metadata":{{"name":"b"}},"spec":{{"clusterIP":"{address}","ports":[{{"port":80}}]}}}}"#);
    let (code, why) = again.message("POST", SERVICES, &body).await;
    assert_eq!(code, 422);
    assert!(why.contains("provided IP is already allocated"), "{why}");
}

#[tokio::test]
async fn each_address_is_an_object_as_long_as_a_service_has_it() {
    let options = || Options { advertised: "127.0.0.1:6443".into(), ..Options::default() };
    let f = Fixture::new(options()).await;
    const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
    let (_, range) = f.send("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", "").await;
    assert_eq!(range.at(&["spec", "cidrs"]), Some(&Value::from(vec!["10.0.0.0/24"])));
    let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array).unwrap();
    assert_eq!((conditions[0].str_at(&["type"]), conditions[0].str_at(&["status"])), (Some("Ready"), Some("True")));
    let (_, own) = f.send("GET", &format!("{ADDRESSES}/10.0.0.1"), "").await;
    assert_eq!(own.str_at(&["spec", "parentRef", "name"]), Some("kubernetes"));
    let made = f.make(SERVICES, &service("a", "")).await;
    let path = format!("{ADDRESSES}/{}", address(&made));
    let (_, object) = f.send("GET", &path, "").await;
    let parent = object.at(&["spec", "parentRef"]).unwrap();
    let parts = ["resource", "namespace", "name"].map(|key| parent.str_at(&[key]).unwrap());
    assert_eq!(parts, ["services", "default", "a"]);
    assert_eq!(object.str_at(&["metadata", "labels", "ipaddress.kubernetes.io/ip-family"]), Some("IPv4"));
    f.make(SERVICES, r#"{"metadata":{"name":"none"},"spec":{"clusterIP":"None","ports":[{"port":80}]}}"#).await;
    assert_eq!(f.send("DELETE", &format!("{SERVICES}/a"), "").await.0, 200);
    assert_eq!(f.send("GET", &path, "").await.0, 404);
    // What is missing is made when the server starts, and what nobody has goes.
    f.make(SERVICES, r#"{"metadata":{"name":"b"},"spec":{"clusterIP":"10.0.0.20","ports":[{"port":80}]}}"#).await;
    let kept = format!("{ADDRESSES}/10.0.0.20");
    assert_eq!(f.send("DELETE", &kept, "").await.0, 200);
    let stale = r#"{"metadata":{"name":"10.0.0.250","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},
        "spec":{"parentRef":{"resource":"services","namespace":"default","name":"gone"}}}"#;
    f.make(ADDRESSES, stale).await;
    let again = Fixture { server: Server::new(f.server.store().clone(), options()).await.unwrap() };
    assert_eq!(again.send("GET", &kept, "").await.0, 200);
    assert_eq!(again.send("GET", &format!("{ADDRESSES}/10.0.0.250"), "").await.0, 404);
}
