//! Looks at objects that may have to go.

use super::graph::{Effects, Graph, Item, Waiting};
use super::identity::{Coordinates, Reference, Uid};
use super::verdict::{self, Owner, Verdict};
use crate::context::Context;
use client::{Api, DeleteParams, Error, Patch, PatchParams, Propagation, Result};
use object::Value;
use parking_lot::Mutex;
use std::sync::Arc;

/// What there is to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    /// Finds out whether an object has to go.
    Look(Uid),
    /// Orphans the dependents of an object.
    Orphan(Uid),
}

/// How often a finalizer is tried to be taken away while others write the object.
const TRIES: usize = 5;

pub(super) struct Collector {
    pub(super) context: Context,
    pub(super) graph: Arc<Mutex<Graph>>,
    pub(super) effects: Box<dyn Fn(Effects) + Send + Sync>,
}

/// What is found at an owner's place.
enum Found {
    Owner(Owner),
    /// A namespaced owner of an object without a namespace: nobody can say whether it is there.
    Nonsense,
}

impl Collector {
    /// Does a task; after an error it is to be done again.
    pub(super) async fn work(&self, task: &Task) -> Result<()> {
        match task {
            Task::Look(uid) => {
                let outcome = self.look(uid).await;
                let effects = self.graph.lock().looked(uid);
                (self.effects)(effects);
                outcome
            }
            Task::Orphan(uid) => self.orphan(uid).await,
        }
    }

    async fn look(&self, uid: &Uid) -> Result<()> {
        let Some(item) = self.item(uid) else { return Ok(()) };
        if item.deleting && !item.deleting_dependents {
            return Ok(());
        }
        let there = &item.coordinates;
        let served = self.served(&there.api_version, &there.kind)?;
        let latest = match served.get(there).await? {
            Some(latest) if *latest.meta_str("uid") == *uid.to_string() => latest,
            _ => {
                let effects = self.graph.lock().absent(there.clone());
                (self.effects)(effects);
                return Ok(());
            }
        };
        if item.deleting_dependents {
            return self.finish_foreground(uid, &served, there).await;
        }
        self.judge(uid, &item, &served, &latest).await?;
        if self.item(uid).is_some_and(|item| item.virtual_) {
            // Until it is seen: what comes and goes while nobody watches would stay in the graph.
            return Err(Error::Content(format!("{there} was not seen yet")));
        }
        Ok(())
    }

    fn item(&self, uid: &Uid) -> Option<Item> {
        self.graph.lock().item(uid)
    }

    /// Does what becomes of an object that has owners.
    async fn judge(&self, uid: &Uid, item: &Item, served: &Served, latest: &Value) -> Result<()> {
        let references = verdict::references(latest);
        if references.is_empty() {
            return Ok(());
        }
        let mut owners = Vec::with_capacity(references.len());
        for reference in references {
            match self.find(&Reference::of(reference), &item.coordinates.namespace).await? {
                Found::Owner(owner) => owners.push(owner),
                Found::Nonsense => return Ok(()),
            }
        }
        let (has_dependents, in_turn) = self.graph.lock().dependents_state(uid);
        let there = &item.coordinates;
        match verdict::of(&owners, &latest.meta_list("finalizers"), has_dependents) {
            Verdict::Keep => Ok(()),
            Verdict::Release => {
                let gone = references.iter().zip(&owners).filter(|(_, owner)| **owner != Owner::Solid);
                let gone: Vec<&str> = gone.filter_map(|(r, _)| r.str_at(&["uid"])).collect();
                served.release(there, &gone).await
            }
            Verdict::Foreground => {
                // A dependent that waits in turn may be in a circle, which is cut here.
                if in_turn {
                    served.unblock(there).await?;
                    // The object is another version now, by our own hand.
                    return served.delete_any(there, Propagation::Foreground).await;
                }
                served.delete(there, latest, Propagation::Foreground).await
            }
            Verdict::Delete(propagation) => served.delete(there, latest, propagation).await,
        }
    }

    /// Finds out about the owner that an object in this namespace names.
    async fn find(&self, reference: &Reference, namespace: &str) -> Result<Found> {
        if self.graph.lock().is_absent(reference, namespace) {
            return Ok(Found::Owner(Owner::Dangling));
        }
        let served = self.served(&reference.api_version, &reference.kind)?;
        let namespaced = served.api.resource().namespaced;
        if namespaced && namespace.is_empty() {
            return Ok(Found::Nonsense);
        }
        let there = reference.coordinates(if namespaced { namespace } else { "" });
        match served.get(&there).await? {
            Some(owner) if *owner.meta_str("uid") == *reference.uid.to_string() => {
                let waits = !owner.meta_str("deletionTimestamp").is_empty()
                    && owner.meta_list("finalizers").contains(&super::FOREGROUND);
                Ok(Found::Owner(if waits { Owner::Waiting } else { Owner::Solid }))
            }
            _ => {
                self.graph.lock().remember_absent(there);
                Ok(Found::Owner(Owner::Dangling))
            }
        }
    }

    /// An object whose dependents are being deleted goes when none is left that blocks it.
    async fn finish_foreground(&self, uid: &Uid, served: &Served, there: &Coordinates) -> Result<()> {
        let waiting = self.graph.lock().waits(uid);
        match waiting {
            Waiting::Done => served.remove_finalizer(there, super::FOREGROUND).await,
            Waiting::For(look) => {
                (self.effects)(Effects { look, ..Effects::default() });
                Ok(())
            }
        }
    }

    /// Takes the references to an object from its dependents, then lets it go.
    async fn orphan(&self, uid: &Uid) -> Result<()> {
        let (item, dependents) = {
            let graph = self.graph.lock();
            let Some(item) = graph.item(uid) else { return Ok(()) };
            (item, graph.dependents(uid))
        };
        let owner = uid.to_string();
        for dependent in dependents {
            self.served(&dependent.api_version, &dependent.kind)?.release(&dependent, &[&owner]).await?;
        }
        let there = &item.coordinates;
        self.served(&there.api_version, &there.kind)?.remove_finalizer(there, super::ORPHAN).await
    }

    /// The requests about a kind; an error if nobody serves it (yet).
    fn served(&self, api_version: &str, kind: &str) -> Result<Served> {
        let found = self.context.served(api_version, kind);
        let (resource, custom) =
            found.ok_or_else(|| Error::Content(format!("no resource is served for {api_version}, kind {kind}")))?;
        Ok(Served { api: self.context.api(&resource), custom })
    }
}

/// The requests about a kind.
struct Served {
    api: Api,
    custom: bool,
}

impl Served {
    async fn get(&self, there: &Coordinates) -> Result<Option<Value>> {
        match self.api.get_metadata(self.namespace(there), &there.name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A reference may name a resource without namespaces.
    fn namespace<'a>(&self, there: &'a Coordinates) -> &'a str {
        if self.api.resource().namespaced { &there.namespace } else { "" }
    }

    async fn release(&self, there: &Coordinates, owners: &[&str]) -> Result<()> {
        let uid = there.uid.to_string();
        self.patch(there, || verdict::release(&uid, owners), |object| verdict::release_merge(object, owners)).await
    }

    async fn unblock(&self, there: &Coordinates) -> Result<()> {
        let Some(object) = self.get(there).await? else { return Ok(()) };
        self.patch(there, || verdict::unblock(&object), verdict::unblock_merge).await
    }

    /// Patches an object in the way that its kind knows. One that is gone meanwhile needs no patch.
    async fn patch(
        &self,
        there: &Coordinates,
        strategic: impl Fn() -> Value,
        merge: impl Fn(&Value) -> Value,
    ) -> Result<()> {
        let patch = if self.custom {
            let Some(object) = self.get(there).await? else { return Ok(()) };
            Patch::Merge(merge(&object))
        } else {
            Patch::Strategic(strategic())
        };
        gone_is_fine(self.send(there, &patch).await)
    }

    async fn send(&self, there: &Coordinates, patch: &Patch) -> Result<Value> {
        self.api.patch(self.namespace(there), &there.name, patch, &PatchParams::default()).await
    }

    async fn remove_finalizer(&self, there: &Coordinates, finalizer: &str) -> Result<()> {
        let mut outcome = Ok(());
        for _ in 0..TRIES {
            let Some(object) = self.get(there).await? else { return Ok(()) };
            let Some(patch) = verdict::without_finalizer(&object, finalizer) else { return Ok(()) };
            outcome = gone_is_fine(self.send(there, &Patch::Merge(patch)).await);
            if !outcome.as_ref().is_err_and(Error::is_conflict) {
                break;
            }
        }
        outcome
    }

    /// Deletes an object as it was judged. If it changed meanwhile but has the same owners, that does not matter.
    async fn delete(&self, there: &Coordinates, judged: &Value, propagation: Propagation) -> Result<()> {
        let params = DeleteParams {
            propagation: Some(propagation),
            uid: there.uid.to_string(),
            resource_version: judged.meta_str("resourceVersion").to_owned(),
            ..DeleteParams::default()
        };
        let namespace = self.namespace(there);
        match self.api.delete(namespace, &there.name, &params).await {
            Err(error) if error.is_conflict() => {
                let Some(now) = self.get(there).await? else { return Ok(()) };
                if now.meta_str("uid") != params.uid || verdict::references(&now) != verdict::references(judged) {
                    return Err(error);
                }
                self.delete_any(there, propagation).await
            }
            outcome => gone_is_fine(outcome),
        }
    }

    /// Deletes an object in whatever version it is.
    async fn delete_any(&self, there: &Coordinates, propagation: Propagation) -> Result<()> {
        let params = DeleteParams { propagation: Some(propagation), ..DeleteParams::default() };
        let params = params.with_uid(&there.uid.to_string());
        gone_is_fine(self.api.delete(self.namespace(there), &there.name, &params).await)
    }
}

fn gone_is_fine(outcome: Result<Value>) -> Result<()> {
    match outcome {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
