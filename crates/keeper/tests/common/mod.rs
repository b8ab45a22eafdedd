//! A server in process, and what is read and written beside the keeper.

#![allow(clippy::unwrap_used, dead_code)]

use std::sync::Arc;

use apiserver::{Options, Server};
use client::{BoxFuture, Client, Error, Patch, PatchParams};
use controllers::InProcess;
use keeper::{Cluster, Desired, Extent, Family, Item, Journal, Keeper, Naming, Outcome, Parent, Policy, Run};
use object::{Value, json};
use parking_lot::Mutex;

pub struct Fixture {
    pub client: Client,
    pub keeper: Keeper,
}

impl Fixture {
    pub async fn new() -> Self {
        let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
        let server = Server::new(store, Options::default()).await.unwrap();
        let client = Client::new(Arc::new(InProcess::controller_manager(server)));
        Fixture { client, keeper: Keeper::new(keeper::Options::default()) }
    }

    pub async fn run(&self, parent: &Parent, recorded: &Recorded, desired: Vec<Desired>) -> Outcome {
        run(&self.keeper, &self.client, parent, recorded, desired, Extent::Whole).await.unwrap()
    }

    /// A ConfigMap of the namespace `default`, as `data` (JSON) and labels; nothing if there is none.
    pub async fn live(&self, name: &str) -> Option<Value> {
        self.client.api(&client::resources::CONFIG_MAPS).find("default", name).await.unwrap()
    }

    /// The data of a ConfigMap, as JSON; empty if there is none.
    pub async fn data(&self, name: &str) -> String {
        let live = self.live(name).await;
        live.map_or_else(String::new, |live| live.get("data").map_or_else(|| "{}".into(), json::to_string))
    }

    /// Makes a ConfigMap as somebody else does.
    pub async fn foreign(&self, name: &str, data: &str) {
        let object = config_map(name, data);
        self.client
            .with_user_agent("somebody")
            .api(&client::resources::CONFIG_MAPS)
            .create("default", &object)
            .await
            .unwrap();
    }

    /// Changes a ConfigMap as somebody else does.
    pub async fn edit(&self, name: &str, patch: &str) {
        let patch = Patch::Merge(json::parse(patch.as_bytes()).unwrap());
        let params = PatchParams { field_manager: "editor".into(), ..PatchParams::default() };
        let maps = self.client.api(&client::resources::CONFIG_MAPS);
        maps.patch("default", name, &patch, &params).await.unwrap();
    }

    /// Deletes a ConfigMap as somebody else does.
    pub async fn delete(&self, name: &str) {
        let maps = self.client.api(&client::resources::CONFIG_MAPS);
        maps.delete("default", name, &client::DeleteParams::default()).await.unwrap();
    }
}

/// An inventory as a parent's status keeps it. What is recorded is read back from its form in a status.
#[derive(Default)]
pub struct Recorded {
    pub status: Mutex<Value>,
    pub records: Mutex<usize>,
}

impl Recorded {
    pub fn items(&self) -> Vec<Item> {
        Item::read_all(Some(&self.status.lock()))
    }

    pub fn keep(&self, items: &[Item]) {
        *self.records.lock() += 1;
        *self.status.lock() = Value::Array(items.iter().map(Item::to_value).collect());
    }

    /// The one item's `created`, `ready` and message.
    pub fn state(&self, name: &str) -> (bool, Option<bool>, String) {
        let items = self.items();
        let item = items.iter().find(|item| item.identity.name == name).unwrap();
        (item.state.created, item.state.ready, item.state.message.clone())
    }
}

impl Journal for Recorded {
    fn record<'a>(&'a self, items: &'a [Item]) -> BoxFuture<'a, Result<(), Error>> {
        self.keep(items);
        Box::pin(async { Ok(()) })
    }
}

/// One run, and the record of its outcome.
pub async fn run(
    keeper: &Keeper,
    cluster: &dyn Cluster,
    parent: &Parent,
    recorded: &Recorded,
    desired: Vec<Desired>,
    extent: Extent,
) -> Result<Outcome, Error> {
    let run = Run { parent, inventory: recorded.items(), desired, extent, verify: false };
    let outcome = keeper.reconcile(cluster, run, recorded).await?;
    if extent != Extent::DryRun {
        recorded.keep(&outcome.items);
    }
    Ok(outcome)
}

pub fn parent(name: &str) -> Parent {
    Parent {
        key: name.into(),
        family: Family::Replications,
        naming: Naming::Replication { namespace: "Cluster".into(), name: name.into() },
        owner_reference: None,
        service_account: None,
        prune_without_policy: true,
    }
}

pub fn permit(uid: &str) -> Parent {
    Parent {
        key: uid.into(),
        family: Family::ResourcePermit,
        naming: Naming::permit(uid, "default", "p"),
        service_account: Some("system:serviceaccount:default:runner".into()),
        ..parent(uid)
    }
}

pub fn config_map(name: &str, data: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}},"data":{data}}}"#
    );
    json::parse(text.as_bytes()).unwrap()
}

/// A ConfigMap of the namespace `default` that is declared.
pub fn map(name: &str, data: &str, policy: Policy) -> Desired {
    Desired {
        object: config_map(name, data),
        tenant: "t".into(),
        origin: "0/raw-0".into(),
        policy,
        condition: None,
        rendered_from: None,
    }
}
