//! The API server: requests in, answers out, and the controllers that run inside it.
//!
//! A [`Server`] answers requests on a [`store::Store`]. It opens no socket by itself: [`http`] brings connections to it,
//! tests call [`Server::handle`].
//!
//! One request goes one way: its path and options are read ([`request`]), its user is authorised ([`authorize`]), its
//! resource is looked up ([`catalogue`]), then the handler of its verb runs, asking the kind's [`strategy`] where kinds
//! differ. What is stored is the JSON that is served.

pub mod answer;
pub mod auth;
pub mod authorize;
pub mod catalogue;
pub mod discovery;
pub mod health;
pub mod http;
pub mod metrics;
pub mod openapi;
pub mod rbac;
pub mod request;
mod server;
pub mod strategy;

pub use server::{Clock, Options, Server, StartError};
