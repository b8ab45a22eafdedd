//! Revisions of a Deployment: annotations of its sets, and which set is the new one.

use super::super::meta;
use super::numbers;
use kinds::read::Read;
use object::{Map, Value};
use std::sync::Arc;

/// The number of a revision.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that a set had before, where the Deployment came back to it.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many pods the Deployment wanted when the set was written.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many pods the Deployment allowed then.
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// To which revision a Deployment is to go back; from before `kubectl` did that by itself.
pub(super) const ROLLBACK: &str = "deprecated.deployment.rollback.to";
/// The label that keeps the pods of revisions apart.
pub(super) const HASH: &str = "pod-template-hash";
/// Annotations of a Deployment that are no concern of its sets.
const NOT_COPIED: [&str; 6] =
    ["kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAX, ROLLBACK];
/// How long the list of former numbers may get, in bytes (upstream's bound).
const LONGEST_HISTORY: usize = 2000;

/// The revision of a set; nothing where its annotation is no number, 0 where there is none.
pub(super) fn of(set: &Value) -> Option<i64> {
    meta::annotation(set, REVISION).map_or(Some(0), |text| text.parse().ok())
}

/// The highest revision of these sets.
pub(super) fn highest(sets: &[Arc<Value>]) -> i64 {
    sets.iter().filter_map(|set| of(set)).fold(0, i64::max)
}

/// The revision before the highest.
pub(super) fn last(sets: &[Arc<Value>]) -> i64 {
    let (mut highest, mut second) = (0, 0);
    for revision in sets.iter().filter_map(|set| of(set)) {
        if revision >= highest {
            (highest, second) = (revision, highest);
        } else if revision > second {
            second = revision;
        }
    }
    second
}

/// The new set of a Deployment: the oldest with its template.
pub(super) fn new_set(deployment: &Value, sets: &[Arc<Value>]) -> Option<Arc<Value>> {
    let same = sets.iter().filter(|set| is_same_template(meta::template(set), meta::template(deployment)));
    same.min_by(|a, b| meta::by_age(a, b)).cloned()
}

/// Whether two templates are the same but for the hash among the labels.
pub(super) fn is_same_template(a: &Value, b: &Value) -> bool {
    fn same(a: &Map, b: &Map, but: &str, inner: &dyn Fn(&str, &Value, &Value) -> bool) -> bool {
        static NULL: Value = Value::Null;
        let covered = |a: &Map, b: &Map| {
            a.iter().filter(|(key, _)| *key != but).all(|(key, v)| inner(key, v, b.get(key).unwrap_or(&NULL)))
        };
        covered(a, b) && covered(b, a)
    }
    let is_empty = |v: &Value| match v {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    // Labels with nothing but the hash are as good as none.
    let labels = |_: &str, a: &Value, b: &Value| a == b;
    let metadata = |key: &str, a: &Value, b: &Value| match key {
        "labels" => same(members(a), members(b), HASH, &labels),
        _ => a == b || is_empty(a) && is_empty(b),
    };
    same(a.members("metadata"), b.members("metadata"), "", &metadata)
        && same(a.members("spec"), b.members("spec"), "", &|_, a, b| a == b || is_nothing(a) && is_nothing(b))
}

/// What Go takes for no list and no pointer.
fn is_nothing(v: &Value) -> bool {
    matches!(v, Value::Null) || v.as_array().is_some_and(<[Value]>::is_empty)
}

fn members(v: &Value) -> &Map {
    static NONE: Map = Map::new();
    v.as_object().unwrap_or(&NONE)
}

/// Makes a new set's annotations those of the Deployment, and its revision at least this; says whether that changed it.
pub(super) fn annotate(deployment: &Value, set: &mut Value, revision: i64, exists: bool) -> bool {
    let mut annotations = meta::annotations(set).clone();
    let before = annotations.clone();
    for (key, value) in meta::annotations(deployment).iter().filter(|(key, _)| !NOT_COPIED.contains(key)) {
        annotations.insert(key, value.clone());
    }
    let had = annotations.get(REVISION).and_then(Value::as_str).map(str::to_owned);
    let known = had.as_deref().filter(|text| !text.is_empty()).map_or(Some(0), |text| text.parse::<i64>().ok());
    // A revision that is no number is left alone.
    if let Some(known) = known {
        if known < revision {
            annotations.insert(REVISION, revision.to_string());
            if let Some(had) = had {
                remember(&mut annotations, &had);
            }
        }
        if !exists {
            set_replicas(&mut annotations, deployment);
        }
    }
    let changed = annotations != before;
    if changed {
        set.metadata_mut().insert("annotations", annotations);
    }
    changed
}

/// Adds a number to those that a set had before; the oldest give way when there are too many.
fn remember(annotations: &mut Map, number: &str) {
    let history = annotations.get(HISTORY).and_then(Value::as_str).unwrap_or_default();
    let mut numbers: Vec<&str> = history.split(',').filter(|n| !n.is_empty()).collect();
    let mut length = history.len() + number.len() + 1;
    while length > LONGEST_HISTORY && !numbers.is_empty() {
        length -= numbers.remove(0).len() + 1;
    }
    if length <= LONGEST_HISTORY {
        numbers.push(number);
        let history = numbers.join(",");
        annotations.insert(HISTORY, history);
    }
}

fn set_replicas(annotations: &mut Map, deployment: &Value) {
    let wanted = meta::replicas(deployment);
    annotations.insert(DESIRED, wanted.to_string());
    annotations.insert(MAX, (wanted + numbers::max_surge(deployment)).to_string());
}

/// Notes in a set how many pods its Deployment wants and allows; says whether that changed it.
pub(super) fn note_replicas(deployment: &Value, set: &mut Value) -> bool {
    let mut annotations = meta::annotations(set).clone();
    set_replicas(&mut annotations, deployment);
    let changed = annotations != *meta::annotations(set);
    if changed {
        set.metadata_mut().insert("annotations", annotations);
    }
    changed
}

/// How many pods the Deployment wanted when a set was written, as far as the set knows.
pub(super) fn noted_desired(set: &Value) -> Option<i64> {
    number(set, DESIRED)
}

/// How many pods the Deployment allowed when a set was written, as far as the set knows.
pub(super) fn noted_max(set: &Value) -> Option<i64> {
    number(set, MAX)
}

fn number(set: &Value, annotation: &str) -> Option<i64> {
    meta::annotation(set, annotation)?.parse::<i32>().ok().map(i64::from)
}

/// Notes a revision in a Deployment; says whether that changed it.
pub(super) fn set_on_deployment(deployment: &mut Value, revision: &str) -> bool {
    if meta::annotation(deployment, REVISION) == Some(revision) {
        return false;
    }
    deployment.metadata_mut().object_entry("annotations").insert(REVISION, revision);
    true
}

/// Gives a Deployment the annotations of a set that it goes back to.
pub(super) fn take_annotations(deployment: &mut Value, set: &Value) {
    let copied = |key: &str| !NOT_COPIED.contains(&key);
    let mut annotations: Map = meta::annotations(deployment)
        .iter()
        .filter(|(key, _)| !copied(key))
        .map(|(key, value)| (key, value.clone()))
        .collect();
    for (key, value) in meta::annotations(set).iter().filter(|(key, _)| copied(key)) {
        annotations.insert(key, value.clone());
    }
    deployment.metadata_mut().insert("annotations", annotations);
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set(name: &str, created: &str, image: &str, annotations: &str) -> Arc<Value> {
        Arc::new(value(&format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"{created}","annotations":{annotations}}},
            "spec":{{"template":{{"metadata":{{"labels":{{"a":"b","pod-template-hash":"{name}"}}}},"spec":{{"image":"{image}"}}}}}}}}"#
        )))
    }

    #[test]
    fn the_new_set_is_the_oldest_with_the_template() {
        let deployment = value(
            r#"{"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}},"spec":{"image":"1","list":[]}}}}"#,
        );
        let sets = [
            set("young", "2026-01-02T00:00:00Z", "1", "{}"),
            set("old", "2026-01-01T00:00:00Z", "1", "{}"),
            set("other", "2025-01-01T00:00:00Z", "2", "{}"),
        ];
        assert_eq!(new_set(&deployment, &sets).unwrap().name(), "old");
    }

    #[test]
    fn revisions_are_compared_as_numbers() {
        let revision = |n: &str| set("a", "", "1", &format!(r#"{{"deployment.kubernetes.io/revision":"{n}"}}"#));
        let sets = [revision("2"), revision("10"), revision("x"), revision("9")];
        assert_eq!((highest(&sets), last(&sets)), (10, 9));
        assert_eq!((highest(&[]), last(&[])), (0, 0));
    }

    #[test]
    fn a_set_that_comes_back_remembers_its_former_revisions() {
        let deployment = value(
            r#"{"metadata":{"annotations":{"why":"x","deployment.kubernetes.io/revision":"5"}},"spec":{"replicas":2}}"#,
        );
        let mut old = (*set("a", "", "1", r#"{"deployment.kubernetes.io/revision":"3"}"#)).clone();
        assert!(annotate(&deployment, &mut old, 6, true));
        let want =
            r#"{"why":"x","deployment.kubernetes.io/revision":"6","deployment.kubernetes.io/revision-history":"3"}"#;
        assert_eq!(Value::Object(meta::annotations(&old).clone()), value(want));
        assert!(!annotate(&deployment, &mut old, 6, true));
        assert!(annotate(&deployment, &mut old, 8, true));
        assert_eq!(meta::annotation(&old, HISTORY), Some("3,6"));
    }

    #[test]
    fn the_list_of_former_revisions_stays_short() {
        let mut annotations = Map::new();
        for number in 0..2000 {
            remember(&mut annotations, &number.to_string());
        }
        let history = annotations.get(HISTORY).and_then(Value::as_str).unwrap();
        assert!(history.len() <= LONGEST_HISTORY && history.ends_with(",1998,1999"), "{history}");
    }

    #[test]
    fn new_sets_note_how_many_pods_are_wanted() {
        let deployment =
            value(r#"{"spec":{"replicas":4,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%"}}}}"#);
        let mut new = value("{}");
        assert!(annotate(&deployment, &mut new, 1, false));
        assert_eq!((noted_desired(&new), noted_max(&new), of(&new)), (Some(4), Some(5), Some(1)));
        assert!(!note_replicas(&deployment, &mut new));
    }
}
