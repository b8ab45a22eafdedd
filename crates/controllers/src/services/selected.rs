//! Which Services a change of a pod concerns.

use super::address;
use crate::pods;
use client::{Cache, Change};
use kinds::read::Read;
use object::Value;

/// The keys of the Services that select a changed pod, before or after, if the change is of interest to them.
pub fn concerned(change: &Change, services: &Cache) -> Vec<String> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let selects = |service: &Value, pod: Option<&Value>| {
        pod.is_some_and(|pod| address::selector(service).is_some_and(|s| address::selects(s, pod)))
    };
    let (moved, relabelled) = match (old, new) {
        (Some(old), Some(new)) => (is_moved(old, new), labels(old) != labels(new)),
        _ => (true, false),
    };
    if !moved && !relabelled {
        return Vec::new();
    }
    let all = services.in_namespace(change.object().namespace());
    let concerned = all.iter().filter(|service| {
        let (before, after) = (selects(service, old), selects(service, new));
        if moved { before || after } else { before != after }
    });
    concerned.map(|service| client::cache::key(service)).collect()
}

fn labels(pod: &Value) -> &object::Map {
    pod.sub("metadata").members("labels")
}

/// Whether a pod has changed as an endpoint.
fn is_moved(old: &Value, new: &Value) -> bool {
    let node = |pod: &Value| pod.sub("spec").text("nodeName").to_owned();
    pods::is_deleting(old) != pods::is_deleting(new)
        || pods::is_ready(old) != pods::is_ready(new)
        || pods::is_terminal(old) != pods::is_terminal(new)
        || address::addresses(old) != address::addresses(new)
        || node(old) != node(new)
}
