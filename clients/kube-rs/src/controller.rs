//! A controller of `kube::runtime`: server-side apply of what it owns, a finalizer, and a server that is killed and comes back.

use crate::{Gizmo, PATIENCE, Server, gizmo};
use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Client, CustomResourceExt, Resource, ResourceExt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const MANAGER: &str = "gizmo-controller";
const FINALIZER: &str = "shop.example.com/goodbye";

/// What the controller says of a gizmo that goes: a config map by this name stays behind.
fn farewell(name: &str) -> String {
    format!("farewell-{name}")
}

async fn apply_map(client: &Client, gizmo: &Gizmo) -> kube::Result<()> {
    let (maps, gizmos): (Api<ConfigMap>, Api<Gizmo>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let name = gizmo.name_any();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [gizmo.controller_owner_ref(&())]},
        "data": {"size": gizmo.spec.size.to_string()},
    });
    maps.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(map)).await?;
    let status = json!({"apiVersion": "shop.example.com/v1", "kind": "Gizmo", "status": {"phase": "Ready"}});
    gizmos.patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(status)).await?;
    Ok(())
}

async fn say_farewell(client: &Client, gizmo: &Gizmo) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let name = farewell(&gizmo.name_any());
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    maps.patch(&name, &PatchParams::apply(MANAGER), &Patch::Apply(map)).await?;
    Ok(())
}

type ReconcileError = kube::runtime::finalizer::Error<kube::Error>;

async fn reconcile(gizmo: Arc<Gizmo>, client: Arc<Client>) -> Result<Action, ReconcileError> {
    let gizmos: Api<Gizmo> = Api::default_namespaced(client.as_ref().clone());
    finalizer(&gizmos, FINALIZER, gizmo, |event| async {
        match event {
            Event::Apply(gizmo) => apply_map(&client, &gizmo).await?,
            Event::Cleanup(gizmo) => say_farewell(&client, &gizmo).await?,
        }
        Ok(Action::await_change())
    })
    .await
}

/// Waits until the closure says so.
async fn soon<F: Future<Output = kube::Result<bool>>>(what: &str, holds: impl Fn() -> F) -> Result<()> {
    let wait = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    timeout(PATIENCE, wait).await.with_context(|| format!("not so: {what}"))?
}

/// The controller does its work, before the server is killed and after.
pub async fn works_on_when_the_server_was_killed() -> Result<()> {
    let (mut server, client) = Server::durable().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Gizmo::crd()).await?;
    let (maps, gizmos): (Api<ConfigMap>, Api<Gizmo>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let controller = Controller::new(gizmos.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(client.clone()))
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);

    let size_is = |name: &'static str, size: &'static str| {
        let maps = maps.clone();
        move || {
            let maps = maps.clone();
            async move {
                let map = maps.get_opt(name).await?;
                Ok(map.and_then(|m| m.data).is_some_and(|data| data.get("size").is_some_and(|s| s == size)))
            }
        }
    };
    gizmos.create(&PostParams::default(), &gizmo("one", 1)).await?;
    soon("a gizmo has its map", size_is("one", "1")).await?;
    soon("its status says so", || async {
        Ok(gizmos.get("one").await?.status.is_some_and(|s| s.phase.as_deref() == Some("Ready")))
    })
    .await?;
    gizmos.patch("one", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 2}}))).await?;
    soon("the map follows", size_is("one", "2")).await?;
    maps.delete("one", &DeleteParams::default()).await?;
    soon("the map comes back", size_is("one", "2")).await?;

    server.kill().await?;
    server.start_again().await?;
    soon("the server is back", || async { Ok(gizmos.get_opt("one").await.is_ok_and(|g| g.is_some())) }).await?;
    gizmos.create(&PostParams::default(), &gizmo("two", 5)).await?;
    soon("a later gizmo has its map", size_is("two", "5")).await?;

    gizmos.delete("two", &DeleteParams::default()).await?;
    let is_gone = |name: &'static str| {
        let (gizmos, maps) = (gizmos.clone(), maps.clone());
        move || {
            let (gizmos, maps) = (gizmos.clone(), maps.clone());
            async move { Ok(gizmos.get_opt(name).await?.is_none() && maps.get_opt(name).await?.is_none()) }
        }
    };
    soon("a gizmo goes, and its map with it", is_gone("two")).await?;
    soon("the finalizer ran", || async { Ok(maps.get_opt(&farewell("two")).await?.is_some()) }).await?;
    gizmos.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    soon("all gizmos go", is_gone("one")).await?;
    controller.abort();
    Ok(())
}
