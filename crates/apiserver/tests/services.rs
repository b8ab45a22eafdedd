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
async fn the_own_service_leads_to_the_address_of_the_server() {
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let at = |advertised: &str| Options { advertised: advertised.into(), ..Options::default() };
    let mut f = Fixture::new(at("192.0.2.1:6443")).await;
    for (advertised, address, generation) in
        [("192.0.2.1:6443", "192.0.2.1", 1), ("192.0.2.1:6443", "192.0.2.1", 1), ("192.0.2.2:6443", "192.0.2.2", 2)]
    {
        f = Fixture { server: Server::new(f.server.store().clone(), at(advertised)).await.unwrap() };
        let (_, held) = f.send("GET", slice, "").await;
        assert_eq!(held.at(&["metadata", "generation"]), Some(&Value::Int(generation)));
        assert_eq!(held.str_at(&["metadata", "labels", "kubernetes.io/service-name"]), Some("kubernetes"));
        let endpoint = &held.at(&["endpoints"]).and_then(Value::as_array).unwrap()[0];
        assert_eq!(endpoint.at(&["addresses"]), Some(&Value::from(vec![address])));
        let (_, endpoints) = f.send("GET", "/api/v1/namespaces/default/endpoints/kubernetes", "").await;
        let subset = &endpoints.at(&["subsets"]).and_then(Value::as_array).unwrap()[0];
        let first = &subset.at(&["addresses"]).and_then(Value::as_array).unwrap()[0];
        assert_eq!(first.str_at(&["ip"]), Some(address));
    }
}

const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const IP_ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn range(name: &str, cidr: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"cidrs":[{cidr}]}}}}"#)
}

fn with_address(name: &str, address: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"clusterIP":"{address}","ports":[{{"port":80}}]}}}}"#)
}

fn ip_address(name: &str) -> String {
    let parent = r#"{"group":"example.com","resource":"gateways","namespace":"default","name":"g"}"#;
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"parentRef":{parent}}}}}"#)
}

#[tokio::test]
async fn further_ranges_give_addresses_as_long_as_they_are_ready() {
    let f = Fixture::new(Options::default()).await;
    let (code, why) = f.message("POST", SERVICES, &with_address("a", "10.7.0.9")).await;
    assert!(code == 422 && why.ends_with("the provided network does not match the current range"), "{why}");
    f.make(RANGES, &range("more", r#""10.7.0.0/28","fd00::/112""#)).await;
    f.make(SERVICES, &with_address("a", "10.7.0.9")).await;
    // One that is going away gives none, and neither does one that is not ready.
    let held = r#"{"metadata":{"finalizers":["example.com/held"]}}"#;
    assert_eq!(f.send("PATCH", &format!("{RANGES}/kubernetes"), held).await.0, 200);
    assert_eq!(f.send("DELETE", &format!("{RANGES}/kubernetes"), "").await.0, 200);
    let (code, why) = f.message("POST", SERVICES, &with_address("b", "10.0.0.9")).await;
    assert!(code == 422 && why.ends_with("the provided network does not match the current range"), "{why}");
    assert!(address(&f.make(SERVICES, &service("c", "")).await).starts_with("10.7.0."));
    let time = "2026-01-01T00:00:00Z";
    let condition =
        format!(r#"{{"type":"Ready","status":"False","reason":"","message":"","lastTransitionTime":"{time}"}}"#);
    let status = format!(r#"{{"status":{{"conditions":[{condition}]}}}}"#);
    assert_eq!(f.send("PATCH", &format!("{RANGES}/more/status"), &status).await.0, 200);
    let (code, why) = f.message("POST", SERVICES, &service("d", "")).await;
    assert_eq!((code, why.as_str()), (500, "Internal error occurred: failed to allocate a serviceIP: range is full"));
    // The range of the cluster is made again once it is gone.
    let (_, gone) = f.send("PATCH", &format!("{RANGES}/kubernetes"), r#"{"metadata":{"finalizers":null}}"#).await;
    let (_, again) = f.send("GET", &format!("{RANGES}/kubernetes"), "").await;
    assert_ne!(gone.meta_str("uid"), again.meta_str("uid"));
    assert!(address(&f.make(SERVICES, &service("d", "")).await).starts_with("10.0.0."));
}

#[tokio::test]
async fn an_address_that_somebody_else_holds_is_not_given() {
    let f = Fixture::new(Options::default()).await;
    f.make(IP_ADDRESSES, &ip_address("10.0.0.50")).await;
    let (code, why) = f.message("POST", SERVICES, &with_address("a", "10.0.0.50")).await;
    assert!(code == 422 && why.ends_with("provided IP is already allocated"), "{why}");
    assert_eq!(f.send("DELETE", &format!("{IP_ADDRESSES}/10.0.0.50"), "").await.0, 200);
    f.make(SERVICES, &with_address("a", "10.0.0.50")).await;
    assert_eq!(f.send("POST", IP_ADDRESSES, &ip_address("10.0.0.50")).await.0, 409);
    // Even while the service's own object is not there, its address is nobody else's.
    assert_eq!(f.send("DELETE", &format!("{IP_ADDRESSES}/10.0.0.50"), "").await.0, 200);
    assert_eq!(f.send("POST", IP_ADDRESSES, &ip_address("10.0.0.50")).await.0, 409);
    // What it is of does not change.
    f.make(IP_ADDRESSES, &ip_address("10.0.0.51")).await;
    let other = r#"{"spec":{"parentRef":{"name":"h"}}}"#;
    let (code, why) = f.message("PATCH", &format!("{IP_ADDRESSES}/10.0.0.51"), other).await;
    assert_eq!(code, 422);
    let shown =
        r#"networking.ParentReference{Group:"example.com", Resource:"gateways", Namespace:"default", Name:"h"}"#;
    assert!(why.ends_with(&format!("spec.parentRef: Invalid value: {shown}: field is immutable")), "{why}");
}

#[tokio::test]
async fn each_address_is_an_object_as_long_as_a_service_has_it() {
    each_address_is_an_object(false).await;
}

#[tokio::test]
async fn each_address_is_an_object_where_others_write_too() {
    each_address_is_an_object(true).await;
}

async fn each_address_is_an_object(shared: bool) {
    let options = || Options { advertised: "127.0.0.1:6443".into(), shared, ..Options::default() };
    let f = Fixture::new(options()).await;
    let (_, range) = f.send("GET", &format!("{RANGES}/kubernetes"), "").await;
    assert_eq!(range.at(&["spec", "cidrs"]), Some(&Value::from(vec!["10.0.0.0/24"])));
    let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array).unwrap();
    assert_eq!((conditions[0].str_at(&["type"]), conditions[0].str_at(&["status"])), (Some("Ready"), Some("True")));
    let (_, own) = f.send("GET", &format!("{IP_ADDRESSES}/10.0.0.1"), "").await;
    assert_eq!(own.str_at(&["spec", "parentRef", "name"]), Some("kubernetes"));
    let made = f.make(SERVICES, &service("a", "")).await;
    let path = format!("{IP_ADDRESSES}/{}", address(&made));
    let (_, object) = f.send("GET", &path, "").await;
    let parent = object.at(&["spec", "parentRef"]).unwrap();
    let parts = ["resource", "namespace", "name"].map(|key| parent.str_at(&[key]).unwrap());
    assert_eq!(parts, ["services", "default", "a"]);
    assert_eq!(object.str_at(&["metadata", "labels", "ipaddress.kubernetes.io/ip-family"]), Some("IPv4"));
    f.make(SERVICES, r#"{"metadata":{"name":"none"},"spec":{"clusterIP":"None","ports":[{"port":80}]}}"#).await;
    assert_eq!(f.send("DELETE", &format!("{SERVICES}/a"), "").await.0, 200);
    assert_eq!(f.send("GET", &path, "").await.0, 404);
    // One that gives its address back has none from then on.
    let path = format!("{IP_ADDRESSES}/{}", address(&f.make(SERVICES, &service("c", "")).await));
    assert_eq!(f.send("GET", &path, "").await.0, 200);
    let external =
        r#"{"spec":{"type":"ExternalName","externalName":"example.com","clusterIP":null,"clusterIPs":null}}"#;
    let (code, why) = f.message("PATCH", &format!("{SERVICES}/c"), external).await;
    assert_eq!(code, 200, "{why}");
    assert_eq!(f.send("GET", &path, "").await.0, 404);
    // What is missing is made when the server starts, and what nobody has goes.
    f.make(SERVICES, r#"{"metadata":{"name":"b"},"spec":{"clusterIP":"10.0.0.20","ports":[{"port":80}]}}"#).await;
    let kept = format!("{IP_ADDRESSES}/10.0.0.20");
    assert_eq!(f.send("DELETE", &kept, "").await.0, 200);
    let stale = r#"{"metadata":{"name":"10.0.0.250","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},
        "spec":{"parentRef":{"resource":"services","namespace":"default","name":"gone"}}}"#;
    f.make(IP_ADDRESSES, stale).await;
    let again = Fixture { server: Server::new(f.server.store().clone(), options()).await.unwrap() };
    assert_eq!(again.send("GET", &kept, "").await.0, 200);
    assert_eq!(again.send("GET", &format!("{IP_ADDRESSES}/10.0.0.250"), "").await.0, 404);
}

#[tokio::test]
async fn an_update_makes_a_service_and_a_delete_takes_its_endpoints_along() {
    let f = Fixture::new(Options::default()).await;
    let path = format!("{SERVICES}/a");
    assert_eq!(f.send("PUT", &path, &service("a", "")).await.0, 201);
    let endpoints = "/api/v1/namespaces/default/endpoints";
    let own = |finalizers: &str| format!(r#"{{"metadata":{{"name":"a","finalizers":[{finalizers}]}}}}"#);
    f.make(endpoints, &own("")).await;
    assert_eq!(f.send("DELETE", &path, "").await.0, 200);
    assert_eq!(f.send("GET", &format!("{endpoints}/a"), "").await.0, 404);
    // What finalizers hold is going; a service that goes by an update takes its endpoints along, too.
    f.make(endpoints, &own(r#""a.io/b""#)).await;
    let held = service("a", "").replace(r#""name":"a""#, r#""name":"a","finalizers":["a.io/b"]"#);
    f.make(SERVICES, &held).await;
    assert_eq!(f.send("DELETE", &path, "").await.0, 200);
    assert_eq!(f.send("PUT", &path, &service("a", "")).await.0, 200);
    assert_eq!(f.send("GET", &path, "").await.0, 404);
    let (_, held) = f.send("GET", &format!("{endpoints}/a"), "").await;
    assert!(!held.meta_str("deletionTimestamp").is_empty(), "{held:?}");
}

#[tokio::test]
async fn the_same_text_twice_changes_nothing() {
    let f = Fixture::new(Options::default()).await;
    let text = r#"{"metadata":{"name":"a"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",
        "ports":[{"name":"x","port":80},{"name":"y","port":81}]}}"#;
    let made = f.make(SERVICES, text).await;
    assert_ne!(made.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int), None);
    let (code, again) = f.send("PUT", &format!("{SERVICES}/a"), text).await;
    assert_eq!((code, again.get("spec")), (200, made.get("spec")));
}
