//!
//! * [`json_patch`]: a list of operations (RFC 6902), with the quirks of the library the API server uses;
//! * [`merge`]: a partial object laid over another (RFC 7386), and the patches that clients make of differences;
//! * [`strategic`]: the same for built-in kinds, whose types say how lists are merged.
//!
//! ```
//! use object::json;
//! let pod = json::parse(br#"{"labels": {"a": "1", "b": "2"}}"#).unwrap();
//! let patch = json::parse(br#"{"labels": {"a": null, "c": "3"}}"#).unwrap();
//! let patched = patch::merge::apply(pod, patch);
//! assert_eq!(json::to_string(&patched), r#"{"labels":{"b":"2","c":"3"}}"#);
//! ```
//!
//! The crate knows nothing of HTTP and of kinds: what a type says about merging comes through [`strategic::Schema`].

mod join;
pub mod json_patch;
pub mod merge;
pub mod strategic;
