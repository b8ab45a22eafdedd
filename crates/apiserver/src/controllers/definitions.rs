//! Definitions: from a stored CustomResourceDefinition to a served resource, and back to nothing.
//!
//! The work is done while the request that changes a definition is answered, so that its resource serves when the
//! answer is sent. Only the instances of a deleted one are removed afterwards.

use super::{naming, serving, set_condition};
use crate::Server;
use crate::answer::Failure;
use crate::catalogue::Resource;
use crate::definition;
use crate::handlers::time;
use crate::registry;
use crate::strategy::Part;
use jiff::Timestamp;
use object::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{ListOptions, Range, ReadError, Revision};
use tokio::sync::MutexGuard;

/// The finalizer of definitions: their instances go first.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// After how long all servers of a store know that a definition goes away.
const NOTICE: Duration = Duration::from_secs(1);
/// What the keys of definitions start with.
pub(crate) const PREFIX: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// The definitions that are known, by group.
#[derive(Debug, Default)]
pub(crate) struct Known {
    groups: BTreeMap<String, Members>,
}

/// The definitions of a group by name, and what is to be known of all of them.
#[derive(Debug, Default)]
struct Members {
    definitions: BTreeMap<String, Serving>,
    taken: naming::Taken,
    /// Those that wait for names that others have.
    waiting: BTreeSet<String>,
    going: BTreeSet<String>,
    /// Those that are other ones than before, or gone, and are still served as they were.
    outdated: Vec<String>,
}

#[derive(Debug)]
struct Serving {
    /// The version that was read.
    revision: Revision,
    about: Arc<Value>,
    resources: Vec<Arc<Resource>>,
}

impl Members {
    /// Puts a definition in the place of the one of its name. Its resources are kept if nothing of them changed.
    fn put(
        &mut self,
        name: &str,
        revision: Revision,
        about: Arc<Value>,
        resources: impl FnOnce(&Arc<Value>) -> Vec<Arc<Resource>>,
    ) {
        let held = self.take(name);
        if held.as_ref().is_some_and(|held| !same_life(&held.about, &about)) {
            self.outdated.push(name.to_owned());
        }
        let resources = match held {
            Some(held) if same_resources(&held.about, &about) => held.resources,
            _ => resources(&about),
        };
        self.taken.add(&about);
        if !naming::holds(conditions(&about), "NamesAccepted") {
            self.waiting.insert(name.to_owned());
        }
        if !about.meta_str("deletionTimestamp").is_empty() {
            self.going.insert(name.to_owned());
        }
        self.definitions.insert(name.to_owned(), Serving { revision, about, resources });
    }

    fn remove(&mut self, name: &str) {
        if self.take(name).is_some() {
            self.outdated.push(name.to_owned());
        }
    }

    fn take(&mut self, name: &str) -> Option<Serving> {
        self.waiting.remove(name);
        self.going.remove(name);
        let held = self.definitions.remove(name)?;
        self.taken.remove(&held.about);
        Some(held)
    }
}

/// A new definition on its way to the store. Until it is served no other gets names.
pub(crate) struct Naming<'s> {
    server: &'s Arc<Server>,
    known: MutexGuard<'s, Known>,
}

impl<'s> Naming<'s> {
    /// Whether the objects of a resource are definitions, which get names.
    pub fn concerns(resource: &Resource) -> bool {
        is_definitions(resource)
    }

    /// Nothing for objects that are no definitions.
    pub async fn start(server: &'s Arc<Server>, resource: &Resource) -> Option<Self> {
        if !Naming::concerns(resource) {
            return None;
        }
        Some(Naming { server, known: server.definitions.lock().await })
    }

    /// The definition with its names. Upstream stores these in a second write, after the answer.
    pub fn named(&self, definition: &Value) -> Value {
        let nobody = naming::Taken::default();
        let taken = self.known.groups.get(group_of(definition.name())).map_or(&nobody, |group| &group.taken);
        named(self.server, definition, taken).unwrap_or_else(|| definition.clone())
    }

    /// Serves the definition, which is stored now.
    pub async fn finish(mut self, key: &str) {
        settled(self.server, &mut self.known, key).await;
    }
}

/// A definition is called PLURAL.GROUP.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// The definition with the names it gets; nothing if it stays as it is.
fn named(server: &Server, definition: &Value, taken: &naming::Taken) -> Option<Value> {
    let now = (server.options.clock)();
    let status = naming::status(definition, taken, &time(now))?;
    let mut new = definition.clone();
    new.set_at(&["status"], status);
    let catalogue = server.catalogue();
    let resource = catalogue.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
    let ownership = resource.strategy.ownership();
    Some(ownership.updated(Part::Status, definition, new, "kube-apiserver", now.as_second(), None))
}

/// Whether the resource is that of definitions.
pub(crate) fn is_definitions(resource: &Resource) -> bool {
    resource.plural == "customresourcedefinitions" && resource.group == "apiextensions.k8s.io"
}

/// A definition marked for deletion: it gets its finalizer and a condition. The generation stays.
pub(crate) fn mark_deleted(definition: &Value, now: Timestamp) -> Value {
    let mut out = definition.clone();
    let meta = out.metadata_mut();
    meta.insert("deletionTimestamp", time(now));
    let mut finalizers: Vec<String> = definition.meta_list("finalizers").into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|f| f == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    out.metadata_mut().insert("finalizers", finalizers);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    terminating(&mut out, "True", "InstanceDeletionPending", message, now);
    out
}

fn terminating(definition: &mut Value, status: &str, reason: &str, message: &str, now: Timestamp) {
    let held = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let mut conditions = held.to_vec();
    set_condition(&mut conditions, "Terminating", status, reason, message, &time(now));
    definition.set_at(&["status", "conditions"], Value::Array(conditions));
}

/// Reads all definitions at the start.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), ReadError> {
    let page = server.store.list(&Range::prefix(PREFIX), ListOptions::default()).await?;
    for entry in page.entries {
        changed(server, &entry.key).await;
    }
    Ok(())
}

/// Whether a definition is known as it was written at a revision, or that it is gone.
pub(crate) async fn knows(server: &Server, key: &str, written: Option<Revision>) -> bool {
    let name = key.strip_prefix(PREFIX).unwrap_or(key);
    let known = server.definitions.lock().await;
    let held = known.groups.get(group_of(name)).and_then(|group| group.definitions.get(name));
    match (held, written) {
        (Some(held), Some(written)) => held.revision >= written,
        (held, written) => held.is_none() && written.is_none(),
    }
}

/// The keys of all definitions that are known.
pub(crate) async fn known(server: &Server) -> Vec<String> {
    let known = server.definitions.lock().await;
    let names = known.groups.values().flat_map(|group| group.definitions.keys());
    names.map(|name| format!("{PREFIX}{name}")).collect()
}

/// A definition was written: works out its names and those of its group, and what is served.
pub(crate) async fn changed(server: &Arc<Server>, key: &str) {
    let mut known = server.definitions.lock().await;
    settled(server, &mut known, key).await;
}

async fn settled(server: &Arc<Server>, known: &mut Known, key: &str) {
    if let Err(failure) = settle(server, known, key).await {
        tracing::error!(?failure, key, "a definition cannot be served");
    }
}

async fn settle(server: &Arc<Server>, known: &mut Known, key: &str) -> Result<(), Failure> {
    let name = key.strip_prefix(PREFIX).unwrap_or(key);
    let group = group_of(name);
    let held = known.groups.entry(group.to_owned()).or_default();
    read(server, held, name).await?;
    // One definition's names may free those that another waits for.
    let mut open: Vec<String> = vec![name.to_owned()];
    open.extend(held.waiting.iter().filter(|n| *n != name).cloned());
    for name in open {
        name_one(server, held, &name).await?;
    }
    let resources = held.definitions.values().flat_map(|s| s.resources.iter().cloned());
    server.serve_group(serving::group(group, resources));
    held.outdated.drain(..).for_each(|name| server.lives.end(&name));
    for name in &held.going {
        empty(server, name);
    }
    if held.definitions.is_empty() {
        known.groups.remove(group);
    }
    Ok(())
}

fn conditions(definition: &Value) -> &[Value] {
    definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default()
}

/// Reads one definition anew.
async fn read(server: &Arc<Server>, group: &mut Members, name: &str) -> Result<(), Failure> {
    let entry = server.store.get(&format!("{PREFIX}{name}"), None).await.map_err(registry::read_failure)?;
    let Some(entry) = entry else {
        group.remove(name);
        return Ok(());
    };
    let stored = registry::stored(&entry)?;
    let definition = stored.value(entry.mod_revision);
    let about = Arc::new(definition::about(&definition));
    group.put(name, entry.mod_revision, about, |about| {
        serving::resources(&definition, about, stored, &server.options.converter)
    });
    Ok(())
}

fn same_resources(a: &Value, b: &Value) -> bool {
    let going = |d: &Value| !d.meta_str("deletionTimestamp").is_empty();
    a.meta_str("uid") == b.meta_str("uid")
        && going(a) == going(b)
        && a.get("status") == b.get("status")
        && definition::generation(a) == definition::generation(b)
}

/// Whether watches of a definition's objects can go on; its deletion alone does not end them.
fn same_life(a: &Value, b: &Value) -> bool {
    a.meta_str("uid") == b.meta_str("uid")
        && definition::generation(a) == definition::generation(b)
        && a.at(&["status", "acceptedNames"]) == b.at(&["status", "acceptedNames"])
}

/// Works out the names of a definition and stores them.
async fn name_one(server: &Arc<Server>, group: &mut Members, name: &str) -> Result<(), Failure> {
    let Some(own) = group.definitions.get(name) else { return Ok(()) };
    if naming::status(&own.about, &group.taken, &time((server.options.clock)())).is_none() {
        return Ok(());
    }
    server.rewrite(&format!("{PREFIX}{name}"), |definition| named(server, definition, &group.taken)).await?;
    read(server, group, name).await
}

/// Removes the instances of a definition that is going away, then the definition; in the background.
pub(crate) fn empty(server: &Arc<Server>, name: &str) {
    if !server.emptying.lock().insert(name.to_owned()) {
        return;
    }
    let (server, name) = (server.clone(), name.to_owned());
    tokio::spawn(async move {
        if server.options.shared {
            // Until the others know, they still take new instances.
            tokio::time::sleep(NOTICE).await;
        }
        // What is written while this runs is looked at again: the mark goes first.
        server.emptying.lock().remove(&name);
        if let Err(failure) = remove_instances(&server, &name).await {
            tracing::error!(?failure, name, "a definition cannot be emptied");
        }
    });
}

async fn remove_instances(server: &Arc<Server>, name: &str) -> Result<(), Failure> {
    let key = format!("{PREFIX}{name}");
    let Some(entry) = server.store.get(&key, None).await.map_err(registry::read_failure)? else { return Ok(()) };
    let definition = registry::stored(&entry)?.value(entry.mod_revision);
    let finalizers = definition.meta_list("finalizers");
    if definition.meta_str("deletionTimestamp").is_empty() || !finalizers.contains(&FINALIZER) {
        return Ok(());
    }
    let text = |path: &[&str]| definition.str_at(path).unwrap_or_default();
    let prefix = format!("/registry/{}/{}/", text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let page =
        server.store.list(&Range::prefix(prefix), ListOptions::default()).await.map_err(registry::read_failure)?;
    let mut left = 0;
    for entry in page.entries {
        left += usize::from(!server.drop_or_mark(&entry.key).await?);
    }
    let now = (server.options.clock)();
    if left > 0 {
        let (reason, message) = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
        server
            .rewrite(&key, |definition| {
                let mut new = definition.clone();
                terminating(&mut new, "True", reason, message, now);
                (new != *definition).then_some(new)
            })
            .await?;
        changed(server, &key).await;
        return Ok(());
    }
    let mut last = false;
    server
        .rewrite(&key, |definition| {
            let rest: Vec<String> =
                definition.meta_list("finalizers").into_iter().filter(|f| *f != FINALIZER).map(str::to_owned).collect();
            last = rest.is_empty();
            if last {
                return None;
            }
            let mut new = definition.clone();
            new.metadata_mut().insert("finalizers", rest);
            terminating(&mut new, "False", "InstanceDeletionCompleted", "removed all instances", now);
            Some(new)
        })
        .await?;
    if last {
        let write = store::Write::delete(key.as_str(), store::Expect::Any);
        match server.store.write(write).await {
            Ok(_) | Err(store::WriteError::Conflict { .. }) => {}
            Err(error) => return Err(registry::write_failure(&error)),
        }
    }
    Box::pin(changed(server, &key)).await;
    Ok(())
}
