//! The trait every backend implements, and the handle of a running watch.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::{
    Claim, Entry, Event, ListOptions, Page, Range, ReadError, Replica, Revision, Stats, WatchError, Write, WriteError,
};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A revisioned key-value store. All methods may be called from any task at the same time.
///
/// A write that was answered is durable and visible to every read and watch that starts afterwards.
pub trait Store: Send + Sync + 'static {
    /// The entry of `key` at revision `at` (`None`: the latest), or `None` if it did not exist then.
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> BoxFuture<'a, Result<Option<Entry>, ReadError>>;

    /// The entries of `range` in key order, all at one revision.
    fn list<'a>(&'a self, range: &'a Range, options: ListOptions) -> BoxFuture<'a, Result<Page, ReadError>>;

    /// How many keys there are in `range` at the latest revision.
    fn count<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<u64, ReadError>>;

    /// Commits one write and gives its revision. Once called, the write takes place even if the future is dropped.
    fn write(&self, write: Write) -> BoxFuture<'_, Result<Revision, WriteError>>;

    /// Commits many writes in one trip. Each stands for itself: it succeeds or fails whatever the others do, and gets its
    /// own revision; the answers are in the order of the writes. Writes of one key take place in their order; a backend
    /// that is reached over a network need not keep it among different keys.
    fn write_all(&self, writes: Vec<Write>) -> BoxFuture<'_, Vec<Result<Revision, WriteError>>>;

    /// Begins a decision that depends on what is stored and that others must not make at the same time, such as which
    /// of several numbers is free. What is read from now on is fit to decide by; [`Store::write_claimed`] writes the
    /// decision. Nothing is held meanwhile. None where one process alone writes, which can take turns by itself.
    fn claim<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Claim>, ReadError>> {
        let _ = name;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// As [`Store::write`], if nobody wrote with a claim of that name since it was made; else the error is
    /// [`WriteError::Overtaken`].
    fn write_claimed(&self, write: Write, claim: Option<Claim>) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let _ = claim;
        self.write(write)
    }

    /// Watches `range` from just after revision `after`: every later event, in order, without gap or repetition.
    /// A revision in the future is allowed: the watch starts silent and gives only events after it.
    fn watch<'a>(&'a self, range: &'a Range, after: Revision) -> BoxFuture<'a, Result<Watch, WatchError>>;

    /// The latest revision known to this process.
    fn revision(&self) -> Revision;

    /// The oldest revision that can be read at, and that a watch can start after.
    fn compacted(&self) -> Revision;

    /// Ready as soon as the store has reached `revision`. Waits for ever if it never does: put a timeout around it.
    fn wait_for(&self, revision: Revision) -> BoxFuture<'_, Result<(), ReadError>>;

    /// What this process holds of the store. Reads of it ask nobody and never fail for want of an answer; where other
    /// processes write, too, it may be a little behind.
    fn replica(&self) -> &Replica;

    /// Sizes and counters, for metrics.
    fn stats(&self) -> Stats;

    /// Why the backend cannot be reached at the moment, if that is so.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Finishes the writes that wait, flushes, ends all watches. Later writes and watches answer `Closed`. May be
    /// called twice.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Events that became visible together.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The events, in revision order, at least one. Shared among all watches that see them.
    pub events: Arc<[Arc<Event>]>,
}

/// A running watch; dropping it ends it.
pub struct Watch {
    source: Box<dyn WatchSource>,
}

impl Watch {
    /// Makes a watch of a backend's source.
    pub fn new(source: Box<dyn WatchSource>) -> Self {
        Self { source }
    }

    /// The next events. Waits until there are some; after an error the watch is at its end and repeats the error.
    /// Dropping the future before it is ready loses nothing.
    pub async fn next(&mut self) -> Result<Batch, WatchError> {
        poll_fn(|context| self.source.poll_next(context)).await
    }

    /// As [`Watch::next`], for hand-written futures.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Batch, WatchError>> {
        self.source.poll_next(context)
    }

    /// The revision up to which the watch has returned every event of its range: the one to put in a bookmark. It
    /// advances with the store even if nothing happens in the range.
    pub fn delivered(&self) -> Revision {
        self.source.delivered()
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("delivered", &self.delivered()).finish()
    }
}

/// What a backend supplies for a [`Watch`].
pub trait WatchSource: Send + Sync {
    /// See [`Watch::next`].
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Batch, WatchError>>;

    /// See [`Watch::delivered`].
    fn delivered(&self) -> Revision;
}
