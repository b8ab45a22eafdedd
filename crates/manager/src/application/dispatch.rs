//! Bringing rendered objects into their clusters, keeping them there, and collecting what is garbage.

use std::collections::{BTreeMap, HashMap};

use client::{Api, Client, DeleteParams, Patch, PatchParams};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use keeper::Scope;
use object::{Value, map};

use super::collect::{self, Fate, Occasion};
use super::kinds::TRACKERS;
use super::names;
use super::policy::{Collect, Stage};
use super::tracker::{Entry, ResourceKey, Tracker, TrackerKind, Trackers};
use super::write::{Applied, Writer, described};

/// How many objects of one application are worked on at a time (upstream's `max-dispatch-concurrent`).
const WIDTH: usize = 10;

/// What an application has, and how it is written.
pub struct Dispatcher<'a> {
    /// Writes objects.
    pub writer: Writer<'a>,
    /// Writes trackers.
    pub client: &'a Client,
    /// The trackers, as far as they are known to be stored.
    pub trackers: Trackers,
}

impl Dispatcher<'_> {
    fn api(&self) -> Api {
        self.client.api(&TRACKERS)
    }

    /// Applies rendered objects: all are tried without effect, then recorded, then applied. A failure of the trial records
    /// nothing, so that what cannot be the application's never gets into its trackers.
    ///
    /// # Errors
    ///
    /// Everything that failed, in one text. What was recorded stays so.
    pub async fn dispatch(&mut self, manifests: Vec<Value>) -> Result<(), String> {
        let mut entries = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            entries.push(self.entry(manifest).await?);
        }
        let new: Vec<&Entry> = entries.iter().filter(|entry| !self.is_recorded(entry)).collect();
        joined(self.apply_all(new, true).await)?;
        self.record(&entries).await?;
        self.claim();
        joined(self.apply_all(entries.iter().collect(), false).await)
    }

    /// Applies entries side by side; what failed.
    async fn apply_all(&self, entries: Vec<&Entry>, dry_run: bool) -> Vec<String> {
        let work = entries.into_iter().map(|entry| self.apply_one(entry, dry_run).boxed());
        let work: Vec<BoxFuture<'_, Option<String>>> = work.collect();
        stream::iter(work).buffer_unordered(WIDTH).filter_map(std::future::ready).collect().await
    }

    async fn apply_one(&self, entry: &Entry, dry_run: bool) -> Option<String> {
        let desired = entry.raw.as_ref()?;
        self.writer.apply(entry, desired, Stage::Update, dry_run).await.err()
    }

    /// Keeps the object of one entry; whether the entry has served its time.
    async fn keep_one(&self, entry: &Entry) -> Result<bool, String> {
        match (&entry.raw, entry.deleted) {
            (_, true) => match self.writer.owned(entry).await? {
                None => Ok(true),
                Some(live) => self.writer.remove(entry, &live).await,
            },
            (None, false) => Ok(false),
            (Some(raw), false) => {
                let applied = self.writer.apply(entry, raw, Stage::Keep, false).await?;
                Ok(applied == Applied::Stale)
            }
        }
    }

    async fn entry(&self, mut manifest: Value) -> Result<Entry, String> {
        let entry = Entry::of(&manifest).ok_or("an object has no apiVersion, kind or name")?;
        let cluster = self.writer.cluster(&entry.cluster)?;
        let scope = cluster.scope(&entry.identity.kind).await.map_err(|error| error.to_string())?;
        match scope {
            None => Err(format!(
                "no matches for kind {:?} in version {:?}",
                entry.identity.kind.kind,
                entry.identity.kind.api_version()
            )),
            Some(Scope::Namespaced) => Ok(entry),
            Some(Scope::Cluster) => {
                manifest.remove_at(&["metadata", "namespace"]);
                Entry::of(&manifest).ok_or_else(|| "an object has no name".to_owned())
            }
        }
    }

    fn is_recorded(&self, entry: &Entry) -> bool {
        let known = [&self.trackers.current, &self.trackers.root].into_iter().flatten();
        known
            .into_iter()
            .any(|tracker| tracker.entries.iter().any(|known| known.key() == entry.key() && known.raw == entry.raw))
    }

    /// Records entries in the trackers that keep them, and takes them out of those that do not.
    async fn record(&mut self, entries: &[Entry]) -> Result<(), String> {
        let mut changed = [false, false];
        for entry in entries {
            let raw = entry.raw.as_ref();
            let collects = raw.map(|raw| self.writer.policies.collects(raw)).unwrap_or_default();
            let mut entry = entry.clone();
            if self.writer.policies.apply_once {
                entry.raw = None;
            }
            entry.skip_gc = collects == Collect::Never;
            let (keeps, other) = match collects {
                Collect::OnUpdate => (&mut self.trackers.current, &mut self.trackers.root),
                Collect::OnDelete | Collect::Never => (&mut self.trackers.root, &mut self.trackers.current),
            };
            let (first, second) = if collects == Collect::OnUpdate { (0, 1) } else { (1, 0) };
            if let Some(other) = other {
                let before = other.entries.len();
                other.entries.retain(|known| known.key() != entry.key());
                changed[second] |= other.entries.len() != before;
            }
            let keeps = keeps.as_mut().ok_or("there is no tracker to record in")?;
            changed[first] |= keeps.record(entry);
        }
        for (is_changed, current) in [(changed[0], true), (changed[1], false)] {
            if is_changed {
                self.save(current).await?;
            }
        }
        Ok(())
    }

    /// Stores the current or the root tracker.
    async fn save(&mut self, current: bool) -> Result<(), String> {
        let api = self.api();
        let tracker = if current { &mut self.trackers.current } else { &mut self.trackers.root };
        let Some(tracker) = tracker else { return Ok(()) };
        store(&api, tracker).await
    }

    /// Stores the current tracker even if nothing is recorded in it yet.
    ///
    /// # Errors
    ///
    /// The server's.
    pub async fn ensure_current(&mut self) -> Result<(), String> {
        if self.trackers.current.as_ref().is_some_and(|current| !current.is_stored()) {
            self.save(true).await?;
        }
        Ok(())
    }

    /// Makes the watches follow everything that is to be kept.
    pub fn claim(&self) {
        let kept = self.kept();
        let objects = kept.values().filter(|entry| entry.cluster.is_empty() && !entry.deleted);
        self.writer.keeper.claim_objects(self.writer.owner, objects.map(|entry| &entry.identity));
    }

    /// What is to be kept: the entries of the current tracker and the root, which counts more.
    pub fn kept(&self) -> BTreeMap<ResourceKey, &Entry> {
        let trackers = [&self.trackers.current, &self.trackers.root].into_iter().flatten();
        let trackers = trackers.filter(|tracker| !tracker.is_deleting() && !tracker.is_archived());
        trackers.flat_map(|tracker| &tracker.entries).map(|entry| (entry.key(), entry)).collect()
    }

    /// Puts back what others changed or deleted, from the record alone, and completes deletions.
    ///
    /// # Errors
    ///
    /// Everything that failed, in one text; the rest is done.
    pub async fn keep(&mut self) -> Result<(), String> {
        self.claim();
        if self.writer.policies.apply_once {
            return Ok(());
        }
        let entries: Vec<Entry> = self.kept().into_values().cloned().collect();
        let work = entries.iter().map(|entry| self.keep_one(entry).map(|done| (entry.key(), done)).boxed());
        let work: Vec<BoxFuture<'_, (ResourceKey, Result<bool, String>)>> = work.collect();
        let done: Vec<(ResourceKey, Result<bool, String>)> = stream::iter(work).buffer_unordered(WIDTH).collect().await;
        let mut stale = Vec::new();
        let mut errors = Vec::new();
        for (key, outcome) in done {
            match outcome {
                Ok(true) => stale.push(key),
                Ok(false) => {}
                Err(error) => errors.push(error),
            }
        }
        if !stale.is_empty() {
            for current in [true, false] {
                let tracker = if current { &mut self.trackers.current } else { &mut self.trackers.root };
                let Some(tracker) = tracker else { continue };
                let before = tracker.entries.len();
                tracker.entries.retain(|entry| !stale.contains(&entry.key()));
                if tracker.entries.len() != before {
                    self.save(current).await?;
                }
            }
        }
        joined(errors)
    }

    /// Collects what is garbage: marks trackers that have served their time, deletes the objects that are theirs alone,
    /// and lets go of trackers whose objects are gone. What there still is to wait for; `None` when all is done.
    ///
    /// # Errors
    ///
    /// If it cannot be known whether something is gone.
    pub async fn collect(
        &mut self,
        occasion: Occasion,
        depends: &HashMap<String, Vec<String>>,
    ) -> Result<Option<String>, String> {
        let api = self.api();
        let policy = &self.writer.policies.collect;
        let mut all: Vec<(Tracker, Fate)> = self
            .trackers
            .history
            .iter()
            .map(|tracker| (tracker.clone(), collect::fate(tracker, &self.trackers, occasion, policy)))
            .collect();
        if occasion == Occasion::Deleting {
            let rest = [&self.trackers.current, &self.trackers.root].into_iter().flatten();
            all.extend(rest.map(|tracker| (tracker.clone(), Fate::Collected)));
        }
        for (tracker, _) in all.iter_mut().filter(|(tracker, fate)| *fate == Fate::Collected && !tracker.is_deleting())
        {
            if tracker.is_stored() {
                match api.delete("", tracker.name(), &DeleteParams::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error.to_string()),
                    _ => tracker.metadata.set_at(&["deletionTimestamp"], "now".into()),
                }
            }
        }
        // Who decides about an object follows from what is marked.
        let marked = Trackers {
            history: all
                .iter()
                .map(|(tracker, _)| tracker.clone())
                .filter(|tracker| tracker.kind == TrackerKind::Versioned)
                .collect(),
            current: self.trackers.current.clone().filter(|_| occasion != Occasion::Deleting),
            root: all
                .iter()
                .map(|(tracker, _)| tracker)
                .find(|tracker| tracker.kind == TrackerKind::Root)
                .cloned()
                .or(self.trackers.root.clone()),
        };
        let executors = collect::executors(&marked);
        let depends = policy.by_dependency.then_some(depends);
        let mut waiting: Vec<String> = Vec::new();
        for (tracker, fate) in &all {
            if *fate == Fate::Stays || (*fate == Fate::Archived && tracker.is_archived()) {
                continue;
            }
            let mut present = Vec::new();
            let mut live = HashMap::new();
            for entry in collect::own(tracker, &executors) {
                if let Some(object) = self.writer.owned(entry).await? {
                    live.insert(entry.key(), object);
                    present.push(entry);
                }
            }
            let mut remaining = present.len();
            for entry in collect::due(&present, depends) {
                if let Some(object) = live.get(&entry.key()) {
                    remaining -= usize::from(self.writer.remove(entry, object).await?);
                }
            }
            if remaining > 0 {
                waiting.extend(present.iter().map(|entry| {
                    let cluster = if entry.cluster.is_empty() { "local" } else { &entry.cluster };
                    let (kind, id) = (&entry.identity.kind.kind, &entry.identity);
                    format!("{kind} {} (Cluster: {cluster}, Namespace: {})", id.name, id.namespace)
                }));
            } else {
                finish(&api, tracker, *fate).await?;
            }
        }
        Ok(waiting.first().map(|first| {
            format!("Waiting for {first} to delete. (At least {} resources are deleting.)", waiting.len())
        }))
    }

    /// Brings a tracker that was archived, or of another version, back as the current one.
    ///
    /// # Errors
    ///
    /// The server's.
    pub async fn reactivate(&mut self, generation: i64) -> Result<(), String> {
        let Some(current) = &mut self.trackers.current else { return Ok(()) };
        if !current.is_archived() && current.generation == generation {
            return Ok(());
        }
        current.generation = generation;
        current.metadata.remove_at(&["annotations", names::ARCHIVED]);
        self.save(true).await
    }

    /// Every object that is to be kept, as `status.appliedResources` has it.
    pub fn applied(&self) -> Value {
        let kept = self.kept();
        let current = [&self.trackers.current, &self.trackers.root].into_iter().flatten();
        let entries = current.flat_map(|tracker| &tracker.entries).filter(|entry| kept.contains_key(&entry.key()));
        let list: Vec<object::Map> = entries
            .map(|entry| {
                let id = &entry.identity;
                let mut out = map! { "apiVersion" => id.kind.api_version(), "kind" => id.kind.kind.clone(), "name" => id.name.clone() };
                for (key, text) in [("namespace", &id.namespace), ("cluster", &entry.cluster)] {
                    if !text.is_empty() {
                        out.insert(key, text.clone());
                    }
                }
                out
            })
            .collect();
        list.into()
    }
}

/// Lets go of a tracker whose objects are gone.
async fn finish(api: &Api, tracker: &Tracker, fate: Fate) -> Result<(), String> {
    if !tracker.is_stored() {
        return Ok(());
    }
    let metadata = match fate {
        Fate::Archived => map! { "annotations" => map! { names::ARCHIVED => "true" } },
        _ => map! { "finalizers" => Value::Null },
    };
    let patch = Patch::Merge(map! { "metadata" => metadata }.into());
    match api.patch("", tracker.name(), &patch, &PatchParams::default()).await {
        Err(error) if !error.is_not_found() => Err(error.to_string()),
        _ => Ok(()),
    }
}

async fn store(api: &Api, tracker: &mut Tracker) -> Result<(), String> {
    let object = tracker.to_value();
    let stored = if tracker.is_stored() { api.update(&object).await } else { api.create("", &object).await };
    let stored = stored.map_err(|error| format!("resourcetracker {}: {error}", tracker.name()))?;
    tracker.metadata = stored.get("metadata").cloned().unwrap_or_default();
    Ok(())
}

fn joined(errors: Vec<String>) -> Result<(), String> {
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// An object for texts.
pub(crate) fn named(entry: &Entry) -> String {
    described(&entry.identity)
}
