//! Which owners an object in a cache is for.

use super::expectations::Expectations;
use super::meta;
use crate::{Wiring, controller_of};
use client::{Cache, Change, Resource};
use kinds::read::Read;
use object::Value;
use object::selector::Labels;
use std::sync::Arc;

/// The index of objects that nobody controls, by namespace.
const ORPHANS: &str = "orphans";
/// The index of objects by the uid of their controller.
const CONTROLLED: &str = "controlled";

/// The selector of an owner; nothing where there is none or it cannot be read.
pub(crate) fn selector(owner: &Value) -> Option<Labels> {
    let selector = meta::spec(owner).get("selector").filter(|s| s.as_object().is_some())?;
    Labels::from_object(selector).ok()
}

/// Whether a selector matches everything, as an empty one does.
pub(crate) fn selects_all(owner: &Value) -> bool {
    selector(owner).is_some_and(|s| s.is_empty())
}

/// How a selector is read from an owner.
pub(crate) type ReadSelector = fn(&Value) -> Option<Labels>;

/// Keeps the indexes that [`candidates`] and [`controlled`] read.
pub(crate) fn index(cache: &Cache) {
    cache.index(ORPHANS, |object| match controller_of(object) {
        None => vec![object.namespace().to_owned()],
        Some(_) => Vec::new(),
    });
    cache.index(CONTROLLED, |object| match meta::controller_uid(object) {
        "" => Vec::new(),
        uid => vec![uid.to_owned()],
    });
}

/// The objects that an owner controls.
pub(crate) fn controlled(cache: &Cache, owner: &Value) -> Vec<Arc<Value>> {
    controlled_by_uid(cache, meta::uid(owner))
}

/// The objects that the owner with this uid controls.
pub(crate) fn controlled_by_uid(cache: &Cache, uid: &str) -> Vec<Arc<Value>> {
    if uid.is_empty() { Vec::new() } else { cache.indexed(CONTROLLED, uid) }
}

/// The objects that an owner may claim: those that it controls, and those of its namespace that nobody does.
pub(crate) fn candidates(cache: &Cache, owner: &Value) -> Vec<Arc<Value>> {
    let mut found = controlled(cache, owner);
    found.extend(cache.indexed(ORPHANS, owner.namespace()));
    found
}

/// Every change of an object means work for its controller, before and after; that of an orphan for every owner whose
/// selector matches it. Pods that come and go are told to the expectations, where there are some.
pub(crate) fn watch(
    wiring: &mut Wiring,
    objects: &Arc<Cache>,
    owners: &Arc<Cache>,
    resource: &Resource,
    read_selector: ReadSelector,
    expectations: Option<Arc<Expectations>>,
) {
    index(objects);
    let kin = Kin { owners: owners.clone(), resource: resource.clone(), read_selector };
    wiring.on(objects, move |change, queue| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        if let Some(expectations) = &expectations {
            kin.tell(change, expectations);
        }
        let before = old.and_then(|o| kin.controller(o));
        let after = new.and_then(|o| kin.controller(o));
        if let Some(key) = &before {
            queue.add(key.clone());
        }
        if let Some(key) = after.filter(|key| before.as_ref() != Some(key)) {
            queue.add(key);
        }
        // An orphan is of interest when it comes, and when its labels or its owner changed.
        if let Some(new) = new.filter(|o| controller_of(o).is_none() && !meta::is_deleting(o)) {
            let same = |old: &Value| meta::labels(old) == meta::labels(new) && controller_of(old).is_none();
            if !old.is_some_and(same) {
                kin.matching(new).into_iter().for_each(|key| queue.add(key));
            }
        }
    });
}

/// The owners of a kind.
struct Kin {
    owners: Arc<Cache>,
    resource: Resource,
    read_selector: ReadSelector,
}

impl Kin {
    /// The key of the owner that controls an object, if it is of this kind and there.
    fn controller(&self, object: &Value) -> Option<String> {
        let reference = controller_of(object)?;
        let group = reference.text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        if reference.text("kind") != self.resource.kind || group != self.resource.group {
            return None;
        }
        let owner = self.owners.get(object.namespace(), reference.text("name"))?;
        (meta::uid(&owner) == reference.text("uid")).then(|| client::cache::key(&owner))
    }

    /// The keys of the owners that would adopt an orphan.
    fn matching(&self, orphan: &Value) -> Vec<String> {
        if meta::labels(orphan).is_empty() {
            return Vec::new();
        }
        let owners = self.owners.in_namespace(orphan.namespace());
        let matches =
            |owner: &Arc<Value>| (self.read_selector)(owner).is_some_and(|s| !s.is_empty() && s.matches_object(orphan));
        owners.into_iter().filter(matches).map(|owner| client::cache::key(&owner)).collect()
    }

    fn tell(&self, change: &Change, expectations: &Expectations) {
        let object = change.object();
        let Some(key) = self.controller(object) else { return };
        if change.is_deletion() || meta::is_deleting(object) {
            expectations.deleted(&key, &change.key());
        } else if change.old.is_none() {
            expectations.created(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta::tests::value;
    use super::*;

    fn kin() -> Kin {
        let owner =
            r#"{"metadata":{"namespace":"n","name":"web","uid":"u"},"spec":{"selector":{"matchLabels":{"a":"b"}}}}"#;
        Kin {
            owners: Cache::of(vec![value(owner)]),
            resource: client::resources::REPLICA_SETS,
            read_selector: selector,
        }
    }

    #[test]
    fn a_controller_is_found_by_kind_name_and_uid() {
        let owned = |version: &str, kind: &str, uid: &str| {
            value(&format!(
                r#"{{"metadata":{{"namespace":"n","ownerReferences":[
                {{"apiVersion":"{version}","kind":"{kind}","name":"web","uid":"{uid}","controller":true}}]}}}}"#
            ))
        };
        assert_eq!(kin().controller(&owned("apps/v1", "ReplicaSet", "u")).as_deref(), Some("n/web"));
        for (version, kind, uid) in [("v1", "ReplicaSet", "u"), ("apps/v1", "Job", "u"), ("apps/v1", "ReplicaSet", "v")]
        {
            assert_eq!(kin().controller(&owned(version, kind, uid)), None);
        }
    }

    #[test]
    fn orphans_are_for_owners_whose_selector_matches() {
        let orphan = |labels: &str| value(&format!(r#"{{"metadata":{{"namespace":"n","labels":{labels}}}}}"#));
        assert_eq!(kin().matching(&orphan(r#"{"a":"b"}"#)), ["n/web"]);
        assert!(kin().matching(&orphan(r#"{"a":"c"}"#)).is_empty());
        assert!(kin().matching(&orphan("{}")).is_empty());
    }

    #[test]
    fn candidates_are_owned_objects_and_orphans() {
        let cache = Cache::of(vec![
            value(r#"{"metadata":{"namespace":"n","name":"mine","ownerReferences":[{"uid":"u","controller":true}]}}"#),
            value(
                r#"{"metadata":{"namespace":"n","name":"theirs","ownerReferences":[{"uid":"v","controller":true}]}}"#,
            ),
            value(r#"{"metadata":{"namespace":"n","name":"orphan","ownerReferences":[{"uid":"u"}]}}"#),
            value(r#"{"metadata":{"namespace":"m","name":"elsewhere"}}"#),
        ]);
        index(&cache);
        let owner = value(r#"{"metadata":{"namespace":"n","uid":"u"}}"#);
        let names: Vec<String> = candidates(&cache, &owner).iter().map(|o| o.name().to_owned()).collect();
        assert_eq!(names, ["mine", "orphan"]);
    }
}
