//! Namespaces: the ones that every cluster has, and the end of those that are deleted.

use super::set_condition;
use crate::Server;
use crate::admission::NAMESPACES;
use crate::answer::Failure;
use crate::catalogue::Resource;
use crate::handlers::{time, uid};
use crate::registry::{self, Stored};
use jiff::Timestamp;
use object::{Map, Value, map};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Expect, ListOptions, Range, Write, WriteError};

/// The namespaces that every cluster has.
const INITIAL: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The finalizer in a namespace's spec: its content goes first.
const FINALIZER: &str = "kubernetes";

/// Whether the resource is that of namespaces.
pub(crate) fn is_namespaces(resource: &Resource) -> bool {
    resource.plural == "namespaces" && resource.group.is_empty()
}

/// Makes the namespaces that every cluster has, and goes on with those that were going away.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Failure> {
    let catalogue = server.catalogue();
    let fingerprint = catalogue.resource("", "v1", "namespaces").map_or(1, |r| r.strategy.fingerprint());
    for name in INITIAL {
        let object = Value::Object(map! {
            "apiVersion" => "v1",
            "kind" => "Namespace",
            "metadata" => map! {
                "name" => name, "uid" => uid()?, "creationTimestamp" => time((server.options.clock)()),
                "labels" => map! { "kubernetes.io/metadata.name" => name },
            },
            "spec" => map! { "finalizers" => vec![FINALIZER] },
            "status" => map! { "phase" => "Active" },
        });
        let stored = Stored::new(&object, fingerprint);
        let write = Write::put(format!("{NAMESPACES}{name}"), Expect::Absent, stored.raw().clone());
        match server.store.write(write).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => {}
            Err(error) => return Err(registry::write_failure(&error)),
        }
    }
    let page = server.store.list(&Range::prefix(NAMESPACES), ListOptions::default()).await;
    for entry in page.map_err(registry::read_failure)?.entries {
        changed(server, &entry.key).await;
    }
    Ok(())
}

/// A namespace marked for deletion; nothing when it can go at once.
pub(crate) fn mark_deleted(namespace: &Value, now: Timestamp) -> Option<Value> {
    let going = !namespace.meta_str("deletionTimestamp").is_empty();
    if !going {
        let mut out = namespace.clone();
        out.metadata_mut().insert("deletionTimestamp", time(now));
        out.set_at(&["status", "phase"], Value::from("Terminating"));
        return Some(out);
    }
    let held = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    if held || !namespace.meta_list("finalizers").is_empty() { Some(namespace.clone()) } else { None }
}

/// A namespace was written.
pub(crate) async fn changed(server: &Arc<Server>, key: &str) {
    let name = key.strip_prefix(NAMESPACES).unwrap_or(key);
    let entry = server.store.get(key, None).await.ok().flatten();
    let going = entry
        .and_then(|e| Stored::read(e.value))
        .is_some_and(|s| s.metadata().get("deletionTimestamp").is_some_and(|t| !t.is_null()));
    if !going {
        server.terminating.lock().remove(name);
        return;
    }
    server.terminating.lock().insert(name.to_owned());
    empty(server, name);
}

/// An object was written; if its namespace is going away, that may be the last one.
pub(crate) fn object_changed(server: &Arc<Server>, resource: &Resource, key: &str) {
    let terminating = server.terminating.lock();
    if terminating.is_empty() {
        return;
    }
    let (namespace, _) = registry::place(resource, key);
    let going = terminating.contains(namespace);
    drop(terminating);
    if going {
        empty(server, namespace);
    }
}

/// Removes what is in a namespace, then the namespace; in the background.
fn empty(server: &Arc<Server>, name: &str) {
    if !server.options.namespace_controller {
        return;
    }
    let mark = format!("namespace {name}");
    if !server.emptying.lock().insert(mark.clone()) {
        return;
    }
    let (server, name) = (server.clone(), name.to_owned());
    tokio::spawn(async move {
        // What is written while this runs is looked at again: the mark goes first.
        server.emptying.lock().remove(&mark);
        if let Err(failure) = remove_content(&server, &name).await {
            tracing::error!(?failure, name, "a namespace cannot be emptied");
        }
    });
}

/// What is left in a namespace.
#[derive(Default)]
struct Left {
    /// How many objects of each resource.
    objects: BTreeMap<String, usize>,
    /// How many objects wait for each finalizer.
    finalizers: BTreeMap<String, usize>,
}

async fn remove_content(server: &Arc<Server>, name: &str) -> Result<(), Failure> {
    let left = remove_objects(server, name).await?;
    let key = format!("{NAMESPACES}{name}");
    let now = time((server.options.clock)());
    let mut gone = false;
    server
        .rewrite(&key, |namespace| {
            if namespace.meta_str("deletionTimestamp").is_empty() {
                return None;
            }
            let mut new = namespace.clone();
            let conditions = namespace.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            new.set_at(&["status", "conditions"], Value::Array(tell(conditions.to_vec(), &left, &now)));
            if left.objects.is_empty() {
                let held = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
                let rest: Vec<Value> = held.iter().filter(|f| f.as_str() != Some(FINALIZER)).cloned().collect();
                gone = rest.is_empty() && namespace.meta_list("finalizers").is_empty();
                if rest.is_empty() {
                    new.set_at(&["spec"], Value::Object(Map::new()));
                } else {
                    new.set_at(&["spec", "finalizers"], Value::Array(rest));
                }
            }
            (new != *namespace).then_some(new)
        })
        .await?;
    if gone {
        let write = Write::delete(key.as_str(), Expect::Any);
        match server.store.write(write).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => {}
            Err(error) => return Err(registry::write_failure(&error)),
        }
        server.terminating.lock().remove(name);
    }
    Ok(())
}

async fn remove_objects(server: &Arc<Server>, name: &str) -> Result<Left, Failure> {
    let catalogue = server.catalogue();
    let mut left = Left::default();
    let stored = catalogue.resources().filter(|r| r.namespaced && r.verbs.contains(&"delete"));
    let places: BTreeMap<&str, &Arc<Resource>> = stored.map(|r| (r.storage.prefix.as_str(), r)).collect();
    for (prefix, resource) in places {
        let range = Range::prefix(format!("{prefix}{name}/"));
        let page = server.store.list(&range, ListOptions::default()).await.map_err(registry::read_failure)?;
        for entry in page.entries {
            if server.drop_or_mark(&entry.key).await? {
                continue;
            }
            *left.objects.entry(resource.qualified().to_string()).or_default() += 1;
            let finalizers = registry::stored(&entry)?.metadata();
            let finalizers = finalizers.get("finalizers").and_then(Value::as_array).unwrap_or_default();
            for finalizer in finalizers.iter().filter_map(Value::as_str) {
                *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    Ok(left)
}

/// The conditions of a namespace that is going away.
fn tell(mut conditions: Vec<Value>, left: &Left, now: &str) -> Vec<Value> {
    let mut set = |ty: &str, failed: bool, reason: &str, message: &str| {
        set_condition(&mut conditions, ty, if failed { "True" } else { "False" }, reason, message, now);
    };
    set("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", "All resources successfully discovered");
    set(
        "NamespaceDeletionGroupVersionParsingFailure",
        false,
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    );
    set(
        "NamespaceDeletionContentFailure",
        false,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    );
    if left.objects.is_empty() {
        set("NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed");
        set(
            "NamespaceFinalizersRemaining",
            false,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        );
        return conditions;
    }
    let objects: Vec<String> =
        left.objects.iter().map(|(resource, count)| format!("{resource} has {count} resource instances")).collect();
    let message = format!("Some resources are remaining: {}", objects.join(", "));
    set("NamespaceContentRemaining", true, "SomeResourcesRemain", &message);
    let finalizers: Vec<String> =
        left.finalizers.iter().map(|(f, count)| format!("{f} in {count} resource instances")).collect();
    if finalizers.is_empty() {
        set(
            "NamespaceFinalizersRemaining",
            false,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        );
    } else {
        let message = format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
        set("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &message);
    }
    conditions
}
