//! What the plugin NodeRestriction lets nodes do.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use apiserver::admission::{Chain, NodeRestriction};
use apiserver::authorize::{Answer, Attributes, Authorizer, Decision, Reason};
use object::Value;
use std::sync::Arc;
use support::Fixture;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn fixture() -> Fixture {
    let admission = Arc::new(Chain::new().with(NodeRestriction));
    let fixture = Fixture::new(Options { admission, ..Options::default() }).await;
    for node in ["a", "b"] {
        fixture.make("/api/v1/nodes", &format!(r#"{{"metadata":{{"name":"{node}","labels":{{"x":"y"}}}}}}"#)).await;
        let pod = format!(
            r#"{{"metadata":{{"name":"on-{node}"}},"spec":{{"nodeName":"{node}","containers":[{{"name":"c","image":"i"}}]}}}}"#
        );
        fixture.make(PODS, &pod).await;
    }
    fixture
}

/// Sends a request of the node `a`.
async fn send(fixture: &Fixture, method: &str, path: &str, body: &str) -> (u16, String) {
    let (code, answer) = fixture.send_as("system:node:a", &["system:nodes"], method, path, body).await;
    (code, answer.str_at(&["message"]).unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_node_changes_what_is_its_own() {
    let f = fixture().await;
    let mirror = |extra: &str| {
        format!(
            r#"{{"metadata":{{"name":"m","annotations":{{"kubernetes.io/config.mirror":"x"}},"ownerReferences":[{{"apiVersion":"v1",
                "kind":"Node","name":"a","uid":"none","controller":true}}]}},"spec":{{"nodeName":"a",{extra}"containers":[
                {{"name":"c","image":"i"}}]}}}}"#
        )
    };
    let status = r#"{"status":{"phase":"Running"}}"#;
    let rows: Vec<(u16, &str, &str, String, &str)> = vec![
        (200, "PATCH", "/api/v1/nodes/a", r#"{"metadata":{"labels":{"z":"1"}}}"#.into(), ""),
        (200, "PATCH", "/api/v1/nodes/a/status", r#"{"status":{"phase":"Running"}}"#.into(), ""),
        (
            403,
            "PATCH",
            "/api/v1/nodes/b",
            r#"{"metadata":{"labels":{"z":"1"}}}"#.into(),
            r#"nodes "b" is forbidden: node "a" is not allowed to modify node "b""#,
        ),
        (
            403,
            "PATCH",
            "/api/v1/nodes/a",
            r#"{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}"#.into(),
            r#"nodes "a" is forbidden: node "a" is not allowed to modify taints"#,
        ),
        (
            403,
            "PATCH",
            "/api/v1/nodes/a",
            r#"{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"1","kubernetes.io/y":"2","kubernetes.io/os":"l"}}}"#.into(),
            r#"nodes "a" is forbidden: is not allowed to modify labels: kubernetes.io/y, node-restriction.kubernetes.io/x"#,
        ),
        (403, "DELETE", "/api/v1/nodes/b", String::new(), r#"nodes "b" is forbidden: node "a" is not allowed to modify node "b""#),
        (200, "PATCH", "PODS/on-a/status", status.into(), ""),
        (
            403,
            "PATCH",
            "PODS/on-b/status",
            status.into(),
            r#"pods "on-b" is forbidden: node "a" can only update pod status for pods with spec.nodeName set to itself"#,
        ),
        (
            403,
            "PATCH",
            "PODS/on-a",
            r#"{"metadata":{"labels":{"a":"b"}}}"#.into(),
            r#"pods "on-a" is forbidden: unexpected operation "UPDATE", node "a" can only create and delete mirror pods"#,
        ),
        (
            403,
            "DELETE",
            "PODS/on-b",
            String::new(),
            r#"pods "on-b" is forbidden: node "a" can only delete pods with spec.nodeName set to itself"#,
        ),
        (
            403,
            "POST",
            "PODS",
            r#"{"metadata":{"name":"n"},"spec":{"nodeName":"a","containers":[{"name":"c","image":"i"}]}}"#.into(),
            r#"pods "n" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods"#,
        ),
        (403, "POST", "PODS", mirror(""), r#"pods "m" is forbidden: node a UID mismatch: expected none got "#),
        (
            403,
            "POST",
            "PODS/on-b/eviction",
            r#"{"metadata":{"name":"on-b"}}"#.into(),
            r#"pods "on-b" is forbidden: node a can only evict pods with spec.nodeName set to itself"#,
        ),
        (
            403,
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            r#"{"metadata":{"name":"a"}}"#.into(),
            r#"leases.coordination.k8s.io "a" is forbidden: can only access leases in the "kube-node-lease" system namespace"#,
        ),
        (
            403,
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            r#"{"metadata":{"name":"b"}}"#.into(),
            r#"leases.coordination.k8s.io "b" is forbidden: can only access node lease with the same name as the requesting node"#,
        ),
        (201, "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", r#"{"metadata":{"name":"a"}}"#.into(), ""),
        (201, "POST", "/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"free"}}"#.into(), ""),
    ];
    for (code, method, path, body, why) in &rows {
        let path = path.replace("PODS", PODS);
        let (found, message) = send(&f, method, &path, body).await;
        assert!(found == *code && message.starts_with(why), "{method} {path} {body}: {found} {message}");
    }
    // With its own identity it may make a mirror pod, if that refers to nothing.
    let (_, node) = f.send("GET", "/api/v1/nodes/a", "").await;
    let own = |text: &str| text.replace("\"none\"", &format!("\"{}\"", node.meta_str("uid")));
    for (extra, what) in [
        (r#""serviceAccountName":"s","#, "a service account"),
        (r#""volumes":[{"name":"v","secret":{"secretName":"s"}}],"#, "secrets"),
        (r#""imagePullSecrets":[{"name":"s"}],"#, "secrets"),
        (r#""volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"s"}}]}}],"#, "configmaps"),
        (r#""volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"s"}}],"#, "persistentvolumeclaims"),
    ] {
        let (code, message) = send(&f, "POST", PODS, &own(&mirror(extra))).await;
        let why = format!(r#"pods "m" is forbidden: node "a" can not create pods that reference {what}"#);
        assert_eq!((code, message), (403, why));
    }
    let (code, message) = send(&f, "POST", PODS, &own(&mirror(""))).await;
    assert_eq!((code, message.as_str()), (201, ""));
}

#[tokio::test]
async fn only_nodes_are_restricted() {
    let f = fixture().await;
    let patch = r#"{"metadata":{"labels":{"kubernetes.io/y":"2"}}}"#;
    for (name, groups, expected) in [
        ("me", &["system:nodes"][..], 200),
        ("system:node:b", &[], 200),
        ("system:node:", &["system:nodes"], 403),
        ("system:node:b", &["system:nodes"], 403),
    ] {
        let (code, answer) = f.send_as(name, groups, "PATCH", "/api/v1/nodes/a", patch).await;
        assert_eq!(code, expected, "{name} {answer:?}");
        if name == "system:node:" {
            let why = r#"nodes "a" is forbidden: could not determine node from user "system:node:""#;
            assert_eq!(answer.get("message"), Some(&Value::from(why)));
        }
    }
}

/// Lets everybody do everything, but nodes have tokens made for one audience alone.
struct OneAudience;

impl Authorizer for OneAudience {
    fn authorize<'a>(&'a self, asked: Attributes<'a>) -> Answer<'a, Decision> {
        let allowed = asked.verb != "request-serviceaccounts-token-audience"
            || (asked.resource, asked.name, asked.namespace) == ("granted", "default", "default");
        let decision = if allowed { Decision::Allow(Reason::NONE) } else { Decision::Deny(String::new()) };
        Box::pin(std::future::ready(decision))
    }
}

#[tokio::test]
async fn a_node_asks_for_tokens_that_its_pods_need() {
    let admission = Arc::new(Chain::new().with(NodeRestriction));
    let f = Fixture::new(Options { admission, authorizer: Arc::new(OneAudience), ..Options::default() }).await;
    f.make("/api/v1/namespaces/default/serviceaccounts", r#"{"metadata":{"name":"default"}}"#).await;
    let driver = r#"{"metadata":{"name":"d.example.com"},"spec":{"tokenRequests":[{"audience":"driver"}]}}"#;
    f.make("/apis/storage.k8s.io/v1/csidrivers", driver).await;
    let volume = r#"{"metadata":{"name":"pv"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},
        "csi":{"driver":"d.example.com","volumeHandle":"h"}}}"#;
    f.make("/api/v1/persistentvolumes", volume).await;
    let claim = |name: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"accessModes":["ReadWriteOnce"],"volumeName":"pv",
                "resources":{{"requests":{{"storage":"1"}}}}}}}}"#
        )
    };
    for name in ["claim", "ephemeral-v"] {
        f.make("/api/v1/namespaces/default/persistentvolumeclaims", &claim(name)).await;
    }
    let template = r#"{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}}"#;
    const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
    for (name, volume, asked, why) in [
        ("plain", r#""emptyDir":{}"#, r#""other""#, "not found in pod spec volume, system:node:a is not authorized"),
        ("granted", r#""emptyDir":{}"#, r#""granted""#, ""),
        ("two", r#""emptyDir":{}"#, r#""a","b""#, "node may only request 0 or 1 audiences"),
        ("projected", r#""projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}"#, "", ""),
        ("named", r#""projected":{"sources":[{"serviceAccountToken":{"path":"t","audience":"x"}}]}"#, r#""x""#, ""),
        ("inline", r#""csi":{"driver":"d.example.com"}"#, r#""driver""#, ""),
        ("claimed", r#""persistentVolumeClaim":{"claimName":"claim"}"#, r#""driver""#, ""),
        ("other", r#""persistentVolumeClaim":{"claimName":"claim"}"#, r#""x""#, "audience \"x\" not found in pod spec"),
        (
            "missing",
            r#""persistentVolumeClaim":{"claimName":"gone"}"#,
            r#""x""#,
            "error validating audience \"x\": persistentvolumeclaim \"gone\" not found",
        ),
        ("ephemeral", &format!(r#""ephemeral":{{"volumeClaimTemplate":{template}}}"#), r#""driver""#, ""),
    ] {
        let pod = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"nodeName":"a","serviceAccountName":"default","containers":[{{"name":"c","image":"i"}}],
                "volumes":[{{"name":"v",{volume}}}]}}}}"#
        );
        let pod = f.make(PODS, &pod).await;
        let bound = format!(r#"{{"apiVersion":"v1","kind":"Pod","name":"{name}","uid":"{}"}}"#, pod.meta_str("uid"));
        let body = format!(r#"{{"spec":{{"audiences":[{asked}],"boundObjectRef":{bound}}}}}"#);
        let (code, message) = send(&f, "POST", TOKEN, &body).await;
        if why.is_empty() {
            // The server of this test signs no tokens; that it comes to say so is enough.
            assert!(code == 500 && message.contains("signs no tokens"), "{name}: {code} {message}");
        } else {
            assert!(code == 403 && message.contains(why), "{name}: {code} {message}");
        }
    }
}
