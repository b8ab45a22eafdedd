//! Replays recorded requests against a server and compares the answers with those of a real one.
//!
//! A case file is `{"theme": NAME, "cases": [CASE...]}`; a case is a list of steps, each a request and the answer that a
//! real server gave. [`run`] replays the cases of a file in parallel; [`expectations`] says which of them are known to
//! fail. The crate is for tests only.

pub mod case;
pub mod client;
pub mod etcd;
pub mod expectations;
pub mod hooks;
pub mod normalise;
pub mod run;
pub mod scenario;
pub mod server;
