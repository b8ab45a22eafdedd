//! How many pods a rollout may have more, and fewer, than wanted.

use super::super::{meta, share};
use kinds::read::Read;
use object::Value;
use std::sync::Arc;

/// How old pods give way to new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// New pods come while old ones go.
    Rolling,
    /// New pods come when all old ones are gone.
    Recreate,
    /// A strategy that there is not.
    Unknown,
}

/// The strategy of a Deployment.
pub(super) fn strategy(deployment: &Value) -> Strategy {
    match meta::spec(deployment).sub("strategy").text("type") {
        "RollingUpdate" => Strategy::Rolling,
        "Recreate" => Strategy::Recreate,
        _ => Strategy::Unknown,
    }
}

/// The surge and the unavailability that a Deployment allows, as numbers of pods. They are never both 0.
fn fenceposts(deployment: &Value) -> (i64, i64) {
    let rolling = meta::spec(deployment).sub("strategy").sub("rollingUpdate");
    let wanted = meta::replicas(deployment);
    let surge = share::of(rolling.sub("maxSurge"), wanted, true);
    let unavailable = share::of(rolling.sub("maxUnavailable"), wanted, false);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

/// How many pods more than wanted there may be.
pub(super) fn max_surge(deployment: &Value) -> i64 {
    if strategy(deployment) == Strategy::Rolling { fenceposts(deployment).0 } else { 0 }
}

/// How many pods fewer than wanted may be available.
pub(super) fn max_unavailable(deployment: &Value) -> i64 {
    let wanted = meta::replicas(deployment);
    if strategy(deployment) != Strategy::Rolling || wanted == 0 {
        return 0;
    }
    fenceposts(deployment).1.min(wanted)
}

/// How many pods these sets want in all.
pub(super) fn wanted<S: AsRef<Value>>(sets: &[S]) -> i64 {
    sets.iter().map(|set| meta::replicas(set.as_ref())).sum()
}

/// A count in the status of these sets, in all.
pub(super) fn counted<S: AsRef<Value>>(sets: &[S], field: &str) -> i64 {
    sets.iter().map(|set| meta::status(set.as_ref()).int(field).clamp(0, i64::from(i32::MAX))).sum()
}

/// How many pods the new set should want now, of which it wants `now`, while all sets want `all`.
pub(super) fn of_new_set(deployment: &Value, all: i64, now: i64) -> i64 {
    let wanted = meta::replicas(deployment);
    match strategy(deployment) {
        Strategy::Recreate => wanted,
        _ => {
            let surge =
                share::of(meta::spec(deployment).sub("strategy").sub("rollingUpdate").sub("maxSurge"), wanted, true);
            let room = wanted.saturating_add(surge) - all;
            if room <= 0 { now } else { now + room.min(wanted - now) }
        }
    }
}

/// Whether a deadline for progress is set.
pub(super) fn progress_deadline(deployment: &Value) -> Option<i64> {
    meta::spec(deployment).opt_int("progressDeadlineSeconds").filter(|s| *s != i64::from(i32::MAX))
}

/// How many old sets are kept for a rollback; nothing for all.
pub(super) fn history_limit(deployment: &Value) -> Option<i64> {
    meta::spec(deployment).opt_int("revisionHistoryLimit").filter(|l| *l != i64::from(i32::MAX))
}

/// Sets that want pods.
pub(super) fn active(sets: impl IntoIterator<Item = Arc<Value>>) -> Vec<Arc<Value>> {
    sets.into_iter().filter(|set| meta::replicas(set) > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn deployment(replicas: i64, surge: &str, unavailable: &str) -> Value {
        value(&format!(
            r#"{{"spec":{{"replicas":{replicas},"strategy":{{"type":"RollingUpdate",
            "rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}}}}}}}"#
        ))
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        for (replicas, surge, unavailable, want) in [
            (4, r#""25%""#, r#""25%""#, (1, 1)),
            (10, r#""25%""#, r#""25%""#, (3, 2)),
            (1, r#""25%""#, r#""25%""#, (1, 0)),
            (3, "0", r#""10%""#, (0, 1)),
            (2, "1", "5", (1, 2)),
            (0, "1", "1", (1, 0)),
        ] {
            let d = deployment(replicas, surge, unavailable);
            assert_eq!((max_surge(&d), max_unavailable(&d)), want, "{replicas} {surge} {unavailable}");
        }
        let recreate = value(r#"{"spec":{"replicas":3,"strategy":{"type":"Recreate"}}}"#);
        assert_eq!((max_surge(&recreate), max_unavailable(&recreate)), (0, 0));
        assert_eq!(of_new_set(&recreate, 9, 0), 3);
    }

    #[test]
    fn the_new_set_grows_as_far_as_surge_allows() {
        let d = deployment(4, "1", "0");
        for (all, now, want) in [(4, 0, 1), (5, 1, 1), (3, 0, 2), (0, 0, 4), (9, 2, 2), (4, 4, 4)] {
            assert_eq!(of_new_set(&d, all, now), want, "{all} {now}");
        }
    }
}
