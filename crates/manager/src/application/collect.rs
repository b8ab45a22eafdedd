//! What is garbage: which trackers have served their time, and what of their objects goes.

use std::collections::{HashMap, HashSet};

use super::policy::GarbageCollect;
use super::tracker::{Entry, ResourceKey, Tracker, Trackers};

/// What an application has come to, as far as collecting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The version that is declared was applied in full.
    Succeeded,
    /// Its workflow failed or was ended.
    Failed,
    /// Its workflow is not through.
    Running,
    /// The application is being deleted.
    Deleting,
}

/// What one tracker is to undergo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays.
    Stays,
    /// Its objects go, and then it goes.
    Collected,
    /// Its objects go; the record stays, for a rollback.
    Archived,
}

/// What `tracker`, one of the history, is to undergo.
///
/// Nothing is collected before a newer tracker exists that has applied its own objects in full: so long, what lives may
/// be all there is.
pub fn fate(tracker: &Tracker, all: &Trackers, occasion: Occasion, policy: &GarbageCollect) -> Fate {
    if occasion == Occasion::Deleting || tracker.is_deleting() {
        return Fate::Collected;
    }
    let may = match occasion {
        Occasion::Succeeded => true,
        Occasion::Failed => policy.continue_on_failure,
        Occasion::Running | Occasion::Deleting => false,
    };
    if !may || all.current.is_none() {
        return Fate::Stays;
    }
    if policy.keep_legacy {
        // What has no objects of its own any more is of no use.
        let is_left = tracker.entries.iter().any(|entry| !is_elsewhere(entry, tracker, all));
        return if is_left { Fate::Stays } else { Fate::Collected };
    }
    if tracker.publish_version().is_empty() { Fate::Collected } else { Fate::Archived }
}

/// Whether a newer tracker than `tracker` has the object too.
fn is_elsewhere(entry: &Entry, tracker: &Tracker, all: &Trackers) -> bool {
    executors(all).get(&entry.key()).is_some_and(|executor| *executor != tracker.name())
}

/// Which tracker decides about each object: the newest that has it and is to stay; if none stays, the newest.
pub fn executors(all: &Trackers) -> HashMap<ResourceKey, &str> {
    let mut executors: HashMap<ResourceKey, (&str, bool)> = HashMap::new();
    for tracker in all.iter() {
        let stays = !tracker.is_deleting() && !tracker.is_archived();
        for entry in &tracker.entries {
            let executor = executors.entry(entry.key()).or_insert((tracker.name(), stays));
            if stays || !executor.1 {
                *executor = (tracker.name(), stays);
            }
        }
    }
    executors.into_iter().map(|(key, (name, _))| (key, name)).collect()
}

/// The objects of a tracker that is to be collected: those about which it decides itself.
pub fn own<'a>(tracker: &'a Tracker, executors: &HashMap<ResourceKey, &str>) -> Vec<&'a Entry> {
    let is_own = |entry: &&Entry| executors.get(&entry.key()).is_none_or(|executor| *executor == tracker.name());
    tracker.entries.iter().filter(is_own).collect()
}

/// Of `entries`, which all still exist, those that may go now: with an order by dependency, only those on whose
/// components no other depends. `depends` says which components each component needs.
pub fn due<'a>(entries: &[&'a Entry], depends: Option<&HashMap<String, Vec<String>>>) -> Vec<&'a Entry> {
    let Some(depends) = depends else { return entries.to_vec() };
    let present: HashSet<&str> = entries.iter().map(|entry| entry.component.as_str()).collect();
    let needed: HashSet<&str> = depends
        .iter()
        .filter(|(component, _)| present.contains(component.as_str()))
        .flat_map(|(component, needs)| needs.iter().filter(move |need| *need != component))
        .map(String::as_str)
        .collect();
    let free: Vec<&Entry> =
        entries.iter().filter(|entry| !needed.contains(entry.component.as_str())).copied().collect();
    // Components that need each other would wait for ever.
    if free.is_empty() { entries.to_vec() } else { free }
}

/// How many of `revisions` (oldest first; names) are too many, and which. `in_use` are never: the current one and those
/// that a tracker serves.
pub fn surplus<'a>(revisions: &'a [String], limit: usize, in_use: &HashSet<&str>) -> Vec<&'a str> {
    let spare: Vec<&str> = revisions.iter().map(String::as_str).filter(|revision| !in_use.contains(revision)).collect();
    let excess = spare.len().saturating_sub(limit);
    spare.into_iter().take(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compression::Compression;
    use super::super::names;
    use super::super::tracker::Owner;
    use super::*;
    use object::json;

    const OWNER: Owner<'static> = Owner { namespace: "n", name: "app", uid: "u" };

    fn entry(name: &str, component: &str) -> Entry {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"n","labels":{{"app.oam.dev/component":"{component}"}}}}}}"#
        );
        Entry::of(&json::parse(text.as_bytes()).unwrap_or_default()).unwrap_or_default()
    }

    fn tracker(generation: i64, publish_version: &str, objects: &[&str]) -> Tracker {
        let revision = format!("app-v{generation}");
        let mut tracker = Tracker::versioned(OWNER, generation, &revision, publish_version, Compression::None);
        tracker.entries = objects.iter().map(|name| entry(name, name)).collect();
        tracker
    }

    fn names<'a>(entries: &[&'a Entry]) -> Vec<&'a str> {
        entries.iter().map(|entry| entry.identity.name.as_str()).collect()
    }

    #[test]
    fn only_what_no_newer_tracker_has_goes() {
        let all = Trackers {
            history: vec![tracker(1, "", &["a", "b", "c"]), tracker(2, "", &["b", "d"])],
            current: Some(tracker(3, "", &["a"])),
            root: None,
            component_revisions: None,
        };
        let executors = executors(&all);
        assert_eq!(names(&own(&all.history[0], &executors)), ["c"]);
        assert_eq!(names(&own(&all.history[1], &executors)), ["b", "d"]);
        // A tracker that is to go leaves its objects to the newest that stays.
        let mut leaving = all.clone();
        leaving.history[1].metadata.set_at(&["deletionTimestamp"], "now".into());
        assert_eq!(names(&own(&leaving.history[0], &super::executors(&leaving))), ["b", "c"]);
    }

    #[test]
    fn a_tracker_is_collected_when_its_successor_has_applied_everything() {
        let policy = GarbageCollect::default();
        let keep = GarbageCollect { keep_legacy: true, ..policy.clone() };
        let go_on = GarbageCollect { continue_on_failure: true, ..policy.clone() };
        let with = |current: Option<Tracker>| Trackers { current, ..Trackers::default() };
        let current = || with(Some(tracker(2, "", &["a"])));
        for (old, all, occasion, policy, expected) in [
            (tracker(1, "", &["a"]), current(), Occasion::Succeeded, &policy, Fate::Collected),
            (tracker(1, "v1", &["a"]), current(), Occasion::Succeeded, &policy, Fate::Archived),
            (tracker(1, "", &["a"]), with(None), Occasion::Succeeded, &policy, Fate::Stays),
            (tracker(1, "", &["a"]), current(), Occasion::Running, &policy, Fate::Stays),
            (tracker(1, "", &["a"]), current(), Occasion::Failed, &policy, Fate::Stays),
            (tracker(1, "", &["a"]), current(), Occasion::Failed, &go_on, Fate::Collected),
            (tracker(1, "", &["b"]), current(), Occasion::Succeeded, &keep, Fate::Stays),
            (tracker(1, "", &["b"]), with(None), Occasion::Deleting, &keep, Fate::Collected),
        ] {
            let all = Trackers { history: vec![old.clone()], ..all };
            assert_eq!(fate(&old, &all, occasion, policy), expected, "{occasion:?} {policy:?}");
        }
        // What its successor has as well holds nothing back.
        let all = Trackers { history: vec![tracker(1, "", &["a"])], ..current() };
        assert_eq!(fate(&all.history[0], &all, Occasion::Succeeded, &keep), Fate::Collected);
    }

    #[test]
    fn consumers_go_before_what_they_need() {
        let (web, db, loose) = (entry("web", "web"), entry("db", "db"), entry("loose", "loose"));
        let depends = HashMap::from([("web".to_owned(), vec!["db".to_owned()])]);
        assert_eq!(names(&due(&[&web, &db, &loose], Some(&depends))), ["web", "loose"]);
        assert_eq!(names(&due(&[&db], Some(&depends))), ["db"]);
        let circle =
            HashMap::from([("web".to_owned(), vec!["db".to_owned()]), ("db".to_owned(), vec!["web".to_owned()])]);
        assert_eq!(due(&[&web, &db], Some(&circle)).len(), 2);
        assert_eq!(due(&[&web, &db], None).len(), 2);
    }

    #[test]
    fn surplus_revisions_are_the_oldest_that_nothing_uses() {
        let revisions: Vec<String> = (1..=5).map(|n| format!("app-v{n}")).collect();
        let in_use = HashSet::from(["app-v5", "app-v1"]);
        assert_eq!(surplus(&revisions, 2, &in_use), ["app-v2"]);
        assert_eq!(surplus(&revisions, 10, &in_use), Vec::<&str>::new());
        assert_eq!(surplus(&revisions, 0, &in_use).len(), 3);
    }

    #[test]
    fn the_record_of_what_is_archived_decides_nothing() {
        let mut old = tracker(1, "v1", &["a"]);
        old.metadata.object_entry("annotations").insert(names::ARCHIVED, "true");
        let all = Trackers { history: vec![old], current: Some(tracker(2, "v2", &["b"])), ..Trackers::default() };
        assert_eq!(executors(&all).len(), 2);
        assert_eq!(names(&own(&all.history[0], &executors(&all))), ["a"]);
    }
}
