//! Everything between the text of a CustomResourceDefinition and a stored custom object, as a Kubernetes 1.33 API server
//! does it, to the word of each message.
//!
//! * [`crd`]: definitions: reading, defaults, validation on create and update, names, conditions, the cost of rules;
//! * [`Version`]: one version of a definition, compiled: what happens to its objects on the way in, and whether they
//!   are valid;
//! * [`Structural`] and [`Node`]: the schema itself, for those who walk it;
//! * [`prune`], [`drop_nulls`], [`default`]: the single steps;
//! * [`openapi`]: schemas as OpenAPI documents show them;
//! * [`Scale`]: the scale subresource.
//!
//! ```
//! use object::json;
//! use schema::{Version, crd};
//! let body = json::parse(br#"{
//!     "metadata": {"name": "foos.example.com"},
//!     "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"}, "versions": [{
//!         "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
//!             "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}},
//!                      "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too large"}]}}}}}]}}"#)?;
//! let mut definition = crd::decode(&body)?.definition;
//! crd::default(&mut definition);
//! crd::prepare_create(&mut definition);
//! assert!(crd::validate(&definition).is_empty());
//!
//! let version = Version::new(&definition, "v1")?.ok_or("no such version")?;
//! let mut foo = json::parse(br#"{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"},
//!     "spec": {"size": 12, "colour": "red"}}"#)?;
//! assert_eq!(version.receive(&mut foo, true)?, ["spec.colour"]);
//! let errors = version.validate(&foo).errors;
//! assert_eq!(errors[0].to_string(), r#"spec: Invalid value: "object": too large"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is pure: no I/O, no clock. Schemas are small in memory, and patterns and rules are compiled when they are
//! first needed. Walks recurse as deep as the schema, for which they make room (a definition's depth is limited by
//! [`object::json::MAX_DEPTH`]).

mod check;
pub mod crd;
mod defaulting;
mod embedded;
mod format;
mod found;
mod intern;
mod json_path;
mod lists;
mod metadata;
pub mod openapi;
mod prune;
mod rules;
mod scale;
mod stack;
mod structural;
mod typed;
mod version;

pub use defaulting::default;
pub use format::Format;
pub use prune::{drop_nulls, prune};
pub use rules::{Assumption, RULE_COST_LIMIT, SCHEMA_COST_LIMIT, escape};
pub use scale::Scale;
pub use structural::{Additional, ListType, MapType, Node, Rule, Structural, Type};
pub use version::{Outcome, Unfit, Version};
