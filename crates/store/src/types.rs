//! The nouns of the store: revisions, keys, entries, events, ranges, writes.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

/// The number of a committed write. One counter serves the whole store: an empty store is at revision 1, every
/// write that is committed (a delete is one) gets the next number.
pub type Revision = u64;

/// The revision of a store nothing was ever written to.
pub const FIRST_REVISION: Revision = 1;

/// A key, shared between the store, its history and the answers. Ordered bytewise. Keys are paths: parts separated
/// by `/`; watches are indexed by that.
pub type Key = Arc<str>;

/// One key's value with what the store knows of it. Cloning is cheap: key and value are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value as it was written.
    pub value: Bytes,
    /// The revision of the write that created the key (after its last delete, if there was one).
    pub create_revision: Revision,
    /// The revision of the last write of the key.
    pub mod_revision: Revision,
    /// How often the key was written since it was created; 1 after the creation.
    pub version: u64,
}

/// The keys a list or a watch is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Range {
    /// Exactly this key.
    Key(Key),
    /// Every key that starts with this text. An empty prefix is every key. A prefix that ends with `/` is the
    /// cheapest to watch.
    Prefix(Key),
}

impl Range {
    /// The range of all keys that start with `prefix`.
    pub fn prefix(prefix: impl Into<Key>) -> Self {
        Self::Prefix(prefix.into())
    }

    /// The range of one key.
    pub fn key(key: impl Into<Key>) -> Self {
        Self::Key(key.into())
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::Key(own) => **own == *key,
            Self::Prefix(prefix) => key.starts_with(&**prefix),
        }
    }

    /// The smallest text that can lie in the range: the key or the prefix itself.
    pub fn start(&self) -> &str {
        match self {
            Self::Key(text) | Self::Prefix(text) => text,
        }
    }
}

/// What part of a range a list returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only keys after this one (exclusive): the last key of the page before.
    pub after: Option<Key>,
    /// At most this many entries; 0 is no limit.
    pub limit: usize,
    /// The revision to read at; `None` is the latest.
    pub at: Option<Revision>,
}

/// A consistent piece of a list, in key order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries, in key order.
    pub entries: Vec<Entry>,
    /// The revision the entries were read at: what was asked for, or the latest.
    pub revision: Revision,
    /// How many further keys of the range follow the last entry; 0 when the list is complete.
    pub remaining: u64,
}

/// What a write requires of the key's present state; otherwise it is refused with
/// [`WriteError::Conflict`](crate::WriteError::Conflict).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key exists and its last write is this revision.
    Revision(Revision),
    /// Nothing. (A delete still conflicts if there is no such key.)
    Any,
}

/// What a write does to its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets the value.
    Put {
        /// The new value.
        value: Bytes,
        /// When the store deletes the key by itself, unless it is written again before. The delete is an event like
        /// any other. Precise to a second or so; a backend may be late by a twentieth of the time until then, and by
        /// a minute at most.
        expires: Option<SystemTime>,
    },
    /// Removes the key.
    Delete,
}

/// A decision that is under way; see [`Store::claim`](crate::Store::claim).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What is decided about.
    pub name: String,
    /// When somebody last wrote such a decision; 0 for never.
    pub revision: Revision,
}

/// One conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key to write.
    pub key: Key,
    /// What must hold for the write to happen.
    pub expect: Expect,
    /// What to do.
    pub change: Change,
}

impl Write {
    /// A put without expiry.
    pub fn put(key: impl Into<Key>, expect: Expect, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), expect, change: Change::Put { value: value.into(), expires: None } }
    }

    /// A delete.
    pub fn delete(key: impl Into<Key>, expect: Expect) -> Self {
        Self { key: key.into(), expect, change: Change::Delete }
    }

    /// The same write with an expiry time; no effect on a delete.
    #[must_use]
    pub fn expiring(mut self, at: SystemTime) -> Self {
        if let Change::Put { expires, .. } = &mut self.change {
            *expires = Some(at);
        }
        self
    }
}

/// What an [`Event`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The key got a value.
    Put,
    /// The key was removed, by a write or because it expired.
    Delete,
}

/// One committed write, as a watch sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The revision the write got. Only keys that expire together, in some backends, share one.
    pub revision: Revision,
    /// The key written.
    pub key: Key,
    /// The value put; `None` if the key was deleted.
    pub value: Option<Bytes>,
    /// The value before the write; `None` if the key did not exist.
    pub previous: Option<Bytes>,
}

impl Event {
    /// Whether the event is a put or a delete.
    pub fn kind(&self) -> EventKind {
        if self.value.is_some() { EventKind::Put } else { EventKind::Delete }
    }

    /// Whether the write brought the key into being.
    pub fn created(&self) -> bool {
        self.value.is_some() && self.previous.is_none()
    }
}
