//! What can go wrong, by what was asked for.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Entry, Revision};

/// Why a read was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The revision is older than the history that is kept.
    #[error("revision {requested} is no longer kept, the oldest is {oldest}")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision has not been reached yet.
    #[error("revision {requested} is in the future, the store is at {current}")]
    Future {
        /// The revision asked for.
        requested: Revision,
        /// The revision the store is at.
        current: Revision,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The backend could not answer.
    #[error("the store cannot be read: {0}")]
    Unavailable(String),
}

/// Why a write did not happen. Except for [`WriteError::Uncertain`], nothing of it was stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The key is not in the state the write expects.
    #[error("the key's state is not the expected one")]
    Conflict {
        /// The key's present state; `None` if it does not exist.
        current: Option<Entry>,
    },
    /// Somebody else decided about the same thing meanwhile; see [`Store::write_claimed`](crate::Store::write_claimed).
    #[error("another server decided about the same at the same time")]
    Overtaken,
    /// Key or value is larger than the store takes.
    #[error("{what} of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// `key` or `value`.
        what: &'static str,
        /// The size of it in bytes.
        size: usize,
        /// The most the store takes in bytes.
        limit: usize,
    },
    /// The disk (or the quota) is full. Writes work again once there is space.
    #[error("no space left in {}", dir.display())]
    NoSpace {
        /// The store's directory.
        dir: PathBuf,
    },
    /// Writing to the disk failed for another reason; later writes may work again.
    #[error("cannot write to {}: {error}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The operating system's error.
        error: Arc<io::Error>,
    },
    /// The backend could not be reached, or refused.
    #[error("the store cannot be written: {0}")]
    Unavailable(String),
    /// It is not known whether the write took place.
    #[error("it is not known whether the write took place: {0}")]
    Uncertain(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Why a watch did not start or came to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WatchError {
    /// The history after the requested revision is no longer kept.
    #[error("the events after revision {requested} are no longer kept, the oldest are those after {oldest}")]
    Compacted {
        /// The revision the watch was to start after.
        requested: Revision,
        /// The oldest revision a watch can start after.
        oldest: Revision,
    },
    /// The reader was so slow that events it has not seen yet were dropped from the history.
    #[error("the watch fell behind: it is at revision {delivered}, the oldest kept events are those after {oldest}")]
    Lagged {
        /// The revision up to which the reader has seen everything.
        delivered: Revision,
        /// The oldest revision a watch can start after.
        oldest: Revision,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The backend could not answer.
    #[error("the store cannot be watched: {0}")]
    Unavailable(String),
}

/// Why an embedded store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("the data directory {} is in use by another process{}", dir.display(), owner_text(*owner))]
    Locked {
        /// The store's directory.
        dir: PathBuf,
        /// The process id found in the lock file.
        owner: Option<u32>,
    },
    /// A file does not hold what was written to it.
    #[error("{} is damaged at byte {offset}: {what}", path.display())]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file is gone that data was written to.
    #[error("{} is missing, and with it what was written last: put it back, or delete {} to start without any data", path.display(), dir.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The store's directory.
        dir: PathBuf,
    },
    /// A file has lost its end.
    #[error("{} is cut off: {bytes} bytes are left of at least {before}. Put it back as it was, or delete {} to start without any data", path.display(), dir.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// How many bytes can be used.
        bytes: u64,
        /// How many there were.
        before: u64,
        /// The store's directory.
        dir: PathBuf,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was tried, as in `cannot open …`.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
}

fn owner_text(owner: Option<u32>) -> String {
    owner.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}
