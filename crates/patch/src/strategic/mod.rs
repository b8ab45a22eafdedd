//! Strategic merge patch: a merge patch that knows from the object's type how its lists are merged.
//!
//! Directives in the patch say more: `$patch: replace | delete` in an object or an item of a list,
//! `$retainKeys: [...]` to clear all other members, `$deleteFromPrimitiveList/NAME: [...]` to take scalars out of a
//! list, `$setElementOrder/NAME: [...]` to order one.

mod apply;
mod conflicts;
mod diff;
mod lists;

pub use apply::apply;
pub use diff::{three_way, two_way};

use std::fmt;

use object::{Value, go};

const DIRECTIVE: &str = "$patch";
const REPLACE: &str = "replace";
const DELETE: &str = "delete";
const MERGE: &str = "merge";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// What a type says about patching its members. Made for the type of an object, then asked down the patch.
pub trait Schema: Sized {
    /// The member `name` of this type, which holds an object (the answer's schema is that object's) or a list (the
    /// answer's schema is that of its items).
    fn member(&self, name: &str, shape: Shape) -> Result<Member<Self>, Error>;

    /// The name of Go's kind of type: `struct`, `map`, `string`, …; part of an error.
    fn go_kind(&self) -> &str;
}

/// What values a patch and its target hold at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Objects.
    Object,
    /// Lists.
    List,
}

/// What a type says about patching one of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<S> {
    /// The type of the member, or of its items where it is a list.
    pub schema: S,
    /// `patchStrategy` as declared: `merge`, `replace`, `retainKeys`, two of them with a comma between, or nothing.
    pub strategy: String,
    /// `patchMergeKey`: the member that tells a list's items apart; empty if there is none.
    pub merge_key: String,
}

impl<S> Member<S> {
    /// Whether `retainKeys` is declared, and the other strategy.
    fn strategies(&self) -> Result<(bool, &str), Error> {
        const RETAIN: &str = "retainKeys";
        let parts: Vec<&str> = self.strategy.split(',').collect();
        match parts[..] {
            [RETAIN] => Ok((true, "")),
            [single] => Ok((false, single)),
            [RETAIN, other] | [other, RETAIN] => Ok((true, other)),
            _ => Err(Error::internal(format!("unexpected patch strategy: [{}]", parts.join(" ")))),
        }
    }
}

/// Whose fault an error is, which decides the status of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The patch is malformed: 400.
    BadPatch,
    /// The patch cannot be carried out: 422, without the text.
    Unprocessable,
    /// Everything else, which the API server answers with 500.
    Internal,
}

/// Why a patch cannot be applied or made, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// The text.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// For [`Schema::member`]: the Go type `type_name` has no such field.
    pub fn unknown_field(type_name: &str, field: &str) -> Self {
        let field = go::quote(field);
        Self::internal(format!("unable to find api field in struct {type_name} for the json field {field}"))
    }

    /// For [`Schema::member`]: the type is no struct but of this Go kind (`map`, `string`, `interface`).
    pub fn not_a_struct(go_kind: &str) -> Self {
        Self::internal(format!("merging an object in json but data type is not struct, instead is: {go_kind}"))
    }

    /// For [`Schema::member`]: a list is asked for and the member is none; `go_kind` is that of the type asked.
    pub fn not_a_list(go_kind: &str) -> Self {
        Self::internal(format!("expected slice or array type, but got: {go_kind}"))
    }

    /// For [`Schema::member`]: the items of the list are lists.
    pub fn list_of_lists() -> Self {
        Self::internal("unexpected slice of slice".into())
    }

    fn internal(message: String) -> Self {
        Self { kind: ErrorKind::Internal, message }
    }

    fn bad(message: &str) -> Self {
        Self { kind: ErrorKind::BadPatch, message: message.into() }
    }

    fn bad_element_order() -> Self {
        Self::bad("invalid patch format of setElementOrder list")
    }

    fn bad_retain_keys() -> Self {
        Self::bad("invalid patch format of retainKeys")
    }

    fn bad_primitive_list() -> Self {
        Self::bad("invalid patch format of primitive list")
    }

    fn nested_lists() -> Self {
        Self { kind: ErrorKind::Unprocessable, message: "lists of lists are not supported".into() }
    }

    fn wrong_type(expected: &str, actual: &Value) -> Self {
        Self::internal(format!("expected a {expected}, but received a {}", go_type(actual)))
    }

    fn no_merge_key(item: &Value, key: &str) -> Self {
        Self::internal(format!("map: {} does not contain declared merge key: {key}", go::plain(item)))
    }

    fn unknown_directive(directive: &Value, item: &Value) -> Self {
        // Go's %s of what is no string.
        let directive = match directive {
            Value::String(text) => text.to_string(),
            Value::Null => "%!s(<nil>)".into(),
            other => format!("%!s({}={})", go_type(other), go::plain(other)),
        };
        Self::internal(format!("unknown patch type: {directive} in map: {}", go::plain(item)))
    }
}

const GO_MAP: &str = "map[string]interface {}";
const GO_LIST: &str = "[]interface {}";

/// The type of a value as `%s` prints a Go type, which is odd about none.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        value => go::type_name(value),
    }
}

fn is_same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

/// The `NAME` of a directive `PREFIX/NAME`.
fn directive_target<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    key.strip_prefix(prefix)?.strip_prefix('/')
}

#[cfg(test)]
mod tests;
