//! The controller of TenantResource and GlobalTenantResource.

use crate::collect::{Collected, collect};
use crate::identity::acting_as;
use crate::kinds::{GLOBAL_TENANT_RESOURCES, TENANT_RESOURCES};
use crate::manager::Shared;
use crate::reach::declares;
use crate::render::Moment;
use crate::replication::{Account, Replication, Scope};
use crate::runner::Reconciler;
use crate::status::{self, Condition};
use crate::tenancy::is_deleted;
use client::{Api, BoxFuture, Error, ListParams, Patch, PatchParams, Resource};
use keeper::{Desired, Extent, Family, Identity, Item, Journal, Keeper, Naming, Outcome, Parent, Run, tracking};
use object::{Map, Value, map};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What the keys of these parents begin with in the keeper.
pub(crate) const PREFIX: &str = "replication/";
/// The finalizer of everything that has something to clean up.
pub(crate) const FINALIZER: &str = "controller.projectcapsule.dev/finalize";
/// How many objects, each with a large inventory, are read at a time.
const PAGE: u32 = 50;
/// The finalizer of older versions.
const LEGACY_FINALIZER: &str = "capsule.clastix.io/resources";
/// The annotation by which people ask for a run.
const REQUESTED_AT: &str = "reconcile.projectcapsule.dev/requestedAt";

pub(crate) struct Replications {
    shared: Arc<Shared>,
}

impl Reconciler for Replications {
    const NAME: &'static str = "replications";

    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let run = self.run(key, self.shared.asked.take(key)).await;
        // A namespace that comes before the next attempt must not narrow it.
        if run.is_err() {
            self.shared.asked.whole(key);
        }
        run
    }
}

impl Replications {
    /// Looks at a parent; if its declaration is as before, only at what it has in the namespaces `asked` for, if some are.
    async fn run(&self, key: &str, asked: Option<BTreeSet<String>>) -> Result<Option<Duration>, Error> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let api = self.api(namespace);
        let Some(object) = api.find(namespace, name).await? else {
            self.forget(&format!("{PREFIX}{key}"));
            return Ok(None);
        };
        let record = Record::new(&api, &object);
        if is_deleted(&object) {
            return self.clean_up(&record).await;
        }
        let now = self.shared.now();
        let generation = status::generation(&object);
        if object.at(&["status", "observedGeneration"]).and_then(Value::as_int).unwrap_or_default() != generation {
            record.status(self.conditions(&object, &[Condition::reconciling()])).await?;
        }
        let mut parent = match Replication::read(&object) {
            Ok(parent) => parent,
            Err(error) => {
                record.status(self.failure(&object, &error)).await?;
                return Ok(None);
            }
        };
        if parent.cordoned {
            record.status(self.conditions(&object, &[Condition::cordoned(true)])).await?;
            return Ok(None);
        }
        let again = keeper::jittered(parent.resync, key, u64::try_from(now.as_second()).unwrap_or_default());
        let account = self.shared.defaults().resolve(parent.account.as_ref(), namespace);
        parent.account.clone_from(&account);
        // Admission lets only a recorded account write what is protected, in whichever replica it is asked.
        record.status(map! { "serviceAccount" => account_value(account.as_ref()) }).await?;
        let is_current = object.annotation(REQUESTED_AT).is_none() && status::is_observed(&object);
        let only = asked.filter(|_| is_current && (!namespace.is_empty() || parent.scope == Scope::Namespace));
        let mut wanted = self.work(&parent, &object, account.as_ref(), &record, only.as_ref()).await?;
        let retry = wanted.retry_after;
        if retry.is_some() {
            self.shared.asked.whole(key);
        }
        wanted.status.insert("observedGeneration", generation);
        record.status(wanted.status).await?;
        if wanted.is_empty || !object.meta_list("finalizers").contains(&FINALIZER) {
            record.finalizers(!wanted.is_empty).await?;
        }
        if object.annotation(REQUESTED_AT).is_some() {
            let nothing = map! { "metadata" => map! { "annotations" => map! { REQUESTED_AT => Value::Null } } };
            api.patch(namespace, name, &Patch::Merge(nothing.into()), &PatchParams::default()).await?;
        }
        Ok(Some(retry.map_or(again, |retry| retry.min(again))))
    }
}

/// What a run came to.
struct Work {
    status: Map,
    retry_after: Option<Duration>,
    /// Nothing is managed.
    is_empty: bool,
}

impl Replications {
    pub fn new(shared: Arc<Shared>) -> Self {
        Replications { shared }
    }

    /// Makes known what all objects managed before. The caches do not know.
    pub async fn load(&self) {
        for kind in [&TENANT_RESOURCES, &GLOBAL_TENANT_RESOURCES] {
            while let Err(error) = self.load_all(kind).await {
                tracing::warn!(%error, kind = %kind.kind, "what was managed before cannot be read; it is tried again");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn load_all(&self, kind: &Resource) -> Result<(), Error> {
        let api = self.shared.client.api(kind);
        let mut params = ListParams { limit: PAGE, ..ListParams::default() };
        loop {
            let page = api.list("", &params).await?;
            for object in &page.items {
                let items = Item::read_all(object.at(&["status", "processedItems"]));
                self.shared.keeper.load(&parent(object), &items);
            }
            if page.continue_token.is_empty() {
                return Ok(());
            }
            params.continue_token = page.continue_token;
        }
    }

    fn forget(&self, key: &str) {
        self.shared.acts_as(key, None);
        self.shared.keeper.forget(key);
    }

    fn api(&self, namespace: &str) -> Api {
        let kind = if namespace.is_empty() { &GLOBAL_TENANT_RESOURCES } else { &TENANT_RESOURCES };
        self.shared.client.api(kind)
    }

    async fn work(
        &self,
        declared: &Replication,
        object: &Value,
        account: Option<&Account>,
        record: &Record<'_>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Work, Error> {
        let inventory = Item::read_all(object.at(&["status", "processedItems"]));
        let is_empty = inventory.is_empty();
        let failed = |message: &str| Work { status: self.failure(object, message), retry_after: None, is_empty };
        if let Some(problem) = self.dependency(declared) {
            return Ok(failed(&problem));
        }
        self.shared.acts_as(&parent(object).key, account);
        let client = acting_as(&self.shared.client, account);
        let metadata: Value = map! { "metadata" => object.get("metadata").cloned().unwrap_or_default() }.into();
        let shared = &self.shared;
        let (time, reader) = (moment(shared.now()), client.clone());
        let collected = collect(declared, &metadata, &shared.tenancy, reader, &shared.clock, time, only).await;
        let Collected { mut desired, tenants } = match collected {
            Ok(collected) => collected,
            Err(error) => return Ok(failed(&error)),
        };
        if object.label(tracking::MANAGED_BY).is_some() && desired.iter().any(|desired| declares(&desired.object)) {
            return Ok(failed("what was made from a declaration cannot declare objects that declare more"));
        }
        if !declared.namespace.is_empty() {
            desired
                .iter_mut()
                .for_each(|desired| spare(&shared.keeper, desired, |key| is_global(key) || !key.starts_with(PREFIX)));
        }
        let parent = parent(object);
        let verify = object.annotation(REQUESTED_AT).is_some();
        // For new namespaces nothing is released, and nothing is said of all the others.
        let extent = if only.is_some() { Extent::Part } else { Extent::Whole };
        let run = Run { parent: &parent, inventory, desired, extent, verify };
        let outcome = shared.keeper.reconcile(&client, run, record).await?;
        let condition = verdict(&outcome);
        self.tell(object, &condition, &outcome);
        let is_silent = only.is_some() && condition.status == Some(true);
        let mut status = match is_silent {
            true => Map::new(),
            false => self.conditions(object, &[condition, Condition::cordoned(false)]),
        };
        items(&outcome.items).into_iter().for_each(|(k, v)| drop(status.insert(k, v)));
        if declared.namespace.is_empty() && only.is_none() {
            status.insert("selectedTenants", tenants);
        }
        Ok(Work { status, retry_after: outcome.retry_after, is_empty: outcome.items.is_empty() })
    }

    /// Lets go of everything, and then of the object.
    async fn clean_up(&self, record: &Record<'_>) -> Result<Option<Duration>, Error> {
        let object = record.object;
        let inventory = Item::read_all(object.at(&["status", "processedItems"]));
        let parent = parent(object);
        if inventory.is_empty() {
            record.finalizers(false).await?;
            self.forget(&parent.key);
            return Ok(None);
        }
        // The identity that worked before cleans up, whatever the specification says now.
        let account = recorded_account(object);
        self.shared.acts_as(&parent.key, account.as_ref());
        let client = acting_as(&self.shared.client, account.as_ref());
        let run = Run { parent: &parent, inventory, desired: Vec::new(), extent: Extent::Whole, verify: true };
        let outcome = self.shared.keeper.reconcile(&client, run, record).await?;
        let mut status = self.conditions(object, &[verdict(&outcome)]);
        items(&outcome.items).into_iter().for_each(|(k, v)| drop(status.insert(k, v)));
        record.status(status).await?;
        if outcome.items.is_empty() {
            record.finalizers(false).await?;
            self.forget(&parent.key);
            return Ok(None);
        }
        Ok(Some(outcome.retry_after.unwrap_or(Duration::from_secs(60))))
    }

    /// What a dependency still lacks.
    fn dependency(&self, declared: &Replication) -> Option<String> {
        let all = if declared.namespace.is_empty() {
            &self.shared.global_tenant_resources
        } else {
            &self.shared.tenant_resources
        };
        declared.depends_on.iter().find_map(|name| match all.get(&declared.namespace, name) {
            None => Some(format!("dependency {name} not found")),
            Some(other) if !status::is_ready(&other) => Some(format!("dependency {name} not ready")),
            Some(_) => None,
        })
    }

    fn conditions(&self, object: &Value, changed: &[Condition]) -> Map {
        let old = object.at(&["status", "conditions"]);
        let conditions = status::with_conditions(old, changed, status::generation(object), self.shared.now());
        map! { "conditions" => conditions }
    }

    fn failure(&self, object: &Value, message: &str) -> Map {
        let condition = Condition::failed(message);
        self.tell(object, &condition, &Outcome::default());
        let mut status = self.conditions(object, &[condition, Condition::cordoned(false)]);
        status.insert("observedGeneration", status::generation(object));
        if object.at(&["status", "size"]).is_none() {
            status.insert("size", 0i64);
        }
        status
    }

    /// Tells people what went wrong, once.
    fn tell(&self, object: &Value, condition: &Condition, outcome: &Outcome) {
        let known = status::condition(object, "Ready").and_then(|c| c.str_at(&["message"]));
        if condition.status == Some(false) && known != Some(&condition.message) {
            self.shared.warn(object, "ReconcileFailed", &condition.message);
        }
        for target in &outcome.fought_over {
            let message = format!("another actor changes {target} back again and again");
            self.shared.warn(object, "FoughtOver", &message);
        }
    }
}

/// Takes no fields by force from what others declare who are above: whose keys are so.
pub(crate) fn spare(keeper: &Keeper, desired: &mut Desired, is_above: impl Fn(&str) -> bool) {
    let claimants = || Identity::of(&desired.object).map(|identity| keeper.claimants(&identity.object()));
    if desired.policy.force && claimants().is_some_and(|all| all.iter().any(|key| is_above(key))) {
        desired.policy.force = false;
    }
}

/// Whether a key of the keeper is a GlobalTenantResource's.
pub(crate) fn is_global(key: &str) -> bool {
    key.strip_prefix(PREFIX).is_some_and(|name| !name.contains('/'))
}

/// The account that worked for an object, as its status says.
pub(crate) fn recorded_account(object: &Value) -> Option<Account> {
    let text = |key| object.str_at(&["status", "serviceAccount", key]).filter(|t| !t.is_empty());
    let (namespace, name) = text("namespace").zip(text("name"))?;
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// The condition that follows from a run.
pub(crate) fn verdict(outcome: &Outcome) -> Condition {
    let mut problems = Vec::new();
    if outcome.apply_failures > 0 {
        problems.push(format!("applying of {} resources failed", outcome.apply_failures));
    }
    if outcome.release_failures > 0 {
        problems.push(format!("pruning of {} resources failed", outcome.release_failures));
    }
    if problems.is_empty() { Condition::ready() } else { Condition::failed(problems.join("; ")) }
}

/// The inventory's part of a status.
pub(crate) fn items(items: &[Item]) -> Map {
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let all: Vec<Value> = items.iter().map(Item::to_value).collect();
    map! { "processedItems" => all, "size" => size }
}

fn account_value(account: Option<&Account>) -> Value {
    match account {
        Some(a) => map! { "name" => a.name.as_str(), "namespace" => a.namespace.as_str() }.into(),
        None => Value::Null,
    }
}

/// How the keeper knows an object.
fn parent(object: &Value) -> Parent {
    let (namespace, name) = (object.namespace(), object.name());
    let is_global = namespace.is_empty();
    let reference = map! {
        "apiVersion" => GLOBAL_TENANT_RESOURCES.api_version(), "kind" => &*GLOBAL_TENANT_RESOURCES.kind,
        "name" => name, "uid" => object.meta_str("uid"),
    };
    Parent {
        key: format!("{PREFIX}{}", client::cache::key(object)).into(),
        family: Family::Replications,
        naming: Naming::Replication {
            namespace: if is_global { "Cluster" } else { namespace }.into(),
            name: name.into(),
        },
        owner_reference: is_global.then(|| reference.into()),
        service_account: None,
        prune_without_policy: object.at(&["spec", "pruningOnDelete"]).and_then(Value::as_bool).unwrap_or(true),
    }
}

/// The time and a fresh seed for templates.
pub(crate) fn moment(now: jiff::Timestamp) -> Moment {
    let mut seed = [0; 32];
    if let Err(error) = getrandom::fill(&mut seed) {
        tracing::error!(%error, "there is no randomness; templates get what the time gives");
        seed[..16].copy_from_slice(&now.as_nanosecond().to_le_bytes());
    }
    let since = Duration::try_from(now.duration_since(jiff::Timestamp::UNIX_EPOCH)).unwrap_or_default();
    Moment { now: std::time::SystemTime::UNIX_EPOCH + since, seed }
}

/// Writes what becomes of an object to the server.
pub(crate) struct Record<'a> {
    api: &'a Api,
    object: &'a Value,
    /// The status as it was written last.
    status: Mutex<Option<Value>>,
}

impl<'a> Record<'a> {
    /// For an object as it was just read.
    pub fn new(api: &'a Api, object: &'a Value) -> Self {
        Record { api, object, status: Mutex::new(object.get("status").cloned()) }
    }

    /// Writes what differs of the status.
    pub async fn status(&self, wanted: Map) -> Result<(), Error> {
        let patch = status::difference(self.status.lock().as_ref(), wanted);
        match patch {
            Some(patch) => self.patch(patch, &PatchParams::status()).await,
            None => Ok(()),
        }
    }

    /// Sets the finalizer, or takes it away with that of older versions.
    pub async fn finalizers(&self, wanted: bool) -> Result<(), Error> {
        let old = self.api.get(self.object.namespace(), self.object.name()).await?;
        let current = old.meta_list("finalizers");
        let mut next: Vec<&str> =
            current.iter().copied().filter(|f| *f != FINALIZER && *f != LEGACY_FINALIZER).collect();
        if wanted {
            next.push(FINALIZER);
        }
        if next.len() == current.len() && current.iter().all(|f| next.contains(f)) {
            return Ok(());
        }
        let metadata = map! { "finalizers" => next, "resourceVersion" => old.meta_str("resourceVersion") };
        self.patch(map! { "metadata" => metadata }.into(), &PatchParams::default()).await
    }

    async fn patch(&self, patch: Value, params: &PatchParams) -> Result<(), Error> {
        let (namespace, name) = (self.object.namespace(), self.object.name());
        match self.api.patch(namespace, name, &Patch::Merge(patch), params).await {
            Ok(mut written) => {
                *self.status.lock() = written.remove_at(&["status"]);
                Ok(())
            }
            // It went meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Journal for Record<'_> {
    fn record<'a>(&'a self, inventory: &'a [Item]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.finalizers(true).await?;
            self.patch(map! { "status" => items(inventory) }.into(), &PatchParams::status()).await
        })
    }
}
