//! How often failed pods of a node are replaced.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// The first wait after a replacement.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// From this many entries on, those that no longer count are dropped.
const MANY: usize = 1024;

/// When the last failed pod of a set on a node was replaced, and how long the next one waits.
#[derive(Debug, Default)]
pub(super) struct Backoff(Mutex<HashMap<(String, String), (Instant, Duration)>>);

impl Backoff {
    /// A failed pod is to be replaced, by the set's uid and the node: nothing if that may be now, else how long to wait.
    pub(super) fn try_now(&self, set: &str, node: &str) -> Option<Duration> {
        let mut entries = self.0.lock();
        let now = Instant::now();
        let is_over = |last: Instant| now.duration_since(last) > 2 * LONGEST;
        if entries.len() >= MANY {
            entries.retain(|_, (last, _)| !is_over(*last));
        }
        let key = (set.to_owned(), node.to_owned());
        let next = match entries.get(&key).filter(|(last, _)| !is_over(*last)) {
            Some((last, wait)) if now.duration_since(*last) < *wait => return Some(*wait),
            Some((_, wait)) => (*wait * 2).min(LONGEST),
            None => FIRST,
        };
        entries.insert(key, (now, next));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double() {
        let backoff = Backoff::default();
        assert_eq!(backoff.try_now("s", "n"), None);
        assert_eq!(backoff.try_now("s", "n"), Some(FIRST));
        assert_eq!(backoff.try_now("s", "m"), None);
        tokio::time::advance(FIRST).await;
        assert_eq!(backoff.try_now("s", "n"), None);
        assert_eq!(backoff.try_now("s", "n"), Some(2 * FIRST));
        tokio::time::advance(3 * LONGEST).await;
        assert_eq!(backoff.try_now("s", "n"), None);
        assert_eq!(backoff.try_now("s", "n"), Some(FIRST));
    }
}
