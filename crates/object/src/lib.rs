//! Kubernetes objects as dynamic values.
//!
//! Everything that the API server, its libraries and its controllers say about an object starts here:
//!
//! * [`Value`] and [`Map`]: one JSON value, integers and floats apart as Go keeps them, keys sorted;
//! * [`json`]: reading with Go's error texts and duplicate detection, writing as Go writes;
//! * [`go`]: Go's ways to print a value (`%v`, `%#v`, `strconv.Quote`), which error messages carry; [`duration`], its way to
//!   write durations;
//! * [`field`]: paths and [`field::FieldError`], the one type of error about a part of an object;
//! * [`yaml`]: reading YAML 1.1 as Go programs do;
//! * [`metadata`], [`names`]: the rules that hold for every kind; [`webhook`]: those for places of webhooks, with [`url`];
//! * [`selector`]: label and field selectors;
//! * [`status`]: the `Status` that answers a failed request.
//!
//! ```
//! use object::{json, Value};
//! let pod = json::parse(br#"{"metadata": {"name": "a"}, "spec": {"replicas": 3}}"#).unwrap();
//! assert_eq!(pod.at(&["spec", "replicas"]), Some(&Value::Int(3)));
//! assert_eq!(json::to_string(&pod), r#"{"metadata":{"name":"a"},"spec":{"replicas":3}}"#);
//! ```
//!
//! The crate knows nothing of HTTP, storage, kinds or schemas.

pub mod duration;
pub mod field;
pub mod go;
pub mod json;
pub mod metadata;
pub mod names;
mod scan;
pub mod selector;
pub mod status;
mod told;
pub mod url;
mod value;
pub mod webhook;
pub mod yaml;

pub use status::Status;
pub use told::Told;
pub use value::{Map, Value};
