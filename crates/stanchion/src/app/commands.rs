//! The subcommands.

use super::{Shown, view};
use crate::cluster::{Connections, Failure};
use crate::terminal::{Document, LOOK, Output, Progress, Wait, print, read_file, say};
use client::{Client, DeleteParams, Error, ListParams, Patch, PatchParams, Resource};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use manager::application::clusters::Fleet;
use manager::application::kinds::{APPLICATIONS, REVISIONS, TRACKERS};
use manager::application::names;
use manager::application::three_way::{self, Change, Strategy};
use manager::application::tracker::{Entry, ResourceKey, Tracker, Trackers};
use object::{Map, Value, json, map, yaml};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who applies files.
const MANAGER: &str = "stanchion-app";

/// How many objects are asked for at a time.
const WIDTH: usize = 10;

/// Said where a server does not know the kind.
const UNSERVED: &str =
    "the server serves no Applications: nobody has run stanchion server --manager or stanchion manager with it";

/// A live object, if there is one; or why it cannot be known.
type Live = Result<Option<Value>, String>;

/// A cluster and a namespace.
pub struct Session {
    client: Client,
    namespace: String,
    /// The namespace of the Secrets of other clusters.
    cluster_namespace: String,
}

impl Session {
    /// Works in a namespace of a cluster.
    pub fn new(client: Client, namespace: String, cluster_namespace: String) -> Self {
        Session { client, namespace, cluster_namespace }
    }

    async fn application(&self, name: &str) -> Result<Value, Failure> {
        let found = self.client.api(&APPLICATIONS).get(&self.namespace, name).await;
        found.map_err(|error| self.explained(error, name))
    }

    /// What an answer about an application means for people.
    fn explained(&self, error: Error, name: &str) -> Failure {
        match error {
            error if error.is_unserved() => UNSERVED.into(),
            error if error.is_not_found() => {
                format!("there is no Application {name} in namespace {}", self.namespace).into()
            }
            error => error.into(),
        }
    }

    async fn patch(&self, resource: &Resource, name: &str, patch: Value, params: &PatchParams) -> Result<(), Failure> {
        let namespace = if resource.namespaced { self.namespace.as_str() } else { "" };
        self.client.api(resource).patch(namespace, name, &Patch::Merge(patch), params).await?;
        Ok(())
    }

    /// Applies a file. Nothing is applied if it holds something that cannot be an object.
    pub async fn up(&self, file: &Path, publish_version: Option<&str>, wait: Wait) -> Result<(), Failure> {
        let text = read_file(file)?;
        let told = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let objects = yaml::parse_all(&text).map_err(|error| told(&error))?;
        let objects: Vec<Value> = objects.into_iter().map(|(object, _)| object).filter(|o| !o.is_null()).collect();
        if objects.is_empty() {
            return Err(told(&"there are no objects").into());
        }
        for (number, object) in objects.iter().enumerate() {
            if let Some(missing) = ["apiVersion", "kind"].into_iter().find(|key| text_at(object, key).is_empty()) {
                return Err(told(&format!("object {}: {missing} is missing", number + 1)).into());
            }
            if object.name().is_empty() {
                return Err(told(&format!("object {}: metadata.name is missing, or is no string", number + 1)).into());
            }
        }
        let mut applications = Vec::new();
        for mut object in objects {
            let (api_version, kind) = (text_at(&object, "apiVersion"), text_at(&object, "kind"));
            let is_application = kind == APPLICATIONS.kind && api_version == APPLICATIONS.api_version();
            let Some(resource) = self.client.resource_of(&api_version, &kind).await? else {
                return Err(match is_application {
                    true => UNSERVED.into(),
                    false => told(&format!("no matches for kind {kind:?} in version {api_version:?}")).into(),
                });
            };
            if is_application {
                without_nulls(&mut object);
            }
            if resource.namespaced && object.namespace().is_empty() {
                object.set_at(&["metadata", "namespace"], self.namespace.as_str().into());
            }
            if let Some(version) = publish_version.filter(|_| is_application) {
                object.set_at(&["metadata", "annotations", names::PUBLISH_VERSION], version.into());
            }
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            // What a file says counts, whoever changed it before.
            let apply = Patch::Apply { object, manager: MANAGER.to_owned(), force: true };
            let applied = self.client.api(&resource).patch(&namespace, &name, &apply, &PatchParams::default()).await;
            let applied = applied.map_err(|error| told(&format!("{kind} {name}: {error}")))?;
            say!("{}/{name} applied", resource.plural);
            if is_application {
                applications.push((namespace, name, applied.at(&["metadata", "generation"]).cloned()));
            }
        }
        for (namespace, name, generation) in applications.into_iter().filter(|_| wait.wait) {
            self.until_running(&namespace, &name, generation, wait).await?;
        }
        Ok(())
    }

    /// Waits until an application runs, and says how far it has come.
    async fn until_running(
        &self,
        namespace: &str,
        name: &str,
        generation: Option<Value>,
        wait: Wait,
    ) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut progress = Progress::new(name);
        loop {
            let application = self.client.api(&APPLICATIONS).get(namespace, name).await?;
            // A version that is published changes no generation.
            let version = application.annotation(names::PUBLISH_VERSION).filter(|version| !version.is_empty());
            let run = application.str_at(&["status", "workflow", "appRevision"]);
            let is_seen = application.at(&["status", "observedGeneration"]) == generation.as_ref()
                && version.is_none_or(|version| run == Some(version));
            if is_seen {
                progress.say(&view::progress(&application));
            }
            match application.str_at(&["status", "status"]) {
                Some("running") if is_seen => return Ok(()),
                Some("workflowSuspending") if is_seen => {
                    let step = view::suspended(&application).map(|step| format!(" at step {step}")).unwrap_or_default();
                    return Err(format!(
                        "{name} waits{step} until somebody lets it go on: stanchion app resume {name}"
                    )
                    .into());
                }
                Some("workflowFailed" | "workflowTerminated") if is_seen => {
                    return Err(format!("{name}: {}", view::progress(&application)).into());
                }
                _ if begin.elapsed() > Duration::from_secs(wait.timeout) => {
                    let said = match progress.said() {
                        "" => "no manager has looked at it; does one run?",
                        said => said,
                    };
                    return Err(format!("{name} does not run after {} s: {said}", wait.timeout).into());
                }
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Lists applications.
    pub async fn list(&self, all_namespaces: bool, selector: &str, output: Option<Output>) -> Result<(), Failure> {
        let namespace = if all_namespaces { "" } else { &self.namespace };
        let params = ListParams { label_selector: selector.to_owned(), ..ListParams::default() };
        let list = self.client.api(&APPLICATIONS).list(namespace, &params).await;
        let list = list.map_err(|error| if error.is_unserved() { UNSERVED.into() } else { Failure::from(error) })?;
        match Document::of(output) {
            Some(document) => print(&document.list(list.items)),
            None if list.items.is_empty() => match namespace {
                "" => eprintln!("There are no Applications."),
                namespace => eprintln!("There are no Applications in namespace {namespace}."),
            },
            None => print(&view::applications(&list.items, output == Some(Output::Wide))),
        }
        Ok(())
    }

    /// Shows one application.
    pub async fn status(&self, name: &str, shown: Shown, output: Option<Output>) -> Result<(), Failure> {
        let application = self.application(name).await?;
        if shown == Shown::Summary {
            match Document::of(output) {
                Some(document) => print(&document.one(application)),
                None => print(&view::status(&application)),
            }
            return Ok(());
        }
        let trackers = self.trackers(&application).await?;
        let is_detailed = shown == Shown::Details || output == Some(Output::Wide);
        let live = if is_detailed { self.live(&trackers).await? } else { BTreeMap::new() };
        let said: BTreeMap<ResourceKey, String> =
            live.into_iter().map(|(key, live)| (key, view::detail(live))).collect();
        let tell = |entry: &Entry| said.get(&entry.key()).cloned().unwrap_or_default();
        let leaves = view::leaves(&application, &trackers, is_detailed.then_some(&tell));
        match Document::of(output) {
            Some(document) => print(&document.one(leaves.iter().map(view::Leaf::to_value).collect::<Vec<_>>().into())),
            None => print(&view::tree(&leaves, is_detailed)),
        }
        Ok(())
    }

    async fn trackers(&self, application: &Value) -> Result<Trackers, Failure> {
        let params = ListParams {
            label_selector: format!(
                "{}={},{}={}",
                names::APP_NAME,
                application.name(),
                names::APP_NAMESPACE,
                application.namespace()
            ),
            ..ListParams::default()
        };
        let list = self.client.api(&TRACKERS).list("", &params).await?;
        let trackers = list.items.iter().map(Tracker::read).collect::<Result<Vec<_>, _>>()?;
        let revision = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default();
        let version = application.annotation(names::PUBLISH_VERSION).unwrap_or_default();
        Ok(Trackers::classify(trackers, application.meta_str("uid"), revision, version)?)
    }

    /// The live objects of trackers, or why they cannot be known; those of all clusters are asked for side by side. The
    /// Secrets of other clusters are only read if something is there.
    async fn live(&self, trackers: &Trackers) -> Result<BTreeMap<ResourceKey, Live>, Failure> {
        let entries = || trackers.iter().filter(|tracker| !tracker.is_archived()).flat_map(|tracker| &tracker.entries);
        let fleet = match entries().all(|entry| entry.cluster.is_empty()) {
            true => Fleet::local(&self.client),
            false => Fleet::read(&self.client, Arc::new(Connections), &self.cluster_namespace).await?,
        };
        let work = entries().map(|entry| fleet.live(entry).map(|live| (entry.key(), live)).boxed());
        let work: Vec<BoxFuture<'_, (ResourceKey, Live)>> = work.collect();
        Ok(stream::iter(work).buffer_unordered(WIDTH).collect().await)
    }

    /// Shows where live objects differ from what is recorded.
    pub async fn diff(&self, name: &str) -> Result<(), Failure> {
        let application = self.application(name).await?;
        let trackers = self.trackers(&application).await?;
        let current = [&trackers.current, &trackers.root].into_iter().flatten();
        let mut live = self.live(&trackers).await?;
        let mut is_same = true;
        for entry in current.flat_map(|tracker| &tracker.entries) {
            let Some(raw) = entry.raw.as_ref() else { continue };
            let cluster = if entry.cluster.is_empty() { String::new() } else { format!(" in {}", entry.cluster) };
            let live = match live.remove(&entry.key()) {
                Some(Ok(live)) => live,
                Some(Err(why)) => {
                    is_same = false;
                    say!("{}{cluster}: is not known: {why}", entry.identity);
                    continue;
                }
                None => continue,
            };
            let told = match three_way::change(live.as_ref(), raw, raw, &Strategy::default())? {
                Change::None => continue,
                Change::Create(_) => "is missing".to_owned(),
                Change::Patch(Patch::Strategic(patch) | Patch::Merge(patch)) => {
                    format!("differs; this would put it right: {}", json::to_string(&patch))
                }
                _ => "differs".to_owned(),
            };
            is_same = false;
            say!("{}{cluster}: {told}", entry.identity);
        }
        if is_same {
            say!("everything is as declared");
        }
        Ok(())
    }

    /// The revisions of an application, oldest first.
    async fn revisions(&self, name: &str) -> Result<Vec<Value>, Failure> {
        let params = ListParams { label_selector: format!("{}={name}", names::APP_NAME), ..ListParams::default() };
        let mut all = self.client.api(&REVISIONS).list(&self.namespace, &params).await?.items;
        let number = |revision: &Value| -> i64 {
            revision.name().rsplit_once("-v").and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
        };
        all.sort_by_key(number);
        Ok(all)
    }

    /// Lists revisions.
    pub async fn history(&self, name: &str, output: Option<Output>) -> Result<(), Failure> {
        let application = self.application(name).await?;
        let revisions = self.revisions(name).await?;
        let current = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default();
        match Document::of(output) {
            Some(document) => print(&document.list(revisions)),
            None => print(&view::history(&revisions, current, output == Some(Output::Wide))),
        }
        Ok(())
    }

    /// Brings an earlier revision back: a published version from its tracker, any other by its specification.
    pub async fn rollback(&self, name: &str, to: Option<&str>, wait: Wait) -> Result<(), Failure> {
        let application = self.application(name).await?;
        let current = application.str_at(&["status", "latestRevision", "name"]).unwrap_or_default();
        let revisions = self.revisions(name).await?;
        let version = |revision: &Value| revision.annotation(names::PUBLISH_VERSION).unwrap_or_default().to_owned();
        let is_meant = |revision: &&Value| match to {
            Some(to) => revision.name() == to || version(revision) == to,
            None => {
                revision.name() != current
                    && revision.at(&["status", "succeeded"]).and_then(Value::as_bool) == Some(true)
            }
        };
        let revision = revisions.iter().rev().find(is_meant).ok_or_else(|| match to {
            Some(to) => {
                let known: Vec<&str> = revisions.iter().map(Value::name).collect();
                format!("{name} has no revision or published version {to}; its revisions are {}", known.join(", "))
            }
            None => format!("{name} has no earlier revision that succeeded; stanchion app history {name} shows all"),
        })?;
        let spec = revision.at(&["spec", "application", "spec"]).cloned().unwrap_or_default();
        let of = |key: &str| application.at(&["metadata", key]).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut annotations = of("annotations");
        match version(revision) {
            none if none.is_empty() => drop(annotations.remove(names::PUBLISH_VERSION)),
            published => drop(annotations.insert(names::PUBLISH_VERSION, published)),
        }
        let changed = self.replace(&application, annotations, of("labels"), spec).await?;
        say!("{name} goes back to {}", revision.name());
        if wait.wait {
            self.until_running(&self.namespace, name, changed.at(&["metadata", "generation"]).cloned(), wait).await?;
        }
        Ok(())
    }

    /// Declares an application anew; specification and annotations at once, because what is between would be a version,
    /// too.
    async fn replace(&self, application: &Value, annotations: Map, labels: Map, spec: Value) -> Result<Value, Failure> {
        let api = self.client.api(&APPLICATIONS);
        let (name, version) = (application.name(), application.meta_str("resourceVersion"));
        let object = map! {
            "apiVersion" => APPLICATIONS.api_version(),
            "kind" => APPLICATIONS.kind.to_string(),
            "metadata" => map! {
                "name" => name,
                "namespace" => self.namespace.as_str(),
                "resourceVersion" => version,
                "annotations" => annotations.clone(),
                "labels" => labels,
            },
            "spec" => spec.clone(),
        };
        // As `up` would, so that the next file takes away what it no longer has. What somebody else added to the
        // specification would stay, though.
        let apply = Patch::Apply { object: object.into(), manager: MANAGER.to_owned(), force: true };
        let trial = PatchParams { dry_run: true, ..PatchParams::default() };
        let tried = api.patch(&self.namespace, name, &apply, &trial).await?;
        let has_version = |object: &Value| object.annotation(names::PUBLISH_VERSION).map(str::to_owned);
        let wanted = annotations.get(names::PUBLISH_VERSION).and_then(Value::as_str).map(str::to_owned);
        if tried.get("spec") == Some(&spec) && has_version(&tried) == wanted {
            return Ok(api.patch(&self.namespace, name, &apply, &PatchParams::default()).await?);
        }
        let operations = vec![
            map! { "op" => "test", "path" => "/metadata/resourceVersion", "value" => version },
            map! { "op" => "add", "path" => "/metadata/annotations", "value" => annotations },
            map! { "op" => "replace", "path" => "/spec", "value" => spec },
        ];
        Ok(api.patch(&self.namespace, name, &Patch::Json(operations.into()), &PatchParams::default()).await?)
    }

    /// The application, if its workflow is not over.
    async fn under_way(&self, name: &str) -> Result<Value, Failure> {
        let application = self.application(name).await?;
        if application.at(&["status", "workflow", "finished"]).and_then(Value::as_bool) == Some(true) {
            let phase = application.str_at(&["status", "workflow", "status"]).unwrap_or_default();
            return Err(format!("the workflow of {name} is over: it {}", view::ended(phase)).into());
        }
        Ok(application)
    }

    /// Holds a workflow, or lets it go on.
    pub async fn set_suspended(&self, name: &str, suspended: bool) -> Result<(), Failure> {
        let application = self.under_way(name).await?;
        let is_suspended = application.at(&["status", "workflow", "suspend"]).and_then(Value::as_bool) == Some(true);
        if is_suspended == suspended {
            let state = if suspended { "is suspended already" } else { "is not suspended" };
            return Err(format!("the workflow of {name} {state}").into());
        }
        self.set_workflow(name, "suspend", suspended).await?;
        say!("{name} {}", if suspended { "suspended" } else { "resumed" });
        Ok(())
    }

    /// Ends a workflow; what it has brought stays.
    pub async fn terminate(&self, name: &str) -> Result<(), Failure> {
        self.under_way(name).await?;
        self.set_workflow(name, "terminated", true).await?;
        say!("{name} terminated");
        Ok(())
    }

    async fn set_workflow(&self, name: &str, flag: &str, value: bool) -> Result<(), Failure> {
        let patch = map! { "status" => map! { "workflow" => map! { flag => value } } };
        self.patch(&APPLICATIONS, name, patch.into(), &PatchParams::status()).await
    }

    /// Runs a workflow again.
    pub async fn restart(&self, name: &str) -> Result<(), Failure> {
        self.application(name).await?;
        let patch = map! { "metadata" => map! { "annotations" => map! { names::RESTART_WORKFLOW => "true" } } };
        self.patch(&APPLICATIONS, name, patch.into(), &PatchParams::default()).await?;
        say!("{name} restarted");
        Ok(())
    }

    /// Deletes an application.
    pub async fn delete(&self, name: &str, orphan: bool, wait: Wait) -> Result<(), Failure> {
        let api = self.client.api(&APPLICATIONS);
        if orphan {
            let application = self.application(name).await?;
            let mut finalizers = application.meta_list("finalizers");
            if !finalizers.contains(&names::ORPHAN_FINALIZER) {
                finalizers.push(names::ORPHAN_FINALIZER);
            }
            let metadata =
                map! { "finalizers" => finalizers, "resourceVersion" => application.meta_str("resourceVersion") };
            self.patch(&APPLICATIONS, name, map! { "metadata" => metadata }.into(), &PatchParams::default()).await?;
        }
        let deleted = api.delete(&self.namespace, name, &DeleteParams::default()).await;
        deleted.map_err(|error| self.explained(error, name))?;
        if wait.wait {
            self.until_gone(name, wait).await?;
        }
        say!("{name} deleted");
        Ok(())
    }

    /// Waits until an application is gone, and says for what it waits.
    async fn until_gone(&self, name: &str, wait: Wait) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut progress = Progress::new(name);
        while let Some(application) = self.client.api(&APPLICATIONS).find(&self.namespace, name).await? {
            let conditions = application.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            let ready = conditions.iter().find(|condition| condition.str_at(&["type"]) == Some("Ready"));
            let message = ready.and_then(|ready| ready.str_at(&["message"])).unwrap_or_default();
            if !message.is_empty() {
                progress.say(message);
            }
            if begin.elapsed() > Duration::from_secs(wait.timeout) {
                return Err(format!("{name} is still there after {} s: {}", wait.timeout, progress.said()).into());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

/// Takes away members that say nothing, such as a `traits:` with nothing below. In properties, nothing may mean something.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.iter_mut().filter(|(key, _)| *key != "properties").for_each(|(_, member)| without_nulls(member));
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn text_at(object: &Value, key: &str) -> String {
    object.str_at(&[key]).unwrap_or_default().to_owned()
}
