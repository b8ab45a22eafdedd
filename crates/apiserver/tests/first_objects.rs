//! What programs find in every cluster.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::{Options, Server};
use object::Value;
use support::Fixture;

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

fn options() -> Options {
    Options { client_ca: "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n".into(), ..Options::default() }
}

async fn names(f: &Fixture, path: &str) -> Vec<String> {
    let (code, list) = f.send("GET", path, "").await;
    assert_eq!(code, 200, "{path}");
    let items = list.get("items").and_then(Value::as_array).unwrap();
    items.iter().map(|item| item.name().to_owned()).collect()
}

#[tokio::test]
async fn a_cluster_has_what_programs_look_for() {
    let f = Fixture::new(options()).await;
    let levels = names(&f, &format!("{FLOW}/prioritylevelconfigurations")).await;
    let known = ["catch-all", "exempt", "global-default", "leader-election", "node-high", "system"];
    assert_eq!(levels, [&known[..], &["workload-high", "workload-low"]].concat());
    let schemas = names(&f, &format!("{FLOW}/flowschemas")).await;
    assert!(schemas.len() == 13 && ["probes", "service-accounts"].iter().all(|s| schemas.contains(&(*s).to_owned())));
    let (_, schema) = f.send("GET", &format!("{FLOW}/flowschemas/catch-all"), "").await;
    let condition = &schema.at(&["status", "conditions"]).and_then(Value::as_array).unwrap()[0];
    assert_eq!((condition.str_at(&["type"]), condition.str_at(&["status"])), (Some("Dangling"), Some("False")));
    let classes = names(&f, "/apis/scheduling.k8s.io/v1/priorityclasses").await;
    assert_eq!(classes, ["system-cluster-critical", "system-node-critical"]);
    let services = names(&f, "/apis/apiregistration.k8s.io/v1/apiservices").await;
    for service in ["v1.", "v1.apps", "v2.autoscaling", "v1.flowcontrol.apiserver.k8s.io"] {
        assert!(services.contains(&service.to_owned()), "{service}");
    }
    assert!(!services.contains(&"v1beta1.admissionregistration.k8s.io".to_owned()));
    let (_, map) =
        f.send("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "").await;
    assert!(map.str_at(&["data", "client-ca-file"]).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
}

#[tokio::test]
async fn what_every_cluster_has_stays() {
    let f = Fixture::new(options()).await;
    for (path, why) in [
        ("/api/v1/namespaces/default", r#"namespaces "default" is forbidden: this namespace may not be deleted"#),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
            r#"priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted"#,
        ),
    ] {
        let (code, status) = f.send("DELETE", path, "").await;
        assert_eq!((code, status.str_at(&["message"])), (403, Some(why)), "{path}");
        assert_eq!(f.send("GET", path, "").await.0, 200, "{path}");
    }
}

/// Every built-in group that is served has its APIServices.
#[tokio::test]
async fn each_group_and_version_is_an_apiservice() {
    let f = Fixture::new(Options::default()).await;
    let services = names(&f, "/apis/apiregistration.k8s.io/v1/apiservices").await;
    let catalogue = f.server.catalogue();
    for group in catalogue.groups().filter(|group| group.name != "apiregistration.k8s.io") {
        for version in &group.versions {
            let name = format!("{}.{}", version.name, group.name);
            assert!(services.contains(&name), "{name}");
        }
    }
}

#[tokio::test]
async fn a_start_brings_back_what_must_be_so() {
    let f = Fixture::new(options()).await;
    let schema = |name: &str| format!("{FLOW}/flowschemas/{name}");
    // What is fixed cannot be changed at all; proposals can.
    let (code, why) = f.message("PATCH", &schema("catch-all"), r#"{"spec":{"matchingPrecedence":9000}}"#).await;
    assert!(code == 422 && why.ends_with("spec of 'catch-all' must equal the fixed value"), "{why}");
    let change = r#"{"spec":{"matchingPrecedence":8000}}"#;
    assert_eq!(f.send("PATCH", &schema("service-accounts"), change).await.0, 200);
    assert_eq!(f.send("DELETE", &schema("exempt"), "").await.0, 200);
    let own = r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"matchingPrecedence":8100}}"#;
    assert_eq!(f.send("PATCH", &schema("global-default"), own).await.0, 200);
    let again = Fixture { server: Server::new(f.server.store().clone(), options()).await.unwrap() };
    for (name, precedence) in [("service-accounts", 9000), ("exempt", 1), ("global-default", 8100)] {
        let (_, object) = again.send("GET", &schema(name), "").await;
        assert_eq!(object.at(&["spec", "matchingPrecedence"]), Some(&Value::Int(precedence)), "{name}");
    }
    let (_, object) = again.send("GET", &schema("service-accounts"), "").await;
    assert_eq!(object.at(&["metadata", "generation"]), Some(&Value::Int(3)));
}
