//! The running watches, found by the keys they are about.
//!
//! Watches of one place share a topic: the list of the place's events, which each watch reads at its own pace. A
//! place is a prefix that ends with `/`, or a single key, so that the topics of a written key are found by a handful
//! of look-ups, however many watches there are. A topic keeps only what the history keeps: a watch that reads too
//! slowly costs nothing and is told that it fell behind.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use super::keyspace::Keyspace;
use super::rounds::{GROUPS, Rounds};
use crate::{Batch, Event, Key, Range, Revision, WatchError, WatchSource};

/// At most this many events in one [`Batch`], unless one revision has more.
const BATCH: usize = 1000;

/// No further event goes into a [`Batch`] with values of this many bytes: who was slow, and then reads on, is to cost
/// no more memory than others.
const BATCH_BYTES: usize = 256 * 1024;

/// All topics that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    index: Mutex<Index>,
    /// The store's revision, raised after the topics got its events.
    published: AtomicU64,
}

#[derive(Debug, Default)]
struct Index {
    prefixes: HashMap<Key, Arc<Topic>>,
    keys: HashMap<Key, Arc<Topic>>,
    watches: u64,
    next_id: u64,
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Topic {
    place: Range,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The place's events after `since`.
    events: VecDeque<Arc<Event>>,
    since: Revision,
    watches: usize,
    /// How many watches were started.
    started: usize,
    /// Those that wait, by their groups.
    waiters: [HashMap<u64, Waker>; GROUPS],
    /// Up to where they see events.
    rounds: Rounds,
    /// What a watch got last, for others that are where it was.
    piece: Option<Piece>,
    closed: bool,
}

/// The events of a place that a watch sees at once.
#[derive(Debug)]
struct Piece {
    /// Where the watch was.
    from: Revision,
    /// Up to where it saw events.
    visible: Revision,
    /// Where it is now.
    to: Revision,
    batch: Batch,
}

impl Topics {
    /// Starts a watch. The keyspace must be locked, so that nothing is published meanwhile.
    pub fn subscribe(
        self: &Arc<Self>,
        space: &Keyspace,
        range: &Range,
        after: Revision,
    ) -> Result<TopicWatch, WatchError> {
        if after < space.compacted() {
            return Err(WatchError::Compacted { requested: after, oldest: space.compacted() });
        }
        let place = place_of(range);
        let mut index = self.index.lock();
        if index.closed {
            return Err(WatchError::Closed);
        }
        let (Range::Key(name) | Range::Prefix(name)) = &place;
        let topics = if matches!(place, Range::Key(_)) { &mut index.keys } else { &mut index.prefixes };
        let topic = topics.entry(name.clone()).or_insert_with(|| Topic::new(place.clone(), space.current())).clone();
        let group = {
            let mut inner = topic.inner.lock();
            inner.watches += 1;
            inner.started += 1;
            if after < inner.since {
                let before = space.events_after(after).take_while(|event| event.revision <= inner.since);
                let missing: Vec<_> = before.filter(|event| place.contains(&event.key)).cloned().collect();
                for event in missing.into_iter().rev() {
                    inner.events.push_front(event);
                }
                inner.since = after;
            }
            inner.started % GROUPS
        };
        index.watches += 1;
        index.next_id += 1;
        let filter = (*range != place).then(|| range.clone());
        Ok(TopicWatch { topics: self.clone(), topic, id: index.next_id, group, filter, cursor: after, end: None })
    }

    /// Hands a commit's events to the topics and returns those that got some. The keyspace must be locked for
    /// writing and already hold the events.
    pub fn publish(&self, events: &[Arc<Event>]) -> Vec<Arc<Topic>> {
        let index = self.index.lock();
        let mut touched: Vec<Arc<Topic>> = Vec::new();
        for event in events {
            index.visit(&event.key, |topic| {
                topic.inner.lock().events.push_back(event.clone());
                touched.push(topic.clone());
            });
        }
        touched.sort_unstable_by_key(Arc::as_ptr);
        touched.dedup_by(|left, right| Arc::ptr_eq(left, right));
        if let Some(last) = events.last() {
            self.published.store(last.revision, Ordering::Release);
        }
        touched
    }

    /// Drops events from the topics that the history has dropped. The keyspace must be locked for writing.
    pub fn forget(&self, events: &[Arc<Event>]) {
        let index = self.index.lock();
        for event in events {
            index.visit(&event.key, |topic| {
                let mut inner = topic.inner.lock();
                while inner.events.front().is_some_and(|first| first.revision <= event.revision) {
                    inner.events.pop_front();
                }
                inner.since = inner.since.max(event.revision);
                inner.piece = None;
            });
        }
    }

    /// The revision all events up to which are in the topics.
    pub fn published(&self) -> Revision {
        self.published.load(Ordering::Acquire)
    }

    /// Sets the revision up to which there is nothing more to publish.
    pub fn start_at(&self, revision: Revision) {
        self.published.store(revision, Ordering::Release);
    }

    /// Drops all events: nobody knows what happened up to `revision`. Gives whom to wake.
    pub fn restart(&self, revision: Revision) -> Vec<Waker> {
        let index = self.index.lock();
        let mut waiting = Vec::new();
        for topic in index.prefixes.values().chain(index.keys.values()) {
            let mut inner = topic.inner.lock();
            inner.events.clear();
            inner.piece = None;
            inner.since = revision;
            inner.rounds = Rounds::new(revision);
            waiting.extend(inner.take_waiters());
        }
        self.start_at(revision);
        waiting
    }

    /// How many watches run.
    pub fn watches(&self) -> u64 {
        self.index.lock().watches
    }

    /// Ends all watches once they have read what is there.
    pub fn close(&self) {
        let mut waiters = Vec::new();
        {
            let mut index = self.index.lock();
            index.closed = true;
            for topic in index.prefixes.values().chain(index.keys.values()) {
                let mut inner = topic.inner.lock();
                inner.closed = true;
                waiters.extend(inner.take_waiters());
            }
        }
        waiters.into_iter().for_each(Waker::wake);
    }

    fn leave(&self, topic: &Arc<Topic>, group: usize, id: u64) {
        let mut index = self.index.lock();
        index.watches -= 1;
        let mut inner = topic.inner.lock();
        inner.watches -= 1;
        if let Some(waiters) = inner.waiters.get_mut(group) {
            waiters.remove(&id);
        }
        if inner.watches == 0 {
            match &topic.place {
                Range::Key(name) => index.keys.remove(name),
                Range::Prefix(name) => index.prefixes.remove(name),
            };
        }
    }
}

impl Index {
    fn visit(&self, key: &str, mut each: impl FnMut(&Arc<Topic>)) {
        if let Some(topic) = self.keys.get(key) {
            each(topic);
        }
        if self.prefixes.is_empty() {
            return;
        }
        if let Some(topic) = self.prefixes.get("") {
            each(topic);
        }
        for (at, _) in key.match_indices('/') {
            if let Some(topic) = key.get(..=at).and_then(|prefix| self.prefixes.get(prefix)) {
                each(topic);
            }
        }
    }
}

impl Topic {
    fn new(place: Range, since: Revision) -> Arc<Self> {
        let inner = Inner {
            events: VecDeque::new(),
            since,
            watches: 0,
            started: 0,
            waiters: Default::default(),
            rounds: Rounds::new(since),
            piece: None,
            closed: false,
        };
        Arc::new(Self { place, inner: Mutex::new(inner) })
    }

    /// Lets watches see the events that are there, and wakes them. Gives when to do so again, if there are more watches
    /// than can see them now.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let mut woken = Vec::new();
        let next = {
            let mut inner = self.inner.lock();
            let Inner { events, waiters, rounds, watches, .. } = &mut *inner;
            let last = events.back()?.revision;
            rounds.turn(*watches, last, now, |group| {
                woken.extend(waiters.get_mut(group).into_iter().flat_map(HashMap::drain).map(|(_, waker)| waker));
            })
        };
        woken.into_iter().for_each(Waker::wake);
        next
    }
}

impl Inner {
    /// The next events that a watch of a group sees; moves it behind them.
    fn after(&mut self, group: usize, filter: Option<&Range>, cursor: &mut Revision) -> Option<Batch> {
        let visible = if self.closed { Revision::MAX } else { self.rounds.visible(group) };
        let from = *cursor;
        if from >= visible {
            return None;
        }
        let shares = filter.is_none() && self.watches > 1;
        if let Some(piece) =
            self.piece.as_ref().filter(|piece| shares && (piece.from, piece.visible) == (from, visible))
        {
            *cursor = piece.to;
            return Some(piece.batch.clone());
        }
        let first = self.events.partition_point(|event| event.revision <= from);
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in self.events.range(first..).take_while(|event| event.revision <= visible) {
            // What has one revision is never torn apart: the cursor would pass what is left.
            if (events.len() >= BATCH || bytes >= BATCH_BYTES) && event.revision != *cursor {
                break;
            }
            *cursor = event.revision;
            if filter.is_none_or(|range| range.contains(&event.key)) {
                bytes += event.value.as_ref().or(event.previous.as_ref()).map_or(0, |value| value.len());
                events.push(event.clone());
            }
        }
        if events.is_empty() {
            return None;
        }
        let batch = Batch { events: events.into() };
        if shares {
            self.piece = Some(Piece { from, visible, to: *cursor, batch: batch.clone() });
        }
        Some(batch)
    }

    fn take_waiters(&mut self) -> impl Iterator<Item = Waker> + use<> {
        mem::take(&mut self.waiters).into_iter().flat_map(HashMap::into_values)
    }
}

/// The place whose topic has a range's events: the range itself, or its prefix up to the last `/`.
fn place_of(range: &Range) -> Range {
    match range {
        Range::Key(_) => range.clone(),
        Range::Prefix(prefix) => {
            let end = prefix.rfind('/').map_or(0, |slash| slash + 1);
            if end == prefix.len() { range.clone() } else { Range::prefix(prefix.get(..end).unwrap_or_default()) }
        }
    }
}

/// A watch of the places in memory.
#[derive(Debug)]
pub(crate) struct TopicWatch {
    topics: Arc<Topics>,
    topic: Arc<Topic>,
    id: u64,
    /// Which turns are its own.
    group: usize,
    /// The watched range, if it is narrower than the topic.
    filter: Option<Range>,
    /// Every event of the range up to here was returned.
    cursor: Revision,
    end: Option<WatchError>,
}

impl WatchSource for TopicWatch {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Batch, WatchError>> {
        if let Some(end) = &self.end {
            return Poll::Ready(Err(end.clone()));
        }
        let mut inner = self.topic.inner.lock();
        if self.cursor < inner.since {
            let end = WatchError::Lagged { delivered: self.cursor, oldest: inner.since };
            self.end = Some(end.clone());
            return Poll::Ready(Err(end));
        }
        if let Some(batch) = inner.after(self.group, self.filter.as_ref(), &mut self.cursor) {
            return Poll::Ready(Ok(batch));
        }
        if inner.closed {
            self.end = Some(WatchError::Closed);
            return Poll::Ready(Err(WatchError::Closed));
        }
        let waker = context.waker();
        if let Some(waiters) = inner.waiters.get_mut(self.group) {
            waiters.entry(self.id).and_modify(|known| known.clone_from(waker)).or_insert_with(|| waker.clone());
        }
        Poll::Pending
    }

    fn delivered(&self) -> Revision {
        // In this order: what is published up to here is in the topic.
        let published = self.topics.published();
        let inner = self.topic.inner.lock();
        if self.cursor < inner.since {
            return self.cursor;
        }
        let first = inner.events.partition_point(|event| event.revision <= self.cursor);
        let unseen = inner.events.get(first).map_or(published, |event| event.revision - 1);
        self.cursor.max(unseen)
    }
}

impl Drop for TopicWatch {
    fn drop(&mut self) {
        self.topics.leave(&self.topic, self.group, self.id);
    }
}
