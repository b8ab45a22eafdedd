//! Writing and deleting one object of an application.

use std::borrow::Cow;

use crate::tenancy::is_deleted;
use client::{DeleteParams, Error, Patch, PatchParams, WriteParams};
use keeper::{Cluster, Deleted, Identity, Scope};
use object::{Value, map};

use super::actor::Actor;
use super::clusters::{Fleet, Site};
use super::policy::{Policies, Propagation, Stage};
use super::three_way::{self, Access, Change};
use super::tracker::Entry;
use super::{digest, names};

/// The field manager of everything that applications write.
pub const MANAGER: &str = "kubevela";

/// What applying came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The object is as declared; whether a request was needed for that.
    Done {
        /// Whether something was written.
        written: bool,
    },
    /// There was no such object, and it was made.
    Made,
    /// Others deleted it, and a policy says that it does not come back.
    Stale,
}

/// How an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Without effect, to see whether it can be.
    Trial,
    /// So that it is what is declared.
    Real {
        /// A trial found a moment ago that there is no such object.
        is_new: bool,
    },
}

/// Why an object was not written.
enum Failure {
    /// It became another, or went, since it was looked at.
    Moved(String),
    /// Anything else.
    Lasting(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Failure::Lasting(why)
    }
}

/// Writes objects for one application.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The clusters.
    pub fleet: &'a Fleet,
    /// The application, `NAMESPACE/NAME`: also its name in the keepers.
    pub owner: &'a str,
    /// Its policies.
    pub policies: &'a Policies,
    /// The application is to leave its objects behind.
    pub orphans: bool,
    /// As whom objects are written; the controller itself if nobody is named.
    pub actor: Option<&'a Actor>,
}

impl Writer<'_> {
    /// A cluster, as the application may work with it.
    ///
    /// # Errors
    ///
    /// Why it cannot be worked with.
    pub fn site(&self, cluster: &str) -> Result<Site, String> {
        self.fleet.site_as(cluster, self.actor)
    }

    /// The entry of a rendered object.
    ///
    /// # Errors
    ///
    /// If it has no identity, or its cluster does not serve its kind, or cannot tell.
    pub async fn entry(&self, mut manifest: Value) -> Result<Entry, String> {
        let entry = Entry::of(&manifest).ok_or("an object has no apiVersion, kind or name")?;
        let cluster = self.site(&entry.cluster)?.cluster;
        let scope = cluster.scope(&entry.identity.kind).await.map_err(|error| error.to_string())?;
        match scope {
            None => Err(format!(
                "no matches for kind {:?} in version {:?}",
                entry.identity.kind.kind,
                entry.identity.kind.api_version()
            )),
            Some(Scope::Namespaced) => Ok(entry),
            Some(Scope::Cluster) => {
                manifest.remove_at(&["metadata", "namespace"]);
                Entry::of(&manifest).ok_or_else(|| "an object has no name".to_owned())
            }
        }
    }

    /// Makes the object of an entry what `desired` says.
    ///
    /// # Errors
    ///
    /// Why it cannot be; nothing was written then.
    pub async fn apply(
        &self,
        entry: &Entry,
        desired: &Value,
        stage: Stage,
        attempt: Attempt,
    ) -> Result<Applied, String> {
        let dry_run = attempt == Attempt::Trial;
        let id = &entry.identity;
        let content = digest::of(desired).max(1);
        let Site { cluster, keeper, .. } = self.site(&entry.cluster)?;
        if keeper.is_settled(self.owner, id, content) {
            return Ok(Applied::Done { written: false });
        }
        if !dry_run && stage == Stage::Keep && keeper.left_alone(id).is_some() {
            return Err(format!("{id}: another actor changes this object back again and again"));
        }
        let mut applied = Applied::Done { written: false };
        let work = async {
            let (now, live) = self.write(cluster.as_ref(), id, desired, stage, attempt).await?;
            applied = now;
            Ok::<_, String>(live)
        };
        if dry_run {
            work.await?;
            return Ok(applied);
        }
        let live = keeper.noting(id, work).await?;
        if live.is_some() {
            let is_written = matches!(applied, Applied::Made | Applied::Done { written: true });
            let repaired = stage == Stage::Keep && is_written;
            keeper.settle(self.owner, id, content, repaired);
        }
        Ok(applied)
    }

    /// Writes an object as it is found. What others changed or made meanwhile is looked at once more.
    async fn write(
        &self,
        cluster: &dyn Cluster,
        id: &Identity,
        desired: &Value,
        stage: Stage,
        attempt: Attempt,
    ) -> Result<(Applied, Option<Value>), String> {
        let dry_run = attempt == Attempt::Trial;
        let find = async || cluster.get(id).await.map_err(|error| format!("{}: {error}", described(id)));
        let live = if attempt == (Attempt::Real { is_new: true }) { None } else { find().await? };
        match self.write_over(cluster, id, live, desired, stage, dry_run).await {
            Ok(written) => Ok(written),
            Err(Failure::Lasting(why)) => Err(why),
            Err(Failure::Moved(_)) => {
                let again = self.write_over(cluster, id, find().await?, desired, stage, dry_run).await;
                again.map_err(|(Failure::Moved(why) | Failure::Lasting(why))| why)
            }
        }
    }

    /// Writes an object over the `live` one that was found.
    async fn write_over(
        &self,
        cluster: &dyn Cluster,
        id: &Identity,
        live: Option<Value>,
        desired: &Value,
        stage: Stage,
        dry_run: bool,
    ) -> Result<(Applied, Option<Value>), Failure> {
        let failed = |error: Error| {
            let why = format!("{}: {error}", described(id));
            let is_moved = error.is_already_exists() || error.is_conflict() || error.is_not_found();
            if is_moved { Failure::Moved(why) } else { Failure::Lasting(why) }
        };
        if live.as_ref().is_some_and(is_deleted) {
            return Err(format!("{} is being deleted", described(id)).into());
        }
        let rights = self.policies.rights(desired);
        let (wanted, declared) = match three_way::access(live.as_ref(), self.owner, rights, &described(id))? {
            // No watch tells of what does not carry the labels: it is asked for each time.
            Access::Look => return Ok((Applied::Done { written: false }, None)),
            Access::Join(sharers) => {
                let live = live.unwrap_or_default();
                if live.annotation(names::SHARED_BY) == Some(&sharers) {
                    return Ok((Applied::Done { written: false }, Some(live)));
                }
                let patch = map! { "metadata" => map! { "annotations" => map! { names::SHARED_BY => sharers } } };
                let written =
                    cluster.patch(id, &Patch::Merge(patch.into()), &patching(dry_run)).await.map_err(failed)?;
                return Ok((Applied::Done { written: true }, Some(written)));
            }
            Access::Write(sharers) => {
                // What was applied already, and is applied again because its step waits, is kept.
                let is_applied = live.as_ref().is_some_and(|live| {
                    let hash = live.label(names::RENDER_HASH);
                    hash.is_some() && hash == desired.label(names::RENDER_HASH)
                });
                let stage = if is_applied { Stage::Keep } else { stage };
                let Some(mut wanted) = self.policies.once(desired, live.as_ref(), stage)? else {
                    return Ok((Applied::Stale, None));
                };
                if live.as_ref() == Some(&*wanted) {
                    return Ok((Applied::Done { written: false }, live));
                }
                let mut declared = Cow::Borrowed(desired);
                if let Some(sharers) = sharers {
                    for object in [&mut wanted, &mut declared] {
                        object.to_mut().set_at(&["metadata", "annotations", names::SHARED_BY], sharers.as_str().into());
                    }
                }
                (wanted, declared)
            }
        };
        let change = three_way::change(live.as_ref(), &wanted, &declared, &self.policies.strategy(desired))
            .map_err(|error| format!("{}: {error}", described(id)))?;
        let is_made = matches!(change, Change::Create(_));
        let params = WriteParams { field_manager: MANAGER.into(), dry_run, ..WriteParams::default() };
        let written = match change {
            Change::None => return Ok((Applied::Done { written: false }, live)),
            Change::Create(object) => cluster.create(id, &object, &params).await,
            Change::Patch(patch) => cluster.patch(id, &patch, &patching(dry_run)).await,
            Change::Replace(object) => cluster.replace(id, &object, &params).await,
            Change::Recreate(_) if dry_run => return Ok((Applied::Done { written: true }, live)),
            Change::Recreate(object) => {
                let live = live.unwrap_or_default();
                cluster.delete(id, &exactly(&live, None)).await.map_err(failed)?;
                cluster.create(id, &object, &params).await
            }
        };
        let applied = if is_made { Applied::Made } else { Applied::Done { written: true } };
        Ok((applied, Some(written.map_err(failed)?)))
    }

    /// The live object of an entry, if the application owns or shares it.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    pub async fn owned(&self, entry: &Entry) -> Result<Option<Value>, String> {
        let cluster = self.site(&entry.cluster)?.cluster;
        let failed = |error: Error| format!("{}: {error}", described(&entry.identity));
        if cluster.scope(&entry.identity.kind).await.map_err(failed)?.is_none() {
            return Ok(None);
        }
        let live = cluster.get(&entry.identity).await.map_err(failed)?;
        Ok(live.filter(|live| {
            three_way::owner_of(live).is_some_and(|owner| owner == self.owner)
                || live.annotation(names::SHARED_BY).is_some_and(|all| all.split(',').any(|one| one == self.owner))
        }))
    }

    /// Lets go of an object that the application owns or shares: others who share it take it over, policies may leave it
    /// behind, else it is deleted. Whether it is gone, as far as the application is concerned.
    ///
    /// # Errors
    ///
    /// Why it cannot be.
    pub async fn remove(&self, entry: &Entry, live: &Value) -> Result<bool, String> {
        let id = &entry.identity;
        let cluster = self.site(&entry.cluster)?.cluster;
        let propagation = self.policies.propagation(live);
        let patch = three_way::leave(live, self.owner).or_else(|| {
            (entry.skip_gc || self.orphans || propagation == Some(Propagation::Orphan)).then(|| {
                let labels = map! { names::APP_NAME => Value::Null, names::APP_NAMESPACE => Value::Null };
                map! { "metadata" => map! { "labels" => labels } }.into()
            })
        });
        let outcome = match patch {
            Some(patch) => cluster.patch(id, &Patch::Merge(patch), &patching(false)).await.map(|_| true),
            None if is_deleted(live) => return Ok(false),
            None => {
                let deleted = cluster.delete(id, &exactly(live, propagation)).await;
                deleted.map(|deleted| deleted == Deleted::Gone)
            }
        };
        match outcome {
            Err(error) if error.is_not_found() => Ok(true),
            // Somebody changed it meanwhile; the next round looks again.
            Err(error) if error.is_conflict() => Ok(false),
            outcome => outcome.map_err(|error| format!("{}: {error}", described(id))),
        }
    }
}

fn exactly(live: &Value, propagation: Option<Propagation>) -> DeleteParams {
    DeleteParams {
        uid: live.meta_str("uid").to_owned(),
        resource_version: live.meta_str("resourceVersion").to_owned(),
        propagation: (propagation == Some(Propagation::Cascading)).then_some(client::Propagation::Background),
        ..DeleteParams::default()
    }
}

fn patching(dry_run: bool) -> PatchParams {
    PatchParams { field_manager: MANAGER.into(), dry_run, ..PatchParams::default() }
}

/// `Kind namespace/name`, as texts have it.
pub(crate) fn described(id: &Identity) -> String {
    match id.namespace.as_str() {
        "" => format!("{} {}", id.kind.kind, id.name),
        namespace => format!("{} {namespace}/{}", id.kind.kind, id.name),
    }
}
