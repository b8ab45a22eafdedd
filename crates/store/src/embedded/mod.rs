//! The embedded store: everything in memory, every write in a log on disk before it is acknowledged.

mod disk;
mod frame;
mod journal;
mod mark;
mod recover;
mod snapshot;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::disk::{Disk, OsDisk};
use self::journal::Journal;
use self::writer::{Message, Writer};
use crate::replica::{Keyspace, Replica, Version};
use crate::{
    BoxFuture, Change, Clock, Entry, FIRST_REVISION, Histogram, Key, ListOptions, OpenError, Page, Range, ReadError,
    Revision, Stats, Store, SystemClock, Watch, WatchError, Write, WriteError,
};

/// What `Options::max_value` can be at most: lengths in the files have 32 bits.
const LARGEST_VALUE: usize = 1 << 30;

/// How an embedded store behaves.
#[derive(Clone)]
pub struct Options {
    /// How long old revisions can be read and watched. At least; up to a sixteenth longer.
    pub history_age: Duration,
    /// How much memory may be held only for old revisions, in bytes. Above it the oldest go before their time.
    pub history_bytes: u64,
    /// How large a piece of the log gets, in bytes. The log is shortened when two pieces or more are superfluous.
    pub segment_bytes: u64,
    /// The longest key, in bytes.
    pub max_key: usize,
    /// The largest value, in bytes; at most 1 GiB.
    pub max_value: usize,
    /// The clock for expiry and history.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            history_age: Duration::from_secs(300),
            history_bytes: 64 << 20,
            segment_bytes: 8 << 20,
            max_key: 4 << 10,
            max_value: 32 << 20,
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("history_age", &self.history_age)
            .field("history_bytes", &self.history_bytes)
            .field("segment_bytes", &self.segment_bytes)
            .field("max_key", &self.max_key)
            .field("max_value", &self.max_value)
            .finish_non_exhaustive()
    }
}

/// A store inside the process. Dropping it closes it, which waits for the commit under way.
pub struct Embedded {
    shared: Arc<Shared>,
    sender: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer thread and the readers share.
struct Shared {
    options: Options,
    replica: Replica,
    disk_bytes: AtomicU64,
    writes: AtomicU64,
    sync: Mutex<Histogram>,
}

impl Embedded {
    /// Opens the store in `dir`, or makes one. Nothing that was ever acknowledged there is missing afterwards. Blocks
    /// for about a third of a second for each 100 MB of content.
    ///
    /// Fails if another process has it open, or if a file is damaged.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(OsDisk), dir.as_ref(), options)
    }

    /// Makes the store in `dir`, which must have none, with these entries as they were at a revision, each with the time
    /// at which it expires, if it does. Their versions stay; there is no history.
    ///
    /// Fails if there are files of a store already, or if another process has it open.
    pub fn restore(
        dir: impl AsRef<Path>,
        revision: Revision,
        entries: Vec<(Entry, Option<SystemTime>)>,
    ) -> Result<(), OpenError> {
        let mut versions: Vec<(Key, Version)> =
            entries.into_iter().map(|(entry, expires)| Version::of(entry, expires)).collect();
        versions.sort_by(|a, b| a.0.cmp(&b.0));
        recover::make(&OsDisk, dir.as_ref(), Keyspace::new(revision.max(FIRST_REVISION), versions))
    }

    /// A store that is gone with the process.
    pub fn in_memory(options: Options) -> Self {
        Self::start(options, None, Keyspace::empty())
    }

    fn open_on(disk: Arc<dyn Disk>, dir: &Path, options: Options) -> Result<Self, OpenError> {
        let (journal, space) = recover::open(disk, dir, options.segment_bytes)?;
        Ok(Self::start(options, Some(journal), space))
    }

    fn start(mut options: Options, journal: Option<Journal>, space: Keyspace) -> Self {
        options.max_value = options.max_value.min(LARGEST_VALUE);
        let (sender, receiver) = channel();
        let shared = Arc::new(Shared {
            options,
            replica: Replica::of(space),
            disk_bytes: AtomicU64::new(journal.as_ref().map_or(0, Journal::bytes)),
            writes: AtomicU64::new(0),
            sync: Mutex::default(),
        });
        let writer = Writer::new(shared.clone(), journal, sender.clone(), receiver);
        let thread = thread::spawn(move || writer.run());
        Self { shared, sender, thread: Mutex::new(Some(thread)) }
    }

    /// Forgets the history up to `revision`: it becomes the oldest that can be read.
    pub async fn compact(&self, revision: Revision) {
        let (reply, done) = oneshot::channel();
        if self.sender.send(Message::Compact(revision, reply)).is_ok() {
            let _ = done.await;
        }
    }

    /// Does what the clock says is due: expires keys, forgets old history. The store does that by itself; a test
    /// that moved its clock does not have to wait for it.
    pub async fn tick(&self) {
        let (reply, done) = oneshot::channel();
        if self.sender.send(Message::Tick(reply)).is_ok() {
            let _ = done.await;
        }
    }

    fn check(&self, write: &mut Write) -> Result<(), WriteError> {
        let limits = &self.shared.options;
        if write.key.len() > limits.max_key {
            return Err(WriteError::TooLarge { what: "key", size: write.key.len(), limit: limits.max_key });
        }
        if let Change::Put { value, .. } = &mut write.change {
            if value.len() > limits.max_value {
                return Err(WriteError::TooLarge { what: "value", size: value.len(), limit: limits.max_value });
            }
            // The value may be a piece of a much larger buffer, or have room to grow: kept would be all of it.
            *value = Bytes::copy_from_slice(value);
        }
        Ok(())
    }

    fn shut(&self) {
        let _ = self.sender.send(Message::Close);
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Store for Embedded {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> BoxFuture<'a, Result<Option<Entry>, ReadError>> {
        ready(self.shared.replica.get(key, at))
    }

    fn list<'a>(&'a self, range: &'a Range, options: ListOptions) -> BoxFuture<'a, Result<Page, ReadError>> {
        ready(self.shared.replica.list(range, &options))
    }

    fn count<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<u64, ReadError>> {
        ready(Ok(self.shared.replica.count(range)))
    }

    fn write(&self, mut write: Write) -> BoxFuture<'_, Result<Revision, WriteError>> {
        if let Err(error) = self.check(&mut write) {
            return ready(Err(error));
        }
        let (reply, answer) = oneshot::channel();
        if self.sender.send(Message::Write(write, reply)).is_err() {
            return ready(Err(WriteError::Closed));
        }
        Box::pin(async { answer.await.unwrap_or(Err(WriteError::Closed)) })
    }

    fn write_all(&self, mut writes: Vec<Write>) -> BoxFuture<'_, Vec<Result<Revision, WriteError>>> {
        let checks: Vec<_> = writes.iter_mut().map(|write| self.check(write)).collect();
        let good = writes.into_iter().zip(&checks).filter(|(_, check)| check.is_ok()).map(|(write, _)| write);
        // Each write stands for itself, so that many can be more than one commit.
        let replies: Vec<_> = writer::in_groups(good)
            .map(|group| {
                let (reply, answer) = oneshot::channel();
                let count = group.len();
                let _ = self.sender.send(Message::WriteAll(group, reply));
                (count, answer)
            })
            .collect();
        Box::pin(async move {
            let mut answers = Vec::with_capacity(checks.len());
            for (count, answer) in replies {
                answers.extend(answer.await.unwrap_or_else(|_| vec![Err(WriteError::Closed); count]));
            }
            let mut answers = answers.into_iter();
            let next =
                |check: Result<(), WriteError>| check.and_then(|()| answers.next().unwrap_or(Err(WriteError::Closed)));
            checks.into_iter().map(next).collect()
        })
    }

    fn watch<'a>(&'a self, range: &'a Range, after: Revision) -> BoxFuture<'a, Result<Watch, WatchError>> {
        ready(self.shared.replica.watch(range, after))
    }

    fn revision(&self) -> Revision {
        self.shared.replica.revision()
    }

    fn compacted(&self) -> Revision {
        self.shared.replica.compacted()
    }

    fn wait_for(&self, revision: Revision) -> BoxFuture<'_, Result<(), ReadError>> {
        self.shared.replica.wait_for(revision)
    }

    fn replica(&self) -> &Replica {
        &self.shared.replica
    }

    fn stats(&self) -> Stats {
        let sync = self.shared.sync.lock().clone();
        Stats {
            disk_bytes: self.shared.disk_bytes.load(Ordering::Relaxed),
            writes: self.shared.writes.load(Ordering::Relaxed),
            sync,
            ..self.shared.replica.stats()
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let _ = self.sender.send(Message::Close);
        let thread = self.thread.lock().take();
        Box::pin(async move {
            if let Some(thread) = thread {
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.shut();
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}
