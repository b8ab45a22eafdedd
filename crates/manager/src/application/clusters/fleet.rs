//! All clusters, kept up to date.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use client::cache::Selection;
use client::resources::SECRETS;
use client::{Cache, Client, Error, ListParams, Transport};
use compact_str::CompactString;
use futures_util::future::join;
use keeper::{Cluster, Identity, Keeper};
use object::{Map, Value};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::access::{Access, former_names, names};
use super::remote::Remote;
use crate::application::actor::Actor;
use crate::application::tracker::Entry;
use crate::application::write::MANAGER;

/// Makes connections to clusters.
pub trait Connector: Send + Sync {
    /// What carries requests to a cluster. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// If what is said of the cluster cannot be used, for example a certificate that is none.
    fn connect(&self, access: &Access) -> Result<Arc<dyn Transport>, String>;
}

/// A cluster that can be worked with.
#[derive(Clone)]
pub struct Site {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Watches what is managed there.
    pub keeper: Keeper,
    /// The circuit; the cluster in which the applications are has none.
    remote: Option<Arc<Remote>>,
}

/// What a fleet has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// There is work for these applications: their objects are not as they were left, or a cluster in which they have
    /// objects came back, went, or is reached in another way.
    Work(Vec<String>),
    /// Clusters came or went, or their labels changed.
    Membership,
}

/// What the Secrets say of one cluster.
#[derive(Clone, Debug, PartialEq)]
struct Declared {
    /// As selectors see them.
    labels: Map,
    access: Result<Access, String>,
}

struct Member {
    declared: Declared,
    site: Result<Site, String>,
}

#[derive(Default)]
struct State {
    members: BTreeMap<String, Member>,
    /// The names of now, by former ones.
    renamed: BTreeMap<String, String>,
    /// The clusters that concern each application.
    placed: HashMap<String, BTreeSet<CompactString>>,
    /// Counts the changes of the members.
    generation: u64,
}

/// All clusters: the one in which the applications are, and those of Secrets.
pub struct Fleet {
    client: Client,
    local: Site,
    options: keeper::Options,
    connector: Option<Arc<dyn Connector>>,
    namespace: String,
    secrets: Option<Arc<Cache>>,
    changed: Arc<Notify>,
    state: Mutex<State>,
}

/// What is to be followed from now on, and what no longer.
#[derive(Default)]
struct Changes {
    begun: Vec<(String, Site)>,
    ended: Vec<String>,
    work: Vec<String>,
    membership: bool,
}

impl Fleet {
    /// The cluster of a client, and, if a connector can reach them, those that the Secrets of `namespace` name.
    pub fn new(
        client: &Client,
        options: keeper::Options,
        connector: Option<Arc<dyn Connector>>,
        namespace: &str,
    ) -> Arc<Self> {
        let selection = Selection {
            namespace: namespace.to_owned(),
            label_selector: names::CREDENTIAL_TYPE.to_owned(),
            ..Selection::default()
        };
        let mut fleet = Fleet::without_secrets(client, options, connector, namespace);
        if fleet.connector.is_some() {
            let secrets = Cache::open(client.api(&SECRETS), selection);
            let changed = fleet.changed.clone();
            secrets.subscribe(move |_| changed.notify_one());
            fleet.secrets = Some(secrets);
        }
        Arc::new(fleet)
    }

    /// The clusters as they are now, for somebody who does not follow them.
    ///
    /// # Errors
    ///
    /// If the Secrets cannot be read.
    pub async fn read(client: &Client, connector: Arc<dyn Connector>, namespace: &str) -> Result<Arc<Self>, Error> {
        let fleet = Fleet::without_secrets(client, keeper::Options::default(), Some(connector), namespace);
        let selected = ListParams { label_selector: names::CREDENTIAL_TYPE.to_owned(), ..ListParams::default() };
        let secrets = client.api(&SECRETS).list(namespace, &selected).await?.items;
        drop(fleet.take(&secrets.into_iter().map(Arc::new).collect::<Vec<_>>()));
        Ok(Arc::new(fleet))
    }

    /// The cluster of a client alone.
    pub fn local(client: &Client) -> Arc<Self> {
        Arc::new(Fleet::without_secrets(client, keeper::Options::default(), None, names::NAMESPACE))
    }

    /// The live object of an entry, whoever owns it.
    ///
    /// # Errors
    ///
    /// Why it cannot be known.
    pub async fn live(&self, entry: &Entry) -> Result<Option<Value>, String> {
        let cluster = self.site(&entry.cluster)?.cluster;
        let told = |error: Error| error.to_string();
        match cluster.scope(&entry.identity.kind).await.map_err(told)? {
            None => Ok(None),
            Some(_) => cluster.get(&entry.identity).await.map_err(told),
        }
    }

    fn without_secrets(
        client: &Client,
        options: keeper::Options,
        connector: Option<Arc<dyn Connector>>,
        namespace: &str,
    ) -> Self {
        let local = Site { cluster: Arc::new(client.clone()), keeper: Keeper::new(options.clone()), remote: None };
        Fleet {
            client: client.clone(),
            local,
            options,
            connector,
            namespace: namespace.to_owned(),
            secrets: None,
            changed: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// The cluster of a name; the empty name and `local` are the one in which the applications are.
    ///
    /// # Errors
    ///
    /// Why it cannot be worked with, as far as that is known without asking it. What is in it is neither there nor gone.
    pub fn site(&self, name: &str) -> Result<Site, String> {
        if is_local(name) {
            return Ok(self.local.clone());
        }
        let state = self.state.lock();
        match state.members.get(state.name_now(name)) {
            Some(member) => member.site.clone(),
            None => Err(format!("cluster {name} is not known: there is no Secret {}/{name}", self.namespace)),
        }
    }

    /// The cluster of a name, in which `actor` does everything, if there is one.
    ///
    /// # Errors
    ///
    /// As for [`Fleet::site`].
    pub fn site_as(&self, name: &str, actor: Option<&Actor>) -> Result<Site, String> {
        let site = self.site(name)?;
        let Some(actor) = actor else { return Ok(site) };
        let groups = actor.groups();
        let cluster: Arc<dyn Cluster> = match &site.remote {
            Some(remote) => Arc::new(remote.acting_as(actor.user(), &groups)),
            None => Arc::new(self.client.acting_as(actor.user(), &groups)),
        };
        Ok(Site { cluster, ..site })
    }

    /// Why a cluster cannot be worked with now; nothing if it can, as far as is known.
    pub fn trouble(&self, name: &str) -> Option<String> {
        match self.site(name) {
            Ok(site) => site.remote?.trouble(),
            Err(why) => Some(why),
        }
    }

    /// Whether there is a cluster of a name, in whatever state.
    pub fn has(&self, name: &str) -> bool {
        let state = self.state.lock();
        is_local(name) || state.members.contains_key(state.name_now(name))
    }

    /// How a cluster is called that may have been renamed; the empty name for the one in which the applications are.
    pub fn name_now(&self, name: &str) -> CompactString {
        if is_local(name) { CompactString::default() } else { self.state.lock().name_now(name).into() }
    }

    /// The clusters that have all these labels, by name.
    pub fn select(&self, labels: &[(String, String)]) -> Vec<String> {
        let has_all = |of: &Map| labels.iter().all(|(key, value)| of.get(key).and_then(Value::as_str) == Some(value));
        let own = object::map! { names::CONTROL_PLANE => "true" };
        let state = self.state.lock();
        let members = state.members.iter().filter(|(_, member)| has_all(&member.declared.labels));
        let local = has_all(&own).then(|| names::LOCAL.to_owned());
        local.into_iter().chain(members.map(|(name, _)| name.clone())).collect()
    }

    /// Makes the watches of all clusters follow what an application has: its objects, by cluster.
    pub fn claim<'a>(&self, owner: &str, objects: impl IntoIterator<Item = (&'a str, &'a Identity)>) {
        let mut by_cluster: BTreeMap<CompactString, Vec<&Identity>> = BTreeMap::new();
        {
            let mut state = self.state.lock();
            let State { placed, .. } = &mut *state;
            let clusters = placed.entry(owner.to_owned()).or_default();
            for (cluster, object) in objects {
                if !clusters.contains(cluster) {
                    clusters.insert(cluster.into());
                }
                by_cluster.entry(cluster.into()).or_default().push(object);
            }
            for cluster in clusters.iter() {
                by_cluster.entry(cluster.clone()).or_default();
            }
        }
        by_cluster.entry(CompactString::default()).or_default();
        for (cluster, objects) in by_cluster {
            if let Ok(site) = self.site(&cluster) {
                site.keeper.claim_objects(owner, objects);
            }
        }
    }

    /// Notes which clusters concern an application: there is work for it when they come back.
    pub fn place(&self, owner: &str, clusters: BTreeSet<CompactString>) {
        self.state.lock().placed.insert(owner.to_owned(), clusters);
    }

    /// Counts the changes of what clusters there are.
    pub fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    /// A digest of the versions of all that an application has, and of what clusters there are: while it stays the same,
    /// nobody changed anything. `None` unless watches of clusters that answer cover everything and all of it is settled.
    pub fn versions(&self, owner: &str) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let clusters: Vec<CompactString> = {
            let state = self.state.lock();
            for (name, member) in &state.members {
                (name, object::json::to_string(&Value::Object(member.declared.labels.clone()))).hash(&mut hasher);
            }
            state.placed.get(owner).into_iter().flatten().filter(|name| !is_local(name)).cloned().collect()
        };
        self.local.keeper.versions(owner)?.hash(&mut hasher);
        for cluster in clusters {
            let site = self.site(&cluster).ok()?;
            let is_away = site.remote.as_ref().is_some_and(|remote| remote.trouble().is_some());
            (cluster, site.keeper.versions(owner).filter(|_| !is_away)?).hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    /// Forgets an application that is gone.
    pub fn forget(&self, owner: &str) {
        let clusters = self.state.lock().placed.remove(owner).unwrap_or_default();
        self.local.keeper.forget(owner);
        for site in clusters.iter().filter_map(|cluster| self.site(cluster).ok()) {
            site.keeper.forget(owner);
        }
    }

    /// The applications that a cluster concerns.
    fn placed_at(&self, cluster: &str) -> Vec<String> {
        let state = self.state.lock();
        let concerned = state.placed.iter().filter(|(_, clusters)| clusters.contains(cluster));
        concerned.map(|(owner, _)| owner.clone()).collect()
    }

    /// Waits until the clusters are known.
    pub async fn synced(&self) {
        if let Some(secrets) = &self.secrets {
            secrets.synced().await;
            // What is found here is begun by `run`, which looks at everything.
            drop(self.refresh());
        }
    }

    /// Follows all clusters and tells of what happens. Never ends; dropping it ends all.
    pub async fn run(self: Arc<Self>, tell: Arc<dyn Fn(News) + Send + Sync>) {
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(self.clone(), String::new(), self.local.clone(), tell.clone()));
        let mut followed: HashMap<String, AbortHandle> = HashMap::new();
        let known = |state: &State| -> Vec<(String, Site)> {
            let sites =
                state.members.iter().filter_map(|(name, member)| Some((name.clone(), member.site.clone().ok()?)));
            sites.collect()
        };
        let mut changes = Changes { begun: known(&self.state.lock()), ..Changes::default() };
        loop {
            for name in changes.ended {
                if let Some(task) = followed.remove(&name) {
                    task.abort();
                }
            }
            for (name, site) in changes.begun {
                let task = tasks.spawn(follow(self.clone(), name.clone(), site, tell.clone()));
                if let Some(before) = followed.insert(name, task) {
                    before.abort();
                }
            }
            if !changes.work.is_empty() {
                tell(News::Work(changes.work));
            }
            if changes.membership {
                tell(News::Membership);
            }
            tokio::select! {
                () = self.changed.notified() => {}
                // A finished task frees its place; it only ends by being told to.
                Some(_) = tasks.join_next() => {}
            }
            changes = self.refresh();
        }
    }

    fn refresh(&self) -> Changes {
        self.secrets.as_ref().map(|secrets| self.take(&secrets.list())).unwrap_or_default()
    }

    /// Makes the members what the Secrets say.
    fn take(&self, secrets: &[Arc<Value>]) -> Changes {
        let (declared, renamed) = declared(secrets);
        let mut state = self.state.lock();
        let mut before = std::mem::take(&mut state.members);
        let mut changes = Changes::default();
        let mut touched: BTreeSet<String> = BTreeSet::new();
        for (name, declared) in declared {
            let known = before.remove(&name);
            changes.membership |= known.as_ref().is_none_or(|known| known.declared.labels != declared.labels);
            let site = match known {
                Some(known) if known.declared.access == declared.access => known.site,
                known => {
                    let site = self.connect(&name, &declared);
                    match &site {
                        Ok(site) => changes.begun.push((name.clone(), site.clone())),
                        Err(_) if known.is_some() => changes.ended.push(name.clone()),
                        Err(_) => {}
                    }
                    touched.insert(name.clone());
                    site
                }
            };
            state.members.insert(name, Member { declared, site });
        }
        changes.membership |= !before.is_empty();
        touched.extend(before.keys().cloned());
        changes.ended.extend(before.into_keys());
        state.generation += u64::from(changes.membership || !touched.is_empty());
        state.renamed = renamed;
        let State { placed, renamed, .. } = &mut *state;
        for (owner, clusters) in placed.iter_mut() {
            if clusters.iter().any(|cluster| touched.contains(cluster.as_str())) {
                changes.work.push(owner.clone());
            }
            if clusters.iter().any(|cluster| renamed.contains_key(cluster.as_str())) {
                let now =
                    |name: &CompactString| renamed.get(name.as_str()).map_or_else(|| name.clone(), |now| now.into());
                *clusters = clusters.iter().map(now).collect();
            }
        }
        changes
    }

    fn connect(&self, name: &str, declared: &Declared) -> Result<Site, String> {
        let told = |why: &String| format!("cluster {name}: {why}");
        let access = declared.access.as_ref().map_err(told)?;
        let connector = self.connector.as_ref().ok_or_else(|| format!("cluster {name} cannot be reached from here"))?;
        let transport = connector.connect(access).map_err(|why| told(&why))?;
        let remote = Arc::new(Remote::new(name, Client::new(transport).with_user_agent(MANAGER)));
        Ok(Site { cluster: remote.clone(), keeper: Keeper::new(self.options.clone()), remote: Some(remote) })
    }
}

impl State {
    fn name_now<'a>(&'a self, name: &'a str) -> &'a str {
        self.renamed.get(name).map_or(name, String::as_str)
    }
}

fn is_local(name: &str) -> bool {
    name.is_empty() || name == names::LOCAL
}

/// Follows one cluster: tells of what drifts there, of its going and of its coming back.
async fn follow(fleet: Arc<Fleet>, name: String, site: Site, tell: Arc<dyn Fn(News) + Send + Sync>) {
    let drifts = async {
        loop {
            tell(News::Work(vec![site.keeper.drifted().await.parent.to_string()]));
        }
    };
    let watches = async {
        let Some(remote) = &site.remote else { return site.keeper.watch(site.cluster.clone()).await };
        loop {
            let turn = async {
                remote.lost().await;
                tell(News::Work(fleet.placed_at(&name)));
                remote.recovered().await;
                tell(News::Work(fleet.placed_at(&name)));
            };
            // Watches that have broken wait ever longer; when the cluster is back they begin anew at once.
            tokio::select! {
                () = site.keeper.watch(site.cluster.clone()) => {}
                () = turn => {}
            }
        }
    };
    join(drifts, watches).await;
}

/// The clusters that Secrets declare, and the names of now by former ones. A Secret whose name is a former one of
/// another's is what a renaming left behind, and no cluster.
fn declared(secrets: &[Arc<Value>]) -> (BTreeMap<String, Declared>, BTreeMap<String, String>) {
    let age = |secret: &Value| {
        let version: u64 = secret.meta_str("resourceVersion").parse().unwrap_or_default();
        (secret.meta_str("creationTimestamp").to_owned(), version)
    };
    // Of two that name each other the later one counts.
    let mut sorted: Vec<&Arc<Value>> = secrets.iter().collect();
    sorted.sort_by_cached_key(|secret| std::cmp::Reverse(age(secret)));
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for secret in &sorted {
        if !renamed.contains_key(secret.name()) {
            for former in former_names(secret).filter(|former| *former != secret.name()) {
                renamed.entry(former.to_owned()).or_insert_with(|| secret.name().to_owned());
            }
        }
    }
    let is_member = |secret: &&Arc<Value>| !is_local(secret.name()) && !renamed.contains_key(secret.name());
    let members = secrets.iter().filter(is_member).map(|secret| {
        let mut labels =
            secret.metadata().and_then(|m| m.get("labels")).and_then(Value::as_object).cloned().unwrap_or_default();
        labels.insert(names::CONTROL_PLANE, "false");
        let is_leaving = secret.annotation(names::DETACHING).is_some();
        let access = if is_leaving { Err("it is being detached".to_owned()) } else { Access::read(secret) };
        (secret.name().to_owned(), Declared { labels, access })
    });
    (members.collect(), renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, born: &str, annotations: &str) -> Arc<Value> {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"{born}","resourceVersion":"1","labels":{{"region":"{name}"}},"annotations":{annotations}}}}}"#
        );
        Arc::new(object::json::parse(text.as_bytes()).unwrap_or_default())
    }

    #[test]
    fn secrets_declare_clusters_whose_former_names_go_on_to_mean_them() {
        let former = |names: &str| format!(r#"{{"{}":"{names}"}}"#, names::FORMER_NAMES);
        let told = |secrets: &[Arc<Value>]| {
            let (members, renamed) = declared(secrets);
            let renamed: Vec<String> = renamed.iter().map(|(old, new)| format!("{old}>{new}")).collect();
            format!("{} {}", members.into_keys().collect::<Vec<_>>().join(","), renamed.join(","))
        };
        for (secrets, expected) in [
            (vec![secret("eu", "1", "{}"), secret("us", "1", "{}")], "eu,us "),
            // `local` is the name of no other cluster.
            (vec![secret("local", "1", "{}"), secret("us", "1", "{}")], "us "),
            // A renaming that is not through yet has left the Secret of before.
            (vec![secret("eu", "1", "{}"), secret("europe", "2", &former("eu"))], "europe eu>europe"),
            (vec![secret("europe", "2", &former("eu, e1"))], "europe e1>europe,eu>europe"),
            // And back again.
            (vec![secret("europe", "2", &former("eu")), secret("eu", "3", &former("europe,eu"))], "eu europe>eu"),
        ] {
            assert_eq!(told(&secrets), expected);
        }
        let leaving = secret("eu", "1", &format!(r#"{{"{}":"orphan"}}"#, names::DETACHING));
        let (members, _) = declared(&[leaving]);
        let access = members.get("eu").map(|declared| declared.access.clone());
        assert_eq!(access, Some(Err("it is being detached".to_owned())));
    }
}
