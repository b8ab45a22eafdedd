//! Letting go of one target.

use crate::apply::SOON;
use client::Error;

use crate::cluster::Deleted;
use crate::item::Item;
use crate::keeper::{Done, Work, manager};
use crate::plan::{self, Heirs, Release, Target};
use crate::policy::Deletion;

/// How often a target is looked at anew when others change it at the same time.
const ATTEMPTS: usize = 3;

impl Work<'_> {
    /// Lets go of one target: the entry goes when nothing is left to be done.
    pub async fn release(&self, mut item: Item) -> Done {
        let manager = manager(self.parent, &item);
        let mut writes = 0;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.try_release(&item, &manager, &mut writes).await {
                Ok(None) => return Done::dropped(writes),
                Ok(Some(waiting)) => {
                    // Waiting is no failure.
                    item.state.ready = None;
                    item.state.message = waiting.to_owned();
                    return Done { retry_after: Some(SOON), ..Done::kept(item, writes) };
                }
                Err(Failure::Changed(error)) => last = Some(error),
                Err(Failure::Other(error)) => {
                    last = Some(error);
                    break;
                }
            }
        }
        let what = match (item.state.policy.unwrap_or_default().deletion, item.state.created) {
            (Deletion::Orphan, _) => "orphaning failed",
            (Deletion::Remove, true) => "pruning failed",
            (Deletion::Remove, false) => "disowning failed",
        };
        let why = last.map_or_else(String::new, |error| error.to_string());
        let failed = self.failed(item, &format!("{what}: {why}"));
        Done { writes, ..failed }
    }

    /// Nothing when the target is released, what is waited for when it cannot be yet.
    async fn try_release(
        &self,
        item: &Item,
        manager: &str,
        writes: &mut usize,
    ) -> Result<Option<&'static str>, Failure> {
        let id = &item.identity;
        if self.cluster.scope(&id.kind).await?.is_none() {
            return Ok(None);
        }
        let live = self.cluster.get(id).await?;
        let key = id.object();
        let target = Target { item, manager, parent: self.parent };
        let is_orphaned = plan::deletion(item, self.parent) == Deletion::Orphan;
        let (heirs, rivals, family_protects) = {
            let shared = &self.keeper.shared;
            let mut index = shared.index.lock();
            let rivals = index.rivals(&key, manager);
            let heirs = live.as_ref().map_or(Heirs::None, |live| {
                let bequeathed = !is_orphaned && plan::is_created(live, target, rivals);
                index.heirs(&key, live, manager, bequeathed, shared.now())
            });
            let family_protects = index.family_protects(&key, manager, self.parent.family);
            (heirs, rivals, family_protects)
        };
        if heirs == Heirs::Waiting {
            self.keeper.shared.drifted.notify_one();
        }
        let plan = plan::release(live.as_ref(), target, heirs, rivals, family_protects);
        match (plan, &live) {
            (Release::Forget, _) | (_, None) => Ok(None),
            (Release::Wait(why), _) => Ok(Some(why)),
            (Release::Delete { uid, resource_version }, _) => match self.delete(id, &uid, &resource_version).await {
                Ok(deleted) => {
                    *writes += 1;
                    Ok((deleted == Deleted::Waiting).then_some("waiting for resource deletion"))
                }
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error.into()),
            },
            (Release::Disown { operations, fields }, Some(live)) => {
                if !operations.is_empty() {
                    *writes += 1;
                    match self.patch_tracking(id, operations).await {
                        Err(error) if error.is_not_found() => return Ok(None),
                        answer => _ = answer?,
                    }
                }
                if fields {
                    *writes += 1;
                    self.take_fields(target, live).await?;
                }
                if heirs == Heirs::Holding && !is_orphaned && plan::is_created(live, target, rivals) {
                    self.keeper.shared.index.lock().hand_over(&key);
                }
                Ok(None)
            }
        }
    }
}

/// Why a release did not come about.
enum Failure {
    /// The object changed meanwhile.
    Changed(Error),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // A JSON patch whose test fails is answered as invalid.
        if error.is_conflict() || error.is_invalid() { Failure::Changed(error) } else { Failure::Other(error) }
    }
}
