//! The engine: what is declared is applied, what is no longer declared is released, what others change is put back.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use object::{Value, json};
use parking_lot::Mutex;
use tokio::sync::Notify;

use client::{Clock, Error};

use crate::cluster::{Cluster, Scope};
use crate::identity::{Identity, Kind, ObjectKey};
use crate::index::{Claim, Index};
use crate::item::{Item, State};
use crate::matching::{Matched, match_items};
use crate::parent::Parent;
use crate::plan;
use crate::policy::{Deletion, Policy};
use crate::tracking;
use crate::turns::in_turns;

/// Decides from the live object (`None` if there is none) whether a target may be applied. An error is not shown: it
/// could hold what the object holds.
pub type Condition = Arc<dyn Fn(Option<&Value>) -> Result<bool, String> + Send + Sync>;

/// One rendered target.
#[derive(Clone)]
pub struct Desired {
    /// The object, with `apiVersion`, `kind` and a name; with a namespace if the kind is namespaced.
    pub object: Value,
    /// The tenant for which it was rendered; empty where there is none.
    pub tenant: CompactString,
    /// The place in the parent from which it was rendered.
    pub origin: CompactString,
    /// What its block asks for.
    pub policy: Policy,
    /// What its block's condition says.
    pub condition: Option<Condition>,
    /// If the live object went into the rendering, the version that was seen; empty if there was none.
    pub rendered_from: Option<CompactString>,
}

/// How much of the parent's targets a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them: what is in the inventory and not among the desired is released.
    Whole,
    /// Some of them: nothing is released. For a new namespace, or objects that drifted.
    Part,
    /// All of them, without changing anything.
    DryRun,
}

/// What a run is to do.
pub struct Run<'a> {
    /// Who declares it.
    pub parent: &'a Parent,
    /// The inventory as it was recorded last.
    pub inventory: Vec<Item>,
    /// What is declared. A run is only started when all of it could be rendered: what failed to render is not missing.
    pub desired: Vec<Desired>,
    /// How much of it this is.
    pub extent: Extent,
    /// Whether everything is asked for, even what a watch says is unchanged.
    pub verify: bool,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The inventory as it is to be recorded now.
    pub items: Vec<Item>,
    /// Whether it differs from the one that the run was given.
    pub is_changed: bool,
    /// How many requests changed, or would have changed, something.
    pub writes: usize,
    /// How many targets could not be applied.
    pub apply_failures: usize,
    /// How many targets could not be released.
    pub release_failures: usize,
    /// Objects that somebody changes back again and again; they are left alone for a while.
    pub fought_over: Vec<Identity>,
    /// When the run has more to do than wait for the next resync: after this time.
    pub retry_after: Option<Duration>,
}

/// Records an inventory in the parent's status. It must be durable when it is answered.
pub trait Journal: Send + Sync {
    /// Records `items`. Called before the first write for a target that the inventory does not have, and before another
    /// parent is let go of what it hands over; the parent's finalizer must be set by then.
    fn record<'a>(&'a self, items: &'a [Item]) -> BoxFuture<'a, Result<(), Error>>;
}

/// Options of a keeper.
#[derive(Clone)]
pub struct Options {
    /// The label selector of everything that is managed, for the watches.
    pub selector: String,
    /// How many objects of one run are worked on at a time.
    pub width: usize,
    /// The time.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options { selector: tracking::SELECTOR.to_owned(), width: 16, clock: Arc::new(Timestamp::now) }
    }
}

/// Objects of one parent that are not as they were left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The parent's key.
    pub parent: Arc<str>,
    /// The objects.
    pub objects: BTreeSet<ObjectKey>,
}

/// The engine. A clone is the same keeper.
#[derive(Clone)]
pub struct Keeper {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub index: Mutex<Index>,
    /// The kinds under management, or what is delayed, may have changed.
    pub watching: Notify,
    /// Something drifted.
    pub drifted: Notify,
    pub options: Options,
}

impl Shared {
    pub fn now(&self) -> Timestamp {
        (self.options.clock)()
    }
}

impl Keeper {
    /// A keeper that knows of nothing yet.
    pub fn new(options: Options) -> Self {
        let shared = Shared { index: Mutex::default(), watching: Notify::new(), drifted: Notify::new(), options };
        Keeper { shared: Arc::new(shared) }
    }

    /// Makes known what a parent manages. At the start of a program this is done for all parents before the first run,
    /// so that no run takes an object away from a parent that is yet unknown.
    pub fn load(&self, parent: &Parent, inventory: &[Item]) {
        self.claim(parent, inventory.iter().map(|item| (item, false, item.state.policy.unwrap_or_default().protect)));
    }

    /// Forgets a parent that is gone, with what it claimed.
    pub fn forget(&self, parent: &str) {
        self.shared.index.lock().claim(&Arc::from(parent), Vec::new());
        self.shared.watching.notify_one();
    }

    /// The keys of the parents that protect an object from now on, although no status may say so yet.
    pub fn protectors(&self, object: &ObjectKey) -> Vec<Arc<str>> {
        self.shared.index.lock().protectors(object)
    }

    /// The keys of the parents that declare an object.
    pub fn claimants(&self, object: &ObjectKey) -> Vec<Arc<str>> {
        self.shared.index.lock().claimants(object)
    }

    /// How many objects are under management.
    pub fn objects(&self) -> usize {
        self.shared.index.lock().len()
    }

    /// How many kinds are watched by open watches.
    pub fn watched(&self) -> usize {
        self.shared.index.lock().live_kinds()
    }

    /// Waits until objects of some parent are no longer as they were left. Everything is told once, to one caller.
    pub async fn drifted(&self) -> Drift {
        loop {
            let next = self.shared.index.lock().next_drift();
            if let Some((parent, objects)) = next {
                return Drift { parent, objects };
            }
            self.shared.drifted.notified().await;
        }
    }

    /// Carries out what is declared: records what is new, applies, then releases what is no longer wanted. The caller
    /// records the outcome's items afterwards.
    ///
    /// Runs of one parent do not overlap; runs of several parents may. Every failure of a target is noted in its item
    /// and stops no other; the only error is that the inventory could not be recorded: then nothing was written that it
    /// should have said before.
    pub async fn reconcile(
        &self,
        cluster: &dyn Cluster,
        run: Run<'_>,
        journal: &dyn Journal,
    ) -> Result<Outcome, Error> {
        let before = run.inventory.clone();
        let Prepared { mut matched, desired } = prepare(cluster, run.inventory, run.desired).await;
        let dry_run = run.extent == Extent::DryRun;
        let kept = match run.extent {
            Extent::Whole => Vec::new(),
            Extent::Part | Extent::DryRun => std::mem::take(&mut matched.unwanted),
        };
        if !dry_run {
            if matched.is_new {
                let all: Vec<Item> = [&matched.wanted[..], &matched.unwanted, &kept].concat();
                journal.record(&sorted(all)).await?;
            }
            let wanted =
                matched.wanted.iter().zip(&desired).map(|(item, desired)| (item, false, desired.policy.protect));
            let stored = |item: &Item| item.state.policy.unwrap_or_default().protect;
            let leaving = matched.unwanted.iter().map(|item| (item, true, stored(item)));
            let staying = kept.iter().map(|item| (item, false, stored(item)));
            self.claim(run.parent, wanted.chain(leaving).chain(staying));
        }

        let mut outcome = Outcome::default();
        let work = Work { keeper: self, cluster, parent: run.parent, dry_run, verify: run.verify };
        let mut groups: HashMap<ObjectKey, Vec<(Item, Desired)>> = HashMap::new();
        for (item, desired) in matched.wanted.into_iter().zip(desired) {
            groups.entry(item.identity.object()).or_default().push((item, desired));
        }
        let width = self.shared.options.width.max(1);
        let mut inherited = false;
        let tenant =
            |group: &[(Item, Desired)]| group.first().map_or_else(CompactString::default, |(i, _)| i.tenant.clone());
        let groups = groups.into_values().map(|group| (tenant(&group), group));
        let work = &work;
        let apply = |group: Vec<(Item, Desired)>| async move {
            let mut done = Vec::with_capacity(group.len());
            for (item, desired) in group {
                done.push(work.apply(item, desired).await);
            }
            done
        };
        in_turns(groups, width, apply, |done| {
            for done in done {
                outcome.apply_failures += usize::from(done.is_failure());
                inherited |= done.inherited;
                outcome.take(done);
            }
        })
        .await;
        if inherited {
            // Whoever hands an object over lets go of it when this is recorded, and not before.
            journal.record(&sorted([&outcome.items[..], &matched.unwanted, &kept].concat())).await?;
            self.shared.index.lock().recorded(&run.parent.key);
        }
        let unwanted = matched.unwanted.into_iter().map(|item| (item.tenant.clone(), item));
        in_turns(
            unwanted,
            width,
            |item| work.release(item),
            |done: Done| {
                outcome.release_failures += usize::from(done.is_failure());
                outcome.take(done);
            },
        )
        .await;
        outcome.items.extend(kept);
        outcome.items = sorted(std::mem::take(&mut outcome.items));
        outcome.is_changed = outcome.items != sorted(before);
        if !dry_run {
            // What was released is claimed no longer, what stays keeps its claim.
            let remaining: HashSet<(ObjectKey, CompactString)> =
                outcome.items.iter().map(|item| (item.identity.object(), manager(run.parent, item))).collect();
            let keep = |key: &ObjectKey, manager: &str| remaining.contains(&(key.clone(), manager.into()));
            self.shared.index.lock().retain(&run.parent.key, keep);
            self.shared.watching.notify_one();
        }
        Ok(outcome)
    }

    fn claim<'a>(&self, parent: &Parent, items: impl Iterator<Item = (&'a Item, bool, bool)>) {
        let now = self.shared.now();
        let key: Arc<str> = Arc::from(parent.key.as_str());
        let mut managers: HashSet<Arc<str>> = HashSet::new();
        let claims = items.map(|(item, is_leaving, protects)| {
            let manager = manager(parent, item);
            let known = managers.get(manager.as_str()).cloned();
            let manager = known.unwrap_or_else(|| {
                let new: Arc<str> = manager.as_str().into();
                managers.insert(new.clone());
                new
            });
            let is_orphaned = is_leaving && plan::deletion(item, parent) == Deletion::Orphan;
            let claim = Claim {
                parent: key.clone(),
                manager,
                created: item.state.created && !is_orphaned,
                is_recorded: item.state.created && !is_orphaned,
                protects: protects.then_some(parent.family),
                leaving: is_leaving.then_some(now),
                content: 0,
                disturbed: false,
            };
            (item.identity.object(), item.identity.kind.version.clone(), claim)
        });
        self.shared.index.lock().claim(&key, claims.collect());
        self.shared.watching.notify_one();
    }
}

/// What the targets of one run have in common.
pub(crate) struct Work<'a> {
    pub keeper: &'a Keeper,
    pub cluster: &'a dyn Cluster,
    pub parent: &'a Parent,
    pub dry_run: bool,
    pub verify: bool,
}

/// What became of one target.
pub(crate) struct Done {
    /// The entry as it is to be recorded; `None` if the inventory has it no longer.
    pub item: Option<Item>,
    pub writes: usize,
    pub fought_over: bool,
    pub retry_after: Option<Duration>,
    /// Whether the object was handed over, which its inventory does not say yet.
    pub inherited: bool,
}

impl Done {
    /// The target is done with, for now.
    pub fn kept(item: Item, writes: usize) -> Self {
        Done { item: Some(item), writes, fought_over: false, retry_after: None, inherited: false }
    }

    /// The inventory has the target no longer.
    pub fn dropped(writes: usize) -> Self {
        Done { item: None, writes, fought_over: false, retry_after: None, inherited: false }
    }

    fn is_failure(&self) -> bool {
        self.item.as_ref().is_some_and(|item| item.state.ready == Some(false))
    }
}

impl Outcome {
    fn take(&mut self, done: Done) {
        self.writes += done.writes;
        self.retry_after = [self.retry_after, done.retry_after].into_iter().flatten().min();
        if let Some(item) = done.item {
            if done.fought_over {
                self.fought_over.push(item.identity.clone());
            }
            self.items.push(item);
        }
    }
}

/// The field manager of an item.
pub(crate) fn manager(parent: &Parent, item: &Item) -> CompactString {
    parent.naming.manager(&item.identity.namespace, &item.tenant, item.slot).into()
}

/// A digest of what is applied under a policy; never 0.
pub(crate) fn digest(object: &Value, policy: Policy) -> u64 {
    let mut hasher = DefaultHasher::new();
    json::to_string(object).hash(&mut hasher);
    policy.hash(&mut hasher);
    hasher.finish().max(1)
}

struct Prepared {
    matched: Matched,
    /// As many as the matched wanted items, in their order.
    desired: Vec<Desired>,
}

/// Gives the rendered targets their scope, takes from them what no rendering may say, and finds their entries.
async fn prepare(cluster: &dyn Cluster, inventory: Vec<Item>, desired: Vec<Desired>) -> Prepared {
    let mut scopes: HashMap<Kind, Option<Scope>> = HashMap::new();
    let mut seen: HashSet<(ObjectKey, CompactString, CompactString, u64)> = HashSet::with_capacity(desired.len());
    let mut items = Vec::with_capacity(desired.len());
    let mut kept = Vec::with_capacity(desired.len());
    for mut desired in desired {
        let Some(mut identity) = Identity::of(&desired.object) else { continue };
        let scope = match scopes.get(&identity.kind) {
            Some(scope) => *scope,
            None => {
                let scope = cluster.scope(&identity.kind).await.ok().flatten();
                // While a kind is not served, what is known of it keeps its entries what they are.
                let known = inventory.iter().find(|item| {
                    (&item.identity.kind.group, &item.identity.kind.kind) == (&identity.kind.group, &identity.kind.kind)
                });
                let remembered = known.filter(|item| item.state.cluster_scoped).map(|_| Scope::Cluster);
                *scopes.entry(identity.kind.clone()).or_insert(scope.or(remembered))
            }
        };
        if scope == Some(Scope::Cluster) {
            identity.namespace = CompactString::default();
            desired.object.remove_at(&["metadata", "namespace"]);
        }
        tracking::strip(&mut desired.object);
        let content = digest(&desired.object, desired.policy);
        // A cluster-scoped object that each of many namespaces renders in the same way is one target.
        if !seen.insert((identity.object(), desired.tenant.clone(), desired.origin.clone(), content)) {
            continue;
        }
        items.push(Item {
            identity,
            tenant: desired.tenant.clone(),
            origin: desired.origin.clone(),
            slot: 0,
            state: State { cluster_scoped: scope == Some(Scope::Cluster), ..State::default() },
        });
        kept.push(desired);
    }
    Prepared { matched: match_items(inventory, items), desired: kept }
}

fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    Item::sort(&mut items);
    items
}
