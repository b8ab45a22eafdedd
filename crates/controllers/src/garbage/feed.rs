//! What the store tells of all objects.

use super::graph::{Deletion, Effects, Graph, Seen};
use super::identity::{Type, Uid, references};
use apiserver::Server;
use apiserver::catalogue;
use apiserver::registry::Stored;
use bytes::Bytes;
use object::{Map, Value};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Entry, Event, ListOptions, Range};

/// What the keys of all objects start with.
const ALL: &str = "/registry/";
/// How many objects are read in one piece.
const PAGE: usize = 1000;
/// How long to wait when the store cannot be read.
const PAUSE: Duration = Duration::from_secs(1);
/// What a resource must be able to for its objects to be collected.
const VERBS: [&str; 3] = ["delete", "list", "watch"];
/// What is read of an object.
const PARTS: [&str; 4] = ["deletionTimestamp", "finalizers", "ownerReferences", "uid"];

/// Keeps the graph as the store is, and hands on what that asks for.
pub(super) struct Feed<F> {
    pub(super) server: Arc<Server>,
    pub(super) graph: Arc<Mutex<Graph>>,
    pub(super) effects: F,
    pub(super) types: Types,
}

/// The resources whose objects are collected, by what their keys start with.
#[derive(Debug, Default)]
pub(super) struct Types {
    generation: Option<u64>,
    by_prefix: HashMap<String, Arc<Type>>,
}

impl<F: Fn(Effects) + Send> Feed<F> {
    pub(super) async fn run(mut self) {
        loop {
            let error = self.follow().await;
            tracing::debug!(error, "the collector reads all objects again");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads everything, then what changes; ends with the reason why it cannot go on.
    async fn follow(&mut self) -> String {
        self.types.refresh(&self.server);
        let revision = match self.load(ALL).await {
            Ok(revision) => revision,
            Err(error) => return error.to_string(),
        };
        let store = self.server.store().clone();
        let mut watch = match store.watch(&Range::prefix(ALL), revision).await {
            Ok(watch) => watch,
            Err(error) => return error.to_string(),
        };
        loop {
            let batch = match watch.next().await {
                Ok(batch) => batch,
                Err(error) => return error.to_string(),
            };
            for prefix in self.types.refresh(&self.server) {
                if let Err(error) = self.load(&prefix).await {
                    return error.to_string();
                }
            }
            for event in batch.events.iter() {
                self.event(event);
            }
        }
    }

    fn event(&self, event: &Event) {
        match &event.value {
            Some(value) => {
                if let Some(ty) = self.types.of_key(&event.key)
                    && let Some(seen) = read(ty, &event.key, value)
                {
                    let mut graph = self.graph.lock();
                    // The uid of a key changes when the object was replaced in one write.
                    if let Some(old) = event.previous.as_ref().and_then(uid).filter(|old| *old != seen.uid) {
                        (self.effects)(graph.gone(&old));
                    }
                    (self.effects)(graph.seen(seen));
                }
            }
            None => {
                if let Some(uid) = event.previous.as_ref().and_then(uid) {
                    (self.effects)(self.graph.lock().gone(&uid));
                }
            }
        }
    }

    /// Puts objects into the graph; their owners come when all objects are known, so that those that are there are not
    /// looked for. Gives the objects of which there is more to say: `all` where some may have been known otherwise.
    fn insert(&self, entries: &[Entry], all: bool) -> Vec<Seen> {
        let mut graph = self.graph.lock();
        let mut out = Vec::new();
        for entry in entries {
            let Some(ty) = self.types.of_key(&entry.key) else { continue };
            let Some(seen) = read(ty, &entry.key, &entry.value) else { continue };
            graph.insert(seen.uid.clone(), ty, &entry.key);
            if all || !seen.owners.is_empty() || seen.deletion.began {
                out.push(seen);
            }
        }
        out
    }

    /// Reads all objects whose keys start like this; gives the revision at which they were read. Objects of the graph
    /// that should be there and are not are gone.
    async fn load(&self, prefix: &str) -> Result<u64, store::ReadError> {
        let range = Range::prefix(prefix);
        let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
        let again = self.graph.lock().uids().next().is_some();
        let mut linked = Vec::new();
        let revision = loop {
            let page = self.server.store().list(&range, options.clone()).await?;
            linked.extend(self.insert(&page.entries, again));
            if page.remaining == 0 {
                break page.revision;
            }
            options.after = page.entries.last().map(|e| e.key.clone());
            options.at = Some(page.revision);
            tokio::task::yield_now().await;
        };
        let found: HashSet<Uid> =
            if again { linked.iter().map(|seen| seen.uid.clone()).collect() } else { HashSet::new() };
        for seen in linked {
            (self.effects)(self.graph.lock().seen(seen));
        }
        if again && prefix == ALL {
            let mut graph = self.graph.lock();
            let gone: Vec<Uid> = graph.uids().filter(|uid| !found.contains(uid)).cloned().collect();
            gone.iter().for_each(|uid| (self.effects)(graph.gone(uid)));
        }
        Ok(revision)
    }
}

impl Types {
    /// Takes over the resources that are served now; gives the prefixes of those that are new.
    fn refresh(&mut self, server: &Server) -> Vec<String> {
        let served = server.catalogue();
        if self.generation == Some(served.generation()) {
            return Vec::new();
        }
        self.generation = Some(served.generation());
        let mut now = HashMap::new();
        // The preferred version comes first.
        let resources = served.resources().filter(|r| VERBS.iter().all(|verb| r.verbs.contains(verb)));
        let events = |r: &catalogue::Resource| r.plural == "events" && matches!(&*r.group, "" | "events.k8s.io");
        for resource in resources.filter(|r| !events(r)) {
            let prefix = resource.storage.prefix.as_str();
            if now.contains_key(prefix) {
                continue;
            }
            let ty = Type {
                api_version: resource.api_version(),
                kind: resource.kind.clone(),
                prefix: prefix.to_owned(),
                namespaced: resource.namespaced,
            };
            let held = self.by_prefix.get(prefix).filter(|held| ***held == ty).cloned();
            now.insert(prefix.to_owned(), held.unwrap_or_else(|| Arc::new(ty)));
        }
        let new = now.keys().filter(|prefix| !self.by_prefix.contains_key(*prefix)).cloned().collect();
        self.by_prefix = now;
        new
    }

    /// The type of the object at a key, if it is collected.
    fn of_key(&self, key: &str) -> Option<&Arc<Type>> {
        let rest = key.strip_prefix(ALL)?;
        // Most prefixes have one part, those of other groups have two.
        let first = ALL.len() + rest.find('/')? + 1;
        if let Some(found) = self.by_prefix.get(key.get(..first)?) {
            return Some(found);
        }
        let second = first + key.get(first..)?.find('/')? + 1;
        self.by_prefix.get(key.get(..second)?)
    }
}

fn uid(value: &Bytes) -> Option<Uid> {
    Stored::read(value.clone())?.uid().map(|uid| Uid::new(&uid))
}

fn read(ty: &Arc<Type>, key: &Arc<str>, value: &Bytes) -> Option<Seen> {
    let metadata = Stored::read(value.clone())?.metadata_of(&PARTS);
    let uid = metadata.get("uid").and_then(Value::as_str).map(Uid::new)?;
    let owners = references(metadata.get("ownerReferences"));
    Some(Seen { uid, ty: ty.clone(), key: key.clone(), owners, deletion: deletion(&metadata) })
}

fn deletion(metadata: &Map) -> Deletion {
    let began = metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null());
    let finalizers = metadata.get("finalizers").and_then(Value::as_array).unwrap_or_default();
    let has = |name: &str| began && finalizers.iter().any(|f| f.as_str() == Some(name));
    Deletion { began, orphans: has(super::ORPHAN), foreground: has(super::FOREGROUND) }
}
