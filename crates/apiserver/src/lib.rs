//! The API server: requests in, answers out, and the controllers that run inside it.

pub mod auth;
pub mod http;
