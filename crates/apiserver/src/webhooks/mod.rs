//! Calling webhooks over HTTPS, and what is asked of them: conversion of custom resources ([`conversion`]) and
//! admission ([`crate::admission`]).
//!
//! Failures are worded as upstream words them: they reach users in statuses, and are searched for.

mod client;
pub mod conversion;
mod endpoint;
mod resolve;
mod review;
mod tls;
mod transport;

pub use client::{ClientConfig, Target, WebhookClient};
pub use endpoint::Endpoint;
pub(crate) use review::Review;
