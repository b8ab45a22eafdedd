//! Controllers of workloads with pretended nodes, inside a server: objects come to the states that a cluster brings them to.

#![allow(clippy::unwrap_used)]

use apiserver::{Options, Server};
use client::resources::{ENDPOINT_SLICES, JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES};
use client::{Client, DeleteParams, ListParams, Resource};
use controllers::{Context, Running, Settings, Simulated, start};
use kinds::read::Read;
use object::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const NAMESPACE: &str = "default";

struct Cluster {
    client: Client,
    _running: Vec<Running>,
}

impl Cluster {
    async fn start() -> Cluster {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let server = Server::new(store, Options::default()).await.unwrap();
        let moment = Duration::from_millis(50);
        let simulated = Simulated { nodes: 2, pod_start: moment, pod_run: moment };
        let context = Context::new(server, Settings { simulated, ..Settings::default() });
        Cluster { client: context.client().clone(), _running: start(&context, |_| true) }
    }

    async fn create(&self, resource: &Resource, text: &str) {
        let object = json::parse(text.as_bytes()).unwrap();
        self.client.api(resource).create(NAMESPACE, &object).await.unwrap();
    }

    /// Waits until an object is as it should be.
    async fn until(&self, resource: &Resource, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let api = self.client.api(resource);
        for _ in 0..600 {
            if let Some(object) = api.find(NAMESPACE, name).await.unwrap()
                && holds(&object)
            {
                return object;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} {name} stays as it is: {:?}", resource.kind, api.find(NAMESPACE, name).await)
    }

    async fn list(&self, resource: &Resource) -> Vec<Value> {
        self.client.api(resource).list(NAMESPACE, &ListParams::default()).await.unwrap().items
    }
}

fn is(object: &Value, condition: &str) -> bool {
    let conditions = object.sub("status").list("conditions");
    conditions.iter().any(|c| c.text("type") == condition && c.text("status") == "True")
}

#[tokio::test]
async fn jobs_end_as_their_pods_are_told_to() {
    let cluster = Cluster::start().await;
    let job = |name: &str, annotations: &str| {
        format!(
            r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{name}"}},"spec":{{"completions":2,"parallelism":2,"backoffLimit":0,
            "template":{{"metadata":{{"annotations":{annotations}}},"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
        )
    };
    cluster.create(&JOBS, &job("good", "{}")).await;
    cluster.create(&JOBS, &job("bad", r#"{"simulated.stanchion.dev/exit-code":"3"}"#)).await;
    let good = cluster.until(&JOBS, "good", |job| is(job, "Complete")).await;
    assert_eq!(good.sub("status").int("succeeded"), 2);
    let bad = cluster.until(&JOBS, "bad", |job| is(job, "Failed")).await;
    assert_eq!(bad.sub("status").list("conditions").first().map(|c| c.text("reason")), Some("BackoffLimitExceeded"));
    // The pods stay, counted and let go.
    let pods = cluster.list(&PODS).await;
    assert!(pods.iter().all(|pod| pod.meta_list("finalizers").is_empty()), "{pods:?}");
}

#[tokio::test]
async fn a_pod_gets_its_volume_runs_is_found_and_stops() {
    let cluster = Cluster::start().await;
    cluster
        .create(
            &PERSISTENT_VOLUME_CLAIMS,
            r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},
            "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#,
        )
        .await;
    cluster
        .create(
            &SERVICES,
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},
            "spec":{"type":"LoadBalancer","selector":{"app":"web"},"ports":[{"port":80}]}}"#,
        )
        .await;
    cluster
        .create(
            &PODS,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{
            "containers":[{"name":"c","image":"i"}],"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]}}"#,
        )
        .await;
    let pod = cluster.until(&PODS, "web", |pod| is(pod, "Ready")).await;
    cluster.until(&PERSISTENT_VOLUME_CLAIMS, "data", |claim| claim.sub("status").text("phase") == "Bound").await;
    let balanced = |service: &Value| !service.sub("status").sub("loadBalancer").list("ingress").is_empty();
    cluster.until(&SERVICES, "web", balanced).await;
    let address = pod.sub("status").text("podIP").to_owned();
    let mut found = false;
    for _ in 0..200 {
        let slices = cluster.list(&ENDPOINT_SLICES).await;
        found = slices.iter().flat_map(|s| s.list("endpoints")).any(|e| e.strings("addresses").contains(&&*address));
        if found {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(found, "no slice has {address}");
    let api = cluster.client.api(&PODS);
    api.delete(NAMESPACE, "web", &DeleteParams::default()).await.unwrap();
    for _ in 0..200 {
        if api.find(NAMESPACE, "web").await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the pod does not stop");
}
