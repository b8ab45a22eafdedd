//! Fields of pods whose features are off in Kubernetes 1.33: a server drops them.

use super::containers::all_containers;
use crate::read::{Read, list_mut, object_mut};
use object::{Map, Value};

/// Drops from a pod or an object with a template what no feature stands for, unless `old` has it in use already; `old`
/// is null for a creation.
pub(crate) fn drop_disabled(object: &mut Value, old: &Value) {
    let before = old.sub("spec").clone();
    if let Some(spec) = object_mut(object, &["spec"]) {
        drop_from_spec(spec, &before);
    }
}

fn each_container(spec: &mut Value, mut change: impl FnMut(&mut Value)) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        list_mut(spec, list).iter_mut().for_each(&mut change);
    }
}

fn drop_from_spec(spec: &mut Value, old: &Value) {
    let Some(members) = spec.as_object_mut() else { return };
    // Resources of whole pods.
    if !old.has("resources") {
        members.remove("resources");
    }
    // Dynamic allocation of resources.
    if old.list("resourceClaims").is_empty() {
        members.remove("resourceClaims");
        each_container(spec, |container| {
            if container.sub("resources").has("claims") {
                container.remove_at(&["resources", "claims"]);
            }
        });
    }
    // Signals that stop containers.
    if !all_containers(old).any(|(_, _, c)| c.sub("lifecycle").has("stopSignal")) {
        each_container(spec, |container| {
            if container.remove_at(&["lifecycle", "stopSignal"]).is_some()
                && container.sub("lifecycle").as_object().is_some_and(Map::is_empty)
            {
                container.remove_at(&["lifecycle"]);
            }
        });
    }
    trust_bundles(spec, old);
    images(spec, old);
}

/// Drops from the status of a pod what no feature stands for, unless the old pod has it in use.
pub(crate) fn drop_disabled_status(object: &mut Value, old: &Value) {
    const OBSERVED: &str = "observedGeneration";
    let before = old.sub("status");
    let observes = before.int(OBSERVED) != 0 || before.list("conditions").iter().any(|c| c.int(OBSERVED) != 0);
    let claims = !old.sub("spec").list("resourceClaims").is_empty();
    let Some(status) = object_mut(object, &["status"]) else { return };
    if let Some(members) = status.as_object_mut() {
        if !claims {
            members.remove("resourceClaimStatuses");
        }
        if !observes {
            members.remove(OBSERVED);
        }
    }
    for condition in list_mut(status, "conditions").iter_mut().filter(|_| !observes) {
        condition.remove_at(&[OBSERVED]);
    }
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in list_mut(status, list) {
            container.remove_at(&["allocatedResourcesStatus"]);
        }
    }
}

/// Bundles of certificates in projected volumes.
fn trust_bundles(spec: &mut Value, old: &Value) {
    let has = |volume: &Value| volume.sub("projected").list("sources").iter().any(|s| s.has("clusterTrustBundle"));
    if old.list("volumes").iter().any(has) {
        return;
    }
    for volume in list_mut(spec, "volumes") {
        let Some(projected) = object_mut(volume, &["projected"]) else { continue };
        for source in list_mut(projected, "sources") {
            if source.has("clusterTrustBundle") {
                source.remove_at(&["clusterTrustBundle"]);
            }
        }
    }
}

/// Volumes that are images, and where they are mounted.
fn images(spec: &mut Value, old: &Value) {
    if old.list("volumes").iter().any(|v| v.has("image")) || !spec.list("volumes").iter().any(|v| v.has("image")) {
        return;
    }
    let (images, kept): (Vec<Value>, Vec<Value>) =
        spec.list("volumes").iter().cloned().partition(|volume| volume.has("image"));
    put_list(spec, "volumes", kept);
    let is_image = |mount: &Value| images.iter().any(|image| image.text("name") == mount.text("name"));
    each_container(spec, |container| {
        if container.list("volumeMounts").iter().any(is_image) {
            let kept = container.list("volumeMounts").iter().filter(|m| !is_image(m)).cloned().collect();
            put_list(container, "volumeMounts", kept);
        }
    });
}

fn put_list(object: &mut Value, key: &str, list: Vec<Value>) {
    if list.is_empty() {
        object.remove_at(&[key]);
    } else {
        object.set_at(&[key], list.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn what_a_status_says_of_features_that_are_off_is_dropped() {
        const ALL: &str = r#"{"conditions":[{"observedGeneration":2,"type":"Ready"}],"containerStatuses":[{"allocatedResourcesStatus":[],"name":"c"}],"observedGeneration":2,"resourceClaimStatuses":[{"name":"a"}]}"#;
        for (old, wanted) in [
            ("{}", r#"{"conditions":[{"type":"Ready"}],"containerStatuses":[{"name":"c"}]}"#),
            (
                r#"{"spec":{"resourceClaims":[{"name":"a"}]},"status":{"conditions":[{"observedGeneration":1}]}}"#,
                r#"{"conditions":[{"observedGeneration":2,"type":"Ready"}],"containerStatuses":[{"name":"c"}],"observedGeneration":2,"resourceClaimStatuses":[{"name":"a"}]}"#,
            ),
        ] {
            let mut object = json::parse(format!(r#"{{"status":{ALL}}}"#).as_bytes()).unwrap();
            drop_disabled_status(&mut object, &json::parse(old.as_bytes()).unwrap());
            assert_eq!(json::to_string(object.sub("status")), wanted);
        }
    }

    #[test]
    fn fields_of_features_that_are_off_are_dropped() {
        for (spec, wanted) in [
            (r#"{"resources":{"limits":{"cpu":"1"}}}"#, "{}"),
            (r#"{"containers":[{"lifecycle":{"stopSignal":"SIGUSR1"}}]}"#, r#"{"containers":[{}]}"#),
            (
                r#"{"containers":[{"resources":{"claims":[{"name":"a"}]}}],"resourceClaims":[{"name":"a"}]}"#,
                r#"{"containers":[{"resources":{}}]}"#,
            ),
            (
                r#"{"containers":[{"volumeMounts":[{"name":"i"},{"name":"v"}]}],"volumes":[{"image":{},"name":"i"},{"name":"v"}]}"#,
                r#"{"containers":[{"volumeMounts":[{"name":"v"}]}],"volumes":[{"name":"v"}]}"#,
            ),
        ] {
            let mut object = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            drop_disabled(&mut object, &Value::Null);
            assert_eq!(json::to_string(object.sub("spec")), wanted);
            let mut again = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            let old = again.clone();
            drop_disabled(&mut again, &old);
            assert_eq!(again, old, "what is in use stays");
        }
    }
}
