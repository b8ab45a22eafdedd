//! How a change of a Deployment's size is shared among its sets.

use super::super::meta;
use super::numbers::{self, Strategy};
use super::revision;
use kinds::read::Read;
use object::Value;
use std::cmp::Reverse;
use std::sync::Arc;

/// A set and the size that it gets.
pub(super) type Resize = (Arc<Value>, i64);

/// What has to be scaled, and whether events tell of it.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// The sets with their new sizes, in order.
    pub(super) resizes: Vec<Resize>,
    /// Whether a set is written only if its size changes.
    pub(super) only_changes: bool,
}

/// Whether a set that wants pods was written for another size of the Deployment.
pub(super) fn is_needed(deployment: &Value, sets: impl IntoIterator<Item = Arc<Value>>) -> bool {
    let wanted = meta::replicas(deployment);
    numbers::active(sets).iter().any(|set| revision::noted_desired(set).is_some_and(|noted| noted != wanted))
}

/// How a Deployment's sets are scaled to its size outside of a rollout's steps.
pub(super) fn plan(deployment: &Value, new: Option<&Arc<Value>>, old: &[Arc<Value>]) -> Plan {
    let wanted = meta::replicas(deployment);
    let changes = |resizes| Plan { resizes, only_changes: true };
    match active_or_latest(new, old) {
        Alone::Set(set) => {
            return changes(if meta::replicas(&set) == wanted { Vec::new() } else { vec![(set, wanted)] });
        }
        Alone::None if old.is_empty() && new.is_none() => return changes(Vec::new()),
        Alone::None => {}
    }
    if new.is_some_and(|new| is_saturated(deployment, new)) {
        return changes(numbers::active(old.iter().cloned()).into_iter().map(|set| (set, 0)).collect());
    }
    if numbers::strategy(deployment) != Strategy::Rolling {
        return changes(Vec::new());
    }
    Plan { resizes: proportional(deployment, numbers::active(old.iter().chain(new).cloned())), only_changes: false }
}

enum Alone {
    Set(Arc<Value>),
    None,
}

/// The one set that wants pods or, where none does, the newest.
fn active_or_latest(new: Option<&Arc<Value>>, old: &[Arc<Value>]) -> Alone {
    let mut active = numbers::active(old.iter().chain(new).cloned());
    let latest = || new.or_else(|| old.iter().max_by(|a, b| meta::by_age(a, b))).cloned();
    match active.len() {
        0 => latest().map_or(Alone::None, Alone::Set),
        1 => active.pop().map_or(Alone::None, Alone::Set),
        _ => Alone::None,
    }
}

/// Whether the new set has all pods that the Deployment wants.
fn is_saturated(deployment: &Value, new: &Value) -> bool {
    let wanted = meta::replicas(deployment);
    meta::replicas(new) == wanted
        && revision::noted_desired(new) == Some(wanted)
        && meta::status(new).int("availableReplicas") == wanted
}

/// Shares the change of size among the sets by their sizes: the bigger first; of equal ones the newer when growing, the
/// older when shrinking. What is left over goes to the first.
fn proportional(deployment: &Value, mut sets: Vec<Arc<Value>>) -> Vec<Resize> {
    let wanted = meta::replicas(deployment);
    let allowed = if wanted > 0 { wanted + numbers::max_surge(deployment) } else { 0 };
    let to_add = allowed - numbers::wanted(&sets);
    sets.sort_by(|a, b| meta::by_age(a, b));
    if to_add > 0 {
        sets.reverse();
    }
    sets.sort_by_key(|set| Reverse(meta::replicas(set)));
    let mut added = 0;
    let mut sizes = Vec::with_capacity(sets.len());
    for set in &sets {
        let share = if to_add == 0 { 0 } else { proportion(deployment, set, to_add, added) };
        added += share;
        sizes.push(meta::replicas(set) + share);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    sets.into_iter().zip(sizes).collect()
}

/// The share of one set in what is to be added (or taken away) and is not yet.
fn proportion(deployment: &Value, set: &Value, to_add: i64, added: i64) -> i64 {
    let left = to_add - added;
    if meta::replicas(set) == 0 || left == 0 {
        return 0;
    }
    let fraction = fraction(deployment, set);
    if to_add > 0 { fraction.min(left) } else { fraction.max(left) }
}

/// By how much a set changes if it keeps its part of the whole.
fn fraction(deployment: &Value, set: &Value) -> i64 {
    let size = meta::replicas(set);
    let wanted = meta::replicas(deployment);
    if wanted == 0 {
        return -size;
    }
    let before = match revision::noted_max(set) {
        Some(max) if max != 0 => max,
        _ => meta::status(deployment).int("replicas"),
    };
    if before == 0 {
        return 0;
    }
    let max = wanted + numbers::max_surge(deployment);
    let scaled = (size.saturating_mul(max)) as f64 / before as f64;
    scaled.round() as i64 - size
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn deployment(replicas: i64) -> Value {
        value(&format!(
            r#"{{"spec":{{"replicas":{replicas},"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":3,"maxUnavailable":2}}}}}}}}"#
        ))
    }

    fn set(name: &str, replicas: i64, day: u8, max: &str) -> Arc<Value> {
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-01-0{day}T00:00:00Z",
            "annotations":{{"deployment.kubernetes.io/max-replicas":"{max}","deployment.kubernetes.io/desired-replicas":"10"}}}},
            "spec":{{"replicas":{replicas}}},"status":{{"availableReplicas":{replicas}}}}}"#
        )))
    }

    fn sizes(plan: &Plan) -> Vec<(&str, i64)> {
        plan.resizes.iter().map(|(set, size)| (set.name(), *size)).collect()
    }

    #[test]
    fn a_lone_active_set_gets_the_whole_size() {
        let (new, old) = (set("new", 0, 2, "13"), [set("old", 4, 1, "13")]);
        assert_eq!(sizes(&plan(&deployment(7), Some(&new), &old)), [("old", 7)]);
        assert_eq!(sizes(&plan(&deployment(7), Some(&new), &[])), [("new", 7)]);
        assert_eq!(sizes(&plan(&deployment(7), None, &[set("a", 0, 1, ""), set("b", 0, 2, "")])), [("b", 7)]);
        assert!(plan(&deployment(4), Some(&new), &old).resizes.is_empty());
        assert!(plan(&deployment(4), None, &[]).resizes.is_empty());
    }

    #[test]
    fn old_sets_go_when_the_new_one_is_saturated() {
        let (new, old) = (set("new", 10, 2, "13"), [set("old", 4, 1, "13")]);
        assert_eq!(sizes(&plan(&deployment(10), Some(&new), &old)), [("old", 0)]);
    }

    #[test]
    fn growth_is_shared_by_size() {
        // The example of the documentation: 10 replicas, 13 pods, scaled to 15.
        let (new, old) = (set("new", 5, 2, "13"), [set("old", 8, 1, "13")]);
        assert_eq!(sizes(&plan(&deployment(15), Some(&new), &old)), [("old", 11), ("new", 7)]);
        assert_eq!(sizes(&plan(&deployment(0), Some(&new), &old)), [("old", 0), ("new", 0)]);
        assert_eq!(sizes(&plan(&deployment(5), Some(&new), &old)), [("old", 5), ("new", 3)]);
    }

    #[test]
    fn sets_without_notes_go_by_the_status() {
        let (new, old) = (set("new", 2, 2, ""), [set("old", 2, 1, "")]);
        assert_eq!(sizes(&plan(&deployment(6), Some(&new), &old)), [("new", 7), ("old", 2)]);
    }

    #[test]
    fn sizes_written_for_another_wish_need_scaling() {
        assert!(is_needed(&deployment(4), [set("a", 1, 1, "")]));
        assert!(!is_needed(&deployment(4), [set("a", 0, 1, "")]));
        assert!(!is_needed(&deployment(10), [set("a", 1, 1, "")]));
    }
}
