//! What a backend keeps in memory: all keys, the history of the last minutes, and the watches.

mod keyspace;
mod rounds;
mod topics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

pub(crate) use self::keyspace::{Keyspace, Record, Version};
use self::topics::{Topic, Topics};
use crate::clock::to_millis;
use crate::{BoxFuture, Entry, Key, ListOptions, Page, Range, ReadError, Revision, Stats, Watch, WatchError};

/// So many changes are made, or events forgotten, under one lock: readers are never held up for long.
const CHANGES_PER_LOCK: usize = 512;

/// All keys of a store in memory, with the history of the last minutes and the watches. A backend brings the writes, in
/// the order of their revisions; reads and watches are answered from here.
pub struct Replica {
    pub(crate) space: RwLock<Keyspace>,
    topics: Arc<Topics>,
    /// The published revision, for those who wait for one.
    revision: watch::Sender<Revision>,
    closed: AtomicBool,
    /// Topics with many waiting watches, and when to wake them.
    sleepy: Mutex<Vec<(Instant, Arc<Topic>)>>,
}

/// A write that took place somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The revision it got.
    pub revision: Revision,
    /// The key written.
    pub key: Key,
    /// The value put; nothing if the key was deleted.
    pub value: Option<Bytes>,
}

impl Replica {
    /// A replica that holds these entries, read at this revision, which is where its history begins.
    pub fn new(revision: Revision, entries: Vec<Entry>) -> Self {
        Self::of(keyspace_of(revision, entries))
    }

    pub(crate) fn of(space: Keyspace) -> Self {
        let topics = Arc::new(Topics::default());
        topics.start_at(space.current());
        Replica {
            revision: watch::Sender::new(space.current()),
            space: RwLock::new(space),
            topics,
            closed: AtomicBool::new(false),
            sleepy: Mutex::default(),
        }
    }

    /// See [`Store::get`](crate::Store::get).
    pub fn get(&self, key: &str, at: Option<Revision>) -> Result<Option<Entry>, ReadError> {
        self.space.read().get(key, at)
    }

    /// See [`Store::list`](crate::Store::list).
    pub fn list(&self, range: &Range, options: &ListOptions) -> Result<Page, ReadError> {
        self.space.read().list(range, options)
    }

    /// See [`Store::count`](crate::Store::count).
    pub fn count(&self, range: &Range) -> u64 {
        self.space.read().count(range)
    }

    /// See [`Store::watch`](crate::Store::watch).
    pub fn watch(&self, range: &Range, after: Revision) -> Result<Watch, WatchError> {
        let space = self.space.read();
        let source = self.topics.subscribe(&space, range, after)?;
        Ok(Watch::new(Box::new(source)))
    }

    /// The revision up to which the replica knows everything.
    pub fn revision(&self) -> Revision {
        *self.revision.borrow()
    }

    /// See [`Store::compacted`](crate::Store::compacted).
    pub fn compacted(&self) -> Revision {
        self.space.read().compacted()
    }

    /// See [`Store::wait_for`](crate::Store::wait_for).
    pub fn wait_for(&self, revision: Revision) -> BoxFuture<'_, Result<(), ReadError>> {
        if self.revision() >= revision {
            return Box::pin(std::future::ready(Ok(())));
        }
        let mut revisions = self.revision.subscribe();
        Box::pin(async move {
            let reached = revisions
                .wait_for(|now| *now >= revision || self.closed.load(Ordering::Acquire))
                .await
                .is_ok_and(|now| *now >= revision);
            if reached { Ok(()) } else { Err(ReadError::Closed) }
        })
    }

    /// What of the statistics can be told from memory.
    pub fn stats(&self) -> Stats {
        let watches = self.topics.watches();
        let space = self.space.read();
        Stats {
            keys: space.keys(),
            live_bytes: space.live_bytes(),
            history_events: space.history_len(),
            history_bytes: space.history_bytes(),
            watches,
            ..Stats::default()
        }
    }

    /// Takes over writes, in the order of their revisions; what is older than the replica is left out. Watches see them.
    pub fn apply(&self, writes: Vec<Applied>, now: SystemTime) {
        let known = self.revision();
        let new = writes.into_iter().filter(|write| write.revision > known);
        let records = new.map(|Applied { revision, key, value }| Record {
            revision,
            key,
            // The value may be a piece of a much larger buffer: kept would be all of it.
            put: value.map(|value| (Bytes::copy_from_slice(&value), None)),
        });
        self.publish(records.collect(), to_millis(now));
    }

    pub(crate) fn publish(&self, records: Vec<Record>, now: u64) {
        let mut touched = Vec::new();
        let mut records = records.into_iter().peekable();
        let mut events = Vec::with_capacity(records.len().min(CHANGES_PER_LOCK));
        while records.peek().is_some() {
            let mut space = self.space.write();
            while let Some(record) = records.next() {
                let revision = record.revision;
                events.push(space.apply(record));
                // What has one revision is seen together.
                let whole = records.peek().is_none_or(|next| next.revision != revision);
                if events.len() >= CHANGES_PER_LOCK && whole {
                    break;
                }
            }
            space.committed(now);
            touched.extend(self.topics.publish(&events));
            let revision = space.current();
            drop(space);
            self.revision.send_replace(revision);
            events.clear();
        }
        let mut sleepy = self.sleepy.lock();
        for topic in touched {
            if !sleepy.iter().any(|(_, known)| Arc::ptr_eq(known, &topic)) {
                wake(&mut sleepy, topic);
            }
        }
    }

    /// Notes that nothing was written up to this revision that the replica does not know.
    pub fn advance(&self, revision: Revision) {
        let mut space = self.space.write();
        if space.advance(revision) {
            self.topics.start_at(revision);
            drop(space);
            self.revision.send_replace(revision);
        }
    }

    /// Begins anew with these entries, read at this revision. What happened in between is not known: watches are told
    /// that they fell behind.
    pub fn reset(&self, revision: Revision, entries: Vec<Entry>) {
        let new = keyspace_of(revision, entries);
        let mut space = self.space.write();
        let old = std::mem::replace(&mut *space, new);
        let waiting = self.topics.restart(revision);
        drop(space);
        self.revision.send_replace(revision);
        waiting.into_iter().for_each(std::task::Waker::wake);
        drop(old);
    }

    /// Forgets history that is older than `age`, and the oldest of what takes more than so many bytes.
    pub fn forget_history(&self, age: Duration, bytes: u64, now: SystemTime) {
        let before = to_millis(now).saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let target = self.space.read().older_than(before);
        while self.forget(target, bytes, Revision::MAX) {}
    }

    /// Forgets history up to `target` and the oldest of what takes more than so many bytes, but nothing after `pin`. Not
    /// all at once: tells whether there is more to do.
    pub(crate) fn forget(&self, target: Revision, bytes: u64, pin: Revision) -> bool {
        let target = target.min(pin);
        let is_due =
            |space: &Keyspace| space.compacted() < target || space.history_bytes() > bytes && space.compacted() < pin;
        if !is_due(&self.space.read()) {
            return false;
        }
        let mut forgotten = Vec::new();
        let mut space = self.space.write();
        while forgotten.len() < CHANGES_PER_LOCK && is_due(&space) {
            let Some(event) = space.compact_one() else { break };
            forgotten.push(event);
        }
        self.topics.forget(&forgotten);
        forgotten.len() == CHANGES_PER_LOCK
    }

    /// When to call [`Replica::wake_due`] next: many watches of one place are woken together, a little later.
    pub fn next_wake(&self) -> Option<Instant> {
        self.sleepy.lock().iter().map(|(due, _)| *due).min()
    }

    /// Wakes the watches whose time has come.
    pub fn wake_due(&self) {
        let now = Instant::now();
        let mut sleepy = self.sleepy.lock();
        if sleepy.iter().any(|(due, _)| *due <= now) {
            for (due, topic) in std::mem::take(&mut *sleepy) {
                if due <= now { wake(&mut sleepy, topic) } else { sleepy.push((due, topic)) }
            }
        }
    }

    /// Ends all watches once they have read what is there, and all waiting for revisions.
    pub fn close(&self) {
        self.topics.close();
        self.closed.store(true, Ordering::Release);
        self.revision.send_modify(|_| ());
    }
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// Wakes the watches of a topic, or notes when to.
fn wake(sleepy: &mut Vec<(Instant, Arc<Topic>)>, topic: Arc<Topic>) {
    if let Some(due) = topic.wake(Instant::now()) {
        sleepy.push((due, topic));
    }
}

fn keyspace_of(revision: Revision, mut entries: Vec<Entry>) -> Keyspace {
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    let versions = entries.into_iter().map(|entry| Version::of(entry, None));
    Keyspace::new(revision, versions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn put(revision: Revision, key: &str) -> Applied {
        Applied { revision, key: key.into(), value: Some(Bytes::from_static(b"x")) }
    }

    fn deleted(revision: Revision, key: &str) -> Applied {
        Applied { value: None, ..put(revision, key) }
    }

    /// The revisions of the events that are there, and why there will be no more.
    fn read(watch: &mut Watch) -> (Vec<Revision>, Option<WatchError>) {
        let mut seen = Vec::new();
        loop {
            match watch.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return (seen, None),
                Poll::Ready(Err(error)) => return (seen, Some(error)),
                Poll::Ready(Ok(batch)) => seen.extend(batch.events.iter().map(|e| e.revision)),
            }
        }
    }

    #[test]
    fn revisions_may_have_gaps_and_several_keys() {
        let replica = Replica::new(10, Vec::new());
        let mut watch = replica.watch(&Range::prefix("a/"), 10).unwrap();
        replica.apply(vec![put(12, "a/1"), put(20, "a/2"), put(30, "b/1")], SystemTime::now());
        replica.apply(vec![put(30, "b/1"), deleted(40, "a/1"), deleted(40, "a/2")], SystemTime::now());
        replica.advance(50);
        assert_eq!(read(&mut watch).0, [12, 20, 40, 40]);
        assert_eq!((replica.revision(), watch.delivered()), (50, 50));
        assert_eq!(read(&mut replica.watch(&Range::prefix(""), 20).unwrap()).0, [30, 40, 40]);
        assert_eq!(replica.get("a/1", Some(39)).unwrap().unwrap().mod_revision, 12);
        assert!(replica.get("a/1", Some(40)).unwrap().is_none());
        while replica.forget(40, u64::MAX, Revision::MAX) {}
        assert_eq!((replica.compacted(), replica.stats().keys), (40, 1));
        assert!(read(&mut replica.watch(&Range::prefix(""), 40).unwrap()).0.is_empty());
    }

    #[test]
    fn a_revision_of_very_many_keys_is_seen_whole() {
        let replica = Replica::new(1, Vec::new());
        let mut watch = replica.watch(&Range::prefix(""), 1).unwrap();
        let all = (0..3000).map(|n| put(2 + u64::from(n > 10), &format!("a/{n}"))).collect();
        replica.apply(all, SystemTime::now());
        let Poll::Ready(Ok(batch)) = watch.poll_next(&mut Context::from_waker(Waker::noop())) else { panic!() };
        assert_eq!(batch.events.len(), 3000);
    }

    #[test]
    fn watches_fall_behind_what_is_read_anew() {
        let replica = Replica::new(10, Vec::new());
        let mut watch = replica.watch(&Range::prefix(""), 10).unwrap();
        let entry = Entry {
            key: "a".into(),
            value: Bytes::from_static(b"x"),
            create_revision: 15,
            mod_revision: 18,
            version: 2,
        };
        replica.reset(20, vec![entry.clone()]);
        assert!(matches!(read(&mut watch).1, Some(WatchError::Lagged { delivered: 10, oldest: 20 })));
        assert_eq!(replica.get("a", None).unwrap(), Some(entry));
        assert!(matches!(replica.get("a", Some(19)), Err(ReadError::Compacted { oldest: 20, .. })));
        let mut watch = replica.watch(&Range::prefix(""), 20).unwrap();
        replica.apply(vec![put(21, "a")], SystemTime::now());
        assert_eq!(read(&mut watch).0, [21]);
    }
}
