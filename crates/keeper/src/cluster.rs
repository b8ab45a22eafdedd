//! What the keeper asks of a cluster.

use client::{
    BoxFuture, Client, DeleteParams, Error, List, ListParams, Patch, PatchParams, Resource, WatchEvent, WatchParams,
    WriteParams,
};
use futures_util::stream::{self, BoxStream, StreamExt};
use object::{Status, Value};

use crate::identity::{Identity, Kind};

/// The answer to one request.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// How many objects come in one piece of a list.
const PAGE: u32 = 500;

/// Where the objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// Outside of namespaces.
    Cluster,
}

/// What a deletion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object will go when its finalizers, its dependents or its grace period are done.
    Waiting,
}

/// The events of a watch of metadata.
pub type Events = BoxStream<'static, Result<WatchEvent, Error>>;

/// A cluster, seen with one identity. Implementations wait for as long as a request may take, and then give up.
pub trait Cluster: Send + Sync {
    /// Where the objects of a kind are; `None` if the kind is not served.
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>>;

    /// The live object; `None` if there is none.
    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>>;

    /// Makes an object; `AlreadyExists` if there is one.
    fn create<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value>;

    /// Replaces an object by one that carries its resourceVersion.
    fn replace<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value>;

    /// Changes an object, and returns it as it then is.
    fn patch<'a>(&'a self, id: &'a Identity, patch: &'a Patch, params: &'a PatchParams) -> Answer<'a, Value>;

    /// Deletes an object.
    fn delete<'a>(&'a self, id: &'a Identity, params: &'a DeleteParams) -> Answer<'a, Deleted>;

    /// The metadata of the kind's objects in all namespaces whose labels match `selector`, a page at a time: the first one
    /// for no token, the next one for the token of the page before.
    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, token: &'a str) -> Answer<'a, List>;

    /// What happens to those objects after `resource_version`. The stream ends when the server ends it, and then, or
    /// after an error, may be opened again where it left off; after one that is expired only after another list.
    fn watch_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, resource_version: &'a str)
    -> Answer<'a, Events>;
}

impl Cluster for Client {
    fn scope<'a>(&'a self, kind: &'a Kind) -> Answer<'a, Option<Scope>> {
        Box::pin(async move {
            let resource = self.resource_of(&kind.api_version(), &kind.kind).await?;
            Ok(resource.map(|found| if found.namespaced { Scope::Namespaced } else { Scope::Cluster }))
        })
    }

    fn get<'a>(&'a self, id: &'a Identity) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            let resource = served(self, &id.kind).await?;
            self.api(&resource).find(&id.namespace, &id.name).await
        })
    }

    fn create<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(async move {
            let resource = served(self, &id.kind).await?;
            self.api(&resource).create_with(&id.namespace, object, params).await
        })
    }

    fn replace<'a>(&'a self, id: &'a Identity, object: &'a Value, params: &'a WriteParams) -> Answer<'a, Value> {
        Box::pin(async move {
            let resource = served(self, &id.kind).await?;
            self.api(&resource).update_with(object, "", params).await
        })
    }

    fn patch<'a>(&'a self, id: &'a Identity, patch: &'a Patch, params: &'a PatchParams) -> Answer<'a, Value> {
        Box::pin(async move {
            let resource = served(self, &id.kind).await?;
            self.api(&resource).patch(&id.namespace, &id.name, patch, params).await
        })
    }

    fn delete<'a>(&'a self, id: &'a Identity, params: &'a DeleteParams) -> Answer<'a, Deleted> {
        Box::pin(async move {
            let resource = served(self, &id.kind).await?;
            let answer = self.api(&resource).delete(&id.namespace, &id.name, params).await?;
            // What is deleted at once is answered by a status, or by the object without a time of deletion.
            let waits = answer.at(&["metadata", "deletionTimestamp"]).is_some();
            Ok(if waits { Deleted::Waiting } else { Deleted::Gone })
        })
    }

    fn list_metadata<'a>(&'a self, kind: &'a Kind, selector: &'a str, token: &'a str) -> Answer<'a, List> {
        Box::pin(async move {
            let resource = served(self, kind).await?;
            let params = ListParams {
                label_selector: selector.to_owned(),
                limit: PAGE,
                continue_token: token.to_owned(),
                metadata_only: true,
                ..ListParams::default()
            };
            self.api(&resource).list("", &params).await
        })
    }

    fn watch_metadata<'a>(
        &'a self,
        kind: &'a Kind,
        selector: &'a str,
        resource_version: &'a str,
    ) -> Answer<'a, Events> {
        Box::pin(async move {
            let resource = served(self, kind).await?;
            let params = WatchParams {
                label_selector: selector.to_owned(),
                resource_version: resource_version.to_owned(),
                metadata_only: true,
                bookmarks: true,
                ..WatchParams::default()
            };
            let watch = self.api(&resource).watch("", &params).await?;
            let next = |mut watch: client::Watch| async { watch.next().await.map(|event| (event, watch)) };
            Ok(stream::unfold(watch, next).boxed())
        })
    }
}

async fn served(client: &Client, kind: &Kind) -> Result<Resource, Error> {
    let found = client.resource_of(&kind.api_version(), &kind.kind).await?;
    let missing = || format!("no matches for kind {:?} in version {:?}", kind.kind, kind.api_version());
    found.ok_or_else(|| Error::from(Status::new(404, "NotFound", missing())))
}

/// Whether an object could not be made because its namespace is going, or is not there.
pub(crate) fn is_namespace_gone(error: &Error) -> bool {
    error.has_cause("NamespaceTerminating")
        || error.is_not_found()
            && error
                .status()
                .and_then(|status| status.details.as_ref())
                .is_some_and(|details| details.kind == "namespaces")
}

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

impl FieldConflict<'_> {
    /// The conflicts that made an apply fail, as upstream words them: `conflict with "NAME" using v1`.
    pub fn read(error: &Error) -> Vec<FieldConflict<'_>> {
        let details = error.status().and_then(|status| status.details.as_ref());
        let causes = details.into_iter().flat_map(|details| &details.causes);
        let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict").map(|cause| {
            let rest = cause.message.strip_prefix("conflict with \"").unwrap_or(&cause.message);
            let (manager, rest) = rest.split_once('"').unwrap_or((rest, ""));
            let with_subresource = rest.trim_start().starts_with("with subresource");
            FieldConflict { manager, field: &cause.field, with_subresource }
        });
        conflicts.collect()
    }
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
            assert_eq!(FieldConflict::read(&error), [expected], "{message}");
        }
    }
}
