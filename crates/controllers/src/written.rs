//! What a controller wrote and its caches do not show yet.

use crate::pods;
use client::{Cache, Change};
use object::Value;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a write is waited for; then something is wrong, and the controller goes by what its cache shows.
const PATIENCE: Duration = Duration::from_secs(30);

/// After what time a cache is asked again that does not show yet what was written.
pub const SOON: Duration = Duration::from_millis(20);

/// What a controller wrote and its cache does not show yet, by the key that it wrote for. Until it does, the controller
/// would do the same again.
#[derive(Debug, Default)]
pub struct Written(Mutex<HashMap<String, Vec<Awaited>>>);

#[derive(Debug)]
struct Awaited {
    namespace: String,
    name: String,
    uid: String,
    what: What,
    since: Instant,
}

#[derive(Debug, PartialEq)]
enum What {
    /// The object in this version or a later one.
    Version(u64),
    /// That it goes or is gone.
    Deletion,
}

impl Written {
    /// An object was created or changed: this is how it is now.
    pub fn wrote(&self, key: &str, object: &Value) {
        self.add(key, object, What::Version(version(object)));
    }

    /// An object was deleted.
    pub fn deleted(&self, key: &str, object: &Value) {
        self.add(key, object, What::Deletion);
    }

    fn add(&self, key: &str, object: &Value, what: What) {
        let text = |field| object.meta_str(field).to_owned();
        let awaited =
            Awaited { namespace: text("namespace"), name: text("name"), uid: text("uid"), what, since: Instant::now() };
        self.0.lock().entry(key.to_owned()).or_default().push(awaited);
    }

    /// A cache shows that an object is gone: nothing more is to come of it.
    pub fn observe(&self, change: &Change) {
        if change.is_deletion() {
            let uid = change.object().meta_str("uid");
            self.0.lock().values_mut().for_each(|all| all.retain(|a| a.uid != uid || a.what == What::Deletion));
        }
    }

    /// Nothing more will be done for a key.
    pub fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }

    /// Whether the cache shows everything that was written for a key.
    pub fn is_shown(&self, key: &str, cache: &Cache) -> bool {
        let mut all = self.0.lock();
        let Some(awaited) = all.get_mut(key) else { return true };
        awaited.retain(|a| a.since.elapsed() < PATIENCE && !a.is_shown(cache));
        let shown = awaited.is_empty();
        if shown {
            all.remove(key);
        }
        shown
    }
}

impl Awaited {
    fn is_shown(&self, cache: &Cache) -> bool {
        let object = cache.get(&self.namespace, &self.name);
        let object = object.as_deref().filter(|o| o.meta_str("uid") == self.uid);
        match (&self.what, object) {
            (What::Version(wanted), Some(object)) => version(object) >= *wanted,
            (What::Version(_), None) => false,
            (What::Deletion, Some(object)) => pods::is_deleting(object),
            (What::Deletion, None) => true,
        }
    }
}

/// The version of an object as a number, which those of the server are.
fn version(object: &Value) -> u64 {
    object.meta_str("resourceVersion").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use std::sync::Arc;

    fn pod(version: u64, more: &str) -> Value {
        let text =
            format!(r#"{{"metadata":{{"namespace":"n","name":"p","uid":"u","resourceVersion":"{version}"{more}}}}}"#);
        json::parse(text.as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn writes_are_awaited_until_the_cache_shows_them() {
        let (none, old, new) = (Cache::of(vec![]), Cache::of(vec![pod(7, "")]), Cache::of(vec![pod(8, "")]));
        let going = Cache::of(vec![pod(8, r#","deletionTimestamp":"2026-01-01T00:00:00Z""#)]);
        let written = Written::default();
        assert!(written.is_shown("k", &none));
        written.wrote("k", &pod(8, ""));
        assert!(!written.is_shown("k", &none) && !written.is_shown("k", &old));
        assert!(written.is_shown("other", &none) && written.is_shown("k", &new));
        written.deleted("k", &pod(8, ""));
        assert!(!written.is_shown("k", &new) && written.is_shown("k", &going));
        written.wrote("k", &pod(9, ""));
        written.observe(&Change { old: Some(Arc::new(pod(9, ""))), new: None });
        assert!(written.is_shown("k", &none));
        written.wrote("k", &pod(10, ""));
        written.forget("k");
        assert!(written.is_shown("k", &none));
    }
}
