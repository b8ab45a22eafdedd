//! What a request asks for: its path, its options, its body, the form of its answer.

mod accept;
pub mod body;
pub mod delete;
mod info;
pub mod options;
mod query;

pub use accept::{Encoding, Form, Offer, PROTOBUF, Shape, negotiate, not_acceptable};
pub use info::{RequestInfo, Verb};
pub use query::Query;
