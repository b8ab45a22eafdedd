//! The manager: its caches, queues and controllers.

use crate::admission::{Admission, BY_PENDING, BY_PROTECTED, Request, pending, protected, reduce};
use crate::asked::Asked;
use crate::kinds::{
    CONFIGURATIONS, GLOBAL_PERMIT_TEMPLATES, GLOBAL_TENANT_RESOURCES, PERMIT_TEMPLATES, PERMITS, TENANT_RESOURCES,
    TENANTS, install,
};
use crate::metrics::Metrics;
use crate::permit_templates::PermitTemplates;
use crate::permits::{self, Permits};
use crate::replication::Account;
use crate::replications::{self, Replications};
use crate::runner::{self, Reconciler};
use crate::tenancy::{TENANT_LABEL, Tenancy, is_deleted};
use crate::tenants::{ROLE_BINDINGS, Tenants, role_bindings_selection};
use crate::{application, identity::Defaults, lanes, replication, status};
use client::cache::Selection;
use client::events::{EventType, Marks, Recorder};
use client::resources::NAMESPACES;
use client::{Cache, Change, Client, Clock, Error, Queue};
use keeper::Keeper;
use object::Value;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The user as whom Capsule works by default.
const USER: &str = "system:serviceaccount:capsule-system:capsule";
/// The index of parents by the users that work for them.
const BY_ACCOUNT: &str = "account";
/// The longest message of an event, in characters: that of the newer kind of events.
const LONGEST_EVENT: usize = 1024;
/// Workers of the controller of tenants.
const WIDTH: usize = 8;

/// How the manager runs.
#[derive(Clone)]
pub struct Options {
    /// The time.
    pub clock: Clock,
    /// Whether the definitions of the kinds are written when it starts.
    pub install: bool,
    /// The user as whom the client works: admission lets it do everything.
    pub user: String,
    /// The manager's part in admission, if it has one.
    pub admission: Admission,
    /// Where its measurements go.
    pub metrics: Metrics,
    /// How the controller of Applications runs; its clock is this one's.
    pub applications: application::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Arc::new(jiff::Timestamp::now),
            install: true,
            user: USER.to_owned(),
            admission: Admission::default(),
            metrics: Metrics::default(),
            applications: application::Options::default(),
        }
    }
}

/// What the controllers share.
pub(crate) struct Shared {
    pub client: Client,
    pub keeper: Keeper,
    pub clock: Clock,
    pub recorder: Recorder,
    pub metrics: Metrics,
    pub tenancy: Tenancy,
    pub configurations: Arc<Cache>,
    pub tenant_resources: Arc<Cache>,
    pub global_tenant_resources: Arc<Cache>,
    pub permits: Arc<Cache>,
    pub permit_templates: Arc<Cache>,
    pub global_permit_templates: Arc<Cache>,
    /// Keys of both kinds: `NAMESPACE/NAME`, or `NAME`.
    pub replications: Queue,
    /// For how much of them there is work.
    pub asked: Asked,
    /// The user as whom the client works.
    user: String,
    /// The accounts that work for parents, by the parents' keys.
    accounts: Mutex<HashMap<String, Account>>,
}

impl Shared {
    /// The service accounts that stand in where none is named.
    pub fn defaults(&self) -> Defaults {
        Defaults::read(self.configurations.get("", "default").as_deref())
    }

    pub fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// An account is about to work for a parent; without one the manager works itself.
    pub fn acts_as(&self, parent: &str, account: Option<&Account>) {
        let mut accounts = self.accounts.lock();
        match account {
            Some(account) => drop(accounts.insert(parent.to_owned(), account.clone())),
            None => drop(accounts.remove(parent)),
        }
    }

    /// Whether this user is the manager.
    pub fn is_controller(&self, user: &str) -> bool {
        user == self.user
    }

    /// Whether this user is an account that works for some parent.
    pub fn is_account(&self, user: &str) -> bool {
        let parts = user.strip_prefix("system:serviceaccount:").and_then(|u| u.split_once(':'));
        let Some((namespace, name)) = parts else { return false };
        // Where another replica does the work, only statuses say who does it.
        self.accounts.lock().values().any(|a| a.namespace == namespace && a.name == name)
            || self.parents().into_iter().any(|cache| !cache.indexed(BY_ACCOUNT, user).is_empty())
    }

    /// Tells people that something is wrong with an object. Where events about what is in no namespace go is configured.
    pub fn warn(&self, object: &Value, reason: &str, message: &str) {
        let configuration = self.configurations.get("", "default");
        let namespace = configuration.as_deref().and_then(|c| c.str_at(&["spec", "events", "namespace"]));
        let marks = Marks { namespace: namespace.unwrap_or_default(), ..Marks::default() };
        let end = message.char_indices().nth(LONGEST_EVENT).map_or(message.len(), |(at, _)| at);
        let message = message.get(..end).unwrap_or(message);
        self.recorder.event_with(object, marks, EventType::Warning, reason, message);
    }

    /// There is work for a TenantResource or GlobalTenantResource.
    pub fn ask(&self, key: &str) {
        self.asked.whole(key);
        self.replications.add(key.to_owned());
    }

    /// There is work for a parent in a new namespace.
    fn ask_part(&self, key: &str, namespace: &str) {
        self.asked.part(key, namespace);
        self.replications.add(key.to_owned());
    }

    /// What manages objects.
    pub fn parents(&self) -> [&Arc<Cache>; 3] {
        [&self.global_tenant_resources, &self.tenant_resources, &self.permits]
    }

    /// Whether a user is the account that works for a parent, by the parent's key.
    pub fn works_for(&self, parent: &str, user: &str) -> bool {
        self.accounts.lock().get(parent).is_some_and(|account| account.user() == user)
    }

    /// The account that works for a TenantResource or GlobalTenantResource.
    pub fn account_of(&self, parent: &Value) -> Option<Account> {
        if let Some(account) =
            self.accounts.lock().get(&format!("{}{}", replications::PREFIX, client::cache::key(parent)))
        {
            return Some(account.clone());
        }
        replications::recorded_account(parent)
    }

    /// Whether whoever writes is an administrator: by the configuration, or of the cluster.
    pub fn is_administrator(&self, request: &Request<'_>) -> bool {
        if request.groups.iter().any(|g| g == "system:masters") {
            return true;
        }
        let configuration = self.configurations.get("", "default");
        let all = configuration.as_deref().and_then(|c| c.at(&["spec", "administrators"])).and_then(Value::as_array);
        all.unwrap_or_default().iter().any(|a| {
            let name = a.str_at(&["name"]).unwrap_or_default();
            match a.str_at(&["kind"]) {
                Some("Group") => request.groups.iter().any(|g| g == name),
                _ => request.user == name,
            }
        })
    }
}

/// The manager with its caches filled, before it does anything. Admission answers from now on.
pub struct Manager {
    shared: Arc<Shared>,
    tenants: Arc<Cache>,
    namespaces: Arc<Cache>,
    bindings: Arc<Cache>,
    applications: application::Options,
}

impl Manager {
    /// Opens the manager of a client's cluster, which may do everything that is to be done.
    ///
    /// # Errors
    ///
    /// The kinds cannot be served.
    pub async fn open(client: Client, options: Options) -> Result<Self, Error> {
        let client = client.with_user_agent("capsule");
        if options.install {
            install(&client).await?;
            crate::roles::grant(&client).await;
            application::kinds::install(&client).await?;
        }
        let open = |resource: &client::Resource| Cache::open(client.api(resource), Selection::default());
        let reduced = |resource| Cache::open_reduced(client.api(resource), Selection::default(), reduce);
        let (tenants, namespaces) = (open(&TENANTS), open(&NAMESPACES));
        let bindings = Cache::open(client.api(&ROLE_BINDINGS), role_bindings_selection());
        let shared = Arc::new(Shared {
            keeper: Keeper::new(keeper::Options { clock: options.clock.clone(), ..keeper::Options::default() }),
            recorder: Recorder::new(&client, "capsule-controller", options.clock.clone()),
            metrics: options.metrics.clone(),
            tenancy: Tenancy::new(tenants.clone(), namespaces.clone()),
            replications: lanes::queue(&namespaces),
            configurations: open(&CONFIGURATIONS),
            tenant_resources: reduced(&TENANT_RESOURCES),
            global_tenant_resources: reduced(&GLOBAL_TENANT_RESOURCES),
            permits: open(&PERMITS),
            permit_templates: open(&PERMIT_TEMPLATES),
            global_permit_templates: open(&GLOBAL_PERMIT_TEMPLATES),
            asked: Asked::default(),
            user: options.user,
            accounts: Mutex::default(),
            clock: options.clock,
            client,
        });
        for cache in [
            &tenants,
            &namespaces,
            &bindings,
            &shared.configurations,
            &shared.tenant_resources,
            &shared.global_tenant_resources,
            &shared.permits,
            &shared.permit_templates,
            &shared.global_permit_templates,
        ] {
            cache.synced().await;
        }
        for cache in shared.parents() {
            cache.index(BY_PROTECTED, protected);
            cache.index(BY_PENDING, pending);
            cache.index(BY_ACCOUNT, recorded_accounts);
        }
        options.admission.begin(&shared);
        options.metrics.begin(&shared);
        let (clock, metrics) = (shared.clock.clone(), shared.metrics.clone());
        let applications = application::Options { clock, metrics, ..options.applications };
        Ok(Manager { shared, tenants, namespaces, bindings, applications })
    }

    /// Runs the controllers, until it is dropped.
    pub async fn run(self) {
        let Manager { shared, tenants, namespaces, bindings, applications } = self;
        let applications = application::Controller::new(&shared.client, applications);
        let mut tasks = JoinSet::new();
        tasks.spawn(applications.run());

        let queue = Queue::default();
        on_tenancy(&tenants, &namespaces, &bindings, &queue);
        runner::run(&mut tasks, Arc::new(Tenants::new(shared.clone(), bindings)), &queue, WIDTH, &shared.metrics);

        // What was managed before is known before anything is done, so that nothing is taken for nobody's.
        let replications = Replications::new(shared.clone());
        replications.load().await;
        on_replications(&shared, &tenants, &namespaces);
        runner::run(&mut tasks, Arc::new(replications), &shared.replications, lanes::WORKERS, &shared.metrics);

        let permits = lanes::queue(&namespaces);
        let controller = Permits::new(shared.clone());
        shared.permits.list().iter().for_each(|permit| controller.load(permit));
        on_permits(&shared.permits, &permits);
        runner::run(&mut tasks, Arc::new(controller), &permits, lanes::WORKERS, &shared.metrics);

        let queue = lanes::queue(&namespaces);
        on_templates([&shared.permit_templates, &shared.global_permit_templates], &namespaces, &queue);
        runner::run(&mut tasks, Arc::new(PermitTemplates::new(shared.clone())), &queue, WIDTH, &shared.metrics);

        let cluster: Arc<dyn keeper::Cluster> = Arc::new(shared.client.clone());
        let keeper = shared.keeper.clone();
        tasks.spawn(async move { keeper.watch(cluster).await });
        tasks.spawn(heal(shared, permits));
        while tasks.join_next().await.is_some() {}
    }
}

/// Runs the controllers against the cluster of a client, which may do everything that is to be done. Ends only with an
/// error at the start; dropping it ends all.
///
/// # Errors
///
/// The kinds cannot be served.
pub async fn run(client: Client, options: Options) -> Result<(), Error> {
    Manager::open(client, options).await?.run().await;
    Ok(())
}

/// Puts parents to work whose objects are not as they should be.
async fn heal(shared: Arc<Shared>, permits: Queue) {
    loop {
        let drift = shared.keeper.drifted().await;
        if let Some(key) = drift.parent.strip_prefix(replications::PREFIX) {
            shared.metrics.drifted(Replications::NAME, key);
            shared.ask(key);
        } else if let Some(key) = drift.parent.strip_prefix(permits::PREFIX) {
            shared.metrics.drifted(Permits::NAME, key);
            permits.add(key.to_owned());
        }
    }
}

/// The users that a parent recorded as those who work for it.
fn recorded_accounts(parent: &Value) -> Vec<String> {
    let replication = replications::recorded_account(parent);
    replication.or_else(|| permits::recorded_account(parent)).map(|account| account.user()).into_iter().collect()
}

/// Permits are worked on when they are declared anew, or somebody moved them.
fn on_permits(permits: &Cache, queue: &Queue) {
    let queue = queue.clone();
    permits.subscribe(move |change| {
        let phase = |o: &Option<Arc<Value>>| o.as_deref().and_then(|o| o.at(&["status", "phase"])).cloned();
        if is_declared_anew(change) || phase(&change.old) != phase(&change.new) {
            queue.add(change.key());
        }
    });
}

/// Templates are worked on when they change, those for some namespaces also when namespaces do.
fn on_templates(templates: [&Arc<Cache>; 2], namespaces: &Cache, queue: &Queue) {
    for cache in templates {
        let queue = queue.clone();
        cache.subscribe(move |change| {
            if is_declared_anew(change) {
                queue.add(change.key());
            }
        });
    }
    let (global, queue) = (Arc::downgrade(templates[1]), queue.clone());
    namespaces.subscribe(move |change| {
        if let Some(global) = global.upgrade().filter(|_| is_declared_anew(change)) {
            for template in global.list().iter().filter(|t| t.at(&["spec", "namespaceSelectors"]).is_some()) {
                queue.add(template.name().to_owned());
            }
        }
    });
}

/// Tenants are worked on when they, their namespaces or their role bindings change.
fn on_tenancy(tenants: &Cache, namespaces: &Cache, bindings: &Cache, queue: &Queue) {
    let own = queue.clone();
    tenants.subscribe(move |change| {
        if is_declared_anew(change) {
            own.add(change.key());
        }
    });
    for cache in [namespaces, bindings] {
        let queue = queue.clone();
        cache.subscribe(move |change| {
            for tenant in [&change.old, &change.new].into_iter().flatten().filter_map(|o| o.label(TENANT_LABEL)) {
                queue.add(tenant.to_owned());
            }
        });
    }
}

/// Whether a change is more than one of the status.
fn is_declared_anew(change: &Change) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let metadata = |o: &Value, key: &str| o.at(&["metadata", key]).cloned();
    ["generation", "deletionTimestamp", "labels", "annotations", "finalizers"]
        .iter()
        .any(|key| metadata(old, key) != metadata(new, key))
}

fn on_replications(shared: &Arc<Shared>, tenants: &Cache, namespaces: &Cache) {
    for cache in [&shared.tenant_resources, &shared.global_tenant_resources] {
        let weak = Arc::downgrade(shared);
        cache.subscribe(move |change| {
            let Some(shared) = weak.upgrade() else { return };
            if is_declared_anew(change) {
                shared.ask(&change.key());
            }
            let ready = |o: &Option<Arc<Value>>| o.as_deref().is_some_and(status::is_ready);
            if ready(&change.old) != ready(&change.new) {
                let (namespace, name) = (change.object().namespace().to_owned(), change.object().name().to_owned());
                let of = if namespace.is_empty() { &shared.global_tenant_resources } else { &shared.tenant_resources };
                // The cache tells changes while it holds its lock for writing no longer: it may be read here.
                for other in of.in_namespace(&namespace) {
                    if replication::depends_on(&other).any(|d| d == name) {
                        shared.ask(&client::cache::key(&other));
                    }
                }
            }
        });
    }
    let weak = Arc::downgrade(shared);
    tenants.subscribe(move |change| {
        let Some(shared) = weak.upgrade() else { return };
        if is_declared_anew(change) {
            enqueue(&shared, change.object().name(), None);
        }
    });
    let weak = Arc::downgrade(shared);
    namespaces.subscribe(move |change| {
        let Some(shared) = weak.upgrade() else { return };
        let tenant = |o: &Option<Arc<Value>>| o.as_deref().and_then(|o| o.label(TENANT_LABEL)).map(str::to_owned);
        let (old, new) = (tenant(&change.old), tenant(&change.new));
        let goes = |o: &Option<Arc<Value>>| o.as_deref().is_some_and(is_deleted);
        if old != new || is_declared_anew(change) || goes(&change.old) != goes(&change.new) {
            // What is new changes nothing for what was there.
            let fresh = if change.old.is_none() { change.new.as_deref().map(Value::name) } else { None };
            for tenant in [old, new].into_iter().flatten() {
                enqueue(&shared, &tenant, fresh);
            }
        }
    });
    let weak = Arc::downgrade(shared);
    shared.configurations.subscribe(move |change| {
        let Some(shared) = weak.upgrade() else { return };
        let part = |o: &Option<Arc<Value>>| o.as_deref().map(|o| Defaults::read(Some(o))).unwrap_or_default();
        if part(&change.old) != part(&change.new) {
            for cache in [&shared.tenant_resources, &shared.global_tenant_resources] {
                cache.list().iter().for_each(|o| shared.ask(&client::cache::key(o)));
            }
        }
    });
}

/// What a tenant's change means work for: perhaps only in a new namespace.
fn enqueue(shared: &Shared, tenant: &str, fresh: Option<&str>) {
    let ask = |parent: &Value| {
        let key = client::cache::key(parent);
        match fresh {
            Some(namespace) => shared.ask_part(&key, namespace),
            None => shared.ask(&key),
        }
    };
    shared.global_tenant_resources.list().iter().for_each(|global| ask(global));
    for namespace in shared.tenancy.all_namespaces(tenant) {
        shared.tenant_resources.in_namespace(namespace.name()).iter().for_each(|own| ask(own));
    }
}
