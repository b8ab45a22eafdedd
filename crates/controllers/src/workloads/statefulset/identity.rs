//! The pods of a StatefulSet: their ordinals, names, labels and claims.

use super::super::{meta, pods, revisions};
use client::resources::STATEFUL_SETS;
use jiff::Timestamp;
use kinds::read::Read;
use object::{Map, Value, map};

/// The label with a pod's name.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label with a pod's ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The name of a pod's set and the pod's ordinal, by the pod's name.
pub(super) fn parent_and_ordinal(pod: &str) -> Option<(&str, i64)> {
    let (parent, ordinal) = pod.rsplit_once('-')?;
    if ordinal.is_empty() || !ordinal.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((parent, i64::from(ordinal.parse::<i32>().ok()?)))
}

/// The ordinal of a pod.
pub(super) fn ordinal(pod: &Value) -> Option<i64> {
    parent_and_ordinal(pod.name()).map(|(_, ordinal)| ordinal)
}

/// Whether a pod has a name of the set's pods.
pub(super) fn is_member(set: &Value, pod: &Value) -> bool {
    pod.name().rsplit_once('-').is_some_and(|(parent, ordinal)| {
        parent == set.name() && !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The first ordinal of a set.
pub(super) fn start(set: &Value) -> i64 {
    meta::spec(set).sub("ordinals").int("start")
}

/// The ordinals of a set.
pub(super) fn ordinals(set: &Value) -> std::ops::Range<i64> {
    start(set)..start(set).saturating_add(meta::replicas(set))
}

/// The templates of claims.
pub(super) fn claim_templates(set: &Value) -> &[Value] {
    meta::spec(set).list("volumeClaimTemplates")
}

/// The name of a pod's claim for a template.
pub(super) fn claim_name(set: &Value, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", template.name(), set.name())
}

/// The claims of a pod as they are created.
pub(super) fn claims(set: &Value, ordinal: i64) -> Vec<Value> {
    let matched = meta::spec(set).sub("selector").members("matchLabels");
    let claims = claim_templates(set).iter().map(|template| {
        let mut claim = template.clone();
        claim.set_at(&["apiVersion"], "v1".into());
        claim.set_at(&["kind"], "PersistentVolumeClaim".into());
        let name = claim_name(set, template, ordinal);
        let metadata = claim.metadata_mut();
        metadata.insert("name", name);
        metadata.insert("namespace", set.namespace());
        if !matched.is_empty() {
            let labels = metadata.object_entry("labels");
            for (key, value) in matched.iter() {
                labels.insert(key, value.clone());
            }
        }
        claim
    });
    claims.collect()
}

/// A pod of a set's template with an ordinal.
pub(super) fn new_pod(set: &Value, ordinal: i64, revision: &str) -> Value {
    let mut pod = pods::from_template(meta::template(set), set, &STATEFUL_SETS);
    let name = format!("{}-{ordinal}", set.name());
    pod.metadata_mut().insert("name", name.as_str());
    set_identity(set, &mut pod, ordinal);
    pod.set_at(&["spec", "hostname"], name.into());
    match meta::spec(set).text("serviceName") {
        "" => drop(pod.remove_at(&["spec", "subdomain"])),
        service => pod.set_at(&["spec", "subdomain"], service.into()),
    }
    set_storage(set, &mut pod, ordinal);
    pod.metadata_mut().object_entry("labels").insert(revisions::POD_REVISION, revision);
    pod
}

/// The name of a pod's revision; empty where there is none.
pub(super) fn revision(pod: &Value) -> &str {
    meta::label(pod, revisions::POD_REVISION)
}

/// Whether a pod has the labels of its ordinal.
pub(super) fn has_identity(set: &Value, pod: &Value) -> bool {
    parent_and_ordinal(pod.name()).is_some_and(|(parent, ordinal)| {
        parent == set.name() && pod.name() == format!("{parent}-{ordinal}") && meta::label(pod, POD_NAME) == pod.name()
    })
}

/// Gives a pod the labels of its ordinal.
pub(super) fn set_identity(set: &Value, pod: &mut Value, ordinal: i64) {
    let name = pod.name().to_owned();
    let metadata = pod.metadata_mut();
    metadata.insert("namespace", set.namespace());
    let labels = metadata.object_entry("labels");
    labels.insert(POD_NAME, name);
    labels.insert(POD_INDEX, ordinal.to_string());
}

/// Whether a pod's volumes are its claims.
pub(super) fn has_storage(set: &Value, pod: &Value) -> bool {
    let Some(ordinal) = ordinal(pod) else { return false };
    let volumes = meta::spec(pod).list("volumes");
    claim_templates(set).iter().all(|template| {
        let volume = volumes.iter().rev().find(|v| v.text("name") == template.name());
        volume.is_some_and(|v| v.sub("persistentVolumeClaim").text("claimName") == claim_name(set, template, ordinal))
    })
}

/// Makes a pod's claims its volumes; other volumes of their names give way.
pub(super) fn set_storage(set: &Value, pod: &mut Value, ordinal: i64) {
    let templates = claim_templates(set);
    if templates.is_empty() {
        return;
    }
    let mut volumes: Vec<Value> = Vec::new();
    for template in templates {
        let source = map! { "claimName" => claim_name(set, template, ordinal) };
        volumes.push(map! { "name" => template.name(), "persistentVolumeClaim" => source }.into());
    }
    let others = meta::spec(pod).list("volumes").iter();
    volumes.extend(others.filter(|v| templates.iter().all(|t| t.name() != v.text("name"))).cloned());
    pod.set_at(&["spec", "volumes"], volumes.into());
}

/// Whether a pod runs and is ready.
pub(super) fn is_running_and_ready(pod: &Value) -> bool {
    pods::phase(pod) == "Running" && pods::is_ready(pod)
}

/// Whether a pod runs and has been ready long enough.
pub(super) fn is_running_and_available(set: &Value, pod: &Value, now: Timestamp) -> bool {
    pods::phase(pod) == "Running" && pods::is_available(pod, meta::min_ready_seconds(set), now)
}

/// Whether a pod runs, is ready, and is to stay.
pub(super) fn is_healthy(pod: &Value) -> bool {
    is_running_and_ready(pod) && !meta::is_deleting(pod)
}

/// Which of a set's two templates a new pod with this ordinal has: the current one (else the updated).
pub(super) fn is_current(set: &Value, ordinal: i64) -> bool {
    let strategy = meta::spec(set).sub("updateStrategy");
    match partition(set) {
        Some(partition) => ordinal < start(set).saturating_add(partition),
        None => {
            strategy.text("type") == "RollingUpdate"
                && ordinal < start(set).saturating_add(meta::status(set).int("currentReplicas"))
        }
    }
}

/// From which place on pods are updated; nothing where there is no such setting.
pub(super) fn partition(set: &Value) -> Option<i64> {
    let rolling = meta::spec(set).sub("updateStrategy").get("rollingUpdate").filter(|r| !r.is_null())?;
    Some(rolling.int("partition").max(0))
}

/// The labels of a set's template.
pub(super) fn template_labels(set: &Value) -> &Map {
    meta::template(set).sub("metadata").members("labels")
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    fn set() -> Value {
        value(
            r#"{"metadata":{"name":"db","namespace":"n","uid":"u"},"spec":{"replicas":3,"serviceName":"svc",
            "selector":{"matchLabels":{"app":"db"}},
            "template":{"metadata":{"labels":{"app":"db"}},"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"x"}]}},
            "volumeClaimTemplates":[{"metadata":{"name":"data","labels":{"l":"1"}},"spec":{"s":1}}]}}"#,
        )
    }

    #[test]
    fn names_tell_ordinals() {
        for (name, want) in [
            ("db-0", Some(("db", 0))),
            ("a-b-12", Some(("a-b", 12))),
            ("db", None),
            ("db-", None),
            ("db-x", None),
            ("db-+1", None),
            ("db-99999999999", None),
        ] {
            assert_eq!(parent_and_ordinal(name), want, "{name}");
        }
    }

    #[test]
    fn pods_have_names_labels_and_claims() {
        let pod = new_pod(&set(), 2, "db-r");
        assert_eq!((pod.name(), revision(&pod)), ("db-2", "db-r"));
        assert!(has_identity(&set(), &pod) && has_storage(&set(), &pod) && is_member(&set(), &pod));
        let want = r#"{"hostname":"db-2","subdomain":"svc",
            "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-db-2"}},{"name":"x"}]}"#;
        assert_eq!(meta::spec(&pod), &value(want));
        let mut other = pod.clone();
        other.set_at(&["spec", "volumes"], Value::Null);
        assert!(!has_storage(&set(), &other));
        set_storage(&set(), &mut other, 2);
        assert!(has_storage(&set(), &other));
    }

    #[test]
    fn claims_take_the_selectors_labels() {
        let want = r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data-db-1","namespace":"n",
            "labels":{"l":"1","app":"db"}},"spec":{"s":1}}"#;
        assert_eq!(claims(&set(), 1), [value(want)]);
    }

    #[test]
    fn partition_and_progress_choose_the_template() {
        let with = |strategy: &str| {
            value(&format!(
                r#"{{"spec":{{"ordinals":{{"start":5}},"updateStrategy":{strategy}}},"status":{{"currentReplicas":2}}}}"#
            ))
        };
        let rolling = with(r#"{"type":"RollingUpdate"}"#);
        assert!(is_current(&rolling, 6) && !is_current(&rolling, 7));
        let partitioned = with(r#"{"type":"RollingUpdate","rollingUpdate":{"partition":1}}"#);
        assert!(is_current(&partitioned, 5) && !is_current(&partitioned, 6));
        assert!(!is_current(&with(r#"{"type":"OnDelete"}"#), 5));
    }
}
