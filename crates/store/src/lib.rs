//! A revisioned key-value store with watch: durable and embedded.
//!
//! Every write gets the next number of one counter, its revision. A read is at the latest or at an older revision, a
//! write can require the key's state, a watch gives every write after a revision, in order. The store knows nothing
//! of what its values mean.
//!
//! [`Store`] is the interface, object-safe, so that a program works with `Arc<dyn Store>` whatever is behind it.

mod error;
mod stats;
mod store;
mod types;

pub use error::{OpenError, ReadError, WatchError, WriteError};
pub use stats::{Histogram, Stats};
pub use store::{Batch, BoxFuture, Store, Watch, WatchSource};
pub use types::{
    Change, Entry, Event, EventKind, Expect, FIRST_REVISION, Key, ListOptions, Page, Range, Revision, Write,
};
