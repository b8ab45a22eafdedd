//! Bringing rendered objects into their clusters, keeping them there, and collecting what is garbage.

use std::collections::{BTreeMap, HashMap, HashSet};

use client::{Api, Client};
use compact_str::CompactString;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use object::{Value, map};
use tokio::sync::Mutex;

use super::kinds::TRACKERS;
use super::names;
use super::policy::{Collect, Stage};
use super::tracker::{Entry, ResourceKey, Tracker, Trackers};
use super::write::{Applied, Attempt, Writer, described};

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
    /// Whether the current version was applied in full. Until then, what earlier versions have is kept as well.
    pub is_complete: bool,
}

/// [`Dispatcher::dispatch`] for several who share a dispatcher: it is only held while something is recorded, so that a
/// cluster that does not answer holds up nobody else.
///
/// # Errors
///
/// Everything that failed, in one text. What was recorded stays so.
pub async fn dispatch(
    writer: Writer<'_>,
    dispatcher: &Mutex<&mut Dispatcher<'_>>,
    manifests: Vec<Value>,
) -> Result<(), String> {
    let mut entries = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        entries.push(writer.entry(manifest).await?);
    }
    let new: Vec<&Entry> = {
        let dispatcher = dispatcher.lock().await;
        let recorded = dispatcher.recorded();
        let is_new = |entry: &&Entry| recorded.get(&entry.key()) != Some(&entry.raw.as_ref());
        entries.iter().filter(is_new).collect()
    };
    let tried = apply_all(writer, new, &|_| Attempt::Trial).await?;
    let missing: HashSet<ResourceKey> =
        tried.into_iter().filter(|(_, applied)| *applied == Applied::Made).map(|(key, _)| key).collect();
    {
        let mut dispatcher = dispatcher.lock().await;
        dispatcher.record(&entries).await?;
        dispatcher.claim();
    }
    // What the trial has just missed is not looked for again.
    let attempt = |entry: &Entry| Attempt::Real { is_new: missing.contains(&entry.key()) };
    apply_all(writer, entries.iter().collect(), &attempt).await?;
    Ok(())
}

/// Applies entries side by side; what each came to.
///
/// # Errors
///
/// Everything that failed, in one text.
async fn apply_all(
    writer: Writer<'_>,
    entries: Vec<&Entry>,
    attempt: &(dyn Fn(&Entry) -> Attempt + Sync),
) -> Result<Vec<(ResourceKey, Applied)>, String> {
    let work = entries.into_iter().filter_map(|entry| {
        let desired = entry.raw.as_ref()?;
        let attempt = attempt(entry);
        let work = async move { Ok((entry.key(), writer.apply(entry, desired, Stage::Update, attempt).await?)) };
        Some((entry.cluster.clone(), work.boxed()))
    });
    let (applied, errors): (Vec<_>, Vec<Result<_, String>>) =
        side_by_side(work.collect()).await.into_iter().partition(Result::is_ok);
    joined(errors.into_iter().filter_map(Result::err).collect())?;
    Ok(applied.into_iter().flatten().collect())
}

/// Does work side by side, that of each cluster by itself, so that a slow one takes no turns from others.
pub(super) async fn side_by_side<T>(work: Vec<(CompactString, BoxFuture<'_, T>)>) -> Vec<T> {
    let mut clusters: BTreeMap<CompactString, Vec<BoxFuture<'_, T>>> = BTreeMap::new();
    for (cluster, work) in work {
        clusters.entry(cluster).or_default().push(work);
    }
    let clusters = clusters.into_values().map(|work| stream::iter(work).buffer_unordered(WIDTH));
    stream::select_all(clusters).collect().await
}

impl Dispatcher<'_> {
    pub(super) fn api(&self) -> Api {
        self.client.api(&TRACKERS)
    }

    /// Applies rendered objects: all are tried without effect, then recorded, then applied. A failure of the trial records
    /// nothing, so that what cannot be the application's never gets into its trackers.
    ///
    /// # Errors
    ///
    /// Everything that failed, in one text. What was recorded stays so.
    pub async fn dispatch(&mut self, manifests: Vec<Value>) -> Result<(), String> {
        let writer = self.writer;
        dispatch(writer, &Mutex::new(self), manifests).await
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
                let applied = self.writer.apply(entry, raw, Stage::Keep, Attempt::Real { is_new: false }).await?;
                Ok(applied == Applied::Stale)
            }
        }
    }

    /// What is recorded of each object.
    fn recorded(&self) -> HashMap<ResourceKey, Option<&Value>> {
        let known = [&self.trackers.current, &self.trackers.root].into_iter().flatten();
        known.flat_map(|tracker| &tracker.entries).map(|entry| (entry.key(), entry.raw.as_ref())).collect()
    }

    /// Records entries in the trackers that keep them, and takes them out of those that do not.
    async fn record(&mut self, entries: &[Entry]) -> Result<(), String> {
        let policies = self.writer.policies;
        let mut of_version = Vec::new();
        let mut of_root = Vec::new();
        for entry in entries {
            let collects = entry.raw.as_ref().map(|raw| policies.collects(raw)).unwrap_or_default();
            let mut entry = entry.clone();
            if policies.apply_once {
                entry.raw = None;
            }
            entry.skip_gc = collects == Collect::Never;
            let list = if collects == Collect::OnUpdate { &mut of_version } else { &mut of_root };
            list.push(entry);
        }
        let Trackers { current, root, .. } = &mut self.trackers;
        let mut changed = [false; 2];
        for (index, (keeps, other, list)) in
            [(current, &of_root, &of_version), (root, &of_version, &of_root)].into_iter().enumerate()
        {
            let Some(keeps) = keeps else {
                if list.is_empty() {
                    continue;
                }
                return Err("there is no tracker to record in".to_owned());
            };
            let elsewhere: HashSet<ResourceKey> = other.iter().map(Entry::key).collect();
            let before = keeps.entries.len();
            keeps.entries.retain(|known| !elsewhere.contains(&known.key()));
            changed[index] = keeps.entries.len() != before;
            changed[index] |= keeps.record(list.iter().cloned());
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

    /// Whether a tracker that was told to go has the name of the current one.
    pub fn is_hindered(&self) -> bool {
        let current = self.trackers.current.as_ref();
        current.is_some_and(|current| self.trackers.history.iter().any(|old| old.name() == current.name()))
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
        let objects = kept.values().filter(|entry| !entry.deleted);
        let objects = objects.map(|entry| (entry.cluster.as_str(), &entry.identity));
        self.writer.fleet.claim(self.writer.owner, objects);
    }

    /// What is to be kept: the entries of the current tracker and the root, which counts more; and those of earlier
    /// versions for as long as they are what lives.
    pub fn kept(&self) -> BTreeMap<ResourceKey, &Entry> {
        let stays = |tracker: &&Tracker| !tracker.is_deleting() && !tracker.is_archived();
        let history = self.trackers.history.iter().filter(|_| !self.is_complete);
        let history = history.filter(stays).flat_map(|tracker| &tracker.entries).filter(|entry| !entry.deleted);
        let now = [&self.trackers.current, &self.trackers.root].into_iter().flatten().filter(stays);
        history.chain(now.flat_map(|tracker| &tracker.entries)).map(|entry| (entry.key(), entry)).collect()
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
        let work = entries
            .iter()
            .map(|entry| (entry.cluster.clone(), self.keep_one(entry).map(|done| (entry.key(), done)).boxed()));
        let done: Vec<(ResourceKey, Result<bool, String>)> = side_by_side(work.collect()).await;
        let mut stale = Vec::new();
        let mut errors = Vec::new();
        for (key, outcome) in done {
            match outcome {
                Ok(true) => stale.push(key),
                Ok(false) => {}
                // What is in a cluster that cannot be asked is told once, for all of it.
                Err(error) => match self.writer.fleet.trouble(&key.cluster) {
                    Some(why) if errors.contains(&why) => {}
                    Some(why) => errors.push(why),
                    None => errors.push(error),
                },
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

    /// Gives up what the current tracker has in clusters other than these: it is deleted when objects are kept next, or
    /// as soon as its cluster can be asked.
    ///
    /// # Errors
    ///
    /// The server's.
    pub async fn retire(&mut self, clusters: &[String]) -> Result<(), String> {
        let Some(current) = &mut self.trackers.current else { return Ok(()) };
        let is_left = |entry: &&Entry| !entry.deleted && !clusters.iter().any(|cluster| *cluster == entry.cluster);
        let left: Vec<Entry> = current.entries.iter().filter(is_left).cloned().collect();
        if left.is_empty() {
            return Ok(());
        }
        for entry in &left {
            current.record_deletion(entry);
        }
        self.save(true).await
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

pub(super) async fn store(api: &Api, tracker: &mut Tracker) -> Result<(), String> {
    let object = tracker.to_value();
    let stored = if tracker.is_stored() { api.update(&object).await } else { api.create("", &object).await };
    let stored = stored.map_err(|error| format!("resourcetracker {}: {error}", tracker.name()))?;
    tracker.metadata = stored.get("metadata").cloned().unwrap_or_default();
    Ok(())
}

pub(super) fn joined(errors: Vec<String>) -> Result<(), String> {
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// An object for texts.
pub(crate) fn named(entry: &Entry) -> String {
    described(&entry.identity)
}
