//! The built-in admission plugins, from requests to answers.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use apiserver::admission::plugins::Plugins;
use object::{Value, json};
use support::Fixture;

const NS: &str = "/api/v1/namespaces/default";

async fn fixture() -> Fixture {
    let f = Fixture::new(Options { plugins: Plugins::default(), ..Options::default() }).await;
    f.make(&format!("{NS}/serviceaccounts"), r#"{"metadata":{"name":"default"}}"#).await;
    f
}

fn pod(name: &str, spec: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"i"}}]{spec}}}}}"#)
}

async fn quota(f: &Fixture, hard: &str, used: &str) {
    f.make(&format!("{NS}/resourcequotas"), &format!(r#"{{"metadata":{{"name":"q"}},"spec":{{"hard":{hard}}}}}"#))
        .await;
    let status = format!(r#"{{"status":{{"hard":{hard},"used":{used}}}}}"#);
    assert_eq!(f.send("PATCH", &format!("{NS}/resourcequotas/q/status"), &status).await.0, 200);
}

async fn used(f: &Fixture, name: &str) -> String {
    let (_, quota) = f.send("GET", &format!("{NS}/resourcequotas/q"), "").await;
    quota.str_at(&["status", "used", name]).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn pods_run_as_an_account() {
    let f = fixture().await;
    let made = f.make(&format!("{NS}/pods"), &pod("p", "")).await;
    assert_eq!(made.str_at(&["spec", "serviceAccountName"]), Some("default"));
    let volumes = made.at(&["spec", "volumes"]).unwrap().as_array().unwrap();
    assert!(volumes[0].str_at(&["name"]).unwrap().starts_with("kube-api-access-"));
    let (code, why) = f.message("POST", &format!("{NS}/pods"), &pod("q", r#","serviceAccountName":"robot""#)).await;
    let wanted =
        "pods \"q\" is forbidden: error looking up service account default/robot: serviceaccount \"robot\" not found";
    assert_eq!((code, why.as_str()), (403, wanted));
}

#[tokio::test]
async fn quotas_are_charged_once_and_given_back() {
    let f = fixture().await;
    quota(&f, r#"{"count/configmaps":"2"}"#, r#"{"count/configmaps":"0"}"#).await;
    let maps = format!("{NS}/configmaps");
    f.make(&maps, r#"{"metadata":{"name":"a"}}"#).await;
    assert_eq!(used(&f, "count/configmaps").await, "1");
    // Neither a dry run nor a failed write takes anything.
    assert_eq!(f.send("POST", &format!("{maps}?dryRun=All"), r#"{"metadata":{"name":"x"}}"#).await.0, 201);
    assert_eq!(f.send("POST", &maps, r#"{"metadata":{"name":"a"}}"#).await.0, 409);
    assert_eq!(used(&f, "count/configmaps").await, "1");
    f.make(&maps, r#"{"metadata":{"generateName":"b-"}}"#).await;
    let (code, why) = f.message("POST", &maps, r#"{"metadata":{"name":"c"}}"#).await;
    let wanted = "configmaps \"c\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2";
    assert_eq!((code, why.as_str()), (403, wanted));
    // An apply and an update that create are creations too.
    assert_eq!(f.send("PATCH", &format!("{maps}/a"), r#"{"data":{"k":"v"}}"#).await.0, 200);
    assert_eq!(used(&f, "count/configmaps").await, "2");
}

#[tokio::test]
async fn many_at_once_get_no_more_than_there_is() {
    let f = std::sync::Arc::new(fixture().await);
    quota(&f, r#"{"count/secrets":"5"}"#, r#"{"count/secrets":"0"}"#).await;
    let tasks: Vec<_> = (0..20)
        .map(|i| {
            let f = f.clone();
            tokio::spawn(async move {
                f.send("POST", &format!("{NS}/secrets"), &format!(r#"{{"metadata":{{"name":"s{i}"}}}}"#)).await.0
            })
        })
        .collect();
    let mut codes = Vec::new();
    for task in tasks {
        codes.push(task.await.unwrap());
    }
    assert_eq!(codes.iter().filter(|c| **c == 201).count(), 5, "{codes:?}");
    assert_eq!(used(&f, "count/secrets").await, "5");
}

#[tokio::test]
async fn limit_ranges_fill_in_and_refuse() {
    let f = fixture().await;
    let range =
        r#"{"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"1"}}]}}"#;
    f.make(&format!("{NS}/limitranges"), range).await;
    let made = f.make(&format!("{NS}/pods"), &pod("p", "")).await;
    let container = &made.at(&["spec", "containers"]).unwrap().as_array().unwrap()[0];
    assert_eq!(container.str_at(&["resources", "limits", "cpu"]), Some("1"));
    assert!(made.str_at(&["metadata", "annotations", "kubernetes.io/limit-ranger"]).is_some());
    let big = r#"{"metadata":{"generateName":"big-"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"2"}}}]}}"#;
    let (code, why) = f.message("POST", &format!("{NS}/pods"), big).await;
    assert_eq!(code, 403);
    assert!(why.ends_with("is forbidden: maximum cpu usage per Container is 1, but limit is 2"), "{why}");
    // A resize is measured too.
    let resize = r#"{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"3"},"requests":{"cpu":"3"}}}]}}"#;
    let (code, why) = f.message("PATCH", &format!("{NS}/pods/p/resize"), resize).await;
    assert_eq!(code, 403, "{why}");
}

#[tokio::test]
async fn namespaces_choose_what_pods_may_be() {
    let f = fixture().await;
    let label =
        |level: &str| format!(r#"{{"metadata":{{"labels":{{"pod-security.kubernetes.io/enforce":"{level}"}}}}}}"#);
    let (code, why) = f.message("PATCH", NS, &label("strict")).await;
    assert_eq!(code, 422);
    assert!(why.contains("must be one of privileged, baseline, restricted"), "{why}");
    assert_eq!(f.send("PATCH", NS, &label("baseline")).await.0, 200);
    f.make(&format!("{NS}/pods"), &pod("good", "")).await;
    let (code, why) = f.message("POST", &format!("{NS}/pods"), &pod("p", r#","hostPID":true"#)).await;
    let wanted = "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert_eq!((code, why.as_str()), (403, wanted));
    // Nor does a container for debugging get in.
    let debug = r#"{"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"privileged":true}}]}}"#;
    let (code, why) = f.message("PATCH", &format!("{NS}/pods/good/ephemeralcontainers"), debug).await;
    assert_eq!(code, 403, "{why}");
}

#[tokio::test]
async fn classes_are_chosen_where_none_is_named() {
    let f = fixture().await;
    let class = r#"{"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"x.io/y"}"#;
    f.make("/apis/storage.k8s.io/v1/storageclasses", class).await;
    let claim = r#"{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    let made = f.make(&format!("{NS}/persistentvolumeclaims"), claim).await;
    assert_eq!(made.str_at(&["spec", "storageClassName"]), Some("fast"));
    let bound = r#"{"status":{"phase":"Bound"}}"#;
    assert_eq!(f.send("PATCH", &format!("{NS}/persistentvolumeclaims/c/status"), bound).await.0, 200);
    let grow = r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#;
    let (code, why) = f.message("PATCH", &format!("{NS}/persistentvolumeclaims/c"), grow).await;
    assert_eq!(code, 403);
    assert!(why.contains("only dynamically provisioned pvc can be resized"), "{why}");
    let ingress_class = r#"{"metadata":{"name":"web","annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"x.io/y"}}"#;
    f.make("/apis/networking.k8s.io/v1/ingressclasses", ingress_class).await;
    let ingress =
        r#"{"metadata":{"name":"i"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}"#;
    let made = f.make("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress).await;
    assert_eq!(made.str_at(&["spec", "ingressClassName"]), Some("web"), "{}", json::to_string(&made));
}

#[tokio::test]
async fn only_one_class_of_priority_is_the_default() {
    let f = fixture().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    f.make(classes, r#"{"metadata":{"name":"a"},"value":1,"globalDefault":true}"#).await;
    let (code, why) = f.message("POST", classes, r#"{"metadata":{"name":"b"},"value":1,"globalDefault":true}"#).await;
    assert_eq!(code, 403);
    assert!(why.ends_with("PriorityClass a is already marked as default. Only one default can exist"), "{why}");
    let made = f.make(&format!("{NS}/pods"), &pod("p", "")).await;
    assert_eq!(made.at(&["spec", "priority"]), Some(&Value::Int(1)));
}
