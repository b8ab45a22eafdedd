//! Audit events reach the program that a kubeconfig names, over TLS on both sides.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use apiserver::auth::{Authenticator, UserInfo};
use apiserver::http::{Handler, Listener, Tls, TlsFiles, server_config};
use bytes::Bytes;
use compat::client::{Client, Request};
use compat::server::Server;
use http_body_util::Full;
use object::{Value, json};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Takes events from those whose certificate names `auditor`.
#[derive(Default)]
struct Inbox(Mutex<Vec<Value>>);

impl Handler for Inbox {
    type Body = Full<Bytes>;

    async fn handle(self: &Arc<Self>, request: http::Request<Bytes>, user: UserInfo) -> http::Response<Full<Bytes>> {
        let is_one =
            user.name == "auditor" && request.method() == http::Method::POST && request.uri().path() == "/in/box";
        let list = json::parse(request.body()).unwrap();
        let is_list = list.str_at(&["kind"]) == Some("EventList");
        let code = if is_one && is_list { 200 } else { 403 };
        if code == 200 {
            let items = list.get("items").and_then(Value::as_array).unwrap_or_default();
            self.0.lock().unwrap().extend(items.iter().cloned());
        }
        http::Response::builder().status(code).body(Full::default()).unwrap()
    }
}

impl Inbox {
    /// The names of the objects whose creation is told.
    fn created(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        let done = events.iter().filter(|event| {
            event.str_at(&["verb"]) == Some("create")
                && event.str_at(&["stage"]) == Some("ResponseComplete")
                && event.str_at(&["objectRef", "resource"]) == Some("configmaps")
        });
        done.filter_map(|event| event.str_at(&["objectRef", "name"])).map(str::to_owned).collect()
    }
}

/// A program that takes events, and the flags that lead a server to it.
async fn receive(folder: &Path) -> (Arc<Inbox>, Vec<String>, watch::Sender<bool>) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("ca.crt", &authority_pem);
    for (name, host, user) in [("server", "127.0.0.1", "server"), ("client", "client", "auditor")] {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        let key = KeyPair::generate().unwrap();
        write(&format!("{name}.crt"), &params.signed_by(&key, &issuer).unwrap().pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
    let files = TlsFiles {
        certificate: folder.join("server.crt"),
        key: folder.join("server.key"),
        client_authorities: vec![folder.join("ca.crt")],
    };
    let tls = Arc::new(Tls::new(server_config(&files).unwrap()));
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Some(tls), Authenticator::default()).await.unwrap();
    let url = format!("https://{}/in/box", listener.address().unwrap());
    let config = format!(
        "{{kind: Config, apiVersion: v1, current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
        clusters: [{{name: k, cluster: {{server: '{url}', certificate-authority: ca.crt}}}}],
        users: [{{name: u, user: {{client-certificate: client.crt, client-key: client.key}}}}]}}"
    );
    write("audit.kubeconfig", &config);
    write("policy.yaml", "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, users: [admin]}]}");
    let (stop, stopped) = watch::channel(false);
    let inbox = Arc::new(Inbox::default());
    tokio::spawn(listener.serve(inbox.clone(), stopped, Duration::ZERO));
    let path = |name: &str| folder.join(name).display().to_string();
    let policy = format!("--audit-policy-file={}", path("policy.yaml"));
    let config = format!("--audit-webhook-config-file={}", path("audit.kubeconfig"));
    (inbox, vec![policy, config], stop)
}

fn start(flags: &[String], more: &[&str]) -> Server {
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Server::start(Path::new(env!("CARGO_BIN_EXE_stanchion")), &flags).unwrap()
}

async fn create(server: &Server, name: &str) {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    let request = Request::new("POST", MAPS).body("application/json", body);
    assert_eq!(Client::new(server.target.clone()).send(&request).await.unwrap().code, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_sent_in_batches_and_those_that_wait_at_the_end_too() {
    let folder = tempfile::tempdir().unwrap();
    let (inbox, flags, _stop) = receive(folder.path()).await;
    let mut server = start(&flags, &["--audit-webhook-batch-max-wait=100ms"]);
    create(&server, "first").await;
    let began = Instant::now();
    while inbox.created() != ["first"] {
        assert!(began.elapsed() < Duration::from_secs(60), "the event never comes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(server);

    server = start(&flags, &["--audit-webhook-batch-max-wait=1h"]);
    create(&server, "second").await;
    let sent = std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert!(server.ended_within(Duration::from_secs(60)).unwrap(), "it ended badly");
    assert_eq!(inbox.created(), ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_requests_wait_the_event_is_there_before_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (inbox, flags, _stop) = receive(folder.path()).await;
    let server = start(&flags, &["--audit-webhook-mode=blocking"]);
    create(&server, "a").await;
    assert_eq!(inbox.created(), ["a"]);
    let metrics = Client::new(server.target.clone()).send(&Request::new("GET", "/metrics")).await.unwrap();
    let page = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(page.contains("apiserver_audit_error_total{plugin=\"webhook\"} 0\n"), "{page}");
}
