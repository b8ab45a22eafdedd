//! What happened to the objects of a kind, as one watch told it, and whether everything else agrees: other watches, lists, and
//! the answers to writes.

use object::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of anything.
pub fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An object came.
    Added,
    /// An object changed.
    Modified,
    /// An object went.
    Deleted,
}

/// An object as far as it matters here; texts are hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its `resourceVersion`.
    pub version: u64,
    /// Its `uid`.
    pub uid: u64,
    /// Its namespace and name.
    pub place: u64,
    /// Its namespace.
    pub namespace: u64,
    /// Whether its label `team` is `red`.
    pub red: bool,
    /// Whether it is being deleted.
    pub ends: bool,
    /// All of it.
    pub content: u64,
}

impl Held {
    /// Reads an object; nothing where it has no version or uid.
    pub fn read(object: &Value) -> Option<Held> {
        let meta = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
        let version = meta("resourceVersion").parse().ok()?;
        let uid = object.str_at(&["metadata", "uid"])?;
        Some(Held {
            version,
            uid: digest(uid),
            place: digest((meta("namespace"), meta("name"))),
            namespace: digest(meta("namespace")),
            red: object.str_at(&["metadata", "labels", "team"]) == Some("red"),
            ends: object.at(&["metadata", "deletionTimestamp"]).is_some(),
            content: digest(json::to_string(object)),
        })
    }

    fn mark(&self) -> u64 {
        digest((self.uid, self.version))
    }
}

/// The digest of a set of objects; their order does not matter.
pub fn set_digest<'h>(objects: impl Iterator<Item = &'h Held>) -> u64 {
    objects.fold(0, |all, held| all ^ held.mark())
}

/// What a watch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The hash of a namespace, or nothing for all of them.
    pub namespace: Option<u64>,
    /// Whether only objects of the red team are seen.
    pub red: bool,
    /// Whether objects are seen whole and not only their metadata.
    pub whole: bool,
}

/// What a watch saw, from the version that it began after until the last that it was told of.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What the watch is of.
    pub scope: Scope,
    /// The version that it began after.
    pub after: u64,
    /// The version of its last event or bookmark.
    pub until: u64,
    /// The version of each event, and its [`Scope::told`].
    pub events: Vec<(u64, u64)>,
}

impl Scope {
    /// What is compared of an event.
    pub fn told(&self, ty: Type, held: &Held) -> u64 {
        // An object that leaves a selection is told as it was; what it was is not known here.
        let content = if self.whole && !self.red { held.content } else { 0 };
        digest((ty, held.uid, content))
    }
}

/// All that is known of a kind.
#[derive(Debug, Default)]
pub struct History {
    /// The version of the list at the beginning.
    pub began: u64,
    /// The objects at the beginning.
    pub baseline: Vec<Held>,
    /// Every event since, as the recording watch told it.
    pub events: Vec<(Type, Held)>,
    /// The objects that writes answered with.
    pub acknowledged: Vec<Held>,
    /// The uids of objects whose deletion was acknowledged.
    pub deleted: Vec<u64>,
    /// Lists: their version and the [`set_digest`] of their objects.
    pub lists: Vec<(u64, u64)>,
    /// What other watches saw.
    pub seen: Vec<Seen>,
}

impl History {
    /// The objects that there are after all events.
    pub fn state(&self) -> BTreeMap<u64, Held> {
        let mut state: BTreeMap<u64, Held> = self.baseline.iter().map(|held| (held.place, *held)).collect();
        for (ty, held) in &self.events {
            match ty {
                Type::Deleted => state.remove(&held.place),
                Type::Added | Type::Modified => state.insert(held.place, *held),
            };
        }
        state
    }

    /// Everything that does not agree.
    pub fn faults(&mut self) -> Vec<String> {
        let mut faults = Vec::new();
        self.lists.sort_unstable();
        let steps = self.replay(&mut faults);
        self.check_writes(&mut faults);
        for seen in &self.seen {
            check_watch(seen, &self.events, &steps, &mut faults);
        }
        faults
    }

    /// Goes through the events; gives how each looks to those who see the red team only.
    fn replay(&self, faults: &mut Vec<String>) -> Vec<Option<Type>> {
        let mut state: HashMap<u64, Held> = self.baseline.iter().map(|held| (held.place, *held)).collect();
        let mut set = set_digest(self.baseline.iter());
        let mut lists = self.lists.iter().filter(|(version, _)| *version >= self.began).peekable();
        let mut steps = Vec::with_capacity(self.events.len());
        let mut last = self.began;
        for (ty, held) in &self.events {
            while let Some((version, wanted)) = lists.next_if(|(version, _)| *version < held.version) {
                if *wanted != set {
                    faults.push(format!("a list at {version} differs from the history"));
                }
            }
            if held.version <= last {
                faults.push(format!("the event {} follows {last}", held.version));
            }
            last = held.version;
            let before = match ty {
                Type::Deleted => state.remove(&held.place),
                Type::Added | Type::Modified => state.insert(held.place, *held),
            };
            let fits = match (ty, &before) {
                (Type::Added, None) => true,
                (Type::Modified | Type::Deleted, Some(before)) => before.uid == held.uid,
                _ => false,
            };
            if !fits {
                faults.push(format!("the event {} is {ty:?}, and before it there was {before:?}", held.version));
            }
            set ^= before.map_or(0, |held| held.mark());
            set ^= if *ty == Type::Deleted { 0 } else { held.mark() };
            let now = *ty != Type::Deleted && held.red;
            steps.push(match (before.is_some_and(|held| held.red), now) {
                (false, true) => Some(Type::Added),
                (true, true) => Some(Type::Modified),
                (true, false) => Some(Type::Deleted),
                (false, false) => None,
            });
        }
        for (version, _) in lists.filter(|(_, wanted)| *wanted != set) {
            faults.push(format!("a list at {version} differs from the history"));
        }
        steps
    }

    fn check_writes(&self, faults: &mut Vec<String>) {
        let events: HashMap<u64, &Held> = self.events.iter().map(|(_, held)| (held.version, held)).collect();
        for write in self.acknowledged.iter().filter(|write| write.version > self.began) {
            match events.get(&write.version) {
                None => faults.push(format!("the write {} was acknowledged and is not in the history", write.version)),
                Some(event) if event.uid != write.uid || event.content != write.content => {
                    faults.push(format!("the write {} was answered otherwise than it was told", write.version));
                }
                Some(_) => {}
            }
        }
        let left: HashMap<u64, Held> = self.state().into_values().map(|held| (held.uid, held)).collect();
        for held in self.deleted.iter().filter_map(|uid| left.get(uid)).filter(|held| !held.ends) {
            faults.push(format!("an object whose deletion was acknowledged is there, at version {}", held.version));
        }
    }
}

/// Compares what a watch saw with what happened.
fn check_watch(seen: &Seen, events: &[(Type, Held)], steps: &[Option<Type>], faults: &mut Vec<String>) {
    let start = events.partition_point(|(_, held)| held.version <= seen.after);
    let end = events.partition_point(|(_, held)| held.version <= seen.until);
    let mut wanted = Vec::new();
    for ((ty, held), selected) in events.iter().zip(steps).take(end).skip(start) {
        let ty = if seen.scope.red { *selected } else { Some(*ty) };
        let inside = seen.scope.namespace.is_none_or(|namespace| namespace == held.namespace);
        if let (Some(ty), true) = (ty, inside) {
            wanted.push((held.version, seen.scope.told(ty, held)));
        }
    }
    if wanted == seen.events {
        return;
    }
    let place =
        wanted.iter().zip(&seen.events).position(|(a, b)| a != b).unwrap_or(wanted.len().min(seen.events.len()));
    faults.push(format!(
        "a watch {:?} of ({}, {}] saw {} events of {}; number {place} is at version {:?}, it should be at {:?}",
        seen.scope,
        seen.after,
        seen.until,
        seen.events.len(),
        wanted.len(),
        seen.events.get(place).map(|e| e.0),
        wanted.get(place).map(|e| e.0),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(version: u64, place: u64, red: bool) -> Held {
        Held { version, uid: place, place, namespace: place % 2, red, ends: false, content: version }
    }

    fn history() -> History {
        let events = vec![
            (Type::Added, held(2, 1, true)),
            (Type::Added, held(4, 2, false)),
            (Type::Modified, held(5, 1, false)),
            (Type::Modified, held(7, 2, true)),
            (Type::Deleted, held(9, 2, true)),
        ];
        History { began: 1, events, ..History::default() }
    }

    fn seen(scope: Scope, after: u64, until: u64, events: &[(Type, Held)]) -> Seen {
        Seen { scope, after, until, events: events.iter().map(|(ty, h)| (h.version, scope.told(*ty, h))).collect() }
    }

    const ALL: Scope = Scope { namespace: None, red: false, whole: true };

    #[test]
    fn what_agrees_has_no_faults() {
        let mut history = history();
        let all = history.events.clone();
        history.seen.push(seen(ALL, 1, 9, &all));
        history.seen.push(seen(ALL, 4, 8, &all[2..4]));
        history.seen.push(seen(Scope { namespace: Some(1), ..ALL }, 1, 9, &[all[0], all[2]]));
        let red = [(Type::Added, all[0].1), (Type::Deleted, all[2].1), (Type::Added, all[3].1), all[4]];
        history.seen.push(seen(Scope { red: true, ..ALL }, 1, 9, &red));
        history.acknowledged.push(held(4, 2, false));
        history.deleted.push(2);
        history.lists.push((6, set_digest([held(5, 1, false), held(4, 2, false)].iter())));
        assert_eq!(history.faults(), Vec::<String>::new());
    }

    #[test]
    fn what_is_lost_or_told_twice_is_found() {
        let all = history().events;
        type Change<'c> = Box<dyn Fn(&mut History) + 'c>;
        let changes: Vec<Change<'_>> = vec![
            Box::new(|h| h.seen.push(seen(ALL, 1, 9, &all[..4]))),
            Box::new(|h| h.seen.push(seen(ALL, 1, 4, &[all[0], all[0], all[1]]))),
            Box::new(|h| h.seen.push(seen(ALL, 1, 4, &[all[1], all[0]]))),
            Box::new(|h| h.events.swap(0, 1)),
            Box::new(|h| h.acknowledged.push(held(6, 1, false))),
            Box::new(|h| h.acknowledged.push(held(5, 2, false))),
            Box::new(|h| h.deleted.push(1)),
            Box::new(|h| h.lists.push((9, 0))),
            Box::new(|h| h.events[2].0 = Type::Added),
        ];
        for (place, change) in changes.iter().enumerate() {
            let mut history = history();
            change(&mut history);
            assert!(!history.faults().is_empty(), "{place}");
        }
    }
}
