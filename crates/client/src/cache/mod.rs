//! What a server has of one resource, kept up to date by a watch.

mod objects;
mod reflector;

pub use objects::key;

use crate::{Api, Error};
use object::Value;
use object::selector::Labels;
use objects::Objects;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The index of every cache by the uids in `ownerReferences`; see [`Cache::owned_by`].
const OWNER: &str = "owner";

/// What a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The namespace; empty for all.
    pub namespace: String,
    /// A label selector; empty for all.
    pub label_selector: String,
    /// A field selector; empty for all.
    pub field_selector: String,
    /// Only what `metadata` says.
    pub metadata_only: bool,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object before; nothing when it came.
    pub old: Option<Arc<Value>>,
    /// The object after; nothing when it went.
    pub new: Option<Arc<Value>>,
}

impl Change {
    /// The object after, or, when it went, as it was last.
    pub fn object(&self) -> &Value {
        static NONE: Value = Value::Null;
        self.new.as_deref().or(self.old.as_deref()).unwrap_or(&NONE)
    }

    /// The object's `NAMESPACE/NAME`, or `NAME`.
    pub fn key(&self) -> String {
        key(self.object())
    }

    /// Whether the object went.
    pub fn is_deletion(&self) -> bool {
        self.new.is_none()
    }
}

type Subscriber = Box<dyn Fn(&Change) + Send + Sync>;

/// What a server has of one resource. Objects come without `managedFields`, and are shared, never changed.
///
/// The server is asked in the background for as long as the cache lives. After each failure the cache waits longer, up
/// to half a minute; meanwhile it holds what it held.
pub struct Cache {
    shared: Arc<Shared>,
    task: Option<AbortHandle>,
}

struct Shared {
    objects: RwLock<Objects>,
    /// Also held while a change is made and told, so that a subscriber misses none and sees none twice.
    subscribers: Mutex<Vec<Subscriber>>,
    synced: watch::Sender<bool>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("objects", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    fn new() -> Arc<Self> {
        let objects = RwLock::default();
        Arc::new(Shared { objects, subscribers: Mutex::default(), synced: watch::channel(false).0 })
    }

    /// An object came or changed.
    fn put(&self, object: Value) {
        let subscribers = self.subscribers.lock();
        let new = Arc::new(object);
        let old = self.objects.write().put(new.clone());
        tell(&subscribers, &Change { old, new: Some(new) });
    }

    /// An object went.
    fn remove(&self, key: &str) {
        let subscribers = self.subscribers.lock();
        let old = self.objects.write().remove(key);
        if old.is_some() {
            tell(&subscribers, &Change { old, new: None });
        }
    }

    /// These objects are all there are.
    fn replace(&self, items: Vec<Value>) {
        let subscribers = self.subscribers.lock();
        let changes = self.objects.write().replace(items);
        changes.iter().for_each(|change| tell(&subscribers, change));
        self.synced.send_replace(true);
    }
}

fn tell(subscribers: &[Subscriber], change: &Change) {
    subscribers.iter().for_each(|subscriber| subscriber(change));
}

impl Cache {
    /// Opens a cache; it fills in the background. Must be called inside a runtime.
    pub fn open(api: Api, selection: Selection) -> Arc<Cache> {
        Cache::open_reduced(api, selection, |_| {})
    }

    /// Opens a cache like [`Cache::open`], which keeps of each object what `reduce` leaves. Indexes see it so, too.
    pub fn open_reduced(api: Api, selection: Selection, reduce: fn(&mut Value)) -> Arc<Cache> {
        let shared = Shared::new();
        let task = tokio::spawn(reflector::run(api, selection, reduce, shared.clone()));
        Arc::new(Cache { shared, task: Some(task.abort_handle()) })
    }

    /// A cache of these objects, which no server changes: for tests.
    pub fn of(items: Vec<Value>) -> Arc<Cache> {
        let shared = Shared::new();
        shared.replace(items);
        Arc::new(Cache { shared, task: None })
    }

    /// Whether everything that was there is in the cache.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until everything that was there is in the cache.
    pub async fn synced(&self) {
        // The sender lives as long as the cache.
        let _ = self.shared.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Tells every change from now on, beginning with everything that is there. The subscriber is called one change
    /// after the other, while others wait: it should only note what there is to do, and must not subscribe.
    pub fn subscribe(&self, subscriber: impl Fn(&Change) + Send + Sync + 'static) {
        let mut subscribers = self.shared.subscribers.lock();
        for object in self.list() {
            subscriber(&Change { old: None, new: Some(object) });
        }
        subscribers.push(Box::new(subscriber));
    }

    /// An object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        if namespace.is_empty() {
            return self.get_key(name);
        }
        self.get_key(&format!("{namespace}/{name}"))
    }

    /// The object of a key, `NAMESPACE/NAME` or `NAME`.
    pub fn get_key(&self, key: &str) -> Option<Arc<Value>> {
        self.shared.objects.read().get(key)
    }

    /// All objects, by namespace and name.
    pub fn list(&self) -> Vec<Arc<Value>> {
        self.shared.objects.read().list()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.objects.read().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.shared.objects.read().in_namespace(namespace)
    }

    /// The objects of a namespace (empty: of all) whose labels satisfy a selector, by name.
    pub fn select(&self, namespace: &str, labels: &Labels) -> Vec<Arc<Value>> {
        let mut found = if namespace.is_empty() { self.list() } else { self.in_namespace(namespace) };
        found.retain(|object| labels.matches_object(object));
        found
    }

    /// The objects one of whose owners has this uid.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.index(OWNER, owner_uids);
        self.indexed(OWNER, uid)
    }

    /// Keeps an index of this name, if there is none: an object is found by the texts that `texts` gives for it.
    pub fn index(&self, name: &'static str, texts: fn(&Value) -> Vec<String>) {
        if !self.shared.objects.read().has_index(name) {
            self.shared.objects.write().add_index(name, texts);
        }
    }

    /// The objects that an index has under this text, by namespace and name.
    pub fn indexed(&self, index: &str, text: &str) -> Vec<Arc<Value>> {
        self.shared.objects.read().indexed(index, text)
    }
}

/// The uids in `ownerReferences`.
fn owner_uids(object: &Value) -> Vec<String> {
    let references = object.metadata().and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    let uids = references.unwrap_or_default().iter().filter_map(|r| r.str_at(&["uid"]));
    uids.map(str::to_owned).collect()
}

/// What the reflector makes of a failure: whether everything has to be listed again.
fn is_outdated(error: &Error) -> bool {
    error.is_expired() || error.reason() == "Gone"
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn object(namespace: &str, name: &str, owner: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","labels":{{"n":"{name}"}},"ownerReferences":[{{"uid":"{owner}"}}]}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    fn names(objects: &[Arc<Value>]) -> Vec<&str> {
        objects.iter().map(|o| o.name()).collect()
    }

    #[test]
    fn objects_are_found_by_namespace_owner_and_labels() {
        let cache = Cache::of(vec![object("a", "x", "1"), object("a", "y", "2"), object("a-b", "x", "1")]);
        assert_eq!(names(&cache.in_namespace("a")), ["x", "y"]);
        assert_eq!(cache.owned_by("1").len(), 2);
        assert_eq!(names(&cache.select("a", &Labels::parse("n=y").unwrap())), ["y"]);
        cache.shared.put(object("a", "x", "2"));
        assert_eq!(names(&cache.owned_by("1")), ["x"]);
        assert_eq!(names(&cache.owned_by("2")), ["x", "y"]);
        cache.shared.remove("a/y");
        assert_eq!(names(&cache.owned_by("2")), ["x"]);
        assert!(cache.get("a", "y").is_none());
    }

    #[test]
    fn subscribers_are_told_what_is_there_and_what_changes() {
        let cache = Cache::of(vec![object("a", "x", "1")]);
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        cache.subscribe(move |c| log.lock().push((c.key(), c.old.is_some(), c.new.is_some())));
        cache.shared.replace(vec![object("a", "y", "1")]);
        let expected = [("a/x", false, true), ("a/x", true, false), ("a/y", false, true)];
        let told = told.lock();
        assert_eq!(told.iter().map(|(k, o, n)| (k.as_str(), *o, *n)).collect::<Vec<_>>(), expected);
    }
}
