//! `stanchion app`, as somebody uses it for a day, and managers that follow each other.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod cli;

use cli::{Cli, PROGRAM};
use compat::client::{Client, Request};
use compat::server::{Manager, Server};
use object::{Value, json};
use std::path::Path;
use std::time::Duration;

struct Fixture {
    server: Server,
    cli: Cli,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(flags: &[&str]) -> Self {
        let server = Server::start(Path::new(PROGRAM), flags).unwrap();
        Fixture { cli: Cli::new(&server.kubeconfig), server, folder: tempfile::tempdir().unwrap() }
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
fn an_application_is_carried_out_as_whoever_declares_it() {
    let f = Fixture::new(&["--manager", "--authenticate-applications"]);
    let rights = r#"
[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"default"},"rules":[
  {"apiGroups":["core.oam.dev"],"resources":["*"],"verbs":["*"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}]},
 {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"r","namespace":"default"},
  "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},
  "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"bob"}]}]"#;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut client = Client::new(f.server.target.clone());
    for object in json::parse(rights.as_bytes()).unwrap().as_array().unwrap() {
        let plural = object.str_at(&["kind"]).unwrap().to_lowercase() + "s";
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/default/{plural}");
        let request = Request::new("POST", path).body("application/json", json::to_string(object));
        assert_eq!(runtime.block_on(client.send(&request)).unwrap().code, 201, "{plural}");
    }
    f.cli.ok(&format!("{} --as bob --wait", f.app("1", "")));
    let app = f.json("app status app");
    assert_eq!(app.annotation("app.oam.dev/username"), Some("bob"));
    let binding = "apiVersion: core.oam.dev/v1beta1
kind: Application
metadata: {name: evil, annotations: {app.oam.dev/username: kubernetes-admin, app.oam.dev/group: 'system:masters'}}
spec:
  components:
  - name: one
    type: k8s-objects
    properties:
      objects:
      - apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata: {name: evil}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
        subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
";
    f.cli.ok(&format!("{} --as bob", f.file(binding)));
    f.cli.until("app status evil", r#"User "bob" cannot"#);
    let referring = "apiVersion: core.oam.dev/v1beta1
kind: Application
metadata: {name: curious}
spec:
  components:
  - name: one
    type: ref-objects
    properties: {objects: [{apiVersion: v1, kind: ConfigMap, name: extension-apiserver-authentication, namespace: kube-system}]}
";
    f.cli.ok(&format!("{} --as bob", f.file(referring)));
    f.cli.until("app status curious", r#"User "bob" cannot"#);
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

/// Flags by which a manager soon takes over from another, but none gives up that is slow for a few seconds.
const QUICK: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=8s",
    "--leader-elect-retry-period=500ms",
];

/// The documents, one a line or one in all, that a server answers.
fn get(server: &Server, path: &str) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(Client::new(server.target.clone()).send(&Request::new("GET", path))).unwrap();
    answer.body.split(|byte| *byte == b'\n').filter_map(|line| json::parse(line).ok()).collect()
}

fn items(server: &Server, path: &str) -> Vec<Value> {
    let list = get(server, path).into_iter().next().unwrap_or_default();
    list.get("items").and_then(Value::as_array).unwrap_or_default().to_vec()
}

/// Waits for a state, two minutes at least.
fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..2400 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}

const APPLICATIONS: usize = 8;
const OBJECTS: usize = 15;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/core.oam.dev/v1beta1";

#[test]
fn a_leader_that_is_killed_in_a_dispatch_is_followed_and_nothing_is_done_twice() {
    let server = Server::start(Path::new(PROGRAM), &[]).unwrap();
    let cli = Cli::new(&server.kubeconfig);
    let first = Manager::start(&server, &QUICK).unwrap();
    let lease = || {
        let all = items(&server, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
        let lease = all.iter().find(|lease| lease.name() == "stanchion-manager");
        lease.and_then(|lease| lease.str_at(&["spec", "holderIdentity"])).unwrap_or_default().to_owned()
    };
    until("somebody leads", || !lease().is_empty());
    let led = lease();
    let _second = Manager::start(&server, &QUICK).unwrap();
    until("the kinds are served", || cli.run("app list").0);
    let begin = get(&server, MAPS)[0].meta_str("resourceVersion").to_owned();

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("apps.yaml");
    let application = |number: usize| {
        let map = |index: usize| {
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m-{number}-{index}}}, data: {{k: v}}}}")
        };
        let maps: Vec<String> = (0..OBJECTS).map(map).collect();
        format!(
            "{{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {{name: app-{number}}}, spec: {{components: [{{name: one, type: k8s-objects, properties: {{objects: [{}]}}}}]}}}}\n",
            maps.join(", ")
        )
    };
    std::fs::write(&file, (0..APPLICATIONS).map(application).collect::<Vec<_>>().join("---\n")).unwrap();
    cli.ok(&format!("app up -f {}", file.display()));
    let labelled = format!("{MAPS}?labelSelector=app.oam.dev/name");
    until("something is there", || !items(&server, &labelled).is_empty());
    drop(first);

    until("another one leads", || !lease().is_empty() && lease() != led);
    let is_running = |app: &Value| app.str_at(&["status", "status"]) == Some("running");
    until("all is there", || {
        let all = items(&server, &format!("{GROUP}/namespaces/default/applications"));
        all.len() == APPLICATIONS && all.iter().all(is_running)
    });
    // What happened to each object since: it was made, and no more.
    let events = get(&server, &format!("{labelled}&watch=1&timeoutSeconds=1&resourceVersion={begin}"));
    let mut told: Vec<String> = events
        .iter()
        .map(|event| {
            let name = event.at(&["object", "metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
            format!("{} {name}", event.str_at(&["type"]).unwrap_or_default())
        })
        .collect();
    told.sort();
    let mut wanted: Vec<String> = (0..APPLICATIONS)
        .flat_map(|number| (0..OBJECTS).map(move |index| format!("ADDED m-{number}-{index}")))
        .collect();
    wanted.sort();
    assert_eq!(told, wanted);
    // Nor was any version made twice, or any record.
    let names = |path: &str| {
        let mut names: Vec<String> =
            items(&server, &format!("{GROUP}/{path}")).iter().map(|one| one.name().to_owned()).collect();
        names.sort();
        names
    };
    let versions: Vec<String> = (0..APPLICATIONS).map(|number| format!("app-{number}-v1")).collect();
    assert_eq!(names("namespaces/default/applicationrevisions"), versions);
    let records: Vec<String> = versions.iter().map(|version| format!("{version}-default")).collect();
    assert_eq!(names("resourcetrackers"), records);
}
