//! `stanchion manager` beside a server that knows nothing of it: protection over HTTPS, and several managers.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use compat::client::{Client, Request};
use compat::server::{Manager, Server};
use object::{Value, json, yaml};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stanchion");
const CAPSULE: &str = "/apis/capsule.clastix.io/v1beta2";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const PATIENCE: Duration = Duration::from_secs(40);

struct Fixture {
    server: Server,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Fixture {
    fn new() -> Self {
        let server = Server::start(Path::new(PROGRAM), &[]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(server.target.clone());
        Fixture { server, runtime, client }
    }

    fn manager(&self, flags: &[&str]) -> Manager {
        Manager::start(&self.server, flags).unwrap()
    }

    /// Sends a request, as the administrator or as somebody else; gives the code and the answer.
    fn send(&mut self, who: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut request = Request::new(method, path);
        if !who.is_empty() {
            request = request.header("Impersonate-User", who);
        }
        if !body.is_empty() {
            let media = match method {
                "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
                "PATCH" => "application/merge-patch+json",
                _ => "application/yaml",
            };
            let body = if media.ends_with("json") {
                json::to_vec(&yaml::parse(body.as_bytes()).unwrap())
            } else {
                body.as_bytes().to_vec()
            };
            request = request.body(media, body);
        }
        let answer = self.runtime.block_on(self.client.send(&request)).unwrap();
        (answer.code, json::parse(&answer.body).unwrap_or_default())
    }

    fn apply(&mut self, path: &str, object: &str) -> Value {
        let (code, answer) = self.send("", "PATCH", &format!("{path}?fieldManager=test&force=true"), object);
        assert!(code < 300, "{path}: {}", json::to_string(&answer));
        answer
    }

    /// Waits until an answer is as somebody wishes.
    fn until(&mut self, who: &str, method: &str, path: &str, body: &str, is: impl Fn(u16, &Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let (code, answer) = self.send(who, method, path, body);
            if is(code, &answer) {
                return answer;
            }
            assert!(begin.elapsed() < PATIENCE, "{method} {path}: {code} {}", json::to_string(&answer));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn there(&mut self, path: &str) -> Value {
        self.until("", "GET", path, "", |code, _| code == 200)
    }

    /// A write that must be refused for a reason.
    fn refused(&mut self, who: &str, method: &str, path: &str, body: &str, why: &str) {
        let (code, answer) = self.send(who, method, path, body);
        let said = answer.str_at(&["message"]).unwrap_or_default();
        assert!(code >= 400 && said.contains(why), "{method} {path}: {code} {}", json::to_string(&answer));
    }

    /// Somebody with every right who is not the manager.
    fn person(&mut self, name: &str) {
        let binding = format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {name}}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}, subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {name}}}]}}"
        );
        self.apply(&format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}"), &binding);
    }

    fn tenant(&mut self, namespace: &str) {
        self.there(&format!("{CAPSULE}/tenants"));
        self.apply(
            &format!("{CAPSULE}/tenants/solar"),
            "{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: solar}, spec: {owners: []}}",
        );
        self.apply(
            &format!("/api/v1/namespaces/{namespace}"),
            &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {{capsule.clastix.io/tenant: solar}}}}}}"),
        );
    }

    /// A TenantResource with a ConfigMap `facts` that something else holds when it is deleted.
    fn facts(&mut self, namespace: &str) {
        self.apply(
            &format!("{CAPSULE}/namespaces/{namespace}/tenantresources/r"),
            &format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {{name: r, namespace: {namespace}}}, spec: {{resources: [{{rawItems: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: facts, finalizers: [example.com/hold]}}, data: {{a: b}}}}]}}]}}}}"),
        );
        self.there(&format!("/api/v1/namespaces/{namespace}/configmaps/facts"));
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What stands on a page that is served without TLS.
fn get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

fn is_forbidden(code: u16, answer: &Value, why: &str) -> bool {
    code == 403 && answer.str_at(&["message"]).unwrap_or_default().contains(why)
}

#[test]
fn other_servers_ask_the_manager_what_may_be_written() {
    let mut f = Fixture::new();
    let port = free_port();
    let flags = [format!("--webhook-listen=127.0.0.1:{port}"), format!("--webhook-url=https://127.0.0.1:{port}")];
    let metrics = free_port();
    let listen = format!("--metrics-listen=127.0.0.1:{metrics}");
    let flags = [flags[0].as_str(), &flags[1], "--leader-elect=false", &listen];
    let manager = f.manager(&flags);
    f.there(&format!("{ADMISSION}/validatingwebhookconfigurations/stanchion-manager"));
    f.person("mallory");
    f.tenant("solar-a");
    f.facts("solar-a");
    let facts = "/api/v1/namespaces/solar-a/configmaps/facts";

    // Old fields become policies, marks are not forged, what is protected is nobody's.
    let r = f.there(&format!("{CAPSULE}/namespaces/solar-a/tenantresources/r"));
    let blocks = r.at(&["spec", "resources"]).and_then(Value::as_array).unwrap();
    assert_eq!(blocks[0].str_at(&["policy", "creation"]), Some("Owner"));
    let forged = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {projectcapsule.dev/protected-by: replications}}}";
    f.refused("mallory", "POST", "/api/v1/namespaces/solar-a/configmaps", forged, "is set by the controller only");
    for (method, body) in [("DELETE", ""), ("PATCH", "{data: {a: evil}}"), ("PATCH", "{metadata: {labels: null}}")] {
        f.refused("mallory", method, facts, body, "protected by TenantResource solar-a/r");
    }
    let own = "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}";
    assert_eq!(f.send("mallory", "POST", "/api/v1/namespaces/solar-a/configmaps", own).0, 201);
    let broken = "{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: b, namespace: solar-a}, spec: {resources: [{policy: {condition: 'nope('}}]}}";
    f.refused("", "POST", &format!("{CAPSULE}/namespaces/solar-a/tenantresources"), broken, "policy.condition");

    // The account that works for a parent may write what it made, others not; it stays while it is needed.
    f.apply(
        "/api/v1/namespaces/solar-a/serviceaccounts/runner",
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: solar-a}}",
    );
    f.person("system:serviceaccount:solar-a:runner");
    f.apply(
        &format!("{CAPSULE}/namespaces/solar-a/tenantresources/s"),
        "{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: s, namespace: solar-a}, spec: {serviceAccount: {name: runner}, resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: run}}]}]}}",
    );
    let run = "/api/v1/namespaces/solar-a/configmaps/run";
    f.there(run);
    f.refused("mallory", "PATCH", run, "{data: {a: evil}}", "protected by TenantResource solar-a/s");
    assert_eq!(f.send("system:serviceaccount:solar-a:runner", "PATCH", run, "{data: {own: 'yes'}}").0, 200);
    let account = "/api/v1/namespaces/solar-a/serviceaccounts/runner";
    f.refused("mallory", "DELETE", account, "", "the service account is used by TenantResource solar-a/s");

    // Namespaces go to the tenants of their makers, and what is in them is labelled.
    f.apply(
        &format!("{CAPSULE}/tenants/wind"),
        "{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: wind}, spec: {owners: [{kind: User, name: owner}]}}",
    );
    f.person("owner");
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: wind-a}}";
    let of_wind = |_: u16, n: &Value| n.label("capsule.clastix.io/tenant") == Some("wind");
    f.until("owner", "POST", "/api/v1/namespaces?dryRun=All", namespace, of_wind);
    let stolen = "{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {capsule.clastix.io/tenant: wind}}}";
    f.refused("mallory", "POST", "/api/v1/namespaces", stolen, "you are not an owner of tenant");
    let own = f.there("/api/v1/namespaces/solar-a/configmaps/own");
    assert_eq!(own.label("capsule.clastix.io/managed-by"), Some("solar"));

    // What others do to the registrations is put back.
    for kind in ["validating", "mutating"] {
        let path = format!("{ADMISSION}/{kind}webhookconfigurations/stanchion-manager");
        let before = f.there(&path);
        let broken = "{webhooks: null}";
        assert_eq!(f.send("", "PATCH", &path, broken).0, 200);
        let count = |o: &Value| o.get("webhooks").and_then(Value::as_array).map_or(0, <[Value]>::len);
        f.until("", "GET", &path, "", |_, now| count(now) == count(&before));
        assert_eq!(f.send("", "DELETE", &path, "").0, 200);
        f.there(&path);
    }

    // Permits: who asks is who asks, and only reviewers approve.
    f.apply(
        &format!("{CAPSULE}/namespaces/solar-a/resourcepermittemplates/t"),
        "{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermitTemplate, metadata: {name: t, namespace: solar-a}, spec: {approvals: {approvers: [{kind: User, name: alice}]}, resources: [{targets: [{apiVersion: v1, kind: ConfigMap, metadata: {name: made}}]}]}}",
    );
    f.person("alice");
    let permit = "{apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit, metadata: {name: p, namespace: solar-a}, spec: {template: {kind: ResourcePermitTemplate, name: t}, requester: {name: boss, type: User}}}";
    let permits = format!("{CAPSULE}/namespaces/solar-a/resourcepermits");
    f.until("mallory", "POST", &permits, permit, |code, _| code == 201);
    let phase = |wanted: &'static str| move |_: u16, p: &Value| p.str_at(&["status", "phase"]) == Some(wanted);
    let p = format!("{permits}/p");
    let asked = f.until("", "GET", &p, "", phase("Requested"));
    assert_eq!(asked.str_at(&["spec", "requester", "name"]), Some("mallory"));
    let status = format!("{p}/status");
    f.refused("mallory", "PATCH", &status, "{status: {phase: Approved}}", "\"mallory\" is not an approver");
    f.refused("alice", "PATCH", &status, "{status: {phase: Active}}", "invalid transition from Requested to Active");
    assert_eq!(f.send("alice", "PATCH", &status, "{status: {phase: Approved, size: 7}}").0, 200);
    let active = f.until("", "GET", &p, "", phase("Active"));
    assert_eq!(active.str_at(&["status", "review", "reviewer", "name"]), Some("alice"));
    f.refused("alice", "DELETE", &p, "", "a permit in phase Active must expire first");
    f.refused("alice", "DELETE", "/api/v1/namespaces/solar-a/configmaps/made", "", "protected by ResourcePermit");

    // What is measured has the original's names, and events say who did it.
    let page = get(metrics, "/metrics");
    for line in [
        "capsule_tenant_condition{tenant=\"solar\",condition=\"Ready\"} 1\n",
        "capsule_tenant_namespace_count{tenant=\"solar\"} 1\n",
        "capsule_resource_condition{name=\"r\",target_namespace=\"solar-a\",condition=\"Ready\"} 1\n",
        "capsule_resourcepermit_phase{name=\"p\",target_namespace=\"solar-a\",status=\"Active\"} 1\n",
        "controller_runtime_webhook_requests_total{code=\"200\",webhook=\"validate\"}",
        "controller_runtime_reconcile_total{controller=\"replications\",result=\"requeue_after\"}",
        "workqueue_depth{name=\"permits\"} 0\n",
        "stanchion_manager_inventory_items{kind=\"TenantResource\"} 2\n",
        "process_resident_memory_bytes ",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(get(metrics, "/readyz").ends_with("ok"));
    let events = "/api/v1/namespaces/solar-a/events?labelSelector=event.projectcapsule.dev/actor=alice";
    let told =
        f.until("", "GET", events, "", |_, l| l.get("items").and_then(Value::as_array).is_some_and(|i| !i.is_empty()));
    let first = told.get("items").and_then(Value::as_array).unwrap().first().unwrap();
    assert_eq!(first.label("event.projectcapsule.dev/actor-kind"), Some("User"));

    // Without a manager nothing that is protected changes, and everything else does.
    let secret = "/api/v1/namespaces/capsule-system/secrets/stanchion-manager-webhook";
    let certificate = f.there(secret).at(&["data"]).cloned();
    drop(manager);
    f.refused(
        "mallory",
        "DELETE",
        facts,
        "",
        "failed calling webhook \"protection.stanchion-manager.capsule.clastix.io\"",
    );
    assert_eq!(f.send("mallory", "DELETE", "/api/v1/namespaces/solar-a/configmaps/own", "").0, 200);
    let _manager = f.manager(&flags);
    f.until("mallory", "DELETE", facts, "", |code, answer| is_forbidden(code, answer, "protected by TenantResource"));
    assert_eq!(f.there(secret).at(&["data"]).cloned(), certificate);

    // Where everything goes, it may be deleted.
    assert_eq!(f.send("mallory", "DELETE", "/api/v1/namespaces/solar-a", "").0, 200);
    f.until("mallory", "DELETE", facts, "", |code, _| code == 200 || code == 404);
}

#[test]
fn a_namespace_goes_while_no_manager_answers() {
    let mut f = Fixture::new();
    let port = free_port();
    let flags = [format!("--webhook-listen=127.0.0.1:{port}"), format!("--webhook-url=https://127.0.0.1:{port}")];
    let manager = f.manager(&[&flags[0], &flags[1]]);
    f.there(&format!("{ADMISSION}/validatingwebhookconfigurations/stanchion-manager"));
    f.tenant("solar-b");
    f.apply(
        &format!("{CAPSULE}/namespaces/solar-b/tenantresources/r"),
        "{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: r, namespace: solar-b}, spec: {resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: facts}}]}]}}",
    );
    let facts = "/api/v1/namespaces/solar-b/configmaps/facts";
    f.there(facts);
    drop(manager);
    assert_eq!(f.send("", "DELETE", "/api/v1/namespaces/solar-b", "").0, 200);
    f.until("", "GET", facts, "", |code, _| code == 404);
}

/// Somebody who goes on asking for what is always refused, until told to stop; gives what was answered instead.
struct Asking {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<String>>,
    asked: Arc<AtomicUsize>,
}

impl Asking {
    fn begin(server: &Server, why: &'static str) -> Self {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let target = server.target.clone();
        let (stopped, count) = (stop.clone(), asked.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let mut client = Client::new(target);
            let forged = r#"{"metadata":{"name":"x","labels":{"projectcapsule.dev/protected-by":"replications"}}}"#;
            let mut others = Vec::new();
            while !stopped.load(Ordering::SeqCst) {
                let request = Request::new("POST", "/api/v1/namespaces/solar-a/configmaps?dryRun=All")
                    .header("Impersonate-User", "mallory")
                    .body("application/json", forged.as_bytes().to_vec());
                let answer = runtime.block_on(client.send(&request)).unwrap();
                if !String::from_utf8_lossy(&answer.body).contains(why) {
                    others.push(format!("{} {}", answer.code, String::from_utf8_lossy(&answer.body)));
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
            others
        });
        Asking { stop, thread, asked }
    }

    /// Waits until some more were answered.
    fn go_on(&self) {
        let (from, begin) = (self.asked.load(Ordering::SeqCst), Instant::now());
        while self.asked.load(Ordering::SeqCst) < from + 5 {
            assert!(begin.elapsed() < PATIENCE, "nothing is answered");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        assert_eq!(self.thread.join().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn no_call_is_refused_while_certificates_and_authorities_are_replaced() {
    let mut f = Fixture::new();
    let port = free_port();
    let flags = [format!("--webhook-listen=127.0.0.1:{port}"), format!("--webhook-url=https://127.0.0.1:{port}")];
    let _manager = f.manager(&[&flags[0], &flags[1], "--leader-elect=false"]);
    let registration = format!("{ADMISSION}/validatingwebhookconfigurations/stanchion-manager");
    f.there(&registration);
    f.person("mallory");
    f.tenant("solar-a");
    let why = "is set by the controller only";
    let forged = "{metadata: {name: x, labels: {projectcapsule.dev/protected-by: replications}}}";
    f.until("mallory", "POST", "/api/v1/namespaces/solar-a/configmaps?dryRun=All", forged, |_, answer| {
        answer.str_at(&["message"]).unwrap_or_default().contains(why)
    });
    let asking = Asking::begin(&f.server, why);
    asking.go_on();

    let secret = "/api/v1/namespaces/capsule-system/secrets/stanchion-manager-webhook";
    let data = |secret: &Value, key: &str| secret.str_at(&["data", key]).unwrap_or_default().to_owned();
    let bundle = |webhook: &Value| {
        let first = webhook.get("webhooks").and_then(Value::as_array).and_then(|w| w.first().cloned());
        first.unwrap_or_default().str_at(&["clientConfig", "caBundle"]).unwrap_or_default().to_owned()
    };
    let first = f.there(secret);
    assert_eq!(f.send("", "DELETE", secret, "").0, 200);
    // A new authority is trusted beside the old one, which goes on to vouch for what is served.
    let both = f.until("", "GET", secret, "", |code, s| code == 200 && data(s, "ca.crt") != data(&first, "ca.crt"));
    assert_eq!(data(&both, "tls.crt"), data(&first, "tls.crt"));
    f.until("", "GET", &registration, "", |_, w| bundle(w) == data(&both, "ca.crt"));
    asking.go_on();
    // When all had time to trust it, it signs; when all had time to serve that, the old one is forgotten.
    for since in [600, 7200] {
        let since = jiff::Timestamp::now().as_second() - since;
        let before = f.there(secret);
        let patch = format!("{{metadata: {{annotations: {{stanchion.dev/authority-since: '{since}'}}}}}}");
        assert_eq!(f.send("", "PATCH", secret, &patch).0, 200);
        let now = f.until("", "GET", secret, "", |_, s| s.get("data") != before.get("data"));
        f.until("", "GET", &registration, "", |_, w| bundle(w) == data(&now, "ca.crt"));
        asking.go_on();
    }
    let last = f.there(secret);
    assert!(
        data(&last, "tls.crt") != data(&first, "tls.crt") && data(&last, "ca.crt").len() < data(&both, "ca.crt").len()
    );
    asking.end();
}

#[test]
fn a_manager_that_follows_guards_what_the_leader_has_just_written() {
    let mut f = Fixture::new();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stanchion-manager";
    let _leader = f.manager(&[]);
    f.until("", "GET", lease, "", |_, l| !l.str_at(&["spec", "holderIdentity"]).unwrap_or_default().is_empty());
    let port = free_port();
    let flags = [format!("--webhook-listen=127.0.0.1:{port}"), format!("--webhook-url=https://127.0.0.1:{port}")];
    let _follower = f.manager(&[&flags[0], &flags[1]]);
    f.there(&format!("{ADMISSION}/validatingwebhookconfigurations/stanchion-manager"));
    f.person("mallory");
    f.tenant("solar-a");
    // Who is asked about the second object never answers: meanwhile the first is there, and no status says so.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", silent.local_addr().unwrap());
    f.apply(
        &format!("{ADMISSION}/validatingwebhookconfigurations/slow"),
        &format!("{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {{name: slow}}, webhooks: [{{name: slow.example.com, clientConfig: {{url: '{url}'}}, rules: [{{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}}], matchConditions: [{{name: slow, expression: \"request.name == 'slow'\"}}], failurePolicy: Ignore, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 10}}]}}"),
    );
    f.apply(
        &format!("{CAPSULE}/namespaces/solar-a/tenantresources/r"),
        "{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, metadata: {name: r, namespace: solar-a}, spec: {resources: [{rawItems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: facts}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: slow}}]}]}}",
    );
    let facts = "/api/v1/namespaces/solar-a/configmaps/facts";
    f.there(facts);
    // What the follower knows is what it was told a moment ago.
    let refused = |code, answer: &Value| is_forbidden(code, answer, "protected by TenantResource solar-a/r");
    f.until("mallory", "PATCH", &format!("{facts}?dryRun=All"), "{data: {a: evil}}", refused);
    f.refused("mallory", "DELETE", facts, "", "protected by TenantResource solar-a/r");
}

#[test]
fn one_of_several_managers_works_and_another_follows_it() {
    let mut f = Fixture::new();
    let quick = [
        "--leader-elect-lease-duration=2s",
        "--leader-elect-renew-deadline=1500ms",
        "--leader-elect-retry-period=200ms",
    ];
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stanchion-manager";
    let holder = |lease: &Value| lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default().to_owned();
    let first = f.manager(&quick);
    let led = f.until("", "GET", lease, "", |code, l| code == 200 && !holder(l).is_empty());
    let second = f.manager(&quick);
    f.tenant("solar-a");
    f.facts("solar-a");
    assert_eq!(holder(&f.there(lease)), holder(&led));
    drop(first);
    f.until("", "GET", lease, "", |_, l| !holder(l).is_empty() && holder(l) != holder(&led));
    f.tenant("solar-b");
    f.facts("solar-b");
    // One that ends in good order lets the next one begin at once.
    let id = second.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    f.until("", "GET", lease, "", |_, l| holder(l).is_empty());
}
