//! Collecting what is garbage, in each cluster by itself.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use client::{Api, DeleteParams, Patch, PatchParams};
use compact_str::CompactString;
use futures_util::FutureExt;
use object::{Value, map};

use super::collect::{self, Fate, Occasion};
use super::dispatch::{Dispatcher, joined, side_by_side, store};
use super::names;
use super::tracker::{Entry, ResourceKey, Tracker, TrackerKind, Trackers};

/// When garbage that waits for others is looked at again, should nobody tell that it is gone.
pub(super) const SOON: Duration = Duration::from_secs(3);

/// What has to be waited for before all garbage is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// What it is, for people.
    pub message: String,
    /// Whether all of it is in clusters that cannot be asked now: then there is no use in asking before they come back.
    pub is_away: bool,
}

/// What is known of an entry's object.
enum Found {
    /// It is there.
    Present(Value),
    /// It is gone, or never was the application's.
    Gone,
    /// Its cluster cannot be asked.
    Away(String),
}

impl Dispatcher<'_> {
    /// Collects what is garbage: marks trackers that have served their time, deletes the objects that are theirs alone,
    /// and lets go of trackers whose objects are gone. What there still is to wait for; `None` when all is done. What is
    /// in a cluster that cannot be asked holds up nothing but its own tracker.
    ///
    /// # Errors
    ///
    /// If it cannot be known whether something is gone, although its cluster answers; everything else is done.
    pub async fn collect(
        &mut self,
        occasion: Occasion,
        depends: &HashMap<String, Vec<String>>,
    ) -> Result<Option<Waiting>, String> {
        let policy = &self.writer.policies.collect;
        let mut all: Vec<(Tracker, Fate)> = self
            .trackers
            .history
            .iter()
            .map(|tracker| (tracker.clone(), collect::fate(tracker, &self.trackers, occasion, policy)))
            .collect();
        if occasion == Occasion::Deleting {
            let Trackers { current, root, component_revisions, .. } = &self.trackers;
            let rest = [current, root, component_revisions].into_iter().flatten();
            all.extend(rest.map(|tracker| (tracker.clone(), Fate::Collected)));
        }
        let api = self.api();
        for (tracker, _) in all.iter_mut().filter(|(tracker, fate)| *fate == Fate::Collected && !tracker.is_deleting())
        {
            if tracker.is_stored() {
                match api.delete("", tracker.name(), &DeleteParams::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error.to_string()),
                    _ => tracker.metadata.set_at(&["deletionTimestamp"], "now".into()),
                }
            }
        }
        let marked = self.marked(&all, occasion);
        let executors = collect::executors(&marked);
        let depends = policy.by_dependency.then_some(depends);
        let mut rest = Rest::default();
        for (tracker, fate) in &all {
            if *fate == Fate::Stays || (*fate == Fate::Archived && tracker.is_archived()) {
                continue;
            }
            if self.empty(&collect::own(tracker, &executors), depends, &mut rest).await {
                finish(&api, tracker, *fate).await?;
            }
        }
        rest.told()
    }

    /// The trackers as they are now that some are marked: who decides about an object follows from that.
    fn marked(&self, all: &[(Tracker, Fate)], occasion: Occasion) -> Trackers {
        let of = |kind: TrackerKind| all.iter().map(|(tracker, _)| tracker).filter(move |tracker| tracker.kind == kind);
        Trackers {
            history: of(TrackerKind::Versioned).cloned().collect(),
            current: self.trackers.current.clone().filter(|_| occasion != Occasion::Deleting),
            root: of(TrackerKind::Root).next().cloned().or(self.trackers.root.clone()),
            component_revisions: None,
        }
    }

    /// Deletes the revisions of components that the application no longer has.
    ///
    /// # Errors
    ///
    /// Why one cannot be deleted; the others are.
    pub async fn prune_component_revisions(&mut self) -> Result<(), String> {
        let Some(mut tracker) = self.trackers.component_revisions.take().filter(|tracker| !tracker.is_deleting())
        else {
            return Ok(());
        };
        let used: BTreeSet<CompactString> = self.kept().into_values().map(|entry| entry.component.clone()).collect();
        let (kept, unused): (Vec<Entry>, Vec<Entry>) =
            std::mem::take(&mut tracker.entries).into_iter().partition(|entry| used.contains(&entry.component));
        tracker.entries = kept;
        let mut errors = Vec::new();
        let is_changed = !unused.is_empty();
        for entry in unused {
            let gone = match self.writer.owned(&entry).await {
                Ok(Some(live)) => self.writer.remove(&entry, &live).await,
                Ok(None) => Ok(true),
                Err(error) => Err(error),
            };
            match gone {
                Ok(true) => {}
                Ok(false) => tracker.entries.push(entry),
                Err(error) => {
                    errors.push(error);
                    tracker.entries.push(entry);
                }
            }
        }
        if is_changed && let Err(error) = store(&self.api(), &mut tracker).await {
            errors.push(error);
        }
        self.trackers.component_revisions = Some(tracker);
        joined(errors)
    }

    /// Deletes the objects of entries, as far as it is their turn; whether all are gone.
    async fn empty(&self, entries: &[&Entry], depends: Option<&HashMap<String, Vec<String>>>, rest: &mut Rest) -> bool {
        let look = entries.iter().map(|entry| (entry.cluster.clone(), self.find(entry).boxed()));
        let mut left = Vec::new();
        let mut live = HashMap::new();
        let mut is_known = true;
        for (entry, found) in side_by_side(look.collect()).await {
            match found {
                Ok(Found::Gone) => {}
                Ok(Found::Present(object)) => {
                    live.insert(entry.key(), object);
                    left.push(entry);
                }
                Ok(Found::Away(why)) => {
                    rest.away.insert(why);
                    left.push(entry);
                }
                Err(error) => {
                    is_known = false;
                    rest.errors.push(error);
                }
            }
        }
        let due = collect::due(&left, depends);
        let now: BTreeSet<ResourceKey> = due.iter().map(|entry| entry.key()).collect();
        let delete = due.into_iter().filter_map(|entry| {
            let object = live.get(&entry.key())?;
            let work = async move { (entry, self.writer.remove(entry, object).await) };
            Some((entry.cluster.clone(), work.boxed()))
        });
        let mut gone = BTreeSet::new();
        for (entry, outcome) in side_by_side(delete.collect()).await {
            match outcome {
                Ok(true) => _ = gone.insert(entry.key()),
                Ok(false) => {}
                Err(error) => match self.writer.fleet.trouble(&entry.cluster) {
                    Some(why) => _ = rest.away.insert(why),
                    None => rest.errors.push(error),
                },
            }
        }
        left.retain(|entry| !gone.contains(&entry.key()));
        // What is going is told first.
        left.sort_by_key(|entry| (!now.contains(&entry.key()), entry.key()));
        for entry in &left {
            rest.left.push(told(entry));
            rest.present += usize::from(self.writer.fleet.trouble(&entry.cluster).is_none());
        }
        is_known && left.is_empty()
    }

    async fn find<'e>(&self, entry: &'e Entry) -> (&'e Entry, Result<Found, String>) {
        let found = match self.writer.owned(entry).await {
            Ok(Some(object)) => Ok(Found::Present(object)),
            Ok(None) => Ok(Found::Gone),
            Err(error) => match self.writer.fleet.trouble(&entry.cluster) {
                Some(why) => Ok(Found::Away(why)),
                None => Err(error),
            },
        };
        (entry, found)
    }
}

/// What is left of all trackers that are to be emptied.
#[derive(Debug, Default)]
struct Rest {
    /// The objects that are not known to be gone, for people.
    left: Vec<String>,
    /// How many of them are in clusters that can be asked.
    present: usize,
    /// Why clusters cannot be asked.
    away: BTreeSet<String>,
    /// What else is not known, and why.
    errors: Vec<String>,
}

impl Rest {
    fn told(self) -> Result<Option<Waiting>, String> {
        if !self.errors.is_empty() {
            return Err(self.errors.join("; "));
        }
        let Some(first) = self.left.first() else { return Ok(None) };
        let mut message =
            format!("Waiting for {first} to delete. (At least {} resources are deleting.)", self.left.len());
        for why in &self.away {
            message += &format!(" {why};");
        }
        if !self.away.is_empty() {
            message += " this goes on when it can be asked again, or is detached (`stanchion cluster detach --orphan`)";
        }
        Ok(Some(Waiting { message, is_away: self.present == 0 }))
    }
}

fn told(entry: &Entry) -> String {
    let cluster = if entry.cluster.is_empty() { "local" } else { &entry.cluster };
    let (kind, id) = (&entry.identity.kind.kind, &entry.identity);
    format!("{kind} {} (Cluster: {cluster}, Namespace: {})", id.name, id.namespace)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_with_the_clusters_that_cannot_be_asked() {
        let rest = |left: &[&str], present, away: &[&str], errors: &[&str]| Rest {
            left: left.iter().map(|text| (*text).to_owned()).collect(),
            present,
            away: away.iter().map(|text| (*text).to_owned()).collect(),
            errors: errors.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(rest(&[], 0, &[], &[]).told(), Ok(None));
        assert_eq!(rest(&["a"], 1, &["eu is away"], &["no"]).told(), Err("no".to_owned()));
        let message = "Waiting for a to delete. (At least 2 resources are deleting.)";
        let waiting = Waiting { message: message.to_owned(), is_away: false };
        assert_eq!(rest(&["a", "b"], 2, &[], &[]).told(), Ok(Some(waiting)));
        let told = rest(&["a"], 0, &["eu is away"], &[]).told().unwrap_or_default().unwrap_or_default();
        assert!(told.is_away && told.message.contains("eu is away; this goes on"), "{told:?}");
    }
}
