//! A revisioned key-value store with watch: durable and embedded.
//!
//! Every write gets the next number of one counter, its revision. A read is at the latest or at an older revision, a
//! write can require the key's state, a watch gives every write after a revision, in order. The store knows nothing
//! of what its values mean.
//!
//! [`Store`] is the interface, object-safe, so that a program works with `Arc<dyn Store>` whatever is behind it.
//! [`Embedded`] is the store in the process itself: it keeps everything in memory and every write on disk. Backends that
//! keep everything in memory answer reads and watches from a [`Replica`].
//!
//! ```
//! use store::{Embedded, Expect, ListOptions, Options, Range, Store, Write};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Embedded::in_memory(Options::default());
//! let mut watch = store.watch(&Range::prefix("pets/"), store.revision()).await?;
//!
//! let created = store.write(Write::put("pets/rex", Expect::Absent, "dog")).await?;
//! store.write(Write::put("pets/rex", Expect::Revision(created), "old dog")).await?;
//!
//! let pets = store.list(&Range::prefix("pets/"), ListOptions::default()).await?;
//! assert_eq!((pets.revision, &pets.entries[0].value[..]), (created + 1, &b"old dog"[..]));
//! assert_eq!(&store.get("pets/rex", Some(created)).await?.unwrap().value[..], b"dog");
//!
//! let events = watch.next().await?.events;
//! assert!(events[0].created());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod clock;
mod embedded;
mod error;
mod replica;
mod stats;
mod store;
mod types;

pub use clock::{Clock, ManualClock, SystemClock};
pub use embedded::{Embedded, Options};
pub use error::{OpenError, ReadError, WatchError, WriteError};
pub use replica::{Applied, Replica};
pub use stats::{Histogram, Stats};
pub use store::{Batch, BoxFuture, Store, Watch, WatchSource};
pub use types::{
    Change, Claim, Entry, Event, EventKind, Expect, FIRST_REVISION, Key, ListOptions, Page, Range, Revision, Write,
};
