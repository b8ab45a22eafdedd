//! Whose objects are whose: owners adopt orphans that their selector matches and release what it no longer matches.

use super::meta;
use client::{Api, Error, Patch, PatchParams, Resource, Result};
use object::{Value, map};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How an object stands to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It belongs to the owner.
    Owned,
    /// It belongs to nobody, and should to the owner.
    Orphan,
    /// It belongs to the owner, and should not.
    Stray,
    /// It is no concern of the owner.
    Foreign,
}

fn claim(owner: &Value, object: &Value, matches: bool) -> Claim {
    let going = meta::is_deleting(owner);
    if crate::controller_of(object).is_some() {
        return match (meta::controller_uid(object) == meta::uid(owner), matches) {
            (false, _) => Claim::Foreign,
            (true, true) => Claim::Owned,
            (true, false) if going => Claim::Foreign,
            (true, false) => Claim::Stray,
        };
    }
    let free = matches && !going && !meta::is_deleting(object) && object.namespace() == owner.namespace();
    if free { Claim::Orphan } else { Claim::Foreign }
}

/// Adopts and releases objects for one owner.
pub(crate) struct Claimer<'a> {
    owner: &'a Value,
    owners: Api,
    objects: Api,
    fresh: OnceCell<()>,
}

impl<'a> Claimer<'a> {
    /// For an owner; `owners` and `objects` are the requests about what it is and what it claims.
    pub(crate) fn new(owner: &'a Value, owners: Api, objects: Api) -> Self {
        Claimer { owner, owners, objects, fresh: OnceCell::new() }
    }

    /// Of these objects those that belong to the owner, with those that came to belong to it. All are tried; the first
    /// failure is given.
    pub(crate) async fn claim(
        &self,
        objects: Vec<Arc<Value>>,
        matches: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Arc<Value>>> {
        let mut claimed = Vec::with_capacity(objects.len());
        let mut failure = None;
        for object in objects {
            let outcome = match claim(self.owner, &object, matches(&object)) {
                Claim::Owned => Ok(true),
                Claim::Foreign => Ok(false),
                Claim::Orphan => self.adopt(&object).await,
                Claim::Stray => self.release(&object).await.map(|()| false),
            };
            match outcome {
                Ok(true) => claimed.push(object),
                Ok(false) => {}
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(claimed), Err)
    }

    /// Makes the owner the object's; says whether the object is still there.
    pub(crate) async fn adopt(&self, object: &Value) -> Result<bool> {
        self.fresh.get_or_try_init(|| self.check_fresh()).await?;
        let metadata = map! {
            "uid" => meta::uid(object),
            "ownerReferences" => vec![meta::controlled_by(self.owner, self.owners.resource())],
        };
        match self.patch(object, map! { "metadata" => metadata }.into()).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn release(&self, object: &Value) -> Result<()> {
        let reference = map! { "$patch" => "delete", "uid" => meta::uid(self.owner) };
        let metadata = map! { "uid" => meta::uid(object), "ownerReferences" => vec![reference] };
        match self.patch(object, map! { "metadata" => metadata }.into()).await {
            // Gone, or another of the same name by now, or without owners.
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    async fn patch(&self, object: &Value, patch: Value) -> Result<Value> {
        let params = PatchParams::default();
        self.objects.patch(object.namespace(), object.name(), &Patch::Strategic(patch), &params).await
    }

    /// Whether the owner is still there, by the server and not by a cache that may be behind.
    async fn check_fresh(&self) -> Result<()> {
        let (owner, Resource { kind, .. }) = (self.owner, self.owners.resource());
        let (namespace, name) = (owner.namespace(), owner.name());
        let fresh = self.owners.get(namespace, name).await?;
        let complaint = if meta::uid(&fresh) != meta::uid(owner) {
            let (got, wanted) = (meta::uid(&fresh), meta::uid(owner));
            format!("original {kind} {namespace}/{name} is gone: got uid {got}, wanted {wanted}")
        } else if meta::is_deleting(&fresh) {
            format!("{namespace}/{name} has just been deleted at {}", fresh.meta_str("deletionTimestamp"))
        } else {
            return Ok(());
        };
        Err(Error::Content(format!("can't adopt {kind} {namespace}/{name} ({}): {complaint}", meta::uid(owner))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    #[test]
    fn orphans_are_adopted_and_strays_released() {
        let owner = value(r#"{"metadata":{"uid":"u","namespace":"n"}}"#);
        let going = value(r#"{"metadata":{"uid":"u","namespace":"n","deletionTimestamp":"t"}}"#);
        let owned = |uid: &str| {
            value(&format!(
                r#"{{"metadata":{{"namespace":"n","ownerReferences":[{{"uid":"{uid}","controller":true}}]}}}}"#
            ))
        };
        let orphan = value(r#"{"metadata":{"namespace":"n"}}"#);
        let other_namespace = value(r#"{"metadata":{"namespace":"m"}}"#);
        let dying = value(r#"{"metadata":{"namespace":"n","deletionTimestamp":"t"}}"#);
        for (owner, object, matches, want) in [
            (&owner, &owned("u"), true, Claim::Owned),
            (&owner, &owned("u"), false, Claim::Stray),
            (&going, &owned("u"), false, Claim::Foreign),
            (&owner, &owned("v"), true, Claim::Foreign),
            (&owner, &orphan, true, Claim::Orphan),
            (&owner, &orphan, false, Claim::Foreign),
            (&going, &orphan, true, Claim::Foreign),
            (&owner, &other_namespace, true, Claim::Foreign),
            (&owner, &dying, true, Claim::Foreign),
        ] {
            assert_eq!(claim(owner, object, matches), want, "{object:?} {matches}");
        }
    }
}
