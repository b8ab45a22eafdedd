//! The pods that a Job makes.

use super::pod::{FAILURES, IGNORED_FAILURES, INDEX, TRACKING};
use crate::pods;
use kinds::read::{Read, list_mut};
use object::{Value, map};

/// The variable with the completion index.
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Names are generated after at most so many bytes.
const LONGEST_PREFIX: usize = 58;

/// What a pod of an indexed Job has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The completion index.
    pub index: i64,
    /// The failures of the index before it, where indexes fail each for itself: counted, not counted.
    pub failures: Option<(i64, i64)>,
}

/// A pod of a Job, for a place if the Job is indexed.
pub fn pod(job: &Value, place: Option<Place>) -> Value {
    let owner = pods::controller_reference(job, "batch/v1", "Job");
    let prefix = place.map_or_else(|| pods::name_prefix(job.name()), |p| indexed_prefix(job.name(), p.index));
    let mut pod = pods::from_template(job.sub("spec").sub("template"), job.namespace(), &prefix, owner);
    track(&mut pod);
    if let Some(place) = place {
        put(&mut pod, job.name(), place);
    }
    pod
}

fn track(pod: &mut Value) {
    let finalizers = pod.metadata_mut().get_or_insert("finalizers", || Value::Array(Vec::new()));
    if finalizers.is_null() {
        *finalizers = Value::Array(Vec::new());
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|f| f.as_str() == Some(TRACKING))
    {
        finalizers.push(TRACKING.into());
    }
}

fn put(pod: &mut Value, job: &str, place: Place) {
    let index = place.index.to_string();
    pod.metadata_mut().object_entry("labels").insert(INDEX, index.as_str());
    let annotations = pod.metadata_mut().object_entry("annotations");
    annotations.insert(INDEX, index.as_str());
    if let Some((counted, ignored)) = place.failures {
        annotations.insert(FAILURES, counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES, ignored.to_string());
        }
    }
    let Some(spec) = pod.get_mut("spec") else { return };
    for list in ["initContainers", "containers"] {
        list_mut(spec, list).iter_mut().for_each(add_variable);
    }
    spec.set_at(&["hostname"], format!("{job}-{index}").into());
}

fn add_variable(container: &mut Value) {
    if container.list("env").iter().any(|v| v.text("name") == VARIABLE) {
        return;
    }
    let path = format!("metadata.labels['{INDEX}']");
    let variable = map! {
        "name" => VARIABLE, "valueFrom" => map! { "fieldRef" => map! { "fieldPath" => path } },
    };
    match container.get_mut("env").and_then(Value::as_array_mut) {
        Some(env) => env.push(variable.into()),
        None => container.set_at(&["env"], vec![variable].into()),
    }
}

/// How the names of an index's pods begin, short enough for what is generated after it.
fn indexed_prefix(job: &str, index: i64) -> String {
    let end = format!("-{index}-");
    let room = LONGEST_PREFIX.saturating_sub(end.len()).min(job.len());
    // Names of Jobs are ASCII.
    format!("{}{end}", job.get(..room).unwrap_or(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_pod_has_its_place() {
        let job = json::parse(
            br#"{"metadata":{"name":"j","namespace":"n","uid":"u"},"spec":{"template":{"metadata":{"finalizers":["x/y"]},
            "spec":{"containers":[{"name":"a"},{"name":"b","env":[{"name":"JOB_COMPLETION_INDEX","value":"x"}]}]}}}}"#,
        )
        .unwrap();
        let plain = pod(&job, None);
        assert_eq!(plain.meta_list("finalizers"), ["x/y", TRACKING]);
        assert_eq!(plain.meta_str("generateName"), "j-");
        let placed = pod(&job, Some(Place { index: 3, failures: Some((1, 0)) }));
        assert_eq!(placed.meta_str("generateName"), "j-3-");
        assert_eq!((placed.label(INDEX), placed.annotation(FAILURES)), (Some("3"), Some("1")));
        assert_eq!(placed.sub("spec").text("hostname"), "j-3");
        let variables: Vec<usize> = placed.sub("spec").list("containers").iter().map(|c| c.list("env").len()).collect();
        assert_eq!(variables, [1, 1]);
    }

    #[test]
    fn long_names_are_cut() {
        let name = "a".repeat(63);
        assert_eq!(indexed_prefix(&name, 12).len(), LONGEST_PREFIX);
        assert_eq!(indexed_prefix("j", 0), "j-0-");
    }
}
