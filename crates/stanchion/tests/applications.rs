//! `stanchion app`, as somebody uses it for a day.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod cli;

use cli::{Cli, PROGRAM};
use compat::server::Server;
use object::{Value, json};
use std::path::Path;

struct Fixture {
    _server: Server,
    cli: Cli,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(flags: &[&str]) -> Self {
        let server = Server::start(Path::new(PROGRAM), flags).unwrap();
        Fixture { cli: Cli::new(&server.kubeconfig), _server: server, folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a file; the words that apply it.
    fn file(&self, text: &str) -> String {
        let file = self.folder.path().join("file.yaml");
        std::fs::write(&file, text).unwrap();
        format!("app up -f {}", file.display())
    }

    /// An application with one ConfigMap that holds a value, and a workflow or policies.
    fn app(&self, value: &str, rest: &str) -> String {
        self.file(&format!(
            "apiVersion: core.oam.dev/v1beta1
kind: Application
metadata: {{name: app}}
spec:
  components:
  - name: one
    type: k8s-objects
    properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: facts}}, data: {{k: '{value}'}}}}]}}
{rest}"
        ))
    }

    fn json(&self, words: &str) -> Value {
        json::parse(self.cli.ok(&format!("{words} -o json")).as_bytes()).unwrap()
    }
}

#[test]
fn an_application_is_deployed_shown_rolled_back_and_let_go() {
    let f = Fixture::new(&["--manager"]);
    assert!(f.cli.ok("app list").contains("There are no Applications in namespace default."));
    let policies = "  policies: [{name: gc, type: garbage-collect, properties: {order: dependency}}]\n";
    f.cli.ok(&format!("{} --wait", f.app("1", policies)));
    f.cli.ok(&format!("{} --wait", f.app("2", "")));
    f.cli.fails("app rollback app --to v9", "its revisions are app-v1, app-v2");
    f.cli.ok("app rollback app --wait");
    assert!(f.cli.ok("app diff app").contains("everything is as declared"));

    // A file counts although others changed what it says, and what it no longer says goes.
    f.cli.ok(&format!("{} --publish-version third --wait", f.app("3", "")));
    let app = f.json("app status app");
    assert_eq!((app.at(&["spec", "policies"]), app.at(&["metadata", "managedFields"])), (None, None));
    let list = f.json("app list");
    assert_eq!(list.at(&["items"]).and_then(Value::as_array).map(<[Value]>::len), Some(1));
    let wide = f.cli.ok("app list -o wide");
    assert!(wide.contains("third") && wide.contains("CLUSTERS"), "{wide}");
    let tree = f.json("app status app --tree");
    let leaf = tree.as_array().and_then(<[Value]>::first).cloned().unwrap_or_default();
    assert_eq!(
        json::to_string(&leaf),
        r#"{"cluster":"local","component":"one","kind":"ConfigMap","name":"facts","namespace":"default","status":"updated"}"#
    );
    assert!(f.cli.ok("app status app --detail").contains("updated   one         healthy"));
    let history = f.cli.ok("app history app -o wide");
    assert!(history.contains("app-v3   third") && history.contains("one:k8s-objects"), "{history}");

    f.cli.ok("app delete app --orphan --wait");
    f.cli.fails("app status app", "there is no Application app in namespace default");
}

#[test]
fn a_workflow_is_held_let_go_on_and_ended() {
    let f = Fixture::new(&["--manager"]);
    let steps = "  workflow: {steps: [{name: first, type: suspend}, {name: then, type: apply-component, properties: {component: one}}, {name: last, type: suspend}]}\n";
    let up = f.app("1", steps);
    f.cli.fails(
        &format!("{up} --wait"),
        "app waits at step first until somebody lets it go on: stanchion app resume app",
    );
    f.cli.ok("app resume app");
    f.cli.until("app status app", "last (suspend) suspending");
    f.cli.fails("app suspend app", "the workflow of app is suspended already");
    f.cli.ok("app terminate app");
    f.cli.until("app status app", "Phase: terminated");
    f.cli.fails("app resume app", "the workflow of app is over: it was terminated");
    f.cli.ok("app restart app");
    f.cli.until("app status app", "first (suspend) suspending");
    f.cli.ok("app delete app --wait");
}

#[test]
fn what_cannot_be_done_is_told() {
    let f = Fixture::new(&[]);
    f.cli.fails("app list", "the server serves no Applications");
    f.cli.fails(&f.app("1", ""), "the server serves no Applications");
    for (text, why) in [
        ("", "there are no objects"),
        ("hello", "object 1: apiVersion is missing"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1}", "object 2: kind is missing"),
        ("{apiVersion: v1, kind: ConfigMap}", "object 1: metadata.name is missing"),
        ("{apiVersion: v1, kind: Nothing, metadata: {name: a}}", "no matches for kind \"Nothing\" in version \"v1\""),
        ("a: [", "yaml: line 1"),
    ] {
        f.cli.fails(&f.file(text), why);
    }
    f.cli.fails("app up -f nothing.yaml", "nothing.yaml: No such file or directory");
}
