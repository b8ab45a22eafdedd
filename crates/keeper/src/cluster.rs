//! What the keeper asks of a cluster.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use object::{Status, Value};

use crate::identity::{Identity, Kind};

/// The answer to one request.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The server said no.
    Status(Box<Status>),
    /// There was no answer, or none that can be read.
    Unreachable(String),
}

impl Error {
    /// Whether the server answered with this reason.
    pub fn has_reason(&self, reason: &str) -> bool {
        matches!(self, Error::Status(status) if status.reason == reason)
    }

    /// Whether the object, or what it is in, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.has_reason("NotFound")
    }

    /// Whether the object changed since it was read, or another manager owns a field.
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    /// Whether an object could not be made because its namespace is going, or is not there.
    pub fn is_namespace_gone(&self) -> bool {
        let Error::Status(status) = self else { return false };
        let Some(details) = &status.details else { return false };
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
            || status.reason == "NotFound" && details.kind == "namespaces"
    }

    /// The managers whose fields an apply would have changed, with the fields, as upstream words them:
    /// `conflict with "NAME" using v1` and `.data.k`.
    pub fn field_conflicts(&self) -> Vec<FieldConflict<'_>> {
        let Error::Status(status) = self else { return Vec::new() };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| {
                let rest = cause.message.strip_prefix("conflict with \"").unwrap_or(&cause.message);
                let (manager, rest) = rest.split_once('"').unwrap_or((rest, ""));
                FieldConflict {
                    manager,
                    field: &cause.field,
                    with_subresource: rest.trim_start().starts_with("with subresource"),
                }
            })
            .collect()
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Error::Status(Box::new(status))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Status(status) => f.write_str(&status.message),
            Error::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

/// A field that an apply would have changed, and who owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldConflict<'a> {
    /// The owner's name.
    pub manager: &'a str,
    /// The field's path, for example `.spec.replicas`.
    pub field: &'a str,
    /// Whether it was written through a subresource, as a scaler does.
    pub with_subresource: bool,
}

/// Where the objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// Outside of namespaces.
    Cluster,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A list of operations.
    Json(Value),
    /// A merge patch.
    Merge(Value),
    /// A strategic merge patch, for built-in kinds.
    Strategic(Value),
    /// Server-side apply of an object; it may make the object.
    Apply {
        /// What is applied.
        object: Value,
        /// Whether fields are taken from other managers.
        force: bool,
    },
}

/// How a write is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// Whether everything but the write itself is done.
    pub dry_run: bool,
}

/// What of an object's dependents a deletion concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How an object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The object must still be this one.
    pub uid: Option<&'a str>,
    /// The object must still be in this version.
    pub resource_version: Option<&'a str>,
    /// `None` leaves it to the kind.
    pub propagation: Option<Propagation>,
    /// Whether everything but the deletion itself is done.
    pub dry_run: bool,
}

/// What a deletion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object will go when its finalizers, its dependents or its grace period are done.
    Waiting,
}

/// A list of the metadata of the objects of one kind, and what comes after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// The objects, as far as `PartialObjectMetadata` tells.
    pub items: Vec<Value>,
    /// Where a watch goes on.
    pub resource_version: String,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An object was made or changed; its metadata.
    Applied(Value),
    /// An object was deleted, or no longer matches the selector; its last metadata.
    Deleted(Value),
    /// Nothing happened up to this version.
    Bookmark(String),
}

/// A cluster, seen with one identity. Implementations wait for as long as a request may take, and then give up.
pub trait Cluster: Send + Sync + 'static {
    /// Where the objects of a kind are; `None` if the kind is not served.
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>>;

    /// The live object; `None` if there is none.
    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>>;

    /// Makes an object; `AlreadyExists` if there is one.
    fn create<'a>(&'a self, id: &'a Identity, object: Value, write: Write<'a>) -> Answer<'a, Value>;

    /// Replaces an object by one that carries its resourceVersion.
    fn replace<'a>(&'a self, id: &'a Identity, object: Value, write: Write<'a>) -> Answer<'a, Value>;

    /// Changes an object, and returns it as it then is.
    fn patch<'a>(&'a self, id: &'a Identity, patch: Patch, write: Write<'a>) -> Answer<'a, Value>;

    /// Deletes an object.
    fn delete<'a>(&'a self, id: &'a Identity, delete: Delete<'a>) -> Answer<'a, Deleted>;

    /// The metadata of the kind's objects in all namespaces whose labels match `selector`.
    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str) -> Answer<'a, Listed>;

    /// What happens to those objects after `resource_version`. The stream ends when the server ends it, and then, or
    /// after an error, may be opened again where it left off; after `Expired` only after another list.
    fn watch_metadata<'a>(
        &'a self,
        kind: &'a Kind,
        selector: &'a str,
        resource_version: &'a str,
    ) -> Answer<'a, BoxStream<'static, Result<Change, Error>>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::status::{Cause, Details};

    fn conflict(message: &str, field: &str) -> Error {
        let mut status = Status::new(409, "Conflict", "Apply failed");
        let cause = Cause { reason: "FieldManagerConflict".into(), message: message.into(), field: field.into() };
        status.details = Some(Details { causes: vec![cause], ..Details::default() });
        status.into()
    }

    #[test]
    fn conflicts_tell_who_owns_the_field() {
        for (message, manager, with_subresource) in [
            (r#"conflict with "kubectl-edit" using v1"#, "kubectl-edit", false),
            (r#"conflict with "hpa" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z"#, "hpa", true),
            (r#"conflict with "other""#, "other", false),
        ] {
            let error = conflict(message, ".spec.replicas");
            let expected = FieldConflict { manager, field: ".spec.replicas", with_subresource };
            assert_eq!(error.field_conflicts(), [expected], "{message}");
        }
    }
}
