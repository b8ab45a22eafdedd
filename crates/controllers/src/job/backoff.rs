//! How long a Job waits after failures before it makes more pods.

use super::pod::Pod;
use jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_secs(600);

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: i64,
    last: Option<Timestamp>,
}

impl Backoff {
    /// With pods that ended since.
    pub fn with(self, succeeded: &[Pod<'_>], failed: &[Pod<'_>]) -> Backoff {
        let last = failed.iter().map(Pod::finished_at).max();
        let Some(success) = succeeded.iter().map(Pod::finished_at).max() else {
            let failures = self.failures.saturating_add(failed.len() as i64);
            return Backoff { failures, last: last.or(self.last) };
        };
        let failures = failed.iter().filter(|pod| pod.finished_at() > success).count() as i64;
        Backoff { failures, last: last.filter(|_| failures > 0) }
    }

    /// How long to wait still.
    pub fn remaining(&self, now: Timestamp) -> SignedDuration {
        self.last.map_or(SignedDuration::ZERO, |last| remaining(self.failures, last, now))
    }
}

/// How long to wait before an index is tried again; `last` is its pod that failed last.
pub fn remaining_of_index(last: Option<&Pod<'_>>, now: Timestamp) -> SignedDuration {
    let Some(pod) = last else { return SignedDuration::ZERO };
    let (counted, ignored) = pod.failures_before();
    remaining(counted.saturating_add(ignored).saturating_add(1), pod.finished_at(), now)
}

fn remaining(failures: i64, last: Timestamp, now: Timestamp) -> SignedDuration {
    if failures == 0 {
        return SignedDuration::ZERO;
    }
    // Six doublings reach the longest wait.
    let factor = 1 << (failures - 1).clamp(0, 6);
    let wait = (FIRST * factor).min(LONGEST);
    (wait - now.duration_since(last)).max(SignedDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

    fn pod(second: i64) -> Value {
        let text = format!(r#"{{"metadata":{{"creationTimestamp":"2026-01-01T00:00:{second:02}Z"}}}}"#);
        json::parse(text.as_bytes()).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + SignedDuration::from_secs(second)
    }

    #[test]
    fn failures_after_the_last_success_make_the_wait() {
        let pods: Vec<Value> = (0..10).map(pod).collect();
        let pods: Vec<Pod<'_>> = pods.iter().map(Pod::new).collect();
        let none = Backoff::default();
        assert_eq!(none.remaining(at(5)), SignedDuration::ZERO);
        for (succeeded, failed, now, wait) in [
            (0..0, 1..2, 1, 10),
            (0..0, 1..2, 4, 7),
            (0..0, 1..2, 12, 0),
            (0..0, 1..4, 3, 40),
            (5..6, 1..4, 5, 0),
            (2..3, 1..5, 4, 20),
        ] {
            let (succeeded, failed) = (pods.get(succeeded).unwrap(), pods.get(failed).unwrap());
            assert_eq!(none.with(succeeded, failed).remaining(at(now)), SignedDuration::from_secs(wait));
        }
        let grown = (0..20).fold(none, |b, _| b.with(&[], &pods[1..2]));
        assert_eq!(grown.remaining(at(1)), LONGEST);
    }
}
