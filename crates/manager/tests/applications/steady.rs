//! A steady application costs nothing: what the controller asks of the server is counted.

use std::time::Duration;

use manager::application::{Options, kinds};

use crate::fixture::{Fixture, component, spec, with};
use client::resources::{CONFIG_MAPS, DEPLOYMENTS};

const DEPLOYMENT: &str = "{name: web, type: k8s-objects, properties: {objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}]}}";
const HEALTHY: &str = "{status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}";

#[tokio::test]
async fn own_status_writes_wake_nobody_and_the_timer_asks_nothing() {
    let often = Duration::from_millis(60);
    let f = Fixture::with(Options { resync: often, ..Options::default() }).await;
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '1'}"), DEPLOYMENT.to_owned()])).await;
    f.until("the deployment is there", async |f: &Fixture| f.get(&DEPLOYMENTS, "web").await).await;
    f.edit_part(&DEPLOYMENTS, "web", HEALTHY, "status").await;
    f.phase("app", "running").await;
    f.quiet().await;
    tokio::time::sleep(often * 10).await;
    assert_eq!(f.sent(), Vec::<String>::new(), "ten periods without a change");
    // A change of what lives is looked at with the next period; then it is quiet again.
    f.edit_part(&DEPLOYMENTS, "web", "{status: {readyReplicas: 0}}", "status").await;
    f.phase("app", "unhealthy").await;
    f.edit_part(&DEPLOYMENTS, "web", "{status: {readyReplicas: 1}}", "status").await;
    f.phase("app", "running").await;
    f.quiet().await;
    // What somebody else changes costs a read and a write of that object alone.
    f.edit(&CONFIG_MAPS, "a", "{data: {k: '2'}}").await;
    f.data_is("a", r#"{"k":"1"}"#).await;
    tokio::time::sleep(often * 3).await;
    let of_map = f.sent().into_iter().filter(|line| line.contains("/configmaps/")).collect::<Vec<_>>();
    assert_eq!(of_map.len(), 2, "{of_map:?}");
}

#[tokio::test]
async fn a_rollout_is_looked_at_as_often_as_it_changes() {
    let f = Fixture::new().await;
    f.apply("app", "{}", &with(&[component("one", "a", "{k: '1'}")], "policies: []")).await;
    f.ready("app").await;
    f.quiet().await;
    let version = f.get(&kinds::APPLICATIONS, "app").await.unwrap().meta_str("resourceVersion").to_owned();
    // Somebody else's remark in the status is none of the controller's business.
    f.edit_part(&kinds::APPLICATIONS, "app", "{status: {services: []}}", "status").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(f.sent(), Vec::<String>::new());
    assert_ne!(f.get(&kinds::APPLICATIONS, "app").await.unwrap().meta_str("resourceVersion"), version);
    // An edit of the specification is: its reads and writes do not grow with the number of looks.
    f.apply("app", "{}", &spec(&[component("one", "a", "{k: '2'}")])).await;
    f.data_is("a", r#"{"k":"2"}"#).await;
    f.ready("app").await;
    f.quiet().await;
    let puts = f.get(&kinds::APPLICATIONS, "app").await.unwrap();
    assert_eq!(puts.at(&["status", "latestRevision", "revision"]).and_then(object::Value::as_int), Some(2));
}
