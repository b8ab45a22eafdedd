//! kube-rs against a server of its own: typed and dynamic objects, watches, a reflector, server-side apply, finalizers.
//! Prints a line for each check and ends with 1 if one failed.

mod controller;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event as FinalizerEvent, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Client, Config, CustomResource, CustomResourceExt, Resource, ResourceExt, discovery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long any one thing may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Gizmo", namespaced, derive = "Default")]
#[kube(status = "GizmoStatus", shortname = "gz")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
#[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
#[serde(rename_all = "camelCase")]
struct GizmoSpec {
    #[schemars(range(min = 0, max = 100))]
    size: i64,
    #[serde(default)]
    replicas: i32,
    note: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct GizmoStatus {
    phase: Option<String>,
    replicas: Option<i32>,
}

/// A server, which ends with this.
struct Server {
    process: Child,
    folder: PathBuf,
}

impl Server {
    /// A server in memory.
    async fn start() -> Result<(Server, Client)> {
        Server::with("memory", &["--in-memory"]).await
    }

    /// A server that keeps its data on disk.
    async fn durable() -> Result<(Server, Client)> {
        Server::with("durable", &[]).await
    }

    async fn with(name: &str, flags: &[&str]) -> Result<(Server, Client)> {
        let folder = std::env::temp_dir().join(format!("kube-rs-client-{}-{name}", std::process::id()));
        let process = run(&folder, "127.0.0.1:0", flags).await?;
        let server = Server { process, folder };
        let config = Config::from_custom_kubeconfig(server.kubeconfig()?, &KubeConfigOptions::default()).await?;
        Ok((server, Client::try_from(config)?))
    }

    fn kubeconfig(&self) -> Result<Kubeconfig> {
        Ok(Kubeconfig::read_from(self.folder.join("admin.kubeconfig"))?)
    }

    /// Kills the server, without a warning.
    async fn kill(&mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Starts it again, at the same address.
    async fn start_again(&mut self) -> Result<()> {
        let clusters = self.kubeconfig()?.clusters;
        let address = clusters.first().and_then(|c| c.cluster.as_ref()?.server.clone()).context("no address")?;
        self.process = run(&self.folder, address.trim_start_matches("https://"), &[]).await?;
        Ok(())
    }
}

/// Starts a server and waits until it is ready.
async fn run(folder: &Path, address: &str, flags: &[&str]) -> Result<Child> {
    let program = std::env::var("STANCHION").context("STANCHION must name the server")?;
    let mut process = Command::new(program)
        .args(["server", "--listen", address, "--data-dir"])
        .arg(folder)
        .args(flags)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = process.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("export KUBECONFIG=") {
            return Ok(process);
        }
    }
    bail!("the server did not start")
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing of worth is lost if it stays.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The reason of a refusal.
fn reason<T>(answer: kube::Result<T>) -> Result<(u16, String, String)> {
    match answer {
        Err(kube::Error::Api(status)) => Ok((status.code, status.reason.clone(), status.message.clone())),
        Err(other) => Err(other.into()),
        Ok(_) => bail!("it went through"),
    }
}

fn gizmo(name: &str, size: i64) -> Gizmo {
    Gizmo::new(name, GizmoSpec { size, ..GizmoSpec::default() })
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("a".to_owned(), "1".to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn the_version_is_1_33(client: Client) -> Result<()> {
    let version = client.apiserver_version().await?;
    ensure!((version.major.as_str(), version.minor.as_str()) == ("1", "33"), "{version:?}");
    Ok(())
}

async fn typed_objects(client: Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &config_map("typed")).await?;
    ensure!(made.uid().is_some() && made.resource_version().is_some());
    let mut changed = made.clone();
    changed.data.get_or_insert_default().insert("b".to_owned(), "2".to_owned());
    let changed = maps.replace("typed", &PostParams::default(), &changed).await?;
    ensure!(changed.data.as_ref().is_some_and(|d| d.len() == 2));
    let (code, why, _) = reason(maps.replace("typed", &PostParams::default(), &made).await)?;
    ensure!((code, why.as_str()) == (409, "Conflict"));
    let patch = Patch::Merge(json!({"metadata": {"labels": {"l": "x"}}}));
    maps.patch("typed", &PatchParams::default(), &patch).await?;
    ensure!(maps.list(&ListParams::default().labels("l=x")).await?.items.len() == 1);
    ensure!(maps.list_metadata(&ListParams::default().labels("l=x")).await?.items.len() == 1);
    ensure!(maps.get_opt("none").await?.is_none());
    maps.delete("typed", &DeleteParams::default()).await?;
    ensure!(maps.get_opt("typed").await?.is_none());

    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let body = serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}))?;
    let secret = secrets.create(&PostParams::default(), &body).await?;
    ensure!(secret.data.is_some_and(|d| d.get("k").is_some_and(|v| v.0 == b"v")));

    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let body = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.000006Z"}});
    let lease = leases.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
    ensure!(lease.spec.as_ref().is_some_and(|s| s.holder_identity.as_deref() == Some("me")));

    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let body = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}}}});
    let made = deployments.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
    ensure!(made.spec.as_ref().is_some_and(|s| s.replicas == Some(1)));
    let scale = deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}})))
        .await?;
    ensure!(scale.spec.is_some_and(|s| s.replicas == Some(4)));
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    let patched = deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    let containers = patched.spec.and_then(|s| s.template.spec).map(|s| s.containers).unwrap_or_default();
    ensure!(containers.len() == 1 && containers.iter().all(|c| c.ports.as_ref().is_some_and(|p| p.len() == 1)));
    Ok(())
}

async fn a_derived_definition_serves_at_once(client: Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("kube-rs").force();
    definitions.patch("gizmos.shop.example.com", &apply, &Patch::Apply(Gizmo::crd())).await?;
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let made = gizmos.create(&PostParams::default(), &gizmo("first", 3)).await?;
    ensure!(made.spec.size == 3);
    timeout(PATIENCE, await_condition(definitions, "gizmos.shop.example.com", conditions::is_crd_established()))
        .await??;
    let (code, why, text) = reason(gizmos.create(&PostParams::default(), &gizmo("huge", 101)).await)?;
    ensure!((code, why.as_str()) == (422, "Invalid") && text.contains("spec.size"), "{text}");
    let status = Patch::Merge(json!({"status": {"phase": "Ready"}, "spec": {"size": 50}}));
    let done = gizmos.patch_status("first", &PatchParams::default(), &status).await?;
    ensure!(done.spec.size == 3 && done.status.is_some_and(|s| s.phase.as_deref() == Some("Ready")));
    let scale =
        gizmos.patch_scale("first", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 2}}))).await?;
    ensure!(scale.spec.is_some_and(|s| s.replicas == Some(2)));
    ensure!(gizmos.get("first").await?.spec.replicas == 2);
    Ok(())
}

async fn dynamic_objects(client: Client) -> Result<()> {
    let kind = GroupVersionKind::gvk("shop.example.com", "v1", "Gizmo");
    let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await?;
    ensure!(resource.plural == "gizmos" && capabilities.supports_operation("watch"));
    let everything = discovery::Discovery::new(client.clone()).run_aggregated().await?;
    ensure!(everything.resolve_gvk(&kind).is_some());
    let legacy = discovery::Discovery::new(client.clone()).run().await?;
    ensure!(legacy.resolve_gvk(&kind).is_some());
    let gizmos: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let object = DynamicObject::new("dynamic", &resource).data(json!({"spec": {"size": 8}}));
    let made = gizmos.create(&PostParams::default(), &object).await?;
    ensure!(made.data.pointer("/spec/replicas") == Some(&json!(0)), "{:?}", made.data);
    gizmos.delete("dynamic", &DeleteParams::default()).await?;
    Ok(())
}

async fn server_side_apply(client: Client) -> Result<()> {
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let body = |size: i64| json!({"apiVersion": "shop.example.com/v1", "kind": "Gizmo", "metadata": {"name": "applied"}, "spec": {"size": size}});
    let made = gizmos.patch("applied", &PatchParams::apply("one"), &Patch::Apply(body(1))).await?;
    let again = gizmos.patch("applied", &PatchParams::apply("one"), &Patch::Apply(body(1))).await?;
    ensure!(made.resource_version() == again.resource_version());
    let (code, why, text) = reason(gizmos.patch("applied", &PatchParams::apply("two"), &Patch::Apply(body(2))).await)?;
    ensure!((code, why.as_str()) == (409, "Conflict") && text.contains("conflict with \"one\": .spec.size"), "{text}");
    let forced = gizmos.patch("applied", &PatchParams::apply("two").force(), &Patch::Apply(body(2))).await?;
    ensure!(forced.spec.size == 2);
    let managers: Vec<&str> = forced.managed_fields().iter().filter_map(|m| m.manager.as_deref()).collect();
    ensure!(managers.contains(&"two"), "{managers:?}");
    Ok(())
}

async fn a_plain_watch(client: Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let start = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let params = WatchParams::default().fields("metadata.name=watched").timeout(10);
    let mut events = maps.watch(&params, &start).await?.boxed();
    maps.create(&PostParams::default(), &config_map("watched")).await?;
    maps.patch("watched", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "2"}}))).await?;
    maps.delete("watched", &DeleteParams::default()).await?;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match timeout(PATIENCE, events.try_next()).await?? {
            Some(WatchEvent::Added(_)) => seen.push("added"),
            Some(WatchEvent::Modified(_)) => seen.push("modified"),
            Some(WatchEvent::Deleted(_)) => seen.push("deleted"),
            Some(WatchEvent::Bookmark(_)) => {}
            other => bail!("{other:?}"),
        }
    }
    ensure!(seen == ["added", "modified", "deleted"], "{seen:?}");
    Ok(())
}

/// Follows gizmos with a watcher until one comes and goes.
async fn follow(client: Client, config: watcher::Config, name: &str) -> Result<()> {
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let mut events = watcher(gizmos.clone(), config).boxed();
    loop {
        if let Some(watcher::Event::InitDone) = timeout(PATIENCE, events.try_next()).await?? {
            break;
        }
    }
    gizmos.create(&PostParams::default(), &gizmo(name, 1)).await?;
    gizmos.delete(name, &DeleteParams::default()).await?;
    let mut applied = false;
    loop {
        match timeout(PATIENCE, events.try_next()).await?? {
            Some(watcher::Event::Apply(g)) if g.name_any() == name => applied = true,
            Some(watcher::Event::Delete(g)) if g.name_any() == name => break,
            Some(_) => {}
            None => bail!("the watch ended"),
        }
    }
    ensure!(applied, "it went without coming");
    Ok(())
}

async fn a_watcher(client: Client) -> Result<()> {
    follow(client, watcher::Config::default(), "followed").await
}

async fn a_watcher_in_pages(client: Client) -> Result<()> {
    follow(client, watcher::Config::default().page_size(1), "paged").await
}

/// Kubernetes 1.33 has the gate WatchList off.
async fn lists_are_not_streamed(client: Client) -> Result<()> {
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let mut events = watcher(gizmos, watcher::Config::default().streaming_lists()).boxed();
    loop {
        match timeout(PATIENCE, events.try_next()).await? {
            Ok(Some(_)) => {}
            Ok(None) => bail!("the watch ended"),
            Err(error) => {
                ensure!(error.to_string().contains("sendInitialEvents is forbidden"), "{error}");
                return Ok(());
            }
        }
    }
}

async fn a_reflector(client: Client) -> Result<()> {
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let (reader, writer) = reflector::store();
    let stream = reflector(writer, watcher(gizmos.clone(), watcher::Config::default())).applied_objects();
    let task = tokio::spawn(stream.for_each(|_| async {}));
    timeout(PATIENCE, reader.wait_until_ready()).await??;
    let listed = gizmos.list(&ListParams::default()).await?.items.len();
    ensure!(reader.len() == listed, "{} in the store, {listed} listed", reader.len());
    gizmos.create(&PostParams::default(), &gizmo("reflected", 1)).await?;
    let arrived = async {
        while reader.find(|g| g.name_any() == "reflected").is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, arrived).await.context("it did not arrive")?;
    task.abort();
    Ok(())
}

async fn a_finalizer(client: Client) -> Result<()> {
    const NAME: &str = "shop.example.com/held";
    let gizmos: Api<Gizmo> = Api::default_namespaced(client);
    let made = gizmos.create(&PostParams::default(), &gizmo("finalized", 1)).await?;
    let reconcile = |event: FinalizerEvent<Gizmo>| async move {
        match event {
            FinalizerEvent::Apply(_) => Ok::<_, std::io::Error>(Action::await_change()),
            FinalizerEvent::Cleanup(_) => Ok(Action::await_change()),
        }
    };
    finalizer(&gizmos, NAME, Arc::new(made.clone()), reconcile).await?;
    let held = gizmos.get("finalized").await?;
    ensure!(held.finalizers() == [NAME], "{:?}", held.finalizers());
    gizmos.delete("finalized", &DeleteParams::default()).await?;
    let going = gizmos.get("finalized").await?;
    ensure!(going.meta().deletion_timestamp.is_some());
    finalizer(&gizmos, NAME, Arc::new(going), reconcile).await?;
    let uid = made.uid().unwrap_or_default();
    timeout(PATIENCE, await_condition(gizmos, "finalized", conditions::is_deleted(&uid))).await??;
    Ok(())
}

async fn many_writes_at_once(client: Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let writes = futures::stream::iter(0..200).map(|i| {
        let maps = maps.clone();
        async move { maps.create(&PostParams::default(), &config_map(&format!("many-{i}"))).await }
    });
    writes.buffer_unordered(32).try_collect::<Vec<_>>().await?;
    let mut params = ListParams::default().limit(50);
    let mut names = std::collections::BTreeSet::new();
    loop {
        let page = maps.list(&params).await?;
        names.extend(page.items.iter().map(ResourceExt::name_any).filter(|n| n.starts_with("many-")));
        match page.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    ensure!(names.len() == 200, "{}", names.len());
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}

async fn access_is_asked_for(client: Client) -> Result<()> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
    let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}});
    let review = reviews.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
    ensure!(review.status.is_some_and(|s| s.allowed));
    Ok(())
}

async fn a_namespace_empties_itself(client: Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let body = serde_json::from_value(json!({"metadata": {"name": "rust"}}))?;
    let made: Namespace = namespaces.create(&PostParams::default(), &body).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "rust");
    maps.create(&PostParams::default(), &config_map("inside")).await?;
    namespaces.delete("rust", &DeleteParams::default()).await?;
    let uid = made.uid().unwrap_or_default();
    timeout(PATIENCE, await_condition(namespaces, "rust", conditions::is_deleted(&uid))).await??;
    ensure!(maps.get_opt("inside").await?.is_none());
    Ok(())
}

async fn a_controller_works_on_when_the_server_was_killed(_: Client) -> Result<()> {
    controller::works_on_when_the_server_was_killed().await
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let (_server, client) = Server::start().await?;
    let (mut passed, mut failed) = (0, 0);
    macro_rules! check {
        ($($name:ident),* $(,)?) => {$(
            let name = stringify!($name).replace('_', " ");
            match $name(client.clone()).await {
                Ok(()) => {
                    passed += 1;
                    println!("ok - {name}");
                }
                Err(error) => {
                    failed += 1;
                    println!("not ok - {name}\n    {error:?}");
                }
            }
        )*};
    }
    check!(
        the_version_is_1_33,
        typed_objects,
        a_derived_definition_serves_at_once,
        dynamic_objects,
        server_side_apply,
        a_plain_watch,
        a_watcher,
        a_watcher_in_pages,
        lists_are_not_streamed,
        a_reflector,
        a_finalizer,
        many_writes_at_once,
        access_is_asked_for,
        a_namespace_empties_itself,
        a_controller_works_on_when_the_server_was_killed,
    );
    println!("# {passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
