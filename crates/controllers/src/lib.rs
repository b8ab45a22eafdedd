//! The controllers of a Kubernetes control plane that run inside the server: what upstream's `kube-controller-manager`
//! does, in the same words.
//!
//! A [`Controller`] says in [`Controller::new`] which caches it reads and which of their changes mean work for which
//! key, and does the work for one key in [`Controller::sync`]. The runner ([`start`]) owns the rest: it opens each cache
//! once whoever asks, waits until they are filled, and calls workers, with back-off after failures.
//!
//! ```
//! use apiserver::{Options, Server};
//! use controllers::{Context, Settings, start};
//! use std::sync::Arc;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
//! let server = Server::new(store, Options::default()).await.unwrap();
//! let context = Context::new(server, Settings::default());
//! let running = start(&context, |name| name == "serviceaccount-controller");
//! drop(running); // ends them
//! # });
//! ```
//!
//! A controller changes objects by requests to the server as everybody does; they only have no socket between.
//! The rules of a controller (what to create, what to delete, which status) are functions without I/O.

mod caches;
mod certificates;
mod context;
mod controller;
mod cronjob;
mod disruption;
mod fit;
mod garbage;
mod in_process;
mod job;
mod namespaces;
mod pod_control;
mod pods;
mod policy_status;
mod quota;
mod registry;
mod root_ca;
mod runner;
mod service_accounts;
mod service_cidrs;
mod services;
mod simulated;
mod tokens;
mod ttl;
mod volumes;
mod workloads;
mod writes;
mod written;

pub use certificates::{Authority, AuthorityError};
pub use context::{Context, Settings};
pub use controller::{Controller, Wiring, controller_of};
pub use in_process::InProcess;
pub use registry::{Area, Entry, REGISTRY};
pub use runner::{Running, start};
pub use simulated::Simulated;
