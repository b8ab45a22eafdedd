//! What a controller is.

use crate::context::Context;
use client::cache::Selection;
use client::{Cache, Change, Queue, Resource, Result};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A controller whose work is divided by keys, mostly `NAMESPACE/NAME` of the objects that it looks after.
pub trait Controller: Send + Sync + Sized + 'static {
    /// Upstream's name, as in `--controllers`.
    const NAME: &'static str;
    /// How many keys are worked on at the same time.
    const WORKERS: usize = 5;
    /// How long a key waits after its first failure.
    const FIRST_WAIT: Duration = client::queue::FIRST_WAIT;
    /// The longest wait after failures.
    const LONGEST_WAIT: Duration = client::queue::LONGEST_WAIT;

    /// Makes the controller: opens its caches and says which of their changes mean work.
    fn new(wiring: &mut Wiring) -> Self;

    /// Does the work for one key; no two calls for the same key overlap. The caches were filled before the first call.
    /// Gives after which time there will be work again; after an error there is, ever later.
    fn sync(&self, key: &str) -> impl Future<Output = Result<Option<Duration>>> + Send;
}

type Handler = Box<dyn Fn(&Change, &Queue) + Send + Sync>;

/// How a controller hangs together with caches and its queue.
pub struct Wiring {
    context: Context,
    pub(crate) queue: Queue,
    /// All caches that must be filled before the work begins.
    pub(crate) caches: Vec<Arc<Cache>>,
    handlers: Vec<(Arc<Cache>, Handler)>,
}

impl std::fmt::Debug for Wiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring").finish_non_exhaustive()
    }
}

impl Wiring {
    pub(crate) fn new(context: &Context, queue: Queue) -> Self {
        let context = context.clone();
        Wiring { context, queue, caches: Vec::new(), handlers: Vec::new() }
    }

    /// What the controller is given.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The controller's queue, for work that it finds by itself.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Opens the cache of all objects of a resource; it is filled before the work begins.
    pub fn cache(&mut self, resource: &Resource) -> Arc<Cache> {
        self.cache_of(resource, Selection::default())
    }

    /// Opens the cache of a selection of a resource; it is filled before the work begins.
    pub fn cache_of(&mut self, resource: &Resource, selection: Selection) -> Arc<Cache> {
        let cache = self.context.cache_of(resource, selection);
        self.caches.push(cache.clone());
        cache
    }

    /// Calls this for every change in a cache, beginning with what is there. It should only put keys into the queue.
    pub fn on(&mut self, cache: &Arc<Cache>, handler: impl Fn(&Change, &Queue) + Send + Sync + 'static) {
        self.handlers.push((cache.clone(), Box::new(handler)));
    }

    /// Every change of an object in the cache means work for its own key.
    pub fn on_own(&mut self, cache: &Arc<Cache>) {
        self.on(cache, |change, queue| queue.add(change.key()));
    }

    /// Every change after which an object in the cache is such means work for its own key.
    pub fn on_those(&mut self, cache: &Arc<Cache>, is_meant: impl Fn(&object::Value) -> bool + Send + Sync + 'static) {
        self.on(cache, move |change, queue| {
            if change.new.as_ref().is_some_and(|object| is_meant(object)) {
                queue.add(change.key());
            }
        });
    }

    /// Every change of an object in the cache means work for its controlling owner of this kind, before and after.
    pub fn on_owned(&mut self, cache: &Arc<Cache>, owner: &Resource) {
        let (api_version, kind) = (owner.api_version(), owner.kind.clone());
        self.on(cache, move |change, queue| {
            for object in [&change.old, &change.new].into_iter().flatten() {
                let Some(reference) = controller_of(object) else { continue };
                let text = |key: &str| reference.get(key).and_then(object::Value::as_str).unwrap_or_default();
                if text("kind") == kind && text("apiVersion") == api_version {
                    queue.add(format!("{}/{}", object.namespace(), text("name")));
                }
            }
        });
    }

    /// Starts to listen.
    pub(crate) fn subscribe(&mut self) {
        for (cache, handler) in std::mem::take(&mut self.handlers) {
            let queue = self.queue.clone();
            cache.subscribe(move |change| handler(change, &queue));
        }
    }
}

/// The reference to the owner that controls an object.
pub fn controller_of(object: &object::Value) -> Option<&object::Value> {
    let references = object.metadata()?.get("ownerReferences")?.as_array()?;
    references.iter().find(|r| r.get("controller").and_then(object::Value::as_bool) == Some(true))
}
