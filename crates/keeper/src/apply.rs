//! Applying one target.

use std::time::Duration;

use jiff::SignedDuration;
use object::Value;

use client::{DeleteParams, Error, Patch, PatchParams};

use crate::cluster::{self, Deleted, FieldConflict};
use crate::identity::Identity;
use crate::item::Item;
use crate::keeper::{Desired, Done, Work, digest, manager};
use crate::managed;
use crate::parent::LIFECYCLE_MANAGER;
use crate::plan::{self, Rivals, Target};
use crate::policy::Creation;
use crate::tracking::{self, Operations, Others};

/// How often a target is looked at anew when others change it at the same time.
const ATTEMPTS: usize = 5;
/// When what waits for others is looked at again.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// What one attempt came to.
enum Attempt {
    /// The target is done with.
    Done(Box<Done>),
    /// Somebody else wrote at the same time.
    Again(Error),
}

impl Attempt {
    fn done(done: Done) -> Self {
        Attempt::Done(Box::new(done))
    }
}

/// What is written, and on which grounds.
struct Plan<'a> {
    live: Option<&'a Value>,
    created: bool,
    /// The write must find the object as it was read.
    exact: bool,
}

impl Work<'_> {
    /// Applies one target; what became of it is in its item.
    pub async fn apply(&self, mut item: Item, desired: Desired) -> Done {
        let key = item.identity.object();
        let manager = manager(self.parent, &item);
        let content = digest(&desired.object, desired.policy);
        item.origin = desired.origin.clone();
        let shared = &self.keeper.shared;
        if !self.dry_run {
            let index = shared.index.lock();
            let inherits = !item.state.created && index.rivals(&key, &manager).handed_over;
            let is_known = item.state.ready == Some(true) && desired.condition.is_none() && !self.verify && !inherits;
            if is_known && index.is_settled(&key, &manager, content) {
                return Done::kept(item, 0);
            }
            let now = shared.now();
            if let Some(until) = index.is_fought_over(&key, now) {
                item.state.ready = Some(false);
                item.state.message = "another actor changes this object back again and again".to_owned();
                let wait = Duration::try_from(until.duration_since(now)).unwrap_or(SOON);
                return Done { fought_over: true, retry_after: Some(wait), ..Done::kept(item, 0) };
            }
        }
        let mut writes = 0;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.attempt(&item, &desired, &manager, content, &mut writes).await {
                Attempt::Done(mut done) => {
                    done.writes += writes;
                    return *done;
                }
                Attempt::Again(error) => last = Some(error),
            }
        }
        let why = last.map_or_else(String::new, |error| error.to_string());
        self.failed(item, &format!("applying object failed: {why}"))
    }

    async fn attempt(
        &self,
        item: &Item,
        desired: &Desired,
        manager: &str,
        content: u64,
        writes: &mut usize,
    ) -> Attempt {
        let conditional = desired.condition.is_some();
        let live = match self.cluster.get(&item.identity).await {
            Ok(live) => live,
            Err(error) if conditional => {
                return Attempt::done(self.failed(item.clone(), &format!("reading condition target: {error}")));
            }
            Err(error) => return Attempt::done(self.failed(item.clone(), &format!("applying object failed: {error}"))),
        };
        let live = live.as_ref();
        if let Some(done) = self.hindrance(item, desired, live) {
            return Attempt::done(done);
        }
        let key = item.identity.object();
        let rivals = self.keeper.shared.index.lock().rivals(&key, manager);
        let target = Target { item, manager, parent: self.parent };
        if let Some(condition) = &desired.condition {
            match condition(live) {
                Ok(true) => {}
                Ok(false) => return Attempt::done(self.skip(target, desired, live, rivals, writes).await),
                Err(_) => {
                    let message = "ConditionEvaluationFailed: expression could not be evaluated";
                    return Attempt::done(self.failed(item.clone(), message));
                }
            }
        }
        let created = match plan::adopt(live, target, desired.policy.creation, rivals) {
            Ok(created) => created,
            Err(message) => return Attempt::done(self.failed(item.clone(), &message)),
        };
        let plan = Plan { live, created, exact: conditional || (live.is_some() && !created) };
        let written = match self.write(target, desired, &plan, rivals).await {
            Ok(written) => written,
            Err(error) if cluster::is_namespace_gone(&error) => return Attempt::done(Done::dropped(0)),
            // A conditional target is decided on anew in the next run, with everything that belongs to it.
            Err(error) if error.is_conflict() && FieldConflict::read(&error).is_empty() && !conditional => {
                return Attempt::Again(error);
            }
            Err(error) if live.is_none() && !FieldConflict::read(&error).is_empty() && !conditional => {
                return Attempt::Again(error);
            }
            Err(error) => return Attempt::done(self.failed(item.clone(), &format!("applying object failed: {error}"))),
        };
        let is_changed = live.is_none_or(|live| is_written(live, &written));
        *writes += usize::from(is_changed);
        if desired.policy.force && is_changed && !self.dry_run {
            self.keeper.shared.index.lock().displace_others(&key, manager);
            self.keeper.shared.drifted.notify_one();
        }
        if live.is_none() && !managed::is_sole(&written, manager) {
            return self.lost_race(target, desired, &written, writes).await;
        }
        let done = self.applied(target, desired, &plan, written, content, writes).await;
        let inherited = rivals.handed_over && !item.state.created && !self.dry_run;
        Attempt::done(Done { inherited, ..done })
    }

    /// What keeps the target from being applied, although nothing is wrong.
    fn hindrance(&self, item: &Item, desired: &Desired, live: Option<&Value>) -> Option<Done> {
        let live_version = live.map_or("", |live| live.meta_str("resourceVersion"));
        if desired.rendered_from.as_ref().is_some_and(|version| version != live_version) {
            return Some(self.failed(item.clone(), "the object changed since it was read for the template"));
        }
        live?.at(&["metadata", "deletionTimestamp"])?;
        if (item.identity.kind.group.as_str(), item.identity.kind.kind.as_str()) == ("", "Namespace") {
            return Some(Done::dropped(0));
        }
        let waiting = self.failed(item.clone(), "waiting for resource deletion");
        Some(Done { retry_after: Some(SOON), ..waiting })
    }

    /// Server-side apply, with force where the policy or the nature of the conflict allows it.
    async fn write(
        &self,
        target: Target<'_>,
        desired: &Desired,
        plan: &Plan<'_>,
        rivals: Rivals,
    ) -> Result<Value, Error> {
        let Target { item, manager, parent } = target;
        let key = item.identity.object();
        let mut object = desired.object.clone();
        if !item.identity.namespace.is_empty() {
            object.set_at(&["metadata", "namespace"], item.identity.namespace.clone().into());
        }
        let others = Others { created: rivals.created || rivals.handed_over };
        tracking::mark(&mut object, plan.live, parent, plan.created, desired.policy.protect, others);
        if let Some(live) = plan.live.filter(|_| plan.exact) {
            object.set_at(&["metadata", "uid"], live.meta_str("uid").into());
            if desired.condition.is_some() {
                object.set_at(&["metadata", "resourceVersion"], live.meta_str("resourceVersion").into());
            }
        }
        // What is believed absent is never taken from somebody who made it meanwhile.
        let force = desired.policy.force && plan.live.is_some();
        let params = PatchParams { dry_run: self.dry_run, ..PatchParams::default() };
        let mut apply = Patch::Apply { object, manager: manager.to_owned(), force };
        self.noting(&item.identity, async {
            let first = self.cluster.patch(&item.identity, &apply, &params).await;
            let (Err(error), Some(live)) = (&first, plan.live) else { return first };
            let is_leaving = |manager: &str| self.keeper.shared.index.lock().is_leaving(&key, manager);
            if force || !plan::is_drift(live, plan.created, &FieldConflict::read(error), is_leaving) {
                return first;
            }
            if let Patch::Apply { force, .. } = &mut apply {
                *force = true;
            }
            self.cluster.patch(&item.identity, &apply, &params).await
        })
        .await
    }

    /// What was believed absent was made by somebody else at the same moment, and now has fields of both.
    async fn lost_race(&self, target: Target<'_>, desired: &Desired, written: &Value, writes: &mut usize) -> Attempt {
        let item = target.item.clone();
        // The mark of who made it as well, which is somebody else: times, of one second each, would not tell.
        if let Err(error) = self.take_fields(target, written).await {
            return Attempt::done(self.failed(item, &format!("applying object failed: {error}")));
        }
        *writes += 1;
        if desired.policy.creation == Creation::Merge {
            let error = Error::Content(format!("{} was made by another at the same time", item.identity));
            return Attempt::Again(error);
        }
        let message = format!("object ({}) exists and cannot be adopted", item.identity);
        Attempt::done(self.failed(item, &message))
    }

    async fn applied(
        &self,
        target: Target<'_>,
        desired: &Desired,
        plan: &Plan<'_>,
        written: Value,
        content: u64,
        writes: &mut usize,
    ) -> Done {
        let Target { manager, .. } = target;
        let mut item = target.item.clone();
        let shared = &self.keeper.shared;
        let now = shared.now();
        let time = managed::last_apply(&written, manager).map_or_else(|| seconds(now), Into::into);
        item.state.created = plan.created;
        item.state.last_apply = Some(time);
        if self.dry_run {
            return Done::kept(item, 0);
        }
        let key = item.identity.object();
        {
            let mut index = shared.index.lock();
            let was_repair =
                index.content(&key, manager) == content && plan.live.is_none_or(|live| is_written(live, &written));
            if was_repair {
                index.repaired(&key, now);
            }
            index.applied(&key, manager, content, plan.created);
        }
        let legacy = tracking::forget_legacy(&written);
        if !legacy.is_empty() {
            *writes += 1;
            if let Err(error) = self.patch_tracking(&item.identity, legacy).await {
                return self.failed(item, &format!("applying managed metadata failed: {error}"));
            }
        }
        item.state.ready = Some(true);
        item.state.message = String::new();
        item.state.policy = Some(desired.policy);
        Done::kept(item, 0)
    }

    /// A condition said no: content stays as it is, while the policy is carried out on what is the parent's.
    async fn skip(
        &self,
        target: Target<'_>,
        desired: &Desired,
        live: Option<&Value>,
        rivals: Rivals,
        writes: &mut usize,
    ) -> Done {
        let mut item = target.item.clone();
        let is_ours = live.is_some_and(|live| managed::applied(live, target.manager).is_some());
        let inherited = rivals.handed_over && is_ours && !item.state.created && !self.dry_run;
        item.state.created |= inherited;
        let key = item.identity.object();
        let family_protects = self.keeper.shared.index.lock().family_protects(&key, target.manager, self.parent.family);
        if let Some(operations) = plan::skip(live, target, desired.policy, family_protects) {
            if !operations.is_empty() {
                *writes += 1;
                if let Err(error) = self.patch_tracking(&item.identity, operations).await {
                    return self.failed(item, &format!("reconciling skipped target policy: {error}"));
                }
            }
            item.state.policy = Some(desired.policy);
        }
        item.state.ready = Some(true);
        item.state.message = "ConditionNotMet: apply skipped".to_owned();
        Done { inherited, ..Done::kept(item, 0) }
    }

    /// Changes nothing but tracking.
    pub(crate) async fn patch_tracking(&self, id: &Identity, operations: Operations) -> Result<Value, Error> {
        let params =
            PatchParams { field_manager: LIFECYCLE_MANAGER.into(), dry_run: self.dry_run, ..PatchParams::default() };
        self.noting(id, self.cluster.patch(id, &Patch::Json(operations.into()), &params)).await
    }

    /// Applies nothing but the identity: all fields of the parent that nobody else owns go. Never makes an object.
    pub(crate) async fn take_fields(&self, target: Target<'_>, live: &Value) -> Result<Value, Error> {
        let mut object = target.item.identity.to_object();
        object.set_at(&["metadata", "uid"], live.meta_str("uid").into());
        let params = PatchParams { dry_run: self.dry_run, ..PatchParams::default() };
        let apply = Patch::Apply { object, manager: target.manager.to_owned(), force: false };
        let id = &target.item.identity;
        self.noting(id, self.cluster.patch(id, &apply, &params)).await
    }

    /// Deletes the object if it still is the one that was looked at.
    pub(crate) async fn delete(&self, id: &Identity, uid: &str, resource_version: &str) -> Result<Deleted, Error> {
        let params = DeleteParams {
            uid: uid.to_owned(),
            resource_version: resource_version.to_owned(),
            dry_run: self.dry_run,
            ..DeleteParams::default()
        };
        self.cluster.delete(id, &params).await
    }

    /// Makes a write, so that the watch's event of it is not taken for somebody else's.
    async fn noting(
        &self,
        id: &Identity,
        write: impl Future<Output = Result<Value, Error>> + Send,
    ) -> Result<Value, Error> {
        if self.dry_run {
            return write.await;
        }
        let written = self.keeper.noting(id, async { write.await.map(Some) }).await?;
        Ok(written.unwrap_or_default())
    }

    pub(crate) fn failed(&self, mut item: Item, message: &str) -> Done {
        item.state.ready = Some(false);
        item.state.message = message.to_owned();
        Done::kept(item, 0)
    }
}

/// Whether a write changed the object.
fn is_written(before: &Value, after: &Value) -> bool {
    before.meta_str("resourceVersion") != after.meta_str("resourceVersion")
}

/// A time as objects carry it.
fn seconds(time: jiff::Timestamp) -> compact_str::CompactString {
    let whole = time.saturating_sub(SignedDuration::from_nanos(i64::from(time.subsec_nanosecond()))).unwrap_or(time);
    whole.to_string().into()
}
