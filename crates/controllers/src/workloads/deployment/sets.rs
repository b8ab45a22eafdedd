//! The ReplicaSet that a Deployment makes for a template.

use super::super::{hash, meta};
use super::{numbers, revision};
use client::resources::DEPLOYMENTS;
use kinds::read::Read;
use object::{Map, Value, map};
use std::sync::Arc;

/// The longest name that an object may have.
const LONGEST_NAME: usize = 253;

/// The set for the Deployment's template, beside these old ones.
pub(super) fn for_template(deployment: &Value, old: &[Arc<Value>], number: i64) -> Value {
    let collisions = meta::status(deployment).opt_int("collisionCount");
    let hash = hash::of_template(meta::template(deployment), collisions);
    let mut template = meta::template(deployment).clone();
    let mut labels: Map = template.sub("metadata").members("labels").clone();
    labels.insert(revision::HASH, hash.as_str());
    template.set_at(&["metadata", "labels"], labels.clone().into());
    let mut selector = meta::spec(deployment).sub("selector").clone();
    selector.object_entry("matchLabels").insert(revision::HASH, hash.as_str());
    let mut spec = map! {
        "replicas" => numbers::of_new_set(deployment, numbers::wanted(old), 0),
        "selector" => selector,
        "template" => template,
    };
    meta::set_count(&mut spec, "minReadySeconds", meta::min_ready_seconds(deployment));
    let metadata = map! {
        "name" => name(deployment.name(), &hash),
        "namespace" => deployment.namespace(),
        "labels" => labels,
        "ownerReferences" => vec![meta::controlled_by(deployment, &DEPLOYMENTS)],
    };
    let mut set = map! {
        "apiVersion" => "apps/v1", "kind" => "ReplicaSet", "metadata" => metadata, "spec" => spec,
    }
    .into();
    revision::annotate(deployment, &mut set, number, false);
    set
}

/// The name of a set: the Deployment's, shortened if need be, and the template's hash.
fn name(deployment: &str, hash: &str) -> String {
    let longest = LONGEST_NAME.saturating_sub(hash.len() + 1);
    let prefix = deployment.get(..longest).unwrap_or(deployment);
    format!("{prefix}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::tests::value;
    use super::*;

    #[test]
    fn a_set_carries_the_hash_in_name_labels_selector_and_template() {
        let deployment = value(
            r#"{"metadata":{"name":"web","namespace":"n","uid":"u"},"spec":{"replicas":2,"minReadySeconds":5,
            "selector":{"matchLabels":{"a":"b"}},"strategy":{"type":"Recreate"},
            "template":{"metadata":{"labels":{"a":"b"}},"spec":{}}}}"#,
        );
        let set = for_template(&deployment, &[], 3);
        let hash = meta::label(&set, revision::HASH);
        assert_eq!(set.name(), format!("web-{hash}"));
        assert_eq!(set.str_at(&["spec", "selector", "matchLabels", revision::HASH]), Some(hash));
        assert_eq!(set.str_at(&["spec", "template", "metadata", "labels", revision::HASH]), Some(hash));
        assert_eq!((meta::replicas(&set), meta::min_ready_seconds(&set)), (2, 5));
        assert_eq!(revision::of(&set), Some(3));
        assert_eq!(meta::controller_uid(&set), "u");
    }

    #[test]
    fn long_names_are_shortened() {
        let long = "a".repeat(253);
        assert_eq!(name(&long, "0123456789").len(), 253);
        assert_eq!(name("web", "1"), "web-1");
    }
}
