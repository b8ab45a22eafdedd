//! The catalogue of built-in kinds: names, scope, schema, list keys, defaults, checks, table columns.
//!
//! Everything that a Kubernetes 1.33 API server knows about its own kinds, as data and pure functions:
//!
//! * [`resources`], [`find`]: the [`Resource`]s, their versions, verbs, subresources, columns and [`Strategy`];
//! * [`definitions()`]: the published types with their list keys, merge keys and defaults;
//! * [`decode`], [`decode_text`], [`finish`]: JSON into a built-in type as Go's decoder does it, with its texts, and the form that is
//!   stored and served; [`conform`]: what a strategic merge patch made, as upstream's converter reads it;
//! * [`protobuf`]: objects from the form that typed Go clients send;
//! * [`mod@expressions`]: where CEL expressions are, for a compiler that comes from outside;
//! * [`mod@table`], [`mod@scale`], [`mod@admission`]: the cells of tables, the subresource `scale`, what the simple admission plugins
//!   change.
//!
//! ```
//! use object::json;
//! let (resource, version) = kinds::find("", "v1", "configmaps").unwrap();
//! assert_eq!((resource.kind, resource.namespaced), ("ConfigMap", true));
//! let body = json::parse(br#"{"metadata": {"name": "a"}, "data": {"k": 1}}"#).unwrap();
//! let error = kinds::decode(version.definition().unwrap(), body).unwrap_err();
//! assert_eq!(error, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string");
//! ```
//!
//! The crate knows nothing of HTTP and storage; the time is passed in.

pub mod admission;
pub mod approval;
mod catalogue;
mod check;
mod claim;
mod columns;
mod conditions;
mod decode;
pub mod definitions;
pub mod ephemeral;
pub mod expressions;
pub mod finalize;
mod go_time;
mod gostruct;
mod groups;
pub mod net;
mod patch_schema;
pub mod pem;
mod pod;
pub mod protobuf;
pub mod quantity;
pub mod read;
pub mod resize;
mod resource;
pub mod scale;
pub mod table;

pub use catalogue::{TOKEN_REQUEST, find, find_kind, group_versions, groups, in_group, optional, resources};
pub use decode::{Decoded, Issue, conform, decode, decode_text, drop_empty, finish};
pub use definitions::{Definition, definitions};
pub use groups::flowcontrol::bootstrap::{flow_schemas, priority_levels};
pub use groups::scheduling::system_priority;
pub use patch_schema::PatchSchema;
pub use resource::{
    ALL_VERBS, CHANGE_VERBS, Column, CompiledChecks, Context, Conversion, Ended, Generation, MetadataChecks, Parts,
    Propagation, Resource, SelectableField, Storage, Strategy, Subresource, User, Version,
};
