//! A client of any Kubernetes API server, for objects as dynamic values.
//!
//! * [`Client`] and [`Api`]: requests, over a [`Transport`] that carries them;
//! * [`cache`]: what a server has of one resource, kept up to date by a watch, with indexes;
//! * [`queue`]: a work queue of keys, each once, with back-off, and [`Queues`], what is measured of them;
//! * [`events`]: tells people what happened to an object, as client-go's recorder does;
//! * [`election`]: which one of several programs leads, by a `Lease`, as client-go decides it;
//! * [`resources`]: the built-in resources that programs name.
//!
//! ```
//! use bytes::Bytes;
//! use client::{BoxFuture, Client, Error, Response, Transport, resources::CONFIG_MAPS};
//! use std::sync::Arc;
//!
//! /// Knows one object.
//! struct Canned;
//!
//! impl Transport for Canned {
//!     fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
//!         assert_eq!(request.uri(), "/api/v1/namespaces/default/configmaps/a");
//!         let body = client::whole(r#"{"metadata": {"name": "a"}}"#);
//!         Box::pin(async { Ok(http::Response::new(body)) })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let client = Client::new(Arc::new(Canned));
//! let object = client.api(&CONFIG_MAPS).get("default", "a").await.unwrap();
//! assert_eq!(object.name(), "a");
//! # });
//! ```
//!
//! The crate knows nothing of kinds, and of no server in particular.

mod api;
pub mod cache;
mod client;
mod discovery;
pub mod election;
mod error;
pub mod events;
mod params;
pub mod queue;
mod queue_metrics;
mod resource;
pub mod resources;
mod transport;
mod watch;

pub use api::{Api, List};
pub use cache::{Cache, Change};
pub use client::Client;
pub use election::Election;
pub use error::{Error, Result};
pub use params::{DeleteParams, ListParams, Patch, PatchParams, Propagation, WatchParams, WriteParams};
pub use queue::{Lane, Queue};
pub use queue_metrics::{Measures, Queues, Times};
pub use resource::Resource;
pub use transport::{Body, BoxFuture, Response, Transport, whole};
pub use watch::{Watch, WatchEvent};

/// Tells the time; tests bring their own.
pub type Clock = std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;
