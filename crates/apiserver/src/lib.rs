//! The API server: requests in, answers out, and the controllers that run inside it.
//!
//! A [`Server`] answers requests on a [`store::Store`]. It opens no socket by itself: [`http`] brings connections to it,
//! tests call [`Server::handle`].
//!
//! ```
//! use apiserver::{Options, Server, auth::UserInfo};
//! use std::sync::Arc;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store = Arc::new(store::Embedded::in_memory(store::Options::default()));
//! let server = Server::new(store, Options::default()).await.unwrap();
//! let request = http::Request::get("/api/v1/namespaces/default").body(bytes::Bytes::new()).unwrap();
//! let response = server.handle(request, UserInfo::anonymous()).await;
//! assert_eq!(response.status(), 200);
//! # });
//! ```
//!
//! One request goes one way: its path and options are read ([`request`]), its user is authorised ([`authorize`]), its
//! resource is looked up ([`catalogue`]), then the handler of its verb runs, asking the kind's [`strategy`] where kinds
//! differ. What is stored is the JSON that is served ([`registry`]).

pub mod admission;
mod allocation;
pub mod answer;
pub mod audit;
pub mod auth;
pub mod authorize;
mod builtin;
pub mod catalogue;
mod controllers;
pub mod conversion;
pub mod debug;
mod definition;
pub mod discovery;
mod handlers;
pub mod health;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod ownership;
pub mod rbac;
pub mod registry;
pub mod request;
mod server;
pub mod strategy;
pub mod table;
pub mod webhooks;
mod yaml;

pub use server::{Clock, MoreMetrics, Options, Server, StartError};
