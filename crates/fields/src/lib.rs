//! Field ownership: who set which field of an object, and what server-side apply makes of that.
//!
//! * [`path`], [`set`]: paths into an object, and sets of them;
//! * [`fields_v1`]: the wire form of a set;
//! * [`schema`], [`openapi`]: how the values of a kind merge, and where that comes from;
//! * [`typed`]: operations on values by their schema: validate, compare, merge, remove;
//! * [`managed`]: the managers of an object, and what each write does to them;
//! * [`explain`]: the owners of an object's fields, and what an apply would do, for people.
//!
//! It behaves as structured-merge-diff v4.6 and the `managedfields` package of Kubernetes 1.33, texts included.
//!
//! ```
//! use fields::managed::{ApplyError, FieldManager, Kind, NoConversion};
//! use fields::openapi;
//! use object::json;
//! use std::sync::Arc;
//!
//! let schema = json::parse(br#"{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}"#).unwrap();
//! let kind = Kind { group: "ex.com".into(), version: "v1".into(), kind: "Box".into() };
//! let converter = NoConversion { versions: vec!["ex.com/v1".into()] };
//! let schema = Arc::new(openapi::crd_schema(Some(&schema), false));
//! let boxes = FieldManager::new(kind, [("ex.com/v1".to_owned(), schema)], Arc::new(converter));
//!
//! let config = |size: i64| json::parse(format!(r#"{{"apiVersion":"ex.com/v1","kind":"Box","metadata":{{"name":"b"}},"spec":{{"size":{size}}}}}"#).as_bytes()).unwrap();
//! let live = boxes.apply(None, &config(1), "alice", false, 0).unwrap();
//! let error = boxes.apply(Some(&live), &config(2), "bob", false, 0).unwrap_err();
//! assert!(matches!(error, ApplyError::Conflict(_)));
//! assert_eq!(error.to_string(), r#"Apply failed with 1 conflict: conflict with "alice": .spec.size"#);
//! assert!(boxes.apply(Some(&live), &config(2), "bob", true, 0).is_ok());
//! ```
//!
//! The crate knows nothing of HTTP, storage or CEL; time is passed in.

pub mod explain;
pub mod fields_v1;
pub mod managed;
pub mod openapi;
pub mod path;
pub mod schema;
pub mod set;
pub mod typed;
