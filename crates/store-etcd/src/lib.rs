//! A [`Store`](store::Store) in etcd (version 3.4 or later), which several servers can share.
//!
//! [`Etcd`] keeps a copy of everything under its prefix in memory, which one watch of etcd keeps up to date. Lists,
//! reads and watches are answered from the copy; before a read at the latest revision etcd is asked how far it is, one
//! question for all reads that wait, so that a read sees every write that was answered before it, whichever server
//! wrote it. A write is a transaction that compares the key's revision, and is answered when the copy has it.
//!
//! ```no_run
//! use store::{Expect, Store, Write};
//! use store_etcd::{Etcd, Options};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store = Etcd::open(Options::at(["127.0.0.1:2379"])).await?;
//! let created = store.write(Write::put("/registry/pets/rex", Expect::Absent, "dog")).await?;
//! store.write(Write::put("/registry/pets/rex", Expect::Revision(created), "old dog")).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod compactor;
mod etcd;
mod feed;
mod grpc;
mod leases;
mod load;
mod names;
mod proto;
mod reads;
mod writes;

pub use etcd::{Etcd, OpenError, Options};
