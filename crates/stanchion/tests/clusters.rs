//! `stanchion cluster`, and an Application in three servers over TLS, one of which is killed.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod cli;

use cli::{Cli, PROGRAM};
use compat::client::{Client, Request};
use compat::server::Server;
use object::{Value, json};
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

struct Fixture {
    hub: Server,
    eu: Server,
    us: Server,
    folder: tempfile::TempDir,
    cli: Cli,
}

impl Deref for Fixture {
    type Target = Cli;

    fn deref(&self) -> &Cli {
        &self.cli
    }
}

impl Fixture {
    fn new() -> Self {
        let program = Path::new(PROGRAM);
        let hub = Server::start(program, &["--manager"]).unwrap();
        Fixture {
            cli: Cli::new(&hub.kubeconfig),
            hub,
            eu: Server::start_durable(program, &[]).unwrap(),
            us: Server::start_durable(program, &[]).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Applies the application: one ConfigMap, wherever clusters are of the tier `prod`.
    fn up(&self, value: &str, flags: &str) -> (bool, String) {
        let file = self.folder.path().join("app.yaml");
        let text = format!(
            "apiVersion: core.oam.dev/v1beta1
kind: Application
metadata: {{name: app}}
spec:
  components:
  - name: one
    type: k8s-objects
    properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: facts}}, data: {{k: '{value}'}}}}]}}
  policies:
  - {{name: prod, type: topology, properties: {{clusterLabelSelector: {{tier: prod}}}}}}
"
        );
        std::fs::write(&file, text).unwrap();
        self.run(&format!("app up -f {} {flags}", file.display()))
    }
}

/// Sends a request to a server, as its administrator.
fn send(server: &Server, request: Request) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(Client::new(server.target.clone()).send(&request)).unwrap();
    (answer.code, json::parse(&answer.body).unwrap_or_default())
}

const FACTS: &str = "/api/v1/namespaces/default/configmaps/facts";

/// The value in the ConfigMap of a server, and its uid; both empty if there is none.
fn facts(server: &Server) -> (String, String) {
    let (_, map) = send(server, Request::new("GET", FACTS));
    (map.str_at(&["data", "k"]).unwrap_or_default().to_owned(), map.meta_str("uid").to_owned())
}

fn until_facts(server: &Server, value: &str) {
    for _ in 0..600 {
        if facts(server).0 == value {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{value:?} never comes to {}", server.url);
}

#[test]
fn three_clusters_are_joined_lost_found_renamed_and_detached() {
    let mut f = Fixture::new();
    let join = |server: &Server, rest: &str| format!("cluster join {} {rest}", server.kubeconfig.display());
    f.ok(&join(&f.eu, "--name eu --labels tier=prod,region=eu --alias Europe"));
    f.ok(&join(&f.us, "--name us --labels tier=prod"));
    // What cannot be joined.
    f.fails(&join(&f.eu, "--name eu"), "there is a cluster eu already");
    f.fails(&join(&f.eu, "--name other"), "this cluster has joined already, as eu");
    f.fails(&join(&f.hub, "--name hub"), "this is the cluster in which the Applications are");
    f.fails(&join(&f.us, "--name local"), "local is the cluster in which the Applications are");
    let namespace = send(&f.eu, Request::new("GET", "/api/v1/namespaces/vela-system"));
    assert_eq!(namespace.0, 200);
    let list = f.ok("cluster list -o wide");
    let eu = list.lines().find(|line| line.starts_with("eu ")).unwrap();
    for part in ["Europe", "X509Certificate", &f.eu.url, "true", "region=eu,tier=prod", "Ready", "v1.33", " ms "] {
        assert!(eu.contains(part), "{part} is not in {eu}");
    }
    assert!(list.lines().any(|line| line.starts_with("local ")), "{list}");
    assert!(f.ok("cluster probe eu us").contains("us: ready, v1.33"));

    let (is_up, said) = f.up("1", "--wait");
    assert!(is_up, "{said}");
    assert_eq!((facts(&f.eu).0, facts(&f.us).0, facts(&f.hub).0), ("1".into(), "1".into(), String::new()));
    let tree = f.ok("app status app --tree --detail");
    for (cluster, line) in [("eu", tree.lines().nth(1)), ("us", tree.lines().nth(2))] {
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        assert_eq!(words, [cluster, "default", "ConfigMap/facts", "updated", "one", "healthy"]);
    }

    // One is killed: the other goes on, is healed and updated.
    let uid = facts(&f.us).1;
    f.us.kill();
    f.until("app status app", "one (us/default) unknown: Unknown: cluster us is unreachable");
    f.fails("cluster probe us", "not ready: us");
    assert!(
        f.ok("cluster list").lines().any(|line| line.starts_with("us ") && line.contains("Unreachable: cannot reach"))
    );
    assert!(f.ok("app status app --tree --detail").contains("unknown cluster us is unreachable"));
    assert_eq!(send(&f.eu, Request::new("DELETE", FACTS)).0, 200);
    until_facts(&f.eu, "1");
    f.up("2", "");
    until_facts(&f.eu, "2");

    // It comes back on the same port, and gets what it has missed.
    f.us.restart_in_place().unwrap();
    until_facts(&f.us, "2");
    assert_eq!(facts(&f.us).1, uid);
    f.until("app status app", "Phase:     running");

    // Another name changes nothing that is applied.
    assert!(f.ok("cluster rename us america").contains("cluster us is now america; 1 trackers changed"));
    f.fails("cluster rename eu america", "there is a cluster america already");
    f.fails(&join(&f.hub, "--name us"), "us is what cluster america was called before");
    f.until("app status app", "one (america/default) healthy");
    let (is_up, said) = f.up("3", "--wait");
    assert!(is_up, "{said}");
    assert_eq!(facts(&f.us), ("3".into(), uid.clone()));
    let tree = f.ok("app status app --tree");
    assert!(tree.contains("america") && !tree.contains("us "), "{tree}");

    // Labels decide where it is.
    assert!(f.ok("cluster labels add america tier=test,zone=1").contains("cluster america labeled"));
    until_facts(&f.us, "");
    f.ok("cluster labels add america tier=prod");
    assert!(f.ok("cluster labels add america tier=prod").contains("cluster america not labeled"));
    until_facts(&f.us, "3");
    assert!(f.ok("cluster labels del america zone").contains("cluster america unlabeled"));
    assert!(f.ok("cluster alias america Amerika").contains("cluster america has the alias Amerika"));
    f.fails("cluster labels del america zone", "has no label zone");

    // What holds something is not let go without a word about it.
    f.fails("cluster detach eu", "cluster eu holds 1 objects of 1 Applications (default/app)");
    assert!(f.ok("cluster detach eu --delete").contains("1 objects deleted"));
    assert_eq!(facts(&f.eu).0, "");
    // A cluster that is gone for good holds up the deletion until it is detached.
    f.us.kill();
    f.until("app status app", "unreachable");
    f.ok("app delete app");
    f.until("app status app", "Waiting for ConfigMap facts (Cluster: america");
    f.fails("cluster detach america --delete", "cluster america is unreachable");
    assert!(f.ok("cluster detach america --orphan").contains("1 objects stay there"));
    f.until("app status app", "there is no Application app");
    f.us.restart_in_place().unwrap();
    assert_eq!(facts(&f.us).0, "3");
    let list = f.ok("cluster list -o json");
    assert!(!list.contains("america") && list.contains(r#""name":"local""#), "{list}");
}
