//! Namespaces: the ones that every cluster has, and what deleting one does to it at once.

use crate::Server;
use crate::admission::NAMESPACES;
use crate::answer::Failure;
use crate::handlers::{time, uid};
use crate::registry::Stored;
use jiff::Timestamp;
use object::{Value, map};
use std::sync::Arc;
use store::{Expect, Write};

/// The namespaces that every cluster has.
const INITIAL: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The finalizer in a namespace's spec: its content goes first.
const FINALIZER: &str = "kubernetes";

/// Makes the namespaces that every cluster has.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Failure> {
    let catalogue = server.catalogue();
    let fingerprint = catalogue.resource("", "v1", "namespaces").map_or(1, |r| r.strategy.fingerprint());
    let mut writes = Vec::new();
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
        writes.push(Write::put(format!("{NAMESPACES}{name}"), Expect::Absent, stored.raw().clone()));
    }
    server.write_first(writes).await
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
