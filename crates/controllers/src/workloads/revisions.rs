//! ControllerRevisions: what a set's template was.

use super::{hash, meta};
use client::{Api, Resource, Result};
use kinds::read::Read;
use object::{Map, Value, map};
use std::cmp::Ordering;
use std::sync::Arc;

/// The label with a revision's hash.
pub(crate) const HASH: &str = "controller.kubernetes.io/hash";
/// The label of a pod that names its revision.
pub(crate) const POD_REVISION: &str = "controller-revision-hash";
/// The longest part of an owner's name in that of its revision.
const LONGEST_PREFIX: usize = 223;

/// What a revision keeps of a set: a patch that brings the template back.
pub(crate) fn data(set: &Value) -> Value {
    let mut template = meta::template(set).clone();
    template.set_at(&["$patch"], "replace".into());
    map! { "spec" => map! { "template" => template } }.into()
}

/// The set with the template of a revision.
pub(crate) fn restore(set: &Value, revision: &Value) -> Value {
    let mut template = revision.sub("data").sub("spec").sub("template").clone();
    template.remove_at(&["$patch"]);
    let mut set = set.clone();
    set.set_at(&["spec", "template"], template);
    set
}

/// Whether two revisions keep the same.
pub(crate) fn is_equal(a: &Value, b: &Value) -> bool {
    a.sub("data") == b.sub("data")
}

/// The number of a revision.
pub(crate) fn number(revision: &Value) -> i64 {
    revision.int("revision")
}

/// Older revisions first.
pub(crate) fn by_number(a: &Value, b: &Value) -> Ordering {
    number(a).cmp(&number(b)).then_with(|| meta::by_age(a, b))
}

/// A revision of an owner, without name and hash.
pub(crate) fn new(owner: &Value, resource: &Resource, labels: Map, data: Value, number: i64) -> Value {
    let mut metadata = map! {
        "namespace" => owner.namespace(),
        "labels" => labels,
        "ownerReferences" => vec![meta::controlled_by(owner, resource)],
    };
    if !meta::annotations(owner).is_empty() {
        metadata.insert("annotations", meta::annotations(owner).clone());
    }
    let revision = map! {
        "apiVersion" => "apps/v1", "kind" => "ControllerRevision",
        "metadata" => metadata, "data" => data, "revision" => number,
    };
    revision.into()
}

/// The name of an owner's revision.
pub(crate) fn name(owner: &str, hash: &str) -> String {
    format!("{}-{hash}", owner.get(..LONGEST_PREFIX).unwrap_or(owner))
}

/// Creates a revision under the name that its hash gives. Another revision of that name counts as a collision and makes
/// another name. Gives the revision, and how many collisions there are.
pub(crate) async fn create(api: &Api, owner: &Value, mut revision: Value, mut collisions: i64) -> Result<(Value, i64)> {
    let first = hash::of_revision(revision.sub("data"), Some(collisions));
    revision.metadata_mut().object_entry("labels").insert(HASH, first);
    loop {
        let hash = hash::of_revision(revision.sub("data"), Some(collisions));
        let name = name(owner.name(), &hash);
        revision.metadata_mut().insert("name", name.as_str());
        match api.create(owner.namespace(), &revision).await {
            Err(error) if error.is_already_exists() => {
                let there = api.get(owner.namespace(), &name).await?;
                if is_equal(&there, &revision) {
                    return Ok((there, collisions));
                }
                collisions = collisions.wrapping_add(1);
            }
            outcome => return outcome.map(|created| (created, collisions)),
        }
    }
}

/// Gives a revision another number.
pub(crate) async fn renumber(api: &Api, revision: &Value, new: i64) -> Result<Arc<Value>> {
    let mut revision = revision.clone();
    for _ in 0..5 {
        if number(&revision) == new {
            break;
        }
        revision.set_at(&["revision"], new.into());
        match api.update(&revision).await {
            Err(error) if error.is_conflict() => revision = api.get(revision.namespace(), revision.name()).await?,
            outcome => return outcome.map(Arc::new),
        }
    }
    Ok(Arc::new(revision))
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    #[test]
    fn a_revision_brings_the_template_back() {
        let set = value(r#"{"spec":{"replicas":2,"template":{"spec":{"a":1}}}}"#);
        let revision: Value = map! { "data" => data(&set) }.into();
        assert_eq!(revision.sub("data"), &value(r#"{"spec":{"template":{"$patch":"replace","spec":{"a":1}}}}"#));
        let other = value(r#"{"spec":{"replicas":3,"template":{"spec":{"a":2}}}}"#);
        assert_eq!(restore(&other, &revision), value(r#"{"spec":{"replicas":3,"template":{"spec":{"a":1}}}}"#));
    }

    #[test]
    fn revisions_are_ordered_by_number_then_age() {
        let revision = |n: i64, name: &str| value(&format!(r#"{{"revision":{n},"metadata":{{"name":"{name}"}}}}"#));
        assert_eq!(by_number(&revision(1, "z"), &revision(2, "a")), Ordering::Less);
        assert_eq!(by_number(&revision(2, "b"), &revision(2, "a")), Ordering::Greater);
    }

    #[test]
    fn the_names_of_long_owners_are_shortened() {
        assert_eq!(name("db", "1"), "db-1");
        assert_eq!(name(&"a".repeat(253), "1").len(), 225);
    }
}
