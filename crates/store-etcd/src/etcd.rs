//! The store: options, opening, and the interface.

use crate::grpc::Channel;
use crate::leases::Leases;
use crate::names::Names;
use crate::{compactor, feed, load, reads};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{
    BoxFuture, Change, Claim, Clock, Entry, Expect, Histogram, Key, ListOptions, Page, Range, ReadError, Replica,
    Revision, Stats, Store, SystemClock, Watch, WatchError, Write, WriteError,
};
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many of the writes that come together are under way at the same time.
const WRITES: usize = 128;
/// How many writes that only advance etcd are under way at the same time.
const ADVANCE: usize = 256;
/// How long etcd may take to answer at the start.
const START: Duration = Duration::from_secs(20);
/// What a request is told that waited in vain, in etcd's words.
pub(crate) const TIMED_OUT: &str = "etcdserver: request timed out";

/// Where the store is, and how it behaves.
#[derive(Clone)]
pub struct Options {
    /// etcd's members, as `HOST:PORT`. One is asked at a time; when it fails, the next one is.
    pub endpoints: Vec<String>,
    /// How to talk TLS; nothing for plain connections. It has to offer `h2`.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// What all keys of the store begin with. Others cannot be written.
    pub root: String,
    /// What stands for the root in etcd. The store expects to be alone below it.
    pub prefix: String,
    /// How long old revisions can be read and watched, as far as this process has seen them.
    pub history_age: Duration,
    /// How much memory may be held only for old revisions, in bytes.
    pub history_bytes: u64,
    /// How often etcd is told to forget what is older than as much; zero leaves that to others.
    pub compaction: Duration,
    /// How long a request waits for etcd.
    pub patience: Duration,
    /// The clock for expiry and history.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// A store at these members: keys begin with `/registry/` here and there, everything else is as in upstream's
    /// server (compaction each 5 minutes) and in the embedded store (history of 5 minutes or 64 MiB). Requests wait for
    /// 7 seconds, which is how long etcd itself takes to give up.
    pub fn at<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Self {
        Options {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            root: "/registry/".to_owned(),
            prefix: "/registry/".to_owned(),
            history_age: Duration::from_secs(300),
            history_bytes: 64 << 20,
            compaction: Duration::from_secs(300),
            patience: Duration::from_secs(7),
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls.is_some())
            .field("root", &self.root)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Why the store could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// No member is named.
    #[error("no address of etcd is given")]
    NoEndpoint,
    /// No member answers as it should.
    #[error("etcd at {endpoints} does not answer: {why}")]
    Unreachable {
        /// The members.
        endpoints: String,
        /// What went wrong last.
        why: String,
    },
}

/// A store in etcd. Dropping it ends its work in the background.
pub struct Etcd {
    inner: Arc<Inner>,
    tasks: Mutex<JoinSet<()>>,
    reads: mpsc::UnboundedSender<reads::Waiting>,
}

/// What the store's tasks share.
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) channel: Channel,
    pub(crate) names: Names,
    pub(crate) replica: Replica,
    pub(crate) leases: Leases,
    /// Why nothing is heard of etcd, if that is so.
    pub(crate) trouble: Mutex<Option<String>>,
    pub(crate) writes: AtomicU64,
    pub(crate) durations: Mutex<Durations>,
    /// False when the store is closed; held while a write is under way.
    open: RwLock<bool>,
}

impl Etcd {
    /// Opens the store: reads everything, with the history of the last minutes if etcd has it, and begins to follow. Waits
    /// up to 20 seconds for etcd. Must be called inside a runtime.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        if options.endpoints.is_empty() {
            return Err(OpenError::NoEndpoint);
        }
        let unreachable = |why: String| OpenError::Unreachable { endpoints: options.endpoints.join(", "), why };
        let channel = Channel::new(options.endpoints.clone(), options.tls.clone());
        let names = Names::new(&options.root, &options.prefix);
        let (revision, entries) = match timeout(START, load::start(&channel, &names, START)).await {
            Ok(loaded) => loaded.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(unreachable(TIMED_OUT.to_owned())),
        };
        let inner = Arc::new(Inner {
            channel,
            names,
            replica: Replica::new(revision, entries),
            leases: Leases::default(),
            trouble: Mutex::default(),
            writes: AtomicU64::new(0),
            durations: Mutex::default(),
            open: RwLock::new(true),
            options: options.clone(),
        });
        let (reads, waiting) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(feed::run(inner.clone()));
        tasks.spawn(reads::run(inner.clone(), waiting));
        tasks.spawn(compactor::run(inner.clone()));
        let store = Etcd { inner, tasks: Mutex::new(tasks), reads };
        store.catch_up().await.map_err(|error| unreachable(error.to_string()))?;
        Ok(store)
    }

    /// Writes nothing of meaning until etcd is at a revision, so that all that follows is later. `written` is told how
    /// many writes that took, as they are done.
    pub async fn advance_to(&self, revision: Revision, mut written: impl FnMut(usize)) -> Result<(), ReadError> {
        loop {
            self.catch_up().await?;
            let behind = usize::try_from(revision.saturating_sub(self.revision())).unwrap_or(usize::MAX);
            if behind == 0 {
                return Ok(());
            }
            let steps: FuturesUnordered<_> = (0..behind.min(ADVANCE)).map(|_| reads::barrier(&self.inner)).collect();
            for outcome in steps.collect::<Vec<_>>().await {
                outcome?;
                written(1);
            }
        }
    }

    /// Ready when the copy has everything that was written before the call.
    async fn catch_up(&self) -> Result<(), ReadError> {
        let (sender, receiver) = oneshot::channel();
        if self.reads.send(sender).is_err() {
            return Err(ReadError::Closed);
        }
        match timeout(self.inner.options.patience, receiver).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ReadError::Closed),
            Err(_) => Err(ReadError::Unavailable(TIMED_OUT.to_owned())),
        }
    }

    /// Before a read at this revision (nothing: the latest).
    async fn before(&self, at: Option<Revision>) -> Result<(), ReadError> {
        if at.is_some_and(|at| at <= self.inner.replica.revision()) { Ok(()) } else { self.catch_up().await }
    }
}

impl Inner {
    /// A write, from begin to end.
    async fn commit(self: Arc<Self>, write: Write, claim: Option<Claim>) -> Result<Revision, WriteError> {
        let open = self.open.read().await;
        if !*open {
            return Err(WriteError::Closed);
        }
        self.write(&write, claim.as_ref()).await
    }
}

impl Store for Etcd {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> BoxFuture<'a, Result<Option<Entry>, ReadError>> {
        Box::pin(async move {
            self.before(at).await?;
            self.inner.replica.get(key, at)
        })
    }

    fn list<'a>(&'a self, range: &'a Range, options: ListOptions) -> BoxFuture<'a, Result<Page, ReadError>> {
        Box::pin(async move {
            self.before(options.at).await?;
            self.inner.replica.list(range, &options)
        })
    }

    fn count<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<u64, ReadError>> {
        Box::pin(async move {
            self.catch_up().await?;
            Ok(self.inner.replica.count(range))
        })
    }

    fn write(&self, write: Write) -> BoxFuture<'_, Result<Revision, WriteError>> {
        self.write_claimed(write, None)
    }

    fn claim<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Claim>, ReadError>> {
        Box::pin(async move {
            let revision = reads::last_claim(&self.inner, name).await?;
            Ok(Some(Claim { name: name.to_owned(), revision }))
        })
    }

    fn write_claimed(&self, write: Write, claim: Option<Claim>) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let task = tokio::spawn(self.inner.clone().commit(write, claim));
        Box::pin(async { task.await.unwrap_or_else(|_| Err(WriteError::Closed)) })
    }

    fn write_all(&self, writes: Vec<Write>) -> BoxFuture<'_, Vec<Result<Revision, WriteError>>> {
        let (inner, count) = (self.inner.clone(), writes.len());
        let task = tokio::spawn(async move {
            let mut answers = vec![Err(WriteError::Closed); count];
            let mut keys: HashSet<Key> = HashSet::new();
            let mut under_way = FuturesUnordered::new();
            let mut note = |(index, key, answer): (usize, Key, _), keys: &mut HashSet<Key>| {
                keys.remove(&key);
                if let Some(slot) = answers.get_mut(index) {
                    *slot = answer;
                }
            };
            for (index, write) in writes.into_iter().enumerate() {
                // Writes of one key go one after the other.
                while under_way.len() >= WRITES || keys.contains(&write.key) {
                    let Some(done) = under_way.next().await else { break };
                    note(done, &mut keys);
                }
                keys.insert(write.key.clone());
                let inner = inner.clone();
                under_way.push(async move { (index, write.key.clone(), inner.commit(write, None).await) });
            }
            while let Some(done) = under_way.next().await {
                note(done, &mut keys);
            }
            answers
        });
        Box::pin(async move { task.await.unwrap_or_else(|_| vec![Err(WriteError::Closed); count]) })
    }

    fn watch<'a>(&'a self, range: &'a Range, after: Revision) -> BoxFuture<'a, Result<Watch, WatchError>> {
        Box::pin(std::future::ready(self.inner.replica.watch(range, after)))
    }

    fn revision(&self) -> Revision {
        self.inner.replica.revision()
    }

    fn compacted(&self) -> Revision {
        self.inner.replica.compacted()
    }

    fn wait_for(&self, revision: Revision) -> BoxFuture<'_, Result<(), ReadError>> {
        Box::pin(async move {
            self.before(Some(revision)).await?;
            self.inner.replica.wait_for(revision).await
        })
    }

    fn replica(&self) -> &Replica {
        &self.inner.replica
    }

    fn stats(&self) -> Stats {
        let requests = self.inner.durations.lock().all();
        let mut sync = Histogram::default();
        requests.iter().filter(|(operation, ..)| *operation != READ).for_each(|(_, _, writes)| sync.add(writes));
        Stats { writes: self.inner.writes.load(Ordering::Relaxed), sync, requests, ..self.inner.replica.stats() }
    }

    fn trouble(&self) -> Option<String> {
        self.inner.trouble.lock().clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            *self.inner.open.write().await = false;
            self.inner.replica.close();
            self.tasks.lock().abort_all();
        })
    }
}

/// What questions are counted as.
pub(crate) const READ: &str = "get";

/// How long etcd took for what it was asked, by that and the kind of object, whatever came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations(BTreeMap<(&'static str, String), Histogram>);

impl Durations {
    /// Counts a write.
    pub fn wrote(&mut self, write: &Write, root: &str, took: Duration) {
        let operation = match (&write.change, write.expect) {
            (Change::Delete, _) => "delete",
            (Change::Put { .. }, Expect::Absent) => "create",
            (Change::Put { .. }, _) => "update",
        };
        self.0.entry((operation, kind_of(&write.key, root))).or_default().record(took);
    }

    /// Counts a question how far etcd is, which is about all kinds.
    pub fn asked(&mut self, took: Duration) {
        self.0.entry((READ, String::new())).or_default().record(took);
    }

    fn all(&self) -> Vec<(&'static str, String, Histogram)> {
        self.0.iter().map(|((operation, kind), durations)| (*operation, kind.clone(), durations.clone())).collect()
    }
}

/// The kind of object that a key is of, as upstream's metrics have it: `configmaps`, or `widgets.example.com`.
fn kind_of(key: &str, root: &str) -> String {
    let mut parts = key.strip_prefix(root).unwrap_or(key).split('/');
    match (parts.next().unwrap_or_default(), parts.next()) {
        (group, Some(plural)) if group.contains('.') => format!("{plural}.{group}"),
        (plural, _) => plural.to_owned(),
    }
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd").field("options", &self.inner.options).field("revision", &self.revision()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_the_kind() {
        for (key, kind) in [
            ("/registry/configmaps/default/a", "configmaps"),
            ("/registry/namespaces/default", "namespaces"),
            ("/registry/example.com/widgets/default/a", "widgets.example.com"),
            ("/registry/x", "x"),
            ("other", "other"),
        ] {
            assert_eq!(kind_of(key, "/registry/"), kind, "{key}");
        }
    }
}
