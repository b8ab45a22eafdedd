//! The steps of a rolling update, and which old sets are kept.

use super::super::meta;
use super::numbers;
use super::revision;
use super::scale::Resize;
use kinds::read::Read;
use object::Value;
use std::sync::Arc;

/// The size that the new set gets now; nothing when it has it.
pub(super) fn of_new(deployment: &Value, new: &Value, all: &[Arc<Value>]) -> Option<i64> {
    let (wanted, size) = (meta::replicas(deployment), meta::replicas(new));
    let next = match size {
        _ if size == wanted => return None,
        _ if size > wanted => wanted,
        _ => numbers::of_new_set(deployment, numbers::wanted(all), size),
    };
    (next != size).then_some(next)
}

/// The sizes that old sets get now, in order; a set can be named twice. Pods that are not available go first, without
/// regard to how many are: they help nobody.
pub(super) fn of_old(deployment: &Value, new: &Value, all: &[Arc<Value>], old: &[Arc<Value>]) -> Vec<Resize> {
    let mut old: Vec<(Arc<Value>, i64)> = old.iter().map(|set| (set.clone(), meta::replicas(set))).collect();
    if old.iter().all(|(_, size)| *size == 0) {
        return Vec::new();
    }
    let available = |set: &Value| meta::status(set).int("availableReplicas");
    let least = meta::replicas(deployment) - numbers::max_unavailable(deployment);
    let most = numbers::wanted(all) - least - (meta::replicas(new) - available(new));
    if most <= 0 {
        return Vec::new();
    }
    old.sort_by(|(a, _), (b, _)| meta::by_age(a, b));
    let mut resizes = Vec::new();
    let mut left = most;
    for (set, size) in &mut old {
        if left <= 0 {
            break;
        }
        let sick = (*size - available(set)).min(left);
        if sick < 0 {
            // The set was just scaled down and does not tell of it yet: what it tells is nothing to go by.
            return resizes;
        }
        if sick > 0 {
            *size -= sick;
            left -= sick;
            resizes.push((set.clone(), *size));
        }
    }
    let all_available = available(new) + old.iter().map(|(set, _)| available(set)).sum::<i64>();
    let mut left = all_available - least;
    for (set, size) in &mut old {
        let fewer = (*size).min(left);
        if fewer > 0 {
            *size -= fewer;
            left -= fewer;
            resizes.push((set.clone(), *size));
        }
    }
    resizes
}

/// The old sets that history does not need.
pub(super) fn outdated(deployment: &Value, old: &[Arc<Value>]) -> Vec<Arc<Value>> {
    let Some(limit) = numbers::history_limit(deployment) else { return Vec::new() };
    let mut alive: Vec<Arc<Value>> = old.iter().filter(|set| !meta::is_deleting(set)).cloned().collect();
    let surplus = alive.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
    // A revision that is no number counts as none.
    alive.sort_by(|a, b| revision::of(a).cmp(&revision::of(b)).then_with(|| meta::by_age(a, b)));
    alive.truncate(surplus);
    alive.retain(|set| {
        meta::status(set).int("replicas") == 0
            && meta::replicas(set) == 0
            && meta::generation(set) <= meta::status(set).int("observedGeneration")
    });
    alive
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn deployment(replicas: i64, surge: i64, unavailable: i64) -> Value {
        value(&format!(
            r#"{{"spec":{{"replicas":{replicas},"revisionHistoryLimit":1,"strategy":{{"type":"RollingUpdate",
            "rollingUpdate":{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}}}}}}}"#
        ))
    }

    fn set(name: &str, replicas: i64, available: i64, day: u8) -> Arc<Value> {
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-01-0{day}T00:00:00Z",
            "annotations":{{"deployment.kubernetes.io/revision":"{day}"}}}},
            "spec":{{"replicas":{replicas}}},"status":{{"availableReplicas":{available}}}}}"#
        )))
    }

    #[test]
    fn the_new_set_takes_a_step() {
        for (size, old, want) in [(0, 4, Some(1)), (1, 4, None), (4, 1, None), (6, 0, Some(4)), (2, 1, Some(4))] {
            let new = set("new", size, 0, 2);
            let all = [set("old", old, old, 1), new.clone()];
            assert_eq!(of_new(&deployment(4, 1, 0), &new, &all), want, "{size} {old}");
        }
    }

    #[test]
    fn old_sets_shrink_as_far_as_availability_allows() {
        for (what, (size, available), old, want) in [
            ("nothing new is available yet", (1, 0), &[(4, 4)][..], &[][..]),
            ("one new is", (1, 1), &[(4, 4)], &[("old1", 3)]),
            ("sick ones go first", (1, 0), &[(4, 2)], &[("old1", 3)]),
            ("the oldest set first", (4, 4), &[(1, 1), (2, 2)], &[("old1", 0), ("old2", 0)]),
            ("sick and surplus", (4, 4), &[(2, 1)], &[("old1", 1), ("old1", 0)]),
            ("one tells of more pods than it wants", (4, 4), &[(2, 2), (3, 7)], &[]),
        ] {
            let new = set("new", size, available, 9);
            let old: Vec<_> = old.iter().zip(1..).map(|((s, a), day)| set(&format!("old{day}"), *s, *a, day)).collect();
            let all: Vec<_> = old.iter().cloned().chain([new.clone()]).collect();
            let unavailable = i64::from(what.starts_with("sick ones"));
            let got = of_old(&deployment(4, 1, unavailable), &new, &all, &old);
            let got: Vec<(&str, i64)> = got.iter().map(|(set, size)| (set.name(), *size)).collect();
            assert_eq!(got, want, "{what}");
        }
    }

    #[test]
    fn the_oldest_revisions_go_when_there_are_too_many() {
        let old = [set("c", 0, 0, 3), set("a", 0, 0, 1), set("b", 0, 0, 2)];
        let names: Vec<String> = outdated(&deployment(1, 1, 0), &old).iter().map(|s| s.name().to_owned()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(outdated(&deployment(1, 1, 0), &[set("a", 1, 0, 1), set("b", 0, 0, 2)]).is_empty());
        assert!(outdated(&value("{}"), &old).is_empty());
    }
}
