//! The one thread that writes: decides, stores, publishes.
//!
//! Writes that arrive while a commit is made durable wait and go into the next one together: one fsync for all of
//! them. The same thread expires keys, forgets old history and has snapshots written.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Shared;
use super::journal::{Journal, Snapshot, is_full};
use super::snapshot;
use crate::clock::to_millis;
use crate::replica::{Record, Version};
use crate::{Change, Expect, Key, Revision, Write, WriteError};

/// A commit takes waiting requests until it has so many writes …
const GROUP_WRITES: usize = 4096;
/// … or so many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// How long to wait with the next snapshot after one failed.
const SNAPSHOT_RETRY: Duration = Duration::from_secs(10);
/// How long expired keys stay when deleting them failed.
const EXPIRY_RETRY: Duration = Duration::from_secs(1);
/// The longest sleep: the clock may be changed, and tests move theirs.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

type Outcome = Result<Revision, WriteError>;

/// What the writer thread is asked to do.
pub(super) enum Message {
    Write(Write, oneshot::Sender<Outcome>),
    WriteAll(Vec<Write>, oneshot::Sender<Vec<Outcome>>),
    /// Forget the history up to a revision.
    Compact(Revision, oneshot::Sender<()>),
    /// Do what the clock says is due.
    Tick(oneshot::Sender<()>),
    /// The snapshot's thread is at its end.
    SnapshotDone,
    Close,
}

/// A request of the commit being made, with the outcomes of its writes.
enum Waiting {
    One(oneshot::Sender<Outcome>, Outcome),
    Many(oneshot::Sender<Vec<Outcome>>, Vec<Outcome>),
}

/// A snapshot being written.
struct Running {
    /// Its revision: nothing after it may be compacted.
    revision: Revision,
    thread: JoinHandle<io::Result<Snapshot>>,
    cancel: Arc<AtomicBool>,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    journal: Option<Journal>,
    /// For the snapshot thread's answer.
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    frame: Vec<u8>,
    snapshot: Option<Running>,
    /// No snapshot before this: the last one failed.
    snapshot_after: Option<Instant>,
    /// No expiry before this: the last one failed.
    expiry_after: Option<Instant>,
    compact_to: Revision,
    /// There is more history to forget than was done at once.
    unfinished: bool,
}

impl Writer {
    pub fn new(
        shared: Arc<Shared>,
        journal: Option<Journal>,
        sender: Sender<Message>,
        receiver: Receiver<Message>,
    ) -> Self {
        Self {
            shared,
            journal,
            sender,
            receiver,
            frame: Vec::new(),
            snapshot: None,
            snapshot_after: None,
            expiry_after: None,
            compact_to: 0,
            unfinished: false,
        }
    }

    /// Works until the store is closed.
    pub fn run(mut self) {
        self.upkeep();
        loop {
            let mut message = match self.receiver.recv_timeout(self.sleep()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut group = Group::default();
            let mut asides = Vec::new();
            let mut closing = false;
            while let Some(next) = message {
                match next {
                    Message::Write(write, reply) => {
                        group.bytes += size(&write);
                        group.writes.push((write, group.waiting.len()));
                        group.waiting.push(Waiting::One(reply, Err(WriteError::Closed)));
                    }
                    Message::WriteAll(writes, reply) => {
                        group.bytes += writes.iter().map(size).sum::<usize>();
                        let index = group.waiting.len();
                        group.waiting.push(Waiting::Many(reply, Vec::with_capacity(writes.len())));
                        group.writes.extend(writes.into_iter().map(|write| (write, index)));
                    }
                    Message::Close => closing = true,
                    Message::Compact(to, reply) => {
                        self.compact_to = self.compact_to.max(to);
                        asides.push(reply);
                    }
                    Message::Tick(reply) => asides.push(reply),
                    Message::SnapshotDone => self.end_snapshot(),
                }
                if closing || group.writes.len() >= GROUP_WRITES || group.bytes >= GROUP_BYTES {
                    break;
                }
                message = self.receiver.try_recv().ok();
            }
            self.commit(group);
            self.upkeep();
            while !asides.is_empty() && self.unfinished {
                self.upkeep();
            }
            for reply in asides {
                let _ = reply.send(());
            }
            if closing {
                break;
            }
        }
        self.close();
    }

    /// How long there is nothing to do without a message.
    fn sleep(&self) -> Duration {
        if self.unfinished {
            return Duration::ZERO;
        }
        let space = self.shared.replica.space.read();
        let age = &self.shared.options.history_age;
        // Not at every event's own time: a little later, for many at once.
        let slack = (*age / 16).min(Duration::from_secs(30));
        let history = space.oldest_time().map(|time| time.saturating_add(millis(*age + slack)));
        let now = to_millis(self.shared.options.clock.now());
        let until = |due: Option<u64>| due.map_or(LONGEST_SLEEP, |due| Duration::from_millis(due.saturating_sub(now)));
        let pause = self.expiry_after.map_or(Duration::ZERO, |after| after.saturating_duration_since(Instant::now()));
        let sleep = until(space.next_expiry()).max(pause).min(until(history));
        let wake = self.shared.replica.next_wake().map(|due| due.saturating_duration_since(Instant::now()));
        // Never nothing at all: the clock may be coarser than a millisecond.
        sleep.max(Duration::from_millis(1)).min(wake.unwrap_or(LONGEST_SLEEP)).min(LONGEST_SLEEP)
    }

    fn commit(&mut self, mut group: Group) {
        let now = to_millis(self.shared.options.clock.now());
        let records = self.decide(&mut group, now);
        let mut stored = self.store(now, &records);
        if matches!(stored, Err(WriteError::NoSpace { .. })) && self.snapshot.is_some() {
            // The snapshot may have taken the last space: it gives way.
            self.end_snapshot();
            stored = self.store(now, &records);
        }
        match stored {
            Ok(()) => self.publish(records, now),
            Err(error) => {
                for waiting in &mut group.waiting {
                    waiting.fail(&error);
                }
                if matches!(error, WriteError::NoSpace { .. }) {
                    self.start_snapshot(true);
                }
            }
        }
        group.waiting.into_iter().for_each(Waiting::answer);
    }

    /// Decides every write of the group in turn, each as if those before were done.
    fn decide(&self, group: &mut Group, now: u64) -> Vec<Record> {
        let space = self.shared.replica.space.read();
        let mut revision = space.current();
        let mut records = Vec::with_capacity(group.writes.len());
        // What this commit makes of keys; `None` for deleted ones.
        let mut pending: HashMap<Key, Option<Version>> = HashMap::new();
        for key in space.expired(now).take(GROUP_WRITES) {
            revision += 1;
            records.push(Record { revision, key: key.clone(), put: None });
            pending.insert(key.clone(), None);
        }
        for (write, index) in mem::take(&mut group.writes) {
            let current = match pending.get(&write.key) {
                Some(version) => version.as_ref(),
                None => space.version(&write.key),
            };
            let outcome = match decide(&write, current, revision + 1) {
                Ok(version) => {
                    revision += 1;
                    let put = version.as_ref().map(|version| (version.value.clone(), version.expires));
                    pending.insert(write.key.clone(), version);
                    records.push(Record { revision, key: write.key, put });
                    Ok(revision)
                }
                Err(error) => Err(error),
            };
            if let Some(waiting) = group.waiting.get_mut(index) {
                waiting.note(outcome);
            }
        }
        records
    }

    fn store(&mut self, now: u64, records: &[Record]) -> Result<(), WriteError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if records.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let stored = journal.commit(&mut self.frame, now, records);
        if self.frame.capacity() > 2 * GROUP_BYTES {
            self.frame = Vec::new();
        }
        self.shared.disk_bytes.store(journal.bytes(), Ordering::Relaxed);
        self.shared.sync.lock().record(start.elapsed());
        stored
    }

    fn publish(&mut self, records: Vec<Record>, now: u64) {
        if records.is_empty() {
            return;
        }
        self.shared.writes.fetch_add(records.len() as u64, Ordering::Relaxed);
        self.shared.replica.publish(records, now);
    }

    /// Everything that is due without being asked for.
    fn upkeep(&mut self) {
        self.shared.replica.wake_due();
        let now = to_millis(self.shared.options.clock.now());
        let expired = |writer: &Self| writer.shared.replica.space.read().next_expiry().is_some_and(|due| due <= now);
        if passed(self.expiry_after) && expired(self) {
            self.commit(Group::default());
            // With a full disk, or after very many at once, the rest stays a little longer.
            self.expiry_after = expired(self).then(|| Instant::now() + EXPIRY_RETRY);
        }
        self.compact(now);
        self.start_snapshot(false);
    }

    /// Forgets history that is too old, too much, or that somebody asked to forget.
    fn compact(&mut self, now: u64) {
        let options = &self.shared.options;
        let target = {
            let space = self.shared.replica.space.read();
            let aged = space.older_than(now.saturating_sub(millis(options.history_age)));
            aged.max(self.compact_to.min(space.current()))
        };
        let pin = self.snapshot.as_ref().map_or(Revision::MAX, |running| running.revision);
        self.unfinished = self.shared.replica.forget(target, options.history_bytes, pin);
    }

    /// Has a snapshot at the compacted revision written if it frees enough of the log, or anything at all in need.
    fn start_snapshot(&mut self, need: bool) {
        let Some(journal) = &self.journal else { return };
        if self.snapshot.is_some() || !passed(self.snapshot_after) {
            return;
        }
        let revision = self.shared.replica.space.read().compacted();
        let needed = need && journal.reclaimable(revision) > 0;
        if !needed && !journal.is_snapshot_worthwhile(revision) {
            return;
        }
        let (disk, dir) = (journal.disk.clone(), journal.dir.clone());
        let (shared, sender) = (self.shared.clone(), self.sender.clone());
        let cancel = Arc::new(AtomicBool::new(false));
        let cancelled = cancel.clone();
        let spawned = thread::Builder::new().name("store-snapshot".into()).spawn(move || {
            let outcome = snapshot::write(&*disk, &dir, &shared.replica.space, revision, &cancelled);
            let _ = sender.send(Message::SnapshotDone);
            outcome
        });
        match spawned {
            Ok(thread) => self.snapshot = Some(Running { revision, thread, cancel }),
            Err(error) => self.snapshot_failed(&error),
        }
    }

    /// Takes over the snapshot being written, or gives it up if it is not finished.
    fn end_snapshot(&mut self) {
        // None: it was given up, and its message came later.
        let Some(running) = self.snapshot.take() else { return };
        running.cancel.store(true, Ordering::Relaxed);
        let outcome = running.thread.join().unwrap_or_else(|_| Err(io::Error::other("the snapshot's thread panicked")));
        match (outcome, &mut self.journal) {
            (Ok(snapshot), Some(journal)) => {
                journal.adopt(snapshot);
                self.snapshot_after = None;
                self.shared.disk_bytes.store(journal.bytes(), Ordering::Relaxed);
            }
            (Ok(_), None) => {}
            (Err(error), _) => self.snapshot_failed(&error),
        }
    }

    fn snapshot_failed(&mut self, error: &io::Error) {
        self.snapshot_after = Some(Instant::now() + SNAPSHOT_RETRY);
        if error.kind() == io::ErrorKind::Interrupted {
            tracing::debug!("a snapshot was given up");
        } else if is_full(error) {
            tracing::warn!("no space for a snapshot: the log cannot be shortened");
        } else {
            tracing::error!(%error, "cannot write a snapshot");
        }
    }

    fn close(mut self) {
        self.end_snapshot();
        if let Some(journal) = &mut self.journal {
            journal.mark_closed();
        }
        self.shared.replica.close();
        // Whatever was sent meanwhile is answered `Closed`: dropping the receiver drops the senders of the replies.
    }
}

/// The writes that become one commit, each with the index of its request.
#[derive(Default)]
struct Group {
    writes: Vec<(Write, usize)>,
    waiting: Vec<Waiting>,
    bytes: usize,
}

impl Waiting {
    fn note(&mut self, outcome: Outcome) {
        match self {
            Self::One(_, own) => *own = outcome,
            Self::Many(_, own) => own.push(outcome),
        }
    }

    fn fail(&mut self, error: &WriteError) {
        match self {
            Self::One(_, own) => *own = Err(error.clone()),
            Self::Many(_, own) => own.fill(Err(error.clone())),
        }
    }

    fn answer(self) {
        // Nobody may be waiting any more; the write stands nevertheless.
        match self {
            Self::One(reply, outcome) => drop(reply.send(outcome)),
            Self::Many(reply, outcomes) => drop(reply.send(outcomes)),
        }
    }
}

/// What the key becomes (`None`: deleted), or why the write is refused.
fn decide(write: &Write, current: Option<&Version>, revision: Revision) -> Result<Option<Version>, WriteError> {
    let expected = match (write.expect, current) {
        (Expect::Absent, current) => current.is_none(),
        (Expect::Revision(revision), Some(current)) => current.mod_revision == revision,
        (Expect::Revision(_), None) => false,
        (Expect::Any, _) => true,
    };
    match (&write.change, expected, current) {
        (Change::Put { value, expires }, true, current) => {
            let expires = expires.and_then(|time| std::num::NonZeroU64::new(to_millis(time).max(1)));
            Ok(Some(Version::after(current, revision, value.clone(), expires)))
        }
        (Change::Delete, true, Some(_)) => Ok(None),
        (_, _, current) => Err(WriteError::Conflict { current: current.map(|version| version.entry(&write.key)) }),
    }
}

/// Splits writes into groups that one commit can take.
pub(super) fn in_groups(writes: impl Iterator<Item = Write>) -> impl Iterator<Item = Vec<Write>> {
    let mut writes = writes.peekable();
    std::iter::from_fn(move || {
        let mut group = vec![writes.next()?];
        let mut bytes = group.first().map_or(0, size);
        while let Some(next) = writes.next_if(|next| bytes + size(next) <= GROUP_BYTES && group.len() < GROUP_WRITES) {
            bytes += size(&next);
            group.push(next);
        }
        Some(group)
    })
}

fn size(write: &Write) -> usize {
    let value = if let Change::Put { value, .. } = &write.change { value.len() } else { 0 };
    write.key.len() + value + 32
}

fn passed(after: Option<Instant>) -> bool {
    after.is_none_or(|after| after <= Instant::now())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
