//! What a request asks for: its path, its options, its body.

mod info;
mod query;

pub use info::{RequestInfo, Verb};
pub use query::Query;
