//! `garbage-collector-controller`: deletes objects whose owners are gone.
//!
//! As upstream's: a [`graph`] of owners and dependents is kept by what the [`feed`] tells of all objects; whatever may
//! have to go is looked at by workers, who ask the server for the object and its owners and do what the [`verdict`]
//! says. The feed is the store's own, so that there is no watch and no copy of metadata for each kind: the graph holds
//! a uid and a key an object, and references only where there are some.

mod absent;
mod collector;
mod feed;
mod graph;
mod identity;
mod verdict;

use crate::context::Context;
use crate::runner::{Running, work};
use client::Queue;
use client::events::EventType;
use collector::{Collector, Task};
use feed::{Feed, Types};
use graph::Effects;
use object::{Value, map};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Upstream's name.
pub(crate) const NAME: &str = "garbage-collector-controller";
/// How many objects are looked at side by side (upstream's `--concurrent-gc-syncs`).
const WORKERS: usize = 20;
/// When an owner is looked for that was only heard of.
const SOON: Duration = Duration::from_millis(100);
/// The finalizer of objects whose dependents are to be orphaned first.
const ORPHAN: &str = "orphan";
/// The finalizer of objects whose dependents are to be deleted first.
const FOREGROUND: &str = "foregroundDeletion";

/// Starts the collector.
pub(crate) fn start(context: &Context) -> Running {
    let mut running = Running::default();
    let graph: Arc<Mutex<graph::Graph>> = Arc::default();
    let queue: Queue<Task> = Queue::default();
    let recorder = context.recorder(NAME);
    let effects = {
        let queue = queue.clone();
        move |effects: Effects| {
            effects.look.into_iter().for_each(|uid| queue.add(Task::Look(uid)));
            effects.look_soon.into_iter().for_each(|uid| queue.after(Task::Look(uid), SOON));
            effects.look_later.into_iter().for_each(|uid| queue.retry(Task::Look(uid)));
            effects.orphan.into_iter().for_each(|uid| queue.add(Task::Orphan(uid)));
            for (dependent, owner) in effects.reports {
                let message =
                    format!("ownerRef {owner} does not exist in namespace {}", object::go::quote(&dependent.namespace));
                let mut involved = map! {
                    "kind" => dependent.kind, "apiVersion" => dependent.api_version, "name" => dependent.name,
                    "uid" => dependent.uid.to_string(),
                };
                if !dependent.namespace.is_empty() {
                    involved.insert("namespace", Value::from(dependent.namespace));
                }
                recorder.event_about(involved, EventType::Warning, "OwnerRefInvalidNamespace", &message);
            }
        }
    };
    let feed = Feed {
        server: context.server().clone(),
        graph: graph.clone(),
        effects: effects.clone(),
        types: Types::default(),
    };
    running.spawn(feed.run());
    let collector = Arc::new(Collector { context: context.clone(), graph, effects: Box::new(effects) });
    context.settings().queues.add(NAME, &queue);
    for _ in 0..WORKERS {
        let collector = collector.clone();
        running.spawn(work(NAME, queue.clone(), move |task| {
            let collector = collector.clone();
            async move { collector.work(&task).await.map(|()| None) }
        }));
    }
    running
}
