//! The controller of Applications: who is looked at, when.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use client::cache::Selection;
use client::events::{EventType, Recorder};
use client::{Cache, Change, Client, Clock, Error, Queue};
use jiff::Timestamp;
use object::{Value, json, map};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::clusters::{self, Connector, Fleet, News};
use super::compression::Compression;
use super::declared::bare;
use super::definition_history::Revisions;
use super::definition_kinds::DefinitionKind;
use super::definitions::Catalogue;
use super::kinds::{APPLICATIONS, REVISIONS, TRACKERS};
use super::restart::Restart;
use super::revision::Revision;
use super::tracker::Trackers;
use super::write::MANAGER;
use super::{names, placement, workflow};
use crate::metrics::Metrics;
use crate::runner::{self, Reconciler};
use crate::tenancy::is_deleted;

/// The version that `app.oam.dev/controller-version-require` is compared with.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The shortest interval that an application may ask for.
const SHORTEST: Duration = Duration::from_secs(10);

/// How the controller runs.
#[derive(Clone)]
pub struct Options {
    /// The time.
    pub clock: Clock,
    /// How often everything is looked at, although nothing was heard.
    pub resync: Duration,
    /// How many revisions of an application are kept beside the current one.
    pub revision_limit: usize,
    /// How many revisions of a definition are kept beside the current one and those that applications name.
    pub definition_revision_limit: usize,
    /// How trackers are packed.
    pub compression: Compression,
    /// How many applications are worked on at a time.
    pub workers: usize,
    /// Makes connections to other clusters; without it there are none.
    pub connector: Option<Arc<dyn Connector>>,
    /// The namespace of the Secrets that say which other clusters there are.
    pub cluster_namespace: String,
    /// Where its measurements go.
    pub metrics: Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Arc::new(Timestamp::now),
            resync: Duration::from_secs(300),
            revision_limit: 10,
            definition_revision_limit: 20,
            compression: Compression::Zstd,
            workers: 4,
            connector: None,
            cluster_namespace: clusters::names::NAMESPACE.to_owned(),
            metrics: Metrics::default(),
        }
    }
}

/// The controller.
pub struct Controller {
    pub(super) client: Client,
    pub(super) fleet: Arc<Fleet>,
    pub(super) options: Options,
    recorder: Recorder,
    pub(super) catalogue: Catalogue,
    applications: Arc<Cache>,
    trackers: Arc<Cache>,
    revisions: Arc<Cache>,
    memory: Mutex<Memory>,
}

/// What is not stored, because losing it costs no more than another look.
#[derive(Default)]
struct Memory {
    /// What each application was when it was written last: a cache that is behind it is not believed.
    written: HashMap<String, Written>,
    /// Trackers that were made, until the cache has them.
    made: HashMap<String, BTreeSet<String>>,
    /// How often each application was waited for, in its generation.
    waits: HashMap<String, (i64, u32)>,
    /// What was seen of each application and its objects when nothing was left to do.
    steady: HashMap<String, u64>,
    rounds: u64,
}

/// An application as an own write left it.
#[derive(Clone, Copy, Default)]
struct Written {
    version: u64,
    /// A digest of what others declare in it.
    declared: u64,
}

impl Controller {
    /// A controller of the applications of a cluster, as a client sees it that may do everything. Its caches are opened.
    pub fn new(client: &Client, options: Options) -> Arc<Self> {
        let client = client.with_user_agent(MANAGER);
        let open = |resource: &client::Resource, metadata_only| {
            Cache::open(client.api(resource), Selection { metadata_only, ..Selection::default() })
        };
        let keeping = keeper::Options {
            selector: names::SELECTOR.to_owned(),
            clock: options.clock.clone(),
            ..keeper::Options::default()
        };
        let fleet = Fleet::new(&client, keeping, options.connector.clone(), &options.cluster_namespace);
        let trackers = open(&TRACKERS, true);
        trackers.index("application", |tracker| tracker_owner(tracker).into_iter().collect());
        let revisions = open(&REVISIONS, true);
        revisions.index("application", |revision| {
            let name = revision.label(names::APP_NAME).map(|name| format!("{}/{name}", revision.namespace()));
            name.into_iter().collect()
        });
        Arc::new(Controller {
            fleet,
            catalogue: Catalogue::open(&client),
            recorder: Recorder::new(&client, "Application", options.clock.clone()),
            applications: open(&APPLICATIONS, false),
            trackers,
            revisions,
            memory: Mutex::default(),
            options,
            client,
        })
    }

    /// Works until it is dropped.
    pub async fn run(self: Arc<Self>) {
        self.applications.synced().await;
        self.trackers.synced().await;
        self.revisions.synced().await;
        self.fleet.synced().await;
        self.catalogue.synced().await;
        let queue: Queue = Queue::default();
        let own = queue.clone();
        self.applications.subscribe(move |change| {
            if is_to_be_seen(change) {
                own.add(change.key());
            }
        });
        let (of_trackers, own) = (queue.clone(), Arc::downgrade(&self));
        self.trackers.subscribe(move |change| {
            let was = change.old.as_deref().is_some_and(is_deleted);
            let goes = change.new.as_deref().is_none_or(is_deleted);
            let tracker = change.new.as_deref().or(change.old.as_deref());
            let Some((tracker, owner)) = tracker.and_then(|tracker| Some((tracker, tracker_owner(tracker)?))) else {
                return;
            };
            // One that came from elsewhere has something to do as well; of those made here there is nothing to tell.
            let is_made = || own.upgrade().is_some_and(|own| own.has_made(&owner, tracker.name()));
            if (goes && !was) || (change.old.is_none() && !is_made()) {
                of_trackers.add(owner);
            }
        });
        for application in self.applications.list() {
            queue.add(client::cache::key(&application));
        }
        let mut tasks = JoinSet::new();
        let definitions = self.follow_definitions(&queue);
        runner::run(&mut tasks, Arc::new(Revisions(self.clone())), &definitions, 1, &self.options.metrics);
        let (told, applications) = (queue.clone(), Arc::downgrade(&self.applications));
        let tell = move |news: News| match news {
            News::Work(keys) => keys.into_iter().for_each(|key| told.add(key)),
            News::Membership => {
                let all = applications.upgrade().map(|cache| cache.list()).unwrap_or_default();
                // Those that select clusters, and those that may wait for one.
                let is_over = |app: &Value| app.at(&["status", "workflow", "finished"]) == Some(&Value::Bool(true));
                all.iter()
                    .filter(|app| placement::selects(app) || refers(app) || !is_over(app))
                    .for_each(|app| told.add(client::cache::key(app)));
            }
        };
        tasks.spawn(self.fleet.clone().run(Arc::new(tell)));
        runner::run(&mut tasks, self.clone(), &queue, self.options.workers.max(1), &self.options.metrics);
        while tasks.join_next().await.is_some() {}
    }

    /// The definitions that changed, for those who make their revisions. Applications that follow definitions, or wait
    /// for some, are put into `applications`.
    fn follow_definitions(&self, applications: &Queue) -> Queue {
        let queue = Queue::default();
        let (told, cache) = (applications.clone(), Arc::downgrade(&self.applications));
        let tell: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            let all = cache.upgrade().map(|cache| cache.list()).unwrap_or_default();
            all.iter().filter(|app| refers(app)).for_each(|app| told.add(client::cache::key(app)));
        });
        self.catalogue.follow_outside(&tell);
        for of in DefinitionKind::ALL {
            let (own, told, cache) = (queue.clone(), applications.clone(), Arc::downgrade(&self.applications));
            self.catalogue.cache(of).subscribe(move |change| {
                own.add(format!("{}/{}", of.name(), change.key()));
                let generation = |object: &Value| object.at(&["metadata", "generation"]).cloned();
                let of_old = change.old.as_deref().map(generation);
                let edited =
                    change.new.as_deref().filter(|new| of_old.as_ref().is_some_and(|old| *old != generation(new)));
                let all = cache.upgrade().map(|cache| cache.list()).unwrap_or_default();
                all.iter()
                    .filter(|app| follows(app) || edited.is_some_and(|definition| uses(app, of, definition.name())))
                    .for_each(|app| told.add(client::cache::key(app)));
            });
        }
        queue
    }

    /// All applications, as far as they are known.
    pub(super) fn declared_applications(&self) -> Vec<Arc<Value>> {
        self.applications.list()
    }

    /// The application, as new as what was written last.
    async fn application(&self, key: &str) -> Result<Option<Arc<Value>>, Error> {
        let cached = self.applications.get_key(key);
        let written = self.memory.lock().written.get(key).copied().unwrap_or_default().version;
        if written == 0 || cached.as_deref().is_some_and(|object| version(object) >= written) {
            return Ok(cached);
        }
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        Ok(self.client.api(&APPLICATIONS).find(namespace, name).await?.map(Arc::new))
    }

    /// Notes what was written, so that an older state is not taken for the present one.
    pub(super) fn wrote(&self, application: &Value) {
        if let Ok(version) = application.meta_str("resourceVersion").parse() {
            let written = Written { version, declared: declared(application) };
            self.memory.lock().written.insert(client::cache::key(application), written);
        }
    }

    /// Notes which trackers there are, so that a cache that is behind does not hide them.
    pub(super) fn remember(&self, key: &str, trackers: &Trackers) {
        let names = trackers.iter().filter(|tracker| tracker.is_stored()).map(|tracker| tracker.name().to_owned());
        self.memory.lock().made.insert(key.to_owned(), names.collect());
    }

    /// Whether a tracker of an application was noted by [`Controller::remember`].
    fn has_made(&self, key: &str, name: &str) -> bool {
        self.memory.lock().made.get(key).is_some_and(|names| names.contains(name))
    }

    pub(super) fn tracker_names(&self, key: &str) -> BTreeSet<String> {
        let mut names: BTreeSet<String> =
            self.trackers.indexed("application", key).iter().map(|tracker| tracker.name().to_owned()).collect();
        names.extend(self.memory.lock().made.get(key).into_iter().flatten().cloned());
        names
    }

    /// All revisions of an application, oldest first, as far as their metadata tells. One that was made a moment ago may
    /// be missing; its name is taken then, and making it again fails.
    pub(super) fn revisions(&self, application: &Value) -> Vec<Revision> {
        let known = self.revisions.indexed("application", &client::cache::key(application));
        let mut revisions: Vec<Revision> =
            known.iter().filter_map(|revision| Revision::read(Value::clone(revision))).collect();
        revisions.sort_by_key(|revision| revision.number);
        revisions
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }

    pub(super) fn tell(&self, application: &Value, kind: EventType, reason: &str, message: &str) {
        self.recorder.event(application, kind, reason, message);
    }

    /// A digest of all that a look at an application could find changed, of which `objects` is that of its objects; `None`
    /// if it cannot be told without one.
    fn seen(&self, key: &str, objects: Option<u64>, version: u64, definitions: u64) -> Option<u64> {
        let objects = objects?;
        let mut hasher = DefaultHasher::new();
        (version, objects, definitions).hash(&mut hasher);
        let trackers = self.trackers.indexed("application", key);
        // One that goes leaves something to do, however late somebody told it to.
        if trackers.iter().any(|tracker| is_deleted(tracker)) {
            return None;
        }
        for tracker in &trackers {
            (tracker.name(), tracker.meta_str("resourceVersion")).hash(&mut hasher);
        }
        let made = self.memory.lock().made.get(key).map(BTreeSet::len).unwrap_or_default();
        (made == trackers.len()).then(|| hasher.finish())
    }

    /// Notes that nothing is left to do for an application. `definitions` tells how often any changed when the look began,
    /// and `objects` what its objects were then: a change since is one that nobody has looked at.
    pub(super) fn note_steady(&self, application: &Value, definitions: u64, objects: Option<u64>) {
        let key = client::cache::key(application);
        let written = self.memory.lock().written.get(&key).copied().unwrap_or_default();
        let looked_at = version(application);
        // What somebody declared between the look and the write of its outcome is in the version that was written.
        let is_whole = written.version <= looked_at || written.declared == declared(application);
        let seen = self.seen(&key, objects, looked_at.max(written.version), definitions).filter(|_| is_whole);
        let mut memory = self.memory.lock();
        match seen {
            Some(seen) => drop(memory.steady.insert(key, seen)),
            None => drop(memory.steady.remove(&key)),
        }
    }

    /// Whether everything is as it was when nothing was left to do.
    fn is_steady(&self, key: &str, application: &Value) -> bool {
        let before = self.memory.lock().steady.get(key).copied();
        let now = self.now();
        !Restart::of(application, now).is_open(now)
            && before.is_some_and(|before| {
                let objects = self.fleet.versions(key);
                self.seen(key, objects, version(application), self.catalogue.changes()) == Some(before)
            })
    }

    /// When to look again at an application that is steady.
    fn next_look(&self, application: &Value) -> Duration {
        let look = match application.str_at(&["status", "status"]) {
            // No watch says when it becomes healthy without a change of its objects.
            Some("unhealthy") => self.backoff(application, 60),
            _ => self.interval(application),
        };
        let now = self.now();
        Restart::of(application, now).wait(now).map_or(look, |wait| look.min(wait))
    }

    /// When to look at an application again, although nothing is heard.
    pub(super) fn interval(&self, application: &Value) -> Duration {
        let period = Self::period(application.annotation(names::RECONCILE_INTERVAL), self.options.resync);
        let mut memory = self.memory.lock();
        memory.rounds += 1;
        keeper::jittered(period, application.meta_str("uid"), memory.rounds)
    }

    /// The interval that an application asks for, or `resync` if that is no duration of ten seconds or more.
    pub fn period(asked: Option<&str>, resync: Duration) -> Duration {
        let asked = asked.and_then(workflow::duration).and_then(|asked| Duration::try_from(asked).ok());
        asked.filter(|asked| *asked >= SHORTEST).unwrap_or(resync)
    }

    /// How long an application waits for something this time; each time longer, until it is declared anew.
    pub(super) fn backoff(&self, application: &Value, longest: u64) -> Duration {
        let generation = crate::status::generation(application);
        let mut memory = self.memory.lock();
        let waits = memory.waits.entry(client::cache::key(application)).or_default();
        let times = if waits.0 == generation { waits.1.saturating_add(1) } else { 1 };
        *waits = (generation, times);
        workflow::backoff(times, longest)
    }

    /// There is nothing to wait for any more.
    pub(super) fn rest(&self, key: &str) {
        self.memory.lock().waits.remove(key);
    }
}

impl Reconciler for Controller {
    const NAME: &'static str = "application";

    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let Some(application) = self.application(key).await? else {
            self.fleet.forget(key);
            let mut memory = self.memory.lock();
            memory.written.remove(key);
            memory.made.remove(key);
            memory.waits.remove(key);
            memory.steady.remove(key);
            return Ok(None);
        };
        let application = application.as_ref();
        if application.label(names::PAUSE) == Some("true")
            || application.annotation(names::VERSION_REQUIRED).is_some_and(|wanted| !["", VERSION].contains(&wanted))
        {
            return Ok(None);
        }
        if is_deleted(application) {
            return self.finalize(application).await;
        }
        let finalizers = application.meta_list("finalizers");
        if !finalizers.contains(&names::FINALIZER) {
            let all: Vec<&str> = finalizers.into_iter().chain([names::FINALIZER]).collect();
            let patch = map! { "metadata" => map! {
                "finalizers" => all,
                "resourceVersion" => application.meta_str("resourceVersion"),
            } };
            self.patch(application, patch.into()).await?;
            return Ok(Some(Duration::ZERO));
        }
        if self.is_steady(key, application) {
            return Ok(Some(self.next_look(application)));
        }
        self.reconcile(application).await
    }
}

/// Whether an application is to be looked at when definitions change.
fn follows(application: &Value) -> bool {
    let conditions = application.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let is_parsed = |condition: &Value| condition.str_at(&["type"]) == Some("Parsed");
    let waits = |condition: &Value| is_parsed(condition) && condition.str_at(&["status"]) == Some("False");
    application.annotation(names::AUTO_UPDATE) == Some("true") || conditions.iter().any(waits)
}

/// Whether components or traits of an application have a definition, whose health may now be another.
fn uses(application: &Value, of: DefinitionKind, definition: &str) -> bool {
    let components = application.at(&["spec", "components"]).and_then(Value::as_array).unwrap_or_default();
    let is_meant = |part: &Value| bare(part.str_at(&["type"]).unwrap_or_default()) == definition;
    let has_trait =
        |component: &Value| component.get("traits").and_then(Value::as_array).unwrap_or_default().iter().any(is_meant);
    match of {
        DefinitionKind::Component => components.iter().any(is_meant),
        DefinitionKind::Trait => components.iter().any(has_trait),
        DefinitionKind::Policy | DefinitionKind::WorkflowStep => false,
    }
}

/// Whether an application names, or may name, a Workflow or policies outside of it.
fn refers(application: &Value) -> bool {
    let workflow = application.at(&["spec", "workflow"]);
    workflow.is_some_and(|workflow| workflow.str_at(&["ref"]).is_some() || workflow.get("steps").is_some())
}

/// A digest of what others declare in an application.
fn declared(application: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for key in ["generation", "deletionTimestamp", "labels", "annotations", "finalizers"] {
        application.at(&["metadata", key]).map(json::to_string).hash(&mut hasher);
    }
    hasher.finish()
}

fn version(object: &Value) -> u64 {
    object.meta_str("resourceVersion").parse().unwrap_or(u64::MAX)
}

/// Whether a change is one that somebody else made: to what is declared, or to how the workflow goes on.
fn is_to_be_seen(change: &Change) -> bool {
    let (Some(old), Some(new)) = (change.old.as_deref(), change.new.as_deref()) else { return true };
    let metadata = |object: &Value, key: &str| object.at(&["metadata", key]).cloned();
    let flag =
        |object: &Value, key: &str| object.at(&["status", "workflow", key]).and_then(Value::as_bool) == Some(true);
    let steps = |object: &Value| object.at(&["status", "workflow", "steps"]).cloned();
    ["generation", "deletionTimestamp", "labels", "annotations", "finalizers"]
        .iter()
        .any(|key| metadata(old, key) != metadata(new, key))
        || flag(old, "suspend") && !flag(new, "suspend")
        // A step that suspends the run changes the steps as well.
        || !flag(old, "suspend") && flag(new, "suspend") && steps(old) == steps(new)
        || !flag(old, "terminated") && flag(new, "terminated")
        || old.at(&["status", "workflow"]).is_some() && new.at(&["status", "workflow"]).is_none()
}

/// The application of a tracker, as `NAMESPACE/NAME`.
fn tracker_owner(tracker: &Value) -> Option<String> {
    super::three_way::owner_of(tracker)
}
