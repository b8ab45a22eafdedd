//! The subresources of pods, and those that lead to nodes.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::Options;
use object::{Value, json};
use support::Fixture;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}"#
    )
}

async fn running(f: &Fixture, name: &str) {
    f.make(PODS, &pod(name)).await;
    let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    assert_eq!(f.send("PATCH", &format!("{PODS}/{name}/status"), status).await.0, 200);
}

async fn budget(f: &Fixture, name: &str, allowed: i64) {
    f.make(
        BUDGETS,
        &format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}}}}}}"#),
    )
    .await;
    let status = format!(
        r#"{{"status":{{"observedGeneration":1,"disruptionsAllowed":{allowed},"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}}}}"#
    );
    assert_eq!(f.send("PATCH", &format!("{BUDGETS}/{name}/status"), &status).await.0, 200);
}

async fn evict(f: &Fixture, name: &str, more: &str) -> (u16, Value) {
    let body = format!(r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}}{more}}}"#);
    f.send("POST", &format!("{PODS}/{name}/eviction"), &body).await
}

#[tokio::test]
async fn budgets_refuse_evictions() {
    let f = Fixture::new(Options::default()).await;
    running(&f, "p").await;
    running(&f, "q").await;
    budget(&f, "b", 1).await;
    let other = r#","deleteOptions":{"preconditions":{"uid":"other"}}"#;
    let (code, answer) = evict(&f, "p", r#","deleteOptions":{"dryRun":["All"]}"#).await;
    assert_eq!((code, answer.str_at(&["status"])), (201, Some("Success")));
    assert_eq!(f.send("GET", &format!("{PODS}/p"), "").await.0, 200);
    assert_eq!(evict(&f, "p", "").await.0, 201);
    assert_eq!(f.send("GET", &format!("{PODS}/p"), "").await.0, 404);
    let (_, held) = f.send("GET", &format!("{BUDGETS}/b"), "").await;
    assert_eq!(held.at(&["status", "disruptionsAllowed"]), Some(&Value::Int(0)));
    assert!(held.at(&["status", "disruptedPods", "p"]).is_some());
    let (code, answer) = evict(&f, "q", "").await;
    let cause = &answer.at(&["details", "causes"]).unwrap().as_array().unwrap()[0];
    assert_eq!((code, cause.str_at(&["reason"])), (429, Some("DisruptionBudget")));
    assert_eq!(cause.str_at(&["message"]), Some("The disruption budget b needs 1 healthy pods and has 2 currently"));
    budget(&f, "c", 1).await;
    let (code, answer) = evict(&f, "q", other).await;
    assert_eq!((code, answer.str_at(&["reason"])), (500, None), "{}", json::to_string(&answer));
    assert_eq!(f.send("DELETE", BUDGETS, "").await.0, 200);
    assert_eq!(evict(&f, "q", other).await.0, 409);
    let (code, why) = f.message("POST", &format!("{PODS}/q/eviction"), r#"{"metadata":{"name":"x"}}"#).await;
    assert_eq!((code, why.as_str()), (400, "name in URL does not match name in Eviction object"));
    assert_eq!(evict(&f, "ghost", "").await.0, 404);
}

#[tokio::test]
async fn pods_are_bound_once() {
    let f = Fixture::new(Options::default()).await;
    f.make(PODS, &pod("p")).await;
    let binding = r#"{"metadata":{"name":"p","annotations":{"x":"y"}},"target":{"name":"n"}}"#;
    let path = format!("{PODS}/p/binding");
    assert_eq!(f.send("POST", &format!("{path}?dryRun=All"), binding).await.0, 201);
    let (code, answer) = f.send("POST", &path, binding).await;
    assert_eq!((code, answer.str_at(&["status"])), (201, Some("Success")));
    let (_, bound) = f.send("GET", &format!("{PODS}/p"), "").await;
    assert_eq!(
        (bound.str_at(&["spec", "nodeName"]), bound.at(&["metadata", "generation"])),
        (Some("n"), Some(&Value::Int(1)))
    );
    assert_eq!(bound.str_at(&["metadata", "annotations", "x"]), Some("y"));
    let (code, why) = f.message("POST", "/api/v1/namespaces/default/bindings", binding).await;
    let wanted = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"";
    assert_eq!((code, why.as_str()), (409, wanted));
    let (code, why) = f.message("POST", &path, r#"{"metadata":{"name":"p"},"target":{"kind":"Pod"}}"#).await;
    assert_eq!(code, 500);
    assert!(why.contains("target.name: Required value"), "{why}");
    assert_eq!(f.send("POST", &path, r#"{"metadata":{"name":"q"},"target":{"name":"n"}}"#).await.0, 400);
}

#[tokio::test]
async fn what_leads_to_nodes_says_how_far_it_comes() {
    let f = Fixture::new(Options::default()).await;
    f.make(PODS, &pod("p")).await;
    f.make("/api/v1/nodes", r#"{"metadata":{"name":"n"}}"#).await;
    let service = r#"{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}"#;
    f.make("/api/v1/namespaces/default/services", service).await;
    let services = "/api/v1/namespaces/default/services";
    for (method, path, code, why) in [
        ("POST", format!("{PODS}/p/exec?command=x"), 400, "pod p does not have a host assigned"),
        ("GET", format!("{PODS}/p/proxy/"), 400, "address not allowed"),
        ("GET", format!("{PODS}/a:b:c:d/proxy"), 400, "invalid pod request \"a:b:c:d\""),
        ("GET", format!("{PODS}/ghost/proxy/x/y"), 404, "pods \"ghost\" not found"),
        ("GET", format!("{services}/s/proxy/"), 404, "endpoints \"s\" not found"),
        ("GET", format!("{services}/s:81/proxy/"), 503, "no service port 81 found for service \"s\""),
        ("GET", "/api/v1/nodes/ghost/proxy/metrics".to_owned(), 404, "nodes \"ghost\" not found"),
        ("GET", "/api/v1/nodes/n/proxy/metrics".to_owned(), 500, "no preferred addresses found; known addresses: []"),
    ] {
        assert_eq!(f.message(method, &path, "").await, (code, why.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_resize_changes_resources_and_nothing_else() {
    let f = Fixture::new(Options::default()).await;
    f.make(PODS, &pod("p")).await;
    let path = format!("{PODS}/p/resize");
    let patch = r#"{"metadata":{"labels":{"a":"z"}},"spec":{"serviceAccountName":"strong","containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"2"}}}]},"status":{"phase":"Running"}}"#;
    let (code, resized) = f.send("PATCH", &path, patch).await;
    assert_eq!(code, 200, "{}", json::to_string(&resized));
    let container = &resized.at(&["spec", "containers"]).unwrap().as_array().unwrap()[0];
    assert_eq!(container.str_at(&["resources", "requests", "cpu"]), Some("2"));
    assert_eq!(container.str_at(&["image"]), Some("i"));
    assert_eq!(resized.str_at(&["spec", "serviceAccountName"]), None);
    assert_eq!(
        (resized.str_at(&["metadata", "labels", "a"]), resized.str_at(&["status", "phase"])),
        (Some("b"), Some("Pending"))
    );
    assert_eq!(resized.at(&["metadata", "generation"]), Some(&Value::Int(2)));
}

#[tokio::test]
async fn tables_tell_which_pods_ended_and_sort_flow_schemas() {
    let f = Fixture::new(Options::default()).await;
    for (name, phase) in [("a", "Running"), ("b", "Failed"), ("c", "Succeeded")] {
        f.make(
            PODS,
            &format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#),
        )
        .await;
        let status = format!(r#"{{"status":{{"phase":"{phase}"}}}}"#);
        assert_eq!(f.send("PATCH", &format!("{PODS}/{name}/status"), &status).await.0, 200);
    }
    let rows = f.table(PODS).await;
    let ended = |row: &Value| row.at(&["conditions"]).map(json::to_string).unwrap_or_default();
    let rows: Vec<String> = rows.at(&["rows"]).and_then(Value::as_array).unwrap().iter().map(ended).collect();
    let wanted = |reason: &str, message: &str| {
        format!(r#"[{{"message":"{message}","reason":"{reason}","status":"True","type":"Completed"}}]"#)
    };
    assert_eq!(
        rows,
        [
            String::new(),
            wanted("Failed", "The pod failed."),
            wanted("Succeeded", "The pod has completed successfully."),
        ]
    );
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    for (name, precedence) in [("x2", 9999), ("x0", 9999), ("x1", 2)] {
        let spec = r#""priorityLevelConfiguration":{"name":"exempt"},"rules":[]"#;
        f.make(
            schemas,
            &format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"matchingPrecedence":{precedence},{spec}}}}}"#),
        )
        .await;
    }
    let table = f.table(schemas).await;
    let rows = table.at(&["rows"]).and_then(Value::as_array).unwrap();
    let name = |row: &Value| row.at(&["cells"]).and_then(Value::as_array).unwrap()[0].as_str().unwrap().to_owned();
    let names: Vec<String> = rows.iter().map(name).filter(|name| name.starts_with('x')).collect();
    assert_eq!(names, ["x1", "x0", "x2"]);
}

#[tokio::test]
async fn small_kinds_follow_their_registries() {
    let f = Fixture::new(Options::default()).await;
    let of = |plural: &str| format!("/api/v1/namespaces/default/{plural}");
    // Events have no dependents, whatever a delete says of them.
    f.make(&of("events"), r#"{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}"#).await;
    let event = format!("{}/e", of("events"));
    assert_eq!(f.send("DELETE", &event, r#"{"propagationPolicy":"Foreground"}"#).await.0, 200);
    assert_eq!(f.send("GET", &event, "").await.0, 404);
    // Limits need no name, and an update makes what is not there.
    let made = f.make(&of("limitranges"), r#"{"spec":{"limits":[]}}"#).await;
    assert_eq!(made.name().len(), 36);
    let limits = format!("{}/l", of("limitranges"));
    assert_eq!(f.send("PUT", &limits, r#"{"metadata":{"name":"l"},"spec":{"limits":[]}}"#).await.0, 201);
    // Nodes have no namespaces, claims no names beside those in their metadata.
    for (path, why) in [
        ("/api/v1/nodes?fieldSelector=metadata.namespace%3Da", "field label not supported: metadata.namespace"),
        ("/api/v1/namespaces?fieldSelector=name%3Da", "field label not supported: name"),
        (
            "/api/v1/persistentvolumeclaims?fieldSelector=name%3Da",
            r#""name" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
    ] {
        let (code, found) = f.message("GET", path, "").await;
        assert!(code == 400 && found.ends_with(why), "{path}: {code} {found}");
    }
    let found = f.send("GET", "/api/v1/persistentvolumes?fieldSelector=metadata.namespace%3D", "").await;
    assert_eq!(found.0, 200);
    f.make(&of("pods"), &pod("h")).await;
    let (_, list) = f.send("GET", &format!("{}?fieldSelector=spec.host%3D", of("pods")), "").await;
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[Value]>::len), Some(1));
    // A request for a token names its account, or nobody.
    f.make(&of("serviceaccounts"), r#"{"metadata":{"name":"s"}}"#).await;
    let (code, why) =
        f.message("POST", &format!("{}/s/token", of("serviceaccounts")), r#"{"metadata":{"name":"t"}}"#).await;
    let wanted = r#"TokenRequest.authentication.k8s.io "s" is invalid: metadata.name: Invalid value: "t": must match the service account name if specified"#;
    assert_eq!((code, why.as_str()), (422, wanted));
}
