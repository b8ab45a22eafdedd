//! A server in process with the manager, and what is read and written beside it.

#![allow(clippy::unwrap_used, dead_code)]

use apiserver::Server;
use apiserver::admission::{Admission, Attributes, Step};
use apiserver::answer::Failure;
use apiserver::auth::UserInfo;
use client::{Client, DeleteParams, Patch, PatchParams, Resource};
use controllers::InProcess;
use object::{Value, json, yaml};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often something is looked at before it counts as never to come: for a minute, for what takes milliseconds.
pub const PATIENCE: usize = 2400;

/// The annotation of objects whose writes the server holds back, while it holds anything back.
pub const HELD: &str = "test/held";

pub struct Fixture {
    pub client: Client,
    manager: JoinHandle<()>,
    gate: Arc<Gate>,
}

/// Whether writes are held back, and the names of the objects for which some are.
struct Gate {
    is_open: watch::Sender<bool>,
    held: Mutex<BTreeSet<String>>,
}

/// The manager's part in admission, as the program wires it; and a server that is slow.
struct Managed(manager::Admission, Arc<Gate>);

fn request<'a>(a: &Attributes<'a>) -> manager::admission::Request<'a> {
    manager::admission::Request {
        operation: a.operation,
        group: &a.resource.group,
        resource: &a.resource.plural,
        kind: &a.resource.kind,
        subresource: a.subresource,
        namespace: a.namespace,
        name: a.name,
        user: &a.user.name,
        groups: &a.user.groups,
        old: a.old,
        now: a.now,
    }
}

fn refused(a: &Attributes<'_>, why: String) -> Failure {
    object::Status::forbidden(a.resource.qualified(), a.name, &why).into()
}

impl Admission for Managed {
    fn mutate<'a>(
        &'a self,
        _: &'a Server,
        a: Attributes<'a>,
        object: Option<&'a mut Value>,
        _: &'a mut Vec<String>,
    ) -> Step<'a, bool> {
        let changed = object.map_or(Ok(false), |object| self.0.mutate(&request(&a), object));
        Box::pin(std::future::ready(changed.map_err(|why| refused(&a, why))))
    }

    fn validate<'a>(
        &'a self,
        _: &'a Server,
        a: Attributes<'a>,
        object: Option<&'a Value>,
        _: &'a mut Vec<String>,
    ) -> Step<'a, ()> {
        let verdict = self.0.validate(&request(&a), object).map_err(|why| refused(&a, why));
        let (gate, name) = (&self.1, object.filter(|o| o.annotation(HELD).is_some()).map(Value::name));
        Box::pin(async move {
            if let Some(name) = name.filter(|_| !*gate.is_open.borrow()) {
                gate.held.lock().unwrap().insert(name.to_owned());
                let _ = gate.is_open.subscribe().wait_for(|is_open| *is_open).await;
            }
            verdict
        })
    }

    fn concerns(&self, _: &apiserver::catalogue::Resource) -> bool {
        true
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.manager.abort();
    }
}

impl Fixture {
    /// A server, a tenant `solar` with the namespaces `solar-a` and `solar-b`, and a tenant `wind` with `wind-a`.
    pub async fn new() -> Self {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let authorizer = apiserver::rbac::Rbac::open(store.clone()).await.unwrap();
        let admission = manager::Admission::default();
        let gate = Arc::new(Gate { is_open: watch::Sender::new(true), held: Mutex::default() });
        let managed: Arc<dyn apiserver::admission::Admission> = Arc::new(Managed(admission.clone(), gate.clone()));
        let options = apiserver::Options { authorizer, admission: managed, ..apiserver::Options::default() };
        let server = apiserver::Server::new(store, options).await.unwrap();
        let client = Client::new(Arc::new(InProcess::controller_manager(server.clone())));
        manager::kinds::install(&client).await.unwrap();
        let options = manager::Options { admission, ..manager::Options::default() };
        let user =
            UserInfo { name: options.user.clone(), groups: vec!["system:masters".into()], ..UserInfo::default() };
        let own = Client::new(Arc::new(InProcess::new(server, user)));
        let manager = tokio::spawn(async move { manager::run(own, options).await.unwrap() });
        let fixture = Fixture { client, manager, gate };
        for (tenant, namespaces) in [("solar", &["solar-a", "solar-b"][..]), ("wind", &["wind-a"])] {
            fixture.apply(&format!("{{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {{name: {tenant}, labels: {{energy: renewable}}}}, spec: {{owners: [{{kind: User, name: {tenant}-owner}}]}}}}")).await;
            for namespace in namespaces {
                fixture.namespace(namespace, tenant).await;
            }
        }
        let is_counted = |t: &Value| t.at(&["status", "size"]) == Some(&Value::Int(2));
        fixture.until("capsule.clastix.io/v1beta2/Tenant", "", "solar", |t| t.is_some_and(is_counted)).await;
        fixture
    }

    /// From now on writes of objects with the annotation do not come to an end.
    pub fn hold(&self) {
        self.gate.is_open.send_replace(false);
    }

    /// They do again.
    pub fn release(&self) {
        self.gate.is_open.send_replace(true);
    }

    /// The parents (`slow-3`) for whose objects (`slow-3-17`, `p-slow-3`) writes are, or were, held back.
    pub fn held(&self) -> BTreeSet<String> {
        let parent = |name: &String| match name.strip_prefix("p-") {
            Some(_) => name.clone(),
            None => name.rsplit_once('-').map_or(name.as_str(), |(parent, _)| parent).to_owned(),
        };
        self.gate.held.lock().unwrap().iter().map(parent).collect()
    }

    /// Waits until writes for this many parents are held back.
    pub async fn until_held(&self, parents: usize) {
        for _ in 0..PATIENCE {
            if self.held().len() >= parents {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("held back is only {:?}", self.held());
    }

    /// Somebody with every right, but no administrator.
    pub async fn person(&self, name: &str) -> Client {
        self.apply(&format!("{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {name}}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}, subjects: [{{kind: User, name: {name}}}]}}")).await;
        self.client.acting_as(name, &["system:authenticated"])
    }

    pub async fn namespace(&self, name: &str, tenant: &str) {
        self.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{capsule.clastix.io/tenant: {tenant}, name: {name}}}}}}}")).await;
    }

    pub async fn resource(&self, object: &Value) -> Resource {
        let text = |key: &str| object.str_at(&[key]).unwrap();
        self.client.resource_of(text("apiVersion"), text("kind")).await.unwrap().unwrap()
    }

    /// Applies objects as somebody does.
    pub async fn apply(&self, text: &str) -> Value {
        self.try_apply(text).await.unwrap()
    }

    pub async fn try_apply(&self, text: &str) -> client::Result<Value> {
        self.apply_as(&self.client, text).await
    }

    pub async fn apply_as(&self, who: &Client, text: &str) -> client::Result<Value> {
        let mut last = Value::Null;
        for (object, _) in yaml::parse_all(text.as_bytes()).unwrap() {
            let resource = self.resource(&object).await;
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            let apply = Patch::Apply { object, manager: "somebody".into(), force: true };
            last = who.api(&resource).patch(&namespace, &name, &apply, &PatchParams::default()).await?;
        }
        Ok(last)
    }

    pub async fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
        let resource = self.client.resource_of(api_version, kind).await.unwrap().unwrap();
        self.client.api(&resource).find(namespace, name).await.unwrap()
    }

    pub async fn delete(&self, kind: &str, namespace: &str, name: &str) {
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
        let resource = self.client.resource_of(api_version, kind).await.unwrap().unwrap();
        self.client.api(&resource).delete(namespace, name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn merge(&self, kind: &str, namespace: &str, name: &str, patch: &str) {
        let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
        let resource = self.client.resource_of(api_version, kind).await.unwrap().unwrap();
        let patch = Patch::Merge(yaml::parse(patch.as_bytes()).unwrap());
        let params = PatchParams { field_manager: "editor".into(), ..PatchParams::default() };
        self.client.api(&resource).patch(namespace, name, &patch, &params).await.unwrap();
    }

    /// Waits until what is said of an object is so. `None` is an object that is not there.
    pub async fn until(&self, kind: &str, namespace: &str, name: &str, what: impl Fn(Option<&Value>) -> bool) -> Value {
        for _ in 0..PATIENCE {
            let object = self.find(kind, namespace, name).await;
            if what(object.as_ref()) {
                return object.unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let object = self.find(kind, namespace, name).await;
        panic!("{kind} {namespace}/{name} is {}", object.map_or("not there".into(), |o| json::to_string(&o)));
    }

    pub async fn there(&self, namespace: &str, name: &str) -> Value {
        self.until("ConfigMap", namespace, name, |o| o.is_some()).await
    }

    pub async fn gone(&self, namespace: &str, name: &str) {
        self.until("ConfigMap", namespace, name, |o| o.is_none()).await;
    }

    /// Waits until a parent says that it is ready, or not, with this message.
    pub async fn ready(&self, kind: &str, namespace: &str, name: &str, status: &str, message: &str) -> Value {
        let is = |o: &Value| {
            let generation = o.at(&["metadata", "generation"]);
            let ready = manager::status::condition(o, "Ready");
            generation == o.at(&["status", "observedGeneration"])
                && ready.is_some_and(|c| {
                    c.str_at(&["status"]) == Some(status) && c.str_at(&["message"]).unwrap().contains(message)
                })
        };
        self.until(kind, namespace, name, |o| o.is_some_and(is)).await
    }
}

pub const TR: &str = "capsule.clastix.io/v1beta2/TenantResource";
pub const GTR: &str = "capsule.clastix.io/v1beta2/GlobalTenantResource";

pub fn tr(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: capsule.clastix.io/v1beta2\nkind: TenantResource\nmetadata: {{name: {name}, namespace: solar-a}}\nspec:\n{}",
        indent(spec)
    )
}

pub fn gtr(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: capsule.clastix.io/v1beta2\nkind: GlobalTenantResource\nmetadata: {{name: {name}}}\nspec:\n{}",
        indent(spec)
    )
}

fn indent(text: &str) -> String {
    text.trim_matches('\n').lines().map(|l| format!("  {l}\n")).collect()
}

pub fn data<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.str_at(&["data", key])
}
