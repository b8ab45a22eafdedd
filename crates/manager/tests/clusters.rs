//! Applications in several clusters, each a server in process whose line can be cut.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::Server;
use bytes::Bytes;
use client::resources::{CONFIG_MAPS, NAMESPACES, SECRETS};
use client::{BoxFuture, Client, DeleteParams, Error, ListParams, Patch, PatchParams, Resource, Response, Transport};
use controllers::InProcess;
use futures_util::StreamExt;
use manager::application::clusters::{Access, Connector, Credential, names, records};
use manager::application::{Controller, Options, kinds};
use object::{Map, Value, json, map};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// Connections are refused, and broke.
    Down,
    /// Nothing ever comes back.
    Silent,
}

/// The line to a cluster.
struct Line {
    server: InProcess,
    state: watch::Sender<State>,
    /// What was asked for, as `METHOD PATH`, whether it was answered or not.
    log: Mutex<Vec<String>>,
    /// How many requests wait for an answer that does not come.
    pending: AtomicUsize,
}

impl Line {
    fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    /// What was asked for since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock())
    }
}

impl Transport for Line {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        self.log.lock().push(format!("{} {}", request.method(), request.uri()));
        Box::pin(async move {
            let mut state = self.state.subscribe();
            let now = *state.borrow_and_update();
            match now {
                State::Down => return Err(Error::Transport("connection refused".into())),
                State::Silent => {
                    self.pending.fetch_add(1, Ordering::SeqCst);
                    return std::future::pending().await;
                }
                State::Up => {}
            }
            let response = self.server.send(request).await?;
            // What is open ends with the line.
            Ok(response.map(|body| -> client::Body {
                Box::pin(body.take_until(async move { _ = state.wait_for(|state| *state != State::Up).await }))
            }))
        })
    }
}

/// Knows lines by their endpoints.
struct Lines(HashMap<String, Arc<Line>>);

impl Connector for Lines {
    fn connect(&self, access: &Access) -> Result<Arc<dyn Transport>, String> {
        let line = self.0.get(&access.endpoint).ok_or_else(|| format!("no line to {}", access.endpoint))?;
        Ok(line.clone())
    }
}

async fn server() -> Arc<Server> {
    let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
    Server::new(store, apiserver::Options::default()).await.unwrap()
}

fn parse(text: &str) -> Value {
    object::yaml::parse(text.as_bytes()).unwrap()
}

/// The server of the applications, and clusters `eu` and `us`.
struct Fixture {
    hub: Client,
    members: HashMap<&'static str, (Client, Arc<Line>)>,
    options: Options,
    running: JoinHandle<()>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Fixture {
    async fn new() -> Self {
        let hub = Client::new(Arc::new(InProcess::controller_manager(server().await)));
        kinds::install(&hub).await.unwrap();
        let mut members = HashMap::new();
        let mut lines = HashMap::new();
        for name in ["eu", "us"] {
            let server = server().await;
            let line = Arc::new(Line {
                server: InProcess::controller_manager(server.clone()),
                state: watch::Sender::new(State::Up),
                log: Mutex::default(),
                pending: AtomicUsize::default(),
            });
            lines.insert(format!("https://{name}"), line.clone());
            members.insert(name, (Client::new(Arc::new(InProcess::controller_manager(server))), line));
        }
        let system = map! { "metadata" => map! { "name" => names::NAMESPACE } };
        hub.api(&NAMESPACES).create("", &system.into()).await.unwrap();
        let options = Options { connector: Some(Arc::new(Lines(lines))), ..Options::default() };
        let running = tokio::spawn(Controller::new(&hub, options.clone()).run());
        let fixture = Fixture { hub, members, options, running };
        fixture.join("eu", "eu", "prod").await;
        fixture.join("us", "us", "prod").await;
        fixture
    }

    /// Ends the controller; another one begins, and has seen that `us` is away.
    async fn restart(&mut self) {
        self.running.abort();
        self.line("us").asked();
        self.running = tokio::spawn(Controller::new(&self.hub, self.options.clone()).run());
        self.until("us is asked", async |f: &Fixture| (!f.line("us").asked().is_empty()).then_some(())).await;
    }

    /// Joins the cluster at an endpoint under a name.
    async fn join(&self, name: &str, endpoint: &str, tier: &str) {
        let access = Access {
            endpoint: format!("https://{endpoint}"),
            authority: Vec::new(),
            credential: Credential::Token("t".into()),
        };
        let secret = access.to_secret(name, names::NAMESPACE, &map! { "tier" => tier });
        self.hub.api(&SECRETS).create(names::NAMESPACE, &secret).await.unwrap();
    }

    fn line(&self, name: &str) -> &Line {
        &self.members[name].1
    }

    /// A client of a cluster that the applications do not see; empty for theirs.
    fn of(&self, cluster: &str) -> &Client {
        if cluster.is_empty() { &self.hub } else { &self.members[cluster].0 }
    }

    async fn apply(&self, spec: &str) {
        let text = format!(
            "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {{name: app, namespace: default}}\nspec: {spec}\n"
        );
        let patch = Patch::Apply { object: parse(&text), manager: "user".into(), force: true };
        self.hub.api(&kinds::APPLICATIONS).patch("default", "app", &patch, &PatchParams::default()).await.unwrap();
    }

    async fn app(&self) -> Option<Value> {
        self.hub.api(&kinds::APPLICATIONS).find("default", "app").await.unwrap()
    }

    async fn map(&self, cluster: &str, name: &str) -> Option<Value> {
        self.of(cluster).api(&CONFIG_MAPS).find("default", name).await.unwrap()
    }

    async fn until<T>(&self, what: &str, mut check: impl AsyncFnMut(&Fixture) -> Option<T>) -> T {
        for _ in 0..3000 {
            if let Some(value) = check(self).await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let trackers = self.hub.api(&kinds::TRACKERS).list("", &ListParams::default()).await.unwrap();
        let app = self.app().await.unwrap_or_default();
        panic!("never: {what}; {} {}", json::to_string(&app), json::to_string(&Value::Array(trackers.items)));
    }

    /// Waits until the data of a ConfigMap in a cluster are these; empty for none.
    async fn is(&self, cluster: &str, name: &str, data: &str) {
        let what = format!("{name} in {cluster:?} is {data:?}");
        self.until(&what, async |f: &Fixture| {
            let map = f.map(cluster, name).await;
            let now = map.map_or_else(String::new, |map| map.at(&["data"]).map(json::to_string).unwrap_or_default());
            (now == data).then_some(())
        })
        .await;
    }

    /// Waits until the application's generation is seen, and something is so.
    async fn app_is(&self, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        self.until(what, async |f: &Fixture| {
            let app = f.app().await?;
            let seen = app.at(&["status", "observedGeneration"]) == app.at(&["metadata", "generation"]);
            (seen && check(&app)).then_some(app)
        })
        .await
    }

    async fn ready(&self) -> Value {
        let is_running = |app: &Value| app.str_at(&["status", "status"]) == Some("running");
        self.app_is("the application is ready", |app| is_running(app) && condition(app, "Ready").0 == "True").await
    }

    async fn edit_secret(&self, name: &str, patch: &str) {
        let patch = Patch::Merge(parse(patch));
        self.hub.api(&SECRETS).patch(names::NAMESPACE, name, &patch, &PatchParams::default()).await.unwrap();
    }

    async fn delete_secret(&self, name: &str) {
        self.hub.api(&SECRETS).delete(names::NAMESPACE, name, &DeleteParams::default()).await.unwrap();
    }

    async fn delete_app(&self) {
        self.hub.api(&kinds::APPLICATIONS).delete("default", "app", &DeleteParams::default()).await.unwrap();
    }

    async fn app_is_gone(&self) {
        self.until("the application is gone", async |f: &Fixture| f.app().await.is_none().then_some(())).await;
    }

    async fn trackers(&self) -> usize {
        self.hub.api(&kinds::TRACKERS).list("", &ListParams::default()).await.unwrap().items.len()
    }
}

fn condition(app: &Value, kind: &str) -> (String, String) {
    let all = app.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let found = all.iter().find(|condition| condition.str_at(&["type"]) == Some(kind));
    let text = |key| found.and_then(|found| found.str_at(&[key])).unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

/// The services as `CLUSTER: MESSAGE`.
fn services(app: &Value) -> Vec<String> {
    let all = app.at(&["status", "services"]).and_then(Value::as_array).unwrap_or_default();
    let text = |service: &Value, key: &str| service.str_at(&[key]).unwrap_or_default().to_owned();
    all.iter().map(|service| format!("{}: {}", text(service, "cluster"), text(service, "message"))).collect()
}

/// An application of one ConfigMap, with these policies.
fn spec(map: &str, value: &str, policies: &str) -> String {
    format!(
        "{{components: [{{name: one, type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {map}}}, data: {{k: '{value}'}}}}]}}}}], policies: [{policies}]}}"
    )
}

const EVERYWHERE: &str = "{name: t, type: topology, properties: {clusters: [local, eu, us]}}";
const PROD: &str = "{name: t, type: topology, properties: {clusterLabelSelector: {tier: prod}}}";

#[tokio::test]
async fn components_go_to_named_clusters_and_leave_those_that_are_named_no_more() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    for cluster in ["", "eu", "us"] {
        f.is(cluster, "a", r#"{"k":"1"}"#).await;
    }
    assert_eq!(f.map("eu", "a").await.unwrap().label("app.oam.dev/cluster"), Some("eu"));
    let app = f.app().await.unwrap();
    assert_eq!(services(&app), [": ", "eu: ", "us: "]);
    f.apply(&spec("a", "2", "{name: t, type: topology, properties: {clusters: [eu]}}")).await;
    f.ready().await;
    f.is("eu", "a", r#"{"k":"2"}"#).await;
    f.is("us", "a", "").await;
    f.is("", "a", "").await;
    f.delete_app().await;
    f.app_is_gone().await;
    assert_eq!((f.map("eu", "a").await, f.trackers().await), (None, 0));
}

#[tokio::test]
async fn selectors_follow_the_labels_of_clusters() {
    let f = Fixture::new().await;
    f.edit_secret("us", "{metadata: {labels: {tier: test}}}").await;
    f.apply(&spec("a", "1", PROD)).await;
    f.ready().await;
    f.is("eu", "a", r#"{"k":"1"}"#).await;
    assert_eq!(f.map("us", "a").await, None);
    // A cluster comes into the selection, and one leaves it: nobody has to touch the application.
    f.edit_secret("us", "{metadata: {labels: {tier: prod}}}").await;
    f.is("us", "a", r#"{"k":"1"}"#).await;
    f.edit_secret("eu", "{metadata: {labels: {tier: test}}}").await;
    f.is("eu", "a", "").await;
    let app = f.app_is("only us is left", |app| services(app) == ["us: "]).await;
    assert_eq!(app.str_at(&["status", "latestRevision", "name"]), Some("app-v1"));
    f.is("us", "a", r#"{"k":"1"}"#).await;
}

#[tokio::test]
async fn what_topologies_cannot_mean_is_told() {
    let f = Fixture::new().await;
    for (policy, message) in [
        ("{clusterLabelSelector: {}}", "an empty selector matches nothing"),
        ("{clusterLabelSelector: {tier: none}}", "failed to find any cluster matches given labels"),
        ("{clusters: [asia]}", "failed to get cluster asia: no such cluster"),
        ("{clusters: [eu], clusterLabelSelector: {tier: prod}}", "exclude each other"),
    ] {
        f.apply(&spec("a", "1", &format!("{{name: t, type: topology, properties: {policy}}}"))).await;
        f.app_is(message, |app| json::to_string(app).contains(message)).await;
    }
    // A cluster that joins is what a selector waited for.
    f.apply(&spec("a", "1", "{name: t, type: topology, properties: {clusterLabelSelector: {tier: late}}}")).await;
    f.edit_secret("us", "{metadata: {labels: {tier: late}}}").await;
    f.is("us", "a", r#"{"k":"1"}"#).await;
}

#[tokio::test]
async fn a_selector_that_may_be_empty_brings_nothing_until_a_cluster_matches() {
    let f = Fixture::new().await;
    let policy = "{name: t, type: topology, properties: {clusterLabelSelector: {tier: late}, allowEmpty: true}}";
    f.apply(&spec("a", "1", policy)).await;
    f.ready().await;
    for cluster in ["", "eu", "us"] {
        assert_eq!(f.map(cluster, "a").await, None);
    }
    f.app_is("no place is told of what is nowhere", |app| {
        app.at(&["status", "services"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty)
    })
    .await;
    f.edit_secret("us", "{metadata: {labels: {tier: late}}}").await;
    f.is("us", "a", r#"{"k":"1"}"#).await;
    assert_eq!(f.map("eu", "a").await, None);
}

#[tokio::test]
async fn a_kind_that_the_hub_lacks_is_brought_to_a_cluster_that_has_it() {
    const DEFINITIONS: Resource =
        Resource::known("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);
    const WIDGETS: Resource = Resource::known("example.com", "v1", "widgets", "Widget", true);
    let f = Fixture::new().await;
    let definition = parse(
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}",
    );
    f.of("eu").api(&DEFINITIONS).create("", &definition).await.unwrap();
    f.apply("{components: [{name: one, type: k8s-objects, properties: {objects: [{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}]}}], policies: [{name: t, type: topology, properties: {clusters: [eu]}}]}").await;
    f.ready().await;
    let widgets = f.of("eu").api(&WIDGETS);
    let uid = widgets.find("default", "w").await.unwrap().unwrap().meta_str("uid").to_owned();
    // It comes back there, too.
    widgets.delete("default", "w", &DeleteParams::default()).await.unwrap();
    f.until("the widget is made again", async |f: &Fixture| {
        let widget = f.of("eu").api(&WIDGETS).find("default", "w").await.unwrap()?;
        (widget.meta_str("uid") != uid).then_some(())
    })
    .await;
    f.delete_app().await;
    f.app_is_gone().await;
    assert_eq!(widgets.find("default", "w").await.unwrap(), None);
}

#[tokio::test]
async fn a_cluster_with_a_wrong_endpoint_holds_up_no_other_and_can_be_let_go() {
    let f = Fixture::new().await;
    f.join("lost", "nowhere", "test").await;
    f.apply(&spec("a", "1", "{name: t, type: topology, properties: {clusters: [eu, lost]}}")).await;
    f.is("eu", "a", r#"{"k":"1"}"#).await;
    f.app_is("what is wrong is told", |app| json::to_string(app).contains("no line to https://nowhere")).await;
    records::rewrite(&f.hub, "lost", None).await.unwrap();
    f.delete_secret("lost").await;
    f.apply(&spec("a", "2", "{name: t, type: topology, properties: {clusters: [eu]}}")).await;
    f.ready().await;
    f.is("eu", "a", r#"{"k":"2"}"#).await;
    f.delete_app().await;
    f.app_is_gone().await;
    assert_eq!((f.map("eu", "a").await, f.trackers().await), (None, 0));
}

#[tokio::test]
async fn overrides_and_replications_differ_by_cluster() {
    let f = Fixture::new().await;
    let definition = r#"
apiVersion: core.oam.dev/v1beta1
kind: ComponentDefinition
metadata: {name: fact, namespace: default}
spec:
  workload: {definition: {apiVersion: v1, kind: ConfigMap}}
  schematic:
    template:
      output:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ .context.name }}{{ with .context.replicaKey }}-{{ . }}{{ end }}"}
        data: {k: "{{ .parameter.k }}", cluster: "{{ .context.cluster }}"}
"#;
    f.hub.api(&kinds::COMPONENT_DEFINITIONS).create("default", &parse(definition)).await.unwrap();
    let note = r#"
apiVersion: core.oam.dev/v1beta1
kind: TraitDefinition
metadata: {name: note, namespace: default}
spec:
  controlPlaneOnly: true
  schematic:
    template:
      outputs: {note: {apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {of: "{{ .context.name }}"}}}
"#;
    f.hub.api(&kinds::TRAIT_DEFINITIONS).create("default", &parse(note)).await.unwrap();
    let policies = [
        "{name: eu, type: topology, properties: {clusters: [eu]}}",
        "{name: us, type: topology, properties: {clusters: [us]}}",
        "{name: big, type: override, properties: {components: [{name: w*b, properties: {k: big}}]}}",
        "{name: only, type: override, properties: {selector: [web]}}",
        "{name: twice, type: replication, properties: {keys: [a, b], selector: [web]}}",
    ];
    let steps = [
        "{name: first, type: deploy, properties: {policies: [big, eu]}}",
        "{name: second, type: deploy, properties: {policies: [only, twice, us]}}",
    ];
    f.apply(&format!(
        "{{components: [{{name: web, type: fact, properties: {{k: small}}}}, {{name: db, type: fact, properties: {{k: small}}, traits: [{{type: note}}]}}], policies: [{}], workflow: {{steps: [{}]}}}}",
        policies.join(", "),
        steps.join(", ")
    ))
    .await;
    f.ready().await;
    f.is("eu", "web", r#"{"cluster":"eu","k":"big"}"#).await;
    f.is("eu", "db", r#"{"cluster":"eu","k":"small"}"#).await;
    for name in ["web-a", "web-b"] {
        f.is("us", name, r#"{"cluster":"us","k":"small"}"#).await;
    }
    assert_eq!((f.map("us", "db").await, f.map("us", "web").await, f.map("", "web").await), (None, None, None));
    // What is of the control plane only stays beside the application.
    f.is("", "note", r#"{"of":"db"}"#).await;
    assert_eq!(f.map("eu", "note").await, None);
}

#[tokio::test]
async fn objects_in_other_clusters_are_watched_and_come_back_and_a_steady_one_is_not_asked() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    let edit = Patch::Merge(parse("{data: {k: '2', theirs: '1'}}"));
    f.of("eu").api(&CONFIG_MAPS).patch("default", "a", &edit, &PatchParams::default()).await.unwrap();
    f.is("eu", "a", r#"{"k":"1","theirs":"1"}"#).await;
    f.of("us").api(&CONFIG_MAPS).delete("default", "a", &DeleteParams::default()).await.unwrap();
    f.is("us", "a", r#"{"k":"1"}"#).await;
    // Each cluster has one watch, and nothing else is asked there however often the application is looked at.
    tokio::time::sleep(Duration::from_millis(300)).await;
    f.line("eu").asked();
    for round in 0..5 {
        let patch = Patch::Merge(parse(&format!("{{metadata: {{labels: {{round: '{round}'}}}}}}")));
        f.hub.api(&kinds::APPLICATIONS).patch("default", "app", &patch, &PatchParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(f.line("eu").asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cluster_that_is_away_delays_only_itself_and_goes_on_when_it_is_back() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    f.line("us").set(State::Down);
    // The broken watch says so, without anybody asking for it.
    let app = f.app_is("us is told to be away", |app| !condition(app, "ClustersReachable").0.is_empty()).await;
    let why = "cluster us is unreachable: connection refused";
    assert_eq!(condition(&app, "ClustersReachable"), ("False".into(), why.into()));
    let app = f.app_is("us is unknown", |app| services(app).len() == 3 && services(app)[2].contains("Unknown")).await;
    assert_eq!(services(&app), [": ".to_owned(), "eu: ".to_owned(), format!("us: Unknown: {why}")]);
    // Elsewhere it is healed and updated as ever, and what is garbage goes.
    f.of("eu").api(&CONFIG_MAPS).delete("default", "a", &DeleteParams::default()).await.unwrap();
    f.is("eu", "a", r#"{"k":"1"}"#).await;
    f.line("us").asked();
    f.apply(&spec("b", "2", EVERYWHERE)).await;
    f.is("eu", "b", r#"{"k":"2"}"#).await;
    f.is("", "b", r#"{"k":"2"}"#).await;
    // All the while nothing but probes went to the one that is away.
    let asked = f.line("us").asked();
    assert!(asked.iter().all(|request| request == "GET /version"), "{asked:?}");
    // Somebody changes something there meanwhile.
    let edit = Patch::Merge(parse("{data: {k: '9'}}"));
    f.of("us").api(&CONFIG_MAPS).patch("default", "a", &edit, &PatchParams::default()).await.unwrap();
    f.line("us").set(State::Up);
    f.is("us", "b", r#"{"k":"2"}"#).await;
    let app = f.ready().await;
    for cluster in ["", "eu", "us"] {
        f.is(cluster, "a", "").await;
    }
    assert_eq!(condition(&app, "ClustersReachable").0, "");
    f.until("one tracker is left", async |f: &Fixture| (f.trackers().await == 1).then_some(())).await;
}

#[tokio::test]
async fn what_changed_while_a_cluster_was_away_is_put_right_when_it_is_back() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    f.line("us").set(State::Down);
    f.app_is("us is told to be away", |app| !condition(app, "ClustersReachable").0.is_empty()).await;
    f.of("us").api(&CONFIG_MAPS).delete("default", "a", &DeleteParams::default()).await.unwrap();
    f.line("us").set(State::Up);
    f.is("us", "a", r#"{"k":"1"}"#).await;
    f.ready().await;
}

#[tokio::test]
async fn a_cluster_that_is_silent_holds_up_no_other() {
    let f = Fixture::new().await;
    f.line("us").set(State::Silent);
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.is("eu", "a", r#"{"k":"1"}"#).await;
    f.is("", "a", r#"{"k":"1"}"#).await;
    // The first request is still waiting for its answer.
    assert_eq!(f.line("us").asked().len(), f.line("us").pending.load(Ordering::SeqCst));
    f.app_is("us is told to be away", |app| json::to_string(app).contains("no answer within 10 s")).await;
    f.line("us").set(State::Up);
    f.is("us", "a", r#"{"k":"1"}"#).await;
    f.ready().await;
}

#[tokio::test]
async fn a_deletion_waits_for_a_cluster_that_is_away() {
    let mut f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    f.line("us").set(State::Down);
    f.delete_app().await;
    f.is("eu", "a", "").await;
    let app = f.app_is("it is told what is waited for", |app| condition(app, "Ready").1.contains("unreachable")).await;
    let told = condition(&app, "Ready").1;
    let expected = "Waiting for ConfigMap a (Cluster: us, Namespace: default) to delete. (At least 1 resources are deleting.) cluster us is unreachable: connection refused;";
    assert!(told.starts_with(expected), "{told}");
    // Another program that takes over waits for the same.
    f.restart().await;
    f.line("us").set(State::Up);
    f.app_is_gone().await;
    assert_eq!((f.map("us", "a").await, f.trackers().await), (None, 0));
}

#[tokio::test]
async fn a_lost_cluster_is_let_go_by_detaching_it() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    // Its Secret alone says nothing about what is there.
    f.delete_secret("us").await;
    f.delete_app().await;
    let told = "cluster us is not known: there is no Secret vela-system/us";
    f.app_is("the cluster is told to be unknown", |app| condition(app, "Ready").1.contains(told)).await;
    let held = records::held(&f.hub, "us").await.unwrap();
    assert_eq!(held.iter().map(|(owner, all)| (owner.as_str(), all.len())).collect::<Vec<_>>(), [("default/app", 1)]);
    assert_eq!(records::rewrite(&f.hub, "us", None).await.unwrap(), 1);
    // Somebody looks at the application again, as detaching does by removing the Secret.
    let patch = Patch::Merge(parse("{metadata: {labels: {look: again}}}"));
    f.hub.api(&kinds::APPLICATIONS).patch("default", "app", &patch, &PatchParams::default()).await.unwrap();
    f.app_is_gone().await;
    assert!(f.map("us", "a").await.is_some());
}

#[tokio::test]
async fn a_renamed_cluster_keeps_what_it_has() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", "{name: t, type: topology, properties: {clusters: [eu, us]}}")).await;
    f.ready().await;
    let before = f.map("us", "a").await.unwrap();
    f.line("us").asked();
    let old = f.hub.api(&SECRETS).get(names::NAMESPACE, "us").await.unwrap();
    let mut new = old.clone();
    let metadata: Map = map! {
        "name" => "america",
        "labels" => old.at(&["metadata", "labels"]).cloned().unwrap_or_default(),
        "annotations" => map! { names::FORMER_NAMES => "us" },
    };
    new.set_at(&["metadata"], metadata.into());
    f.hub.api(&SECRETS).create(names::NAMESPACE, &new).await.unwrap();
    f.app_is("america is where it is", |app| services(app).contains(&"america: ".to_owned())).await;
    records::rewrite(&f.hub, "us", Some("america")).await.unwrap();
    f.delete_secret("us").await;
    // The specification still says us, and means america.
    f.apply(&spec("a", "2", "{name: t, type: topology, properties: {clusters: [eu, us]}}")).await;
    f.is("us", "a", r#"{"k":"2"}"#).await;
    let app = f.ready().await;
    assert_eq!(services(&app), ["america: ", "eu: "]);
    assert_eq!(f.map("us", "a").await.unwrap().meta_str("uid"), before.meta_str("uid"));
    assert!(f.line("us").asked().iter().all(|request| !request.starts_with("DELETE")));
    f.delete_app().await;
    f.app_is_gone().await;
    assert_eq!(f.map("us", "a").await, None);
}

#[tokio::test]
async fn another_credential_makes_another_connection() {
    let f = Fixture::new().await;
    f.apply(&spec("a", "1", EVERYWHERE)).await;
    f.ready().await;
    // An endpoint that nobody answers, then the right one again ("https://us").
    f.edit_secret("us", "{data: {endpoint: aHR0cHM6Ly9ub3doZXJl}}").await;
    let told = "cluster us: no line to https://nowhere";
    f.app_is("what is wrong is told", |app| condition(app, "ClustersReachable").1 == told).await;
    f.of("us").api(&CONFIG_MAPS).delete("default", "a", &DeleteParams::default()).await.unwrap();
    f.edit_secret("us", "{data: {endpoint: aHR0cHM6Ly91cw==}}").await;
    f.is("us", "a", r#"{"k":"1"}"#).await;
    f.ready().await;
}
