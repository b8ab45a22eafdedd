//! A server with a controller of Applications, and what tests do with it.

use std::sync::Arc;
use std::time::Duration;

use apiserver::Server;
use apiserver::rbac::Rbac;
use bytes::Bytes;
use client::resources::{CONFIG_MAPS, NAMESPACES};
use client::{BoxFuture, Client, DeleteParams, Error, ListParams, Patch, PatchParams, Resource, Response, Transport};
use controllers::InProcess;
use manager::application::{Controller, Options, kinds};
use object::{Value, json};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

pub struct Fixture {
    pub client: Client,
    pub running: JoinHandle<()>,
    pub namespace: String,
    server: Arc<Server>,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Notes what the controller asks of the server.
pub struct Noting {
    inner: InProcess,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Transport for Noting {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        let agent = request.headers().get("user-agent").and_then(|agent| agent.to_str().ok());
        if agent.is_some_and(|agent| agent.starts_with("kubevela")) && !request.uri().to_string().contains("watch=") {
            self.sent.lock().push(format!("{} {}", request.method(), request.uri()));
        }
        self.inner.send(request)
    }
}

impl Fixture {
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let server = Server::new(store, apiserver::Options::default()).await.unwrap();
        Self::on(server, options).await
    }

    /// On a server that asks whether users may do what they do.
    pub async fn with_roles(options: Options) -> Self {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let authorizer = Rbac::open(store.clone()).await.unwrap();
        let serving = apiserver::Options { authorizer, ..apiserver::Options::default() };
        Self::on(Server::new(store, serving).await.unwrap(), options).await
    }

    async fn on(server: Arc<Server>, options: Options) -> Self {
        let sent = Arc::new(Mutex::default());
        let inner = InProcess::controller_manager(server.clone());
        let client = Client::new(Arc::new(Noting { inner, sent: Arc::clone(&sent) }));
        kinds::install(&client).await.unwrap();
        let running = Self::run(&client, options);
        Fixture { client, running, namespace: "default".to_owned(), server, sent }
    }

    pub fn start(client: &Client) -> JoinHandle<()> {
        Self::run(client, Options::default())
    }

    pub fn run(client: &Client, options: Options) -> JoinHandle<()> {
        tokio::spawn(Controller::new(client, options).run())
    }

    /// What the controller asked, since this was asked last; without events and watches.
    pub fn sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.sent.lock())
    }

    /// Waits until the controller asks nothing for a while.
    pub async fn quiet(&self) {
        self.until("the controller is quiet", async |f: &Fixture| {
            f.sent();
            tokio::time::sleep(Duration::from_millis(150)).await;
            f.sent().is_empty().then_some(())
        })
        .await;
    }

    /// The same server and controller, seen from a namespace of its own.
    pub async fn place(&self, namespace: &str) -> Fixture {
        let object = Self::parse(&format!("{{metadata: {{name: {namespace}}}}}"));
        self.client.api(&NAMESPACES).create("", &object).await.unwrap();
        let running = tokio::spawn(async {});
        let (client, server) = (self.client.clone(), self.server.clone());
        Fixture { client, running, namespace: namespace.to_owned(), server, sent: self.sent.clone() }
    }

    /// Another way to the server, and what controllers ask by it.
    pub fn noting(&self) -> (Noting, Arc<Mutex<Vec<String>>>) {
        let sent: Arc<Mutex<Vec<String>>> = Arc::default();
        (Noting { inner: InProcess::controller_manager(self.server.clone()), sent: sent.clone() }, sent)
    }

    pub fn parse(text: &str) -> Value {
        object::yaml::parse(text.as_bytes()).unwrap()
    }

    /// Declares an application by its `spec` and annotations, as a user does.
    pub async fn apply(&self, name: &str, annotations: &str, spec: &str) {
        let namespace = &self.namespace;
        let text = format!(
            "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {{name: {name}, namespace: {namespace}, annotations: {annotations}}}\nspec: {spec}\n"
        );
        let patch = Patch::Apply { object: Self::parse(&text), manager: "user".into(), force: true };
        let api = self.client.api(&kinds::APPLICATIONS);
        api.patch(namespace, name, &patch, &PatchParams::default()).await.unwrap();
    }

    pub async fn get(&self, resource: &Resource, name: &str) -> Option<Value> {
        let namespace = if resource.namespaced { &self.namespace } else { "" };
        self.client.api(resource).find(namespace, name).await.unwrap()
    }

    pub async fn until<T>(&self, what: &str, mut check: impl AsyncFnMut(&Fixture) -> Option<T>) -> T {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_secs(12) {
            if let Some(value) = check(self).await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let all = self.client.api(&kinds::APPLICATIONS).list(&self.namespace, &ListParams::default()).await.unwrap();
        panic!("never: {what}; {}", json::to_string(&Value::Array(all.items)));
    }

    /// Waits until the application's generation is seen and its phase is this.
    pub async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(&format!("{name} is {phase}"), async |f: &Fixture| {
            let app = f.get(&kinds::APPLICATIONS, name).await?;
            let seen = app.at(&["status", "observedGeneration"]) == app.at(&["metadata", "generation"]);
            (seen && app.str_at(&["status", "status"]) == Some(phase)).then_some(app)
        })
        .await
    }

    pub async fn ready(&self, name: &str) -> Value {
        self.until(&format!("{name} is ready"), async |f: &Fixture| {
            let app = f.get(&kinds::APPLICATIONS, name).await?;
            let seen = app.at(&["status", "observedGeneration"]) == app.at(&["metadata", "generation"]);
            (seen && condition(&app, "Ready").0 == "True").then_some(app)
        })
        .await
    }

    pub async fn gone(&self, resource: &Resource, name: &str) {
        self.until(&format!("{name} is gone"), async |f: &Fixture| f.get(resource, name).await.is_none().then_some(()))
            .await;
    }

    pub async fn data(&self, name: &str) -> String {
        let map = self.get(&CONFIG_MAPS, name).await;
        map.map_or_else(String::new, |map| map.get("data").map_or_else(|| "{}".into(), json::to_string))
    }

    pub async fn data_is(&self, name: &str, data: &str) {
        self.until(&format!("{name} is {data}"), async |f: &Fixture| (f.data(name).await == data).then_some(())).await;
    }

    pub async fn edit(&self, resource: &Resource, name: &str, patch: &str) {
        self.edit_part(resource, name, patch, "").await;
    }

    pub async fn edit_part(&self, resource: &Resource, name: &str, patch: &str, part: &str) {
        let namespace = if resource.namespaced { &self.namespace } else { "" };
        let patch = Patch::Merge(Self::parse(patch));
        let params = if part == "status" { PatchParams::status() } else { PatchParams::default() };
        let params = PatchParams { field_manager: "editor".into(), ..params };
        self.client.api(resource).patch(namespace, name, &patch, &params).await.unwrap();
    }

    pub async fn delete(&self, resource: &Resource, name: &str) {
        let namespace = if resource.namespaced { &self.namespace } else { "" };
        self.client.api(resource).delete(namespace, name, &DeleteParams::default()).await.unwrap();
    }

    /// The names of the trackers of the applications of this namespace, sorted.
    pub async fn trackers(&self) -> Vec<String> {
        let label_selector = format!("app.oam.dev/namespace={}", self.namespace);
        let params = ListParams { label_selector, ..ListParams::default() };
        let all = self.client.api(&kinds::TRACKERS).list("", &params).await.unwrap();
        let mut names: Vec<String> = all.items.iter().map(|tracker| tracker.name().to_owned()).collect();
        names.sort();
        names
    }
}

/// Status and message of a condition.
pub fn condition(app: &Value, kind: &str) -> (String, String) {
    let all = app.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let found = all.iter().find(|condition| condition.str_at(&["type"]) == Some(kind));
    let text = |key| found.and_then(|found| found.str_at(&[key])).unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

/// A component of one ConfigMap.
pub fn component(name: &str, map: &str, data: &str) -> String {
    format!(
        "{{name: {name}, type: k8s-objects, properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {map}}}, data: {data}}}]}}}}"
    )
}

/// A specification of components.
pub fn spec(components: &[String]) -> String {
    format!("{{components: [{}]}}", components.join(", "))
}

/// A specification of components and more.
pub fn with(components: &[String], rest: &str) -> String {
    format!("{{components: [{}], {rest}}}", components.join(", "))
}
