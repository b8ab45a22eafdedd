//! Removes the objects of one kind from a namespace.

use crate::context::Context;
use apiserver::catalogue;
use client::{Api, DeleteParams, Error, ListParams, Resource, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use object::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::Range;

/// How many objects are deleted side by side.
const AT_ONCE: usize = 64;
/// How many seconds are given to what has finalizers (upstream's estimate).
const FINALIZERS: u64 = 15;

/// A kind whose objects live in namespaces.
pub(super) struct Kind {
    resource: Resource,
    /// What the keys of its objects start with.
    prefix: String,
}

/// What is left of a kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    /// How many objects.
    pub(super) count: usize,
    /// How many of them wait for each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// How many seconds they may take.
    pub(super) seconds: u64,
}

impl Kind {
    /// All kinds that the server serves now and whose objects can be deleted, each in its preferred version.
    pub(super) fn all(context: &Context) -> Vec<Kind> {
        let catalogue = context.server().catalogue();
        let mut seen = BTreeSet::new();
        let wanted = |r: &&std::sync::Arc<catalogue::Resource>| r.namespaced && r.verbs.contains(&"delete");
        let first = catalogue.resources().filter(wanted).filter(|r| seen.insert(r.storage.prefix.clone()));
        first.map(|r| Kind { resource: crate::context::resource(r), prefix: r.storage.prefix.clone() }).collect()
    }

    pub(super) fn is_pods(&self) -> bool {
        self.resource.group.is_empty() && self.resource.plural == "pods"
    }

    /// As conditions name it: `configmaps.`, `widgets.example.com`.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }

    /// Whether there is anything of it in a namespace.
    pub(super) async fn has_objects(&self, context: &Context, namespace: &str) -> bool {
        let range = Range::prefix(format!("{}{namespace}/", self.prefix));
        context.server().store().count(&range).await.is_ok_and(|count| count > 0)
    }

    /// Deletes all of it in a namespace; gives what is left.
    pub(super) async fn remove(&self, context: &Context, namespace: &Value) -> Result<Remaining> {
        let api = context.api(&self.resource);
        let name = namespace.name();
        let list = ListParams { metadata_only: !self.is_pods(), ..ListParams::default() };
        let objects = api.list(name, &list).await?.items;
        let grace = if self.is_pods() { graceful(&objects, namespace, context.now()) } else { 0 };
        let names: Vec<String> = objects.iter().filter(|o| needs_deletion(o)).map(|o| o.name().to_owned()).collect();
        drop(objects);
        let deletions = stream::iter(names).map(|object| delete(api.clone(), name.to_owned(), object));
        deletions.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let left = api.list(name, &ListParams { metadata_only: true, ..ListParams::default() }).await?.items;
        self.remaining(name, &left, grace)
    }

    fn remaining(&self, namespace: &str, left: &[Value], grace: u64) -> Result<Remaining> {
        let mut out = Remaining { count: left.len(), seconds: grace, ..Remaining::default() };
        for finalizer in left.iter().flat_map(|object| object.meta_list("finalizers")) {
            *out.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
        if left.is_empty() {
            out.seconds = 0;
        } else if grace == 0 && !out.finalizers.is_empty() {
            out.seconds = FINALIZERS;
        } else if grace == 0 {
            let Resource { group, version, plural, .. } = &self.resource;
            return Err(Error::Content(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            )));
        }
        Ok(out)
    }
}

/// Whether a deletion would change anything: what is on its way and has no grace left waits for its finalizers, unless
/// they are the collector's, which a deletion in the background takes off.
fn needs_deletion(object: &Value) -> bool {
    let going = !object.meta_str("deletionTimestamp").is_empty();
    let grace = object.metadata().and_then(|m| m.get("deletionGracePeriodSeconds")).and_then(Value::as_int);
    let waits = || object.meta_list("finalizers").iter().any(|f| matches!(*f, "orphan" | "foregroundDeletion"));
    !going || grace != Some(0) || waits()
}

async fn delete(api: Api, namespace: String, name: String) -> Result<()> {
    match api.delete(&namespace, &name, &DeleteParams::background()).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// How many seconds the pods of a namespace may still take to end (upstream's `estimateGracefulTerminationForPods`).
fn graceful(pods: &[Value], namespace: &Value, now: jiff::Timestamp) -> u64 {
    let ended = |pod: &Value| matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    let grace = |pod: &Value| pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_int);
    let longest = pods.iter().filter(|pod| !ended(pod)).filter_map(grace).max().unwrap_or(0);
    let deleted = namespace.meta_str("deletionTimestamp").parse::<jiff::Timestamp>().unwrap_or(now);
    let over = now.duration_since(deleted).as_secs();
    u64::try_from(longest - over).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::resources::CONFIG_MAPS;
    use object::json;

    fn object(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_left_is_counted_by_finalizers() {
        let kind = Kind { resource: CONFIG_MAPS, prefix: String::new() };
        let left = [
            object(r#"{"metadata":{"finalizers":["a","b"]}}"#),
            object(r#"{"metadata":{"finalizers":["a"]}}"#),
            object("{}"),
        ];
        let found = kind.remaining("n", &left, 0).unwrap();
        assert_eq!((found.count, found.seconds), (3, 15));
        assert_eq!(found.finalizers.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(kind.remaining("n", &[], 30).unwrap(), Remaining::default());
        assert!(kind.remaining("n", &left[2..], 0).is_err());
    }

    #[test]
    fn pods_take_as_long_as_the_slowest() {
        let pods = [
            object(r#"{"spec":{"terminationGracePeriodSeconds":30}}"#),
            object(r#"{"spec":{"terminationGracePeriodSeconds":90},"status":{"phase":"Failed"}}"#),
        ];
        let namespace = object(r#"{"metadata":{"deletionTimestamp":"1970-01-01T00:00:10Z"}}"#);
        for (now, expected) in [(10, 30), (20, 20), (100, 0)] {
            assert_eq!(graceful(&pods, &namespace, jiff::Timestamp::from_second(now).unwrap()), expected);
        }
    }
}
