//! `namespace-controller`: empties namespaces that are going away, then lets them go.
//!
//! As upstream's: pods first, then everything else; what stays is told in the namespace's conditions. Upstream looks
//! again after a time that it estimates; here what is written in such a namespace is a reason, too.

mod conditions;
mod content;

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use crate::runner::Running;
use crate::writes;
use client::resources::NAMESPACES;
use client::{Api, Cache, Queue, Result, WriteParams};
use conditions::Content;
use content::{Kind, Remaining};
use object::Value;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The finalizer in a namespace's spec, which stands for its content.
const FINALIZER: &str = "kubernetes";
/// How often a write is tried while others write the namespace.
const TRIES: usize = 5;

/// Empties namespaces; the keys are their names.
pub struct Namespaces {
    context: Context,
    api: Api,
    namespaces: Arc<Cache>,
    /// Those that wait for something that is in them.
    waiting: Arc<Mutex<HashSet<String>>>,
    follower: Mutex<Option<Running>>,
    queue: Queue,
}

impl Controller for Namespaces {
    const NAME: &'static str = "namespace-controller";
    const WORKERS: usize = 10;

    fn new(wiring: &mut Wiring) -> Self {
        let namespaces = wiring.cache(&NAMESPACES);
        wiring.on_those(&namespaces, |n| !n.meta_str("deletionTimestamp").is_empty());
        let context = wiring.context().clone();
        Namespaces {
            api: context.api(&NAMESPACES),
            context,
            namespaces,
            waiting: Arc::default(),
            follower: Mutex::default(),
            queue: wiring.queue().clone(),
        }
    }

    async fn sync(&self, name: &str) -> Result<Option<Duration>> {
        let outcome = self.empty(name).await;
        let waits = !matches!(outcome, Ok(None)) && self.namespaces.get("", name).is_some();
        self.follow(name, waits);
        outcome
    }
}

impl Namespaces {
    /// Removes what is in a namespace; gives how long to wait for the rest.
    async fn empty(&self, name: &str) -> Result<Option<Duration>> {
        let Some(namespace) = self.api.find("", name).await? else { return Ok(None) };
        if namespace.meta_str("deletionTimestamp").is_empty() || finalizers(&namespace).is_empty() {
            return Ok(None);
        }
        if namespace.str_at(&["status", "phase"]) != Some("Terminating") {
            self.write(name, "status", |namespace| {
                let mut new = namespace.clone();
                new.set_at(&["status", "phase"], "Terminating".into());
                (new != *namespace).then_some(new)
            })
            .await?;
        }
        let mut content = Content::default();
        // What is written from here on is a reason to look again.
        self.follow(name, true);
        let estimate = self.remove_all(name, &namespace, &mut content).await;
        let now = self.context.now();
        self.write(name, "status", |namespace| content.tell(namespace, now)).await?;
        if let Some(error) = content.into_error() {
            return Err(error);
        }
        if estimate > 0 {
            return Ok(Some(Duration::from_secs(estimate / 2 + 1)));
        }
        self.write(name, "finalize", |namespace| {
            let held = finalizers(namespace);
            let rest: Vec<&str> = held.iter().copied().filter(|f| *f != FINALIZER).collect();
            let mut new = namespace.clone();
            new.set_at(&["spec", "finalizers"], Value::from(rest.clone()));
            (rest.len() != held.len()).then_some(new)
        })
        .await?;
        Ok(None)
    }

    /// Removes the objects of all kinds; gives how many seconds the rest may take.
    async fn remove_all(&self, name: &str, namespace: &Value, content: &mut Content) -> u64 {
        let kinds = Kind::all(&self.context);
        let (pods, others): (Vec<&Kind>, Vec<&Kind>) = kinds.iter().partition(|kind| kind.is_pods());
        let mut estimate = 0;
        for kind in pods {
            let remaining = content.note(kind.remove(&self.context, namespace).await);
            estimate = estimate.max(remaining.seconds);
            if remaining.count > 0 {
                // Nothing else is touched while there are pods.
                return estimate;
            }
        }
        let mut left: Vec<(String, Remaining)> = Vec::new();
        for kind in others.into_iter().filter(|kind| !kind.is_pods()) {
            if !kind.has_objects(&self.context, name).await {
                continue;
            }
            let remaining = content.note(kind.remove(&self.context, namespace).await);
            estimate = estimate.max(remaining.seconds);
            if remaining.count > 0 {
                left.push((kind.shown(), remaining));
            }
        }
        content.left = left;
        estimate
    }

    /// Changes a namespace, as often as it takes; `change` gives nothing to leave it as it is.
    async fn write(&self, name: &str, part: &str, change: impl Fn(&Value) -> Option<Value>) -> Result<()> {
        let mut outcome = Ok(());
        for _ in 0..TRIES {
            let Some(namespace) = self.api.find("", name).await? else { return Ok(()) };
            let Some(new) = change(&namespace) else { return Ok(()) };
            outcome = match self.api.update_with(&new, part, &WriteParams::default()).await {
                Err(error) if error.is_conflict() => Err(error),
                Err(error) if !error.is_not_found() => return Err(error),
                _ => return Ok(()),
            };
        }
        outcome
    }

    /// Begins to follow what is written in a namespace, or ends it. The store is followed only while some namespace
    /// waits.
    fn follow(&self, name: &str, waits: bool) {
        let mut waiting = self.waiting.lock();
        if waits {
            waiting.insert(name.to_owned());
        } else {
            waiting.remove(name);
        }
        let mut follower = self.follower.lock();
        if waiting.is_empty() {
            *follower = None;
        } else if follower.is_none() {
            let (waiting, all, queue) = (self.waiting.clone(), self.waiting.clone(), self.queue.clone());
            let again = self.queue.clone();
            let missed = move || all.lock().iter().for_each(|name| again.add(name.clone()));
            *follower = Some(writes::follow(&self.context, missed, move |event| {
                let namespace = writes::namespace(&event.key);
                if waiting.lock().contains(namespace) {
                    queue.add(namespace.to_owned());
                }
            }));
        }
    }
}

/// The finalizers in a namespace's spec.
fn finalizers(namespace: &Value) -> Vec<&str> {
    let list = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}
