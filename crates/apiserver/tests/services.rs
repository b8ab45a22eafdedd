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
