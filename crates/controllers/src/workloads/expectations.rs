//! What a controller did and its caches do not show yet.
//!
//! While pods that were created or deleted for a key are not seen in the cache, the controller does not count pods: it
//! would create or delete too many.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

/// After this time the caches are believed whatever was expected.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is expected, by key.
#[derive(Debug, Default)]
pub(crate) struct Expectations(Mutex<HashMap<String, Expected>>);

#[derive(Debug)]
struct Expected {
    creations: usize,
    /// The keys of the pods that are to go.
    deletions: HashSet<String>,
    since: Instant,
}

impl Expectations {
    /// Whether the caches show everything that was done for a key, or should.
    pub(crate) fn satisfied(&self, key: &str) -> bool {
        self.0
            .lock()
            .get(key)
            .is_none_or(|e| e.creations == 0 && e.deletions.is_empty() || e.since.elapsed() > PATIENCE)
    }

    /// From now on these creations and deletions are expected for a key, and no others.
    pub(crate) fn expect(&self, key: &str, creations: usize, deletions: impl IntoIterator<Item = String>) {
        let deletions = deletions.into_iter().collect();
        self.0.lock().insert(key.to_owned(), Expected { creations, deletions, since: Instant::now() });
    }

    /// A creation was seen, or will not happen.
    pub(crate) fn created(&self, key: &str) {
        self.less_creations(key, 1);
    }

    /// So many creations will not happen.
    pub(crate) fn less_creations(&self, key: &str, count: usize) {
        if let Some(expected) = self.0.lock().get_mut(key) {
            expected.creations = expected.creations.saturating_sub(count);
        }
    }

    /// The deletion of a pod was seen, or will not happen.
    pub(crate) fn deleted(&self, key: &str, pod: &str) {
        if let Some(expected) = self.0.lock().get_mut(key) {
            expected.deletions.remove(pod);
        }
    }

    /// Nothing is expected for a key any more.
    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn expectations_end_when_everything_is_seen_or_patience_is_over() {
        let expectations = Expectations::default();
        assert!(expectations.satisfied("a"));
        expectations.expect("a", 1, ["n/x".to_owned()]);
        expectations.created("a");
        expectations.created("a");
        assert!(!expectations.satisfied("a"));
        expectations.deleted("a", "n/x");
        assert!(expectations.satisfied("a"));
        expectations.expect("a", 2, []);
        assert!(!expectations.satisfied("a"));
        tokio::time::advance(PATIENCE + Duration::from_secs(1)).await;
        assert!(expectations.satisfied("a"));
    }
}
