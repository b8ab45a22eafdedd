//! What a request asks for: its path, its options, its body, the form of its answer.

mod accept;
pub mod body;
mod info;
pub mod options;
mod query;

pub use accept::{Encoding, Form, Offer, Shape, negotiate};
pub use info::{RequestInfo, Verb};
pub use query::Query;
