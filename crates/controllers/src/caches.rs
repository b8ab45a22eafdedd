//! One cache a resource, whoever asks.

use client::cache::Selection;
use client::{Cache, Client, Resource};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The caches that somebody holds.
#[derive(Default)]
pub(crate) struct Caches(Mutex<HashMap<(Resource, Selection), Weak<Cache>>>);

impl Caches {
    /// The cache of a selection of a resource; opened if nobody holds it.
    pub(crate) fn get(&self, client: &Client, resource: &Resource, selection: Selection) -> Arc<Cache> {
        let mut held = self.0.lock();
        let slot = held.entry((resource.clone(), selection.clone())).or_default();
        if let Some(cache) = slot.upgrade() {
            return cache;
        }
        let cache = Cache::open(client.api(resource), selection);
        *slot = Arc::downgrade(&cache);
        cache
    }
}
