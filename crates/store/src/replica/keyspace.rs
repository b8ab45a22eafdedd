//! All keys with their versions, in memory: what reads are answered from.
//!
//! A key's slot holds its present state and, as long as the history reaches back, the states before. The history is
//! the list of all events after the compacted revision. Revisions may leave some out, and one may have several keys.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU64;
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::clock::to_millis;
use crate::{Entry, Event, FIRST_REVISION, Key, ListOptions, Page, Range, ReadError, Revision};

/// What memory an event takes by itself, in bytes: the event, its place in the history and in the queues of watches.
const EVENT_OVERHEAD: u64 = 160;

/// One write that was decided, before and after it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub revision: Revision,
    pub key: Key,
    /// The new value and when it expires (milliseconds since 1970); `None` for a delete.
    pub put: Option<(Bytes, Option<NonZeroU64>)>,
}

/// The value of a key between two writes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub value: Bytes,
    pub create_revision: Revision,
    pub mod_revision: Revision,
    pub version: u64,
    pub expires: Option<NonZeroU64>,
}

impl Version {
    /// The version that an entry tells of, and its key.
    pub fn of(entry: Entry, expires: Option<SystemTime>) -> (Key, Self) {
        let Entry { key, value, create_revision, mod_revision, version } = entry;
        let expires = expires.and_then(|time| NonZeroU64::new(to_millis(time).max(1)));
        (key, Self { value, create_revision, mod_revision, version, expires })
    }

    pub fn entry(&self, key: &Key) -> Entry {
        Entry {
            key: key.clone(),
            value: self.value.clone(),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
        }
    }

    /// The version that a put makes of the one before.
    pub fn after(before: Option<&Self>, revision: Revision, value: Bytes, expires: Option<NonZeroU64>) -> Self {
        Self {
            value,
            create_revision: before.map_or(revision, |before| before.create_revision),
            mod_revision: revision,
            version: before.map_or(1, |before| before.version + 1),
            expires,
        }
    }
}

#[derive(Debug)]
enum State {
    Live(Version),
    /// Deleted at this revision.
    Gone(Revision),
}

impl State {
    fn since(&self) -> Revision {
        match self {
            Self::Live(version) => version.mod_revision,
            Self::Gone(revision) => *revision,
        }
    }

    fn live(&self) -> Option<&Version> {
        match self {
            Self::Live(version) => Some(version),
            Self::Gone(_) => None,
        }
    }
}

#[derive(Debug)]
struct Slot {
    state: State,
    /// The states before, oldest first. Boxed because few keys have any: a slot stays small.
    #[expect(clippy::box_collection, reason = "one word instead of three in every slot")]
    older: Option<Box<Vec<State>>>,
}

impl Slot {
    fn at(&self, revision: Revision) -> Option<&Version> {
        if self.state.since() <= revision {
            return self.state.live();
        }
        self.older.as_ref()?.iter().rev().find(|state| state.since() <= revision)?.live()
    }

    /// Forgets what no read at `oldest` or later can see. False if nothing is left.
    fn forget(&mut self, oldest: Revision) -> bool {
        if self.state.since() <= oldest {
            self.older = None;
            return self.state.live().is_some();
        }
        if let Some(older) = &mut self.older {
            let seen = older.partition_point(|state| state.since() <= oldest);
            // The newest of the states up to `oldest` is what `oldest` shows; nothing before a delete matters.
            let drop = match seen.checked_sub(1).and_then(|last| older.get(last)) {
                Some(State::Gone(_)) => seen,
                Some(State::Live(_)) => seen - 1,
                None => 0,
            };
            older.drain(..drop);
            if older.is_empty() {
                self.older = None;
            }
        }
        true
    }
}

/// How many present keys begin with each prefix that ends with `/`: a page of a list says how many keys follow it.
#[derive(Debug, Default)]
struct Folders(HashMap<Key, u64>);

impl Folders {
    fn add(&mut self, key: &str) {
        for (at, _) in key.match_indices('/') {
            let Some(folder) = key.get(..=at) else { continue };
            match self.0.get_mut(folder) {
                Some(count) => *count += 1,
                None => drop(self.0.insert(folder.into(), 1)),
            }
        }
    }

    fn remove(&mut self, key: &str) {
        for (at, _) in key.match_indices('/') {
            let Some(folder) = key.get(..=at) else { continue };
            match self.0.get_mut(folder) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.0.remove(folder)),
            }
        }
    }

    /// How many keys are in a range; nothing if that is not counted.
    fn count(&self, range: &Range) -> Option<u64> {
        match range {
            Range::Prefix(prefix) if prefix.ends_with('/') => Some(self.0.get(prefix).copied().unwrap_or(0)),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Keyspace {
    slots: BTreeMap<Key, Slot>,
    /// The events after `compacted`, up to `current`.
    history: VecDeque<Arc<Event>>,
    /// When commits took place (milliseconds) and the last revision of each; only of what is in the history.
    times: VecDeque<(u64, Revision)>,
    history_bytes: u64,
    current: Revision,
    compacted: Revision,
    folders: Folders,
    keys: u64,
    live_bytes: u64,
    /// The keys that expire, by time and the revision that set it.
    expiring: BTreeMap<(NonZeroU64, Revision), Key>,
}

impl Keyspace {
    /// A keyspace at `revision` with these versions, sorted by key, and no history.
    pub fn new(revision: Revision, versions: Vec<(Key, Version)>) -> Self {
        let keys = versions.len() as u64;
        let live_bytes = versions.iter().map(|(key, version)| (key.len() + version.value.len()) as u64).sum();
        let expiring = versions
            .iter()
            .filter_map(|(key, version)| Some(((version.expires?, version.mod_revision), key.clone())))
            .collect();
        let mut folders = Folders::default();
        versions.iter().for_each(|(key, _)| folders.add(key));
        let slots = versions
            .into_iter()
            .map(|(key, version)| (key, Slot { state: State::Live(version), older: None }))
            .collect();
        Self {
            slots,
            history: VecDeque::new(),
            times: VecDeque::new(),
            history_bytes: 0,
            current: revision,
            compacted: revision,
            folders,
            keys,
            live_bytes,
            expiring,
        }
    }

    /// An empty keyspace.
    pub fn empty() -> Self {
        Self::new(FIRST_REVISION, Vec::new())
    }

    pub fn current(&self) -> Revision {
        self.current
    }

    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    pub fn keys(&self) -> u64 {
        self.keys
    }

    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub fn history_len(&self) -> u64 {
        self.history.len() as u64
    }

    pub fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    /// The present version of a key.
    pub fn version(&self, key: &str) -> Option<&Version> {
        self.slots.get(key)?.state.live()
    }

    pub fn get(&self, key: &str, at: Option<Revision>) -> Result<Option<Entry>, ReadError> {
        let at = self.readable(at)?;
        let found = self.slots.get_key_value(key);
        Ok(found.and_then(|(key, slot)| Some(slot.at(at)?.entry(key))))
    }

    pub fn list(&self, range: &Range, options: &ListOptions) -> Result<Page, ReadError> {
        let at = self.readable(options.at)?;
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let mut seen = self.visible(range, options.after.as_deref(), at);
        let entries: Vec<Entry> = seen.by_ref().take(limit).map(|(key, version)| version.entry(key)).collect();
        let all = self.folders.count(range).filter(|_| options.after.is_none() && at == self.current);
        let remaining = match all {
            Some(all) => all.saturating_sub(entries.len() as u64),
            None => seen.count() as u64,
        };
        Ok(Page { entries, revision: at, remaining })
    }

    pub fn count(&self, range: &Range) -> u64 {
        self.folders.count(range).unwrap_or_else(|| self.visible(range, None, self.current).count() as u64)
    }

    /// At most `limit` versions after the key `after`, at `at`, for a snapshot.
    pub fn versions(&self, after: Option<&str>, at: Revision, limit: usize) -> Vec<(Key, Version)> {
        let everything = Range::prefix("");
        self.visible(&everything, after, at).take(limit).map(|(key, version)| (key.clone(), version.clone())).collect()
    }

    fn visible<'a>(
        &'a self,
        range: &'a Range,
        after: Option<&'a str>,
        at: Revision,
    ) -> impl Iterator<Item = (&'a Key, &'a Version)> {
        let start = range.start();
        let lower = match after {
            Some(after) if after >= start => Bound::Excluded(after),
            _ => Bound::Included(start),
        };
        self.slots
            .range::<str, _>((lower, Bound::Unbounded))
            .take_while(|(key, _)| range.contains(key))
            .filter_map(move |(key, slot)| Some((key, slot.at(at)?)))
    }

    fn readable(&self, at: Option<Revision>) -> Result<Revision, ReadError> {
        let at = at.unwrap_or(self.current);
        if at < self.compacted {
            return Err(ReadError::Compacted { requested: at, oldest: self.compacted });
        }
        if at > self.current {
            return Err(ReadError::Future { requested: at, current: self.current });
        }
        Ok(at)
    }

    /// The events after `after`, oldest first; all that are kept if `after` is older than the history.
    pub fn events_after(&self, after: Revision) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let skip = self.history.partition_point(|event| event.revision <= after);
        self.history.range(skip..)
    }

    /// Moves on to a later revision at which nothing was written; tells whether it is later.
    pub fn advance(&mut self, revision: Revision) -> bool {
        let later = revision > self.current;
        if later {
            self.current = revision;
        }
        later
    }

    /// Makes a record's change. The record's revision must not be older than the present one.
    pub fn apply(&mut self, record: Record) -> Arc<Event> {
        let Record { revision, key, put } = record;
        debug_assert!(revision >= self.current);
        self.current = revision;
        let before = self.slots.get(&key).and_then(|slot| slot.state.live());
        let previous = before.map(|before| before.value.clone());
        match (&put, before) {
            (Some(_), None) => self.folders.add(&key),
            (None, Some(_)) => self.folders.remove(&key),
            _ => {}
        }
        if let Some(before) = before {
            self.keys -= 1;
            self.live_bytes -= (key.len() + before.value.len()) as u64;
            if let Some(expires) = before.expires {
                self.expiring.remove(&(expires, before.mod_revision));
            }
        }
        let value = put.as_ref().map(|(value, _)| value.clone());
        let state = match put {
            Some((value, expires)) => {
                self.keys += 1;
                self.live_bytes += (key.len() + value.len()) as u64;
                if let Some(expires) = expires {
                    self.expiring.insert((expires, revision), key.clone());
                }
                State::Live(Version::after(before, revision, value, expires))
            }
            None => State::Gone(revision),
        };
        // The slot's own key is the one to share: a writer's copy of it would be kept beside it.
        let key = match self.slots.get_key_value(&key) {
            Some((own, _)) => own.clone(),
            None => key,
        };
        match self.slots.get_mut(&key) {
            Some(slot) => {
                let before = std::mem::replace(&mut slot.state, state);
                slot.older.get_or_insert_default().push(before);
            }
            None => {
                self.slots.insert(key.clone(), Slot { state, older: None });
            }
        }
        let event = Arc::new(Event { revision, key, value, previous });
        self.history_bytes += weight(&event);
        self.history.push_back(event.clone());
        event
    }

    /// Notes that everything up to the current revision was committed by `millis`.
    pub fn committed(&mut self, millis: u64) {
        match self.times.back_mut() {
            Some((time, last)) if *time >= millis => *last = self.current,
            _ => self.times.push_back((millis, self.current)),
        }
    }

    /// When the oldest commit of the history took place.
    pub fn oldest_time(&self) -> Option<u64> {
        self.times.front().map(|(time, _)| *time)
    }

    /// The revision up to which the history is older than `before` (milliseconds).
    pub fn older_than(&self, before: u64) -> Revision {
        let old = self.times.partition_point(|(time, _)| *time < before);
        old.checked_sub(1).and_then(|last| self.times.get(last)).map_or(self.compacted, |(_, last)| *last)
    }

    /// Forgets the oldest event of the history and what can be seen only before it; gives the event.
    pub fn compact_one(&mut self) -> Option<Arc<Event>> {
        let event = self.history.pop_front()?;
        self.history_bytes -= weight(&event);
        self.compacted = event.revision;
        while self.times.front().is_some_and(|(_, last)| *last <= event.revision) {
            self.times.pop_front();
        }
        if let Some(slot) = self.slots.get_mut(&event.key)
            && !slot.forget(event.revision)
        {
            self.slots.remove(&event.key);
        }
        if self.history.is_empty() && self.history.capacity() > 1024 {
            self.history = VecDeque::new();
        }
        Some(event)
    }

    /// The keys that expire at `now` (milliseconds) or before, soonest first.
    pub fn expired(&self, now: u64) -> impl Iterator<Item = &Key> {
        self.expiring.iter().take_while(move |((expires, _), _)| expires.get() <= now).map(|(_, key)| key)
    }

    /// When the next key expires (milliseconds).
    pub fn next_expiry(&self) -> Option<u64> {
        self.expiring.first_key_value().map(|((expires, _), _)| expires.get())
    }
}

/// The memory an event holds that would be free without it. Its new value is shared with the slot, now or as the
/// next event's previous value.
fn weight(event: &Event) -> u64 {
    EVENT_OVERHEAD + event.previous.as_ref().map_or(0, |previous| previous.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(space: &mut Keyspace, key: &str, value: &str) {
        let revision = space.current() + 1;
        let value = Bytes::copy_from_slice(value.as_bytes());
        space.apply(Record { revision, key: key.into(), put: Some((value, None)) });
    }

    fn delete(space: &mut Keyspace, key: &str) {
        let revision = space.current() + 1;
        space.apply(Record { revision, key: key.into(), put: None });
    }

    fn value_at(space: &Keyspace, key: &str, at: Revision) -> Option<String> {
        let entry = space.get(key, Some(at)).unwrap();
        entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
    }

    #[test]
    fn keys_are_counted_by_folder() {
        let mut space = Keyspace::empty();
        for key in ["/a/x/1", "/a/x/2", "/a/y/1", "/b/1"] {
            put(&mut space, key, "v");
        }
        put(&mut space, "/a/x/1", "w");
        delete(&mut space, "/a/x/2");
        delete(&mut space, "/a/x/2");
        let first = ListOptions { limit: 1, ..ListOptions::default() };
        for (prefix, count) in [("/", 3), ("/a/", 2), ("/a/x/", 1), ("/a/x/1", 1), ("/a/x", 1), ("/c/", 0)] {
            let range = Range::prefix(prefix);
            assert_eq!(space.count(&range), count, "{prefix}");
            assert_eq!(space.list(&range, &first).unwrap().remaining, count.saturating_sub(1), "{prefix}");
        }
        let before = ListOptions { limit: 1, at: Some(5), ..ListOptions::default() };
        assert_eq!(space.list(&Range::prefix("/"), &before).unwrap().remaining, 3);
    }

    #[test]
    fn older_states_can_be_read_until_they_are_compacted() {
        let mut space = Keyspace::empty();
        put(&mut space, "a", "1"); // 2
        put(&mut space, "a", "2"); // 3
        delete(&mut space, "a"); // 4
        put(&mut space, "a", "3"); // 5
        let all = |space: &Keyspace| (space.compacted()..=5).map(|at| value_at(space, "a", at)).collect::<Vec<_>>();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(all(&space), [None, some("1"), some("2"), None, some("3")]);
        space.compact_one();
        assert_eq!(all(&space), [some("1"), some("2"), None, some("3")]);
        space.compact_one();
        space.compact_one();
        assert_eq!(all(&space), [None, some("3")]);
        assert!(matches!(space.get("a", Some(3)), Err(ReadError::Compacted { requested: 3, oldest: 4 })));
        assert!(matches!(space.get("a", Some(6)), Err(ReadError::Future { requested: 6, current: 5 })));
    }

    #[test]
    fn a_deleted_key_leaves_nothing_after_compaction() {
        let mut space = Keyspace::empty();
        put(&mut space, "a", "1");
        delete(&mut space, "a");
        assert_eq!(space.slots.len(), 1);
        while space.compact_one().is_some() {}
        assert_eq!((space.slots.len(), space.keys(), space.live_bytes(), space.history_bytes()), (0, 0, 0, 0));
    }

    #[test]
    fn create_revision_and_version_start_anew_after_a_delete() {
        let mut space = Keyspace::empty();
        put(&mut space, "a", "1");
        put(&mut space, "a", "2");
        let entry = space.get("a", None).unwrap().unwrap();
        assert_eq!((entry.create_revision, entry.mod_revision, entry.version), (2, 3, 2));
        delete(&mut space, "a");
        put(&mut space, "a", "3");
        let entry = space.get("a", None).unwrap().unwrap();
        assert_eq!((entry.create_revision, entry.mod_revision, entry.version), (5, 5, 1));
    }

    #[test]
    fn a_list_continues_after_a_key_and_counts_what_remains() {
        let mut space = Keyspace::empty();
        for key in ["a/1", "a/2", "a/3", "a/4", "b/1"] {
            put(&mut space, key, "");
        }
        delete(&mut space, "a/3");
        let page = |after: Option<&str>, at| {
            let options = ListOptions { after: after.map(Key::from), limit: 1, at };
            let page = space.list(&Range::prefix("a/"), &options).unwrap();
            (page.entries.iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>(), page.remaining)
        };
        assert_eq!(page(None, None), (vec!["a/1".into()], 2));
        assert_eq!(page(Some("a/1"), None), (vec!["a/2".into()], 1));
        assert_eq!(page(Some("a/2"), None), (vec!["a/4".into()], 0));
        assert_eq!(page(Some("a/2"), Some(6)), (vec!["a/3".into()], 1));
        assert_eq!(page(Some("a/4"), None), (vec![], 0));
        assert_eq!(page(Some("A"), None), (vec!["a/1".into()], 2), "a start before the range is the range's start");
        assert_eq!(space.count(&Range::prefix("a/")), 3);
        assert_eq!(space.count(&Range::key("b/1")), 1);
        assert_eq!(space.count(&Range::key("b")), 0);
    }

    #[test]
    fn history_ages_by_commit() {
        let mut space = Keyspace::empty();
        put(&mut space, "a", "1");
        put(&mut space, "b", "1");
        space.committed(1000);
        put(&mut space, "c", "1");
        space.committed(2000);
        assert_eq!(space.older_than(1000), 1);
        assert_eq!(space.older_than(1001), 3);
        assert_eq!(space.older_than(9000), 4);
        assert_eq!(space.oldest_time(), Some(1000));
        space.compact_one();
        assert_eq!(space.oldest_time(), Some(1000));
        space.compact_one();
        assert_eq!(space.oldest_time(), Some(2000));
    }
}
