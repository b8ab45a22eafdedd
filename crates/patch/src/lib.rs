//! JSON patch, merge patch and strategic merge patch as the API server applies them.
//!
//! ```
//! use object::json;
//! let doc = json::parse(br#"{"spec":{"a":1,"b":2}}"#).unwrap();
//! let patched = patch::merge(br#"{"spec":{"a":null,"c":3}}"#, doc).unwrap();
//! assert_eq!(json::to_string(&patched), r#"{"spec":{"b":2,"c":3}}"#);
//! ```
//!
//! Patches are pure: a document and a patch give a document or an [`Error`] with the code and text that upstream
//! answers with.

mod json_patch;
mod merge;

pub use json_patch::{MAX_OPERATIONS, json_patch};
pub use merge::merge;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// 400: the patch is malformed.
    Malformed(String),
    /// 413: the patch is too large.
    TooLarge(String),
    /// 422: the patch does not fit the document. Upstream tells no more than that.
    Unfit,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Malformed(text) | Error::TooLarge(text) => f.write_str(text),
            Error::Unfit => f.write_str("the server rejected our request due to an error in our request"),
        }
    }
}

impl std::error::Error for Error {}

/// The word of Go's JSON reader for the type of a value.
pub(crate) fn go_word(value: &object::Value) -> &'static str {
    match value.type_name() {
        "integer" => "number",
        "boolean" => "bool",
        name => name,
    }
}
