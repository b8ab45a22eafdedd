//! Runs controllers.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use crate::registry::REGISTRY;
use client::{Queue, Result};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Controllers that run; dropping it ends them.
#[derive(Debug, Default)]
pub struct Running {
    tasks: JoinSet<()>,
}

impl Running {
    /// Lets a task run along.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

/// Starts the controllers whose names are wanted. Must be called inside a runtime.
pub fn start(context: &Context, wanted: impl Fn(&str) -> bool) -> Vec<Running> {
    let chosen = REGISTRY.iter().filter(|entry| wanted(entry.name));
    chosen.filter_map(|entry| entry.start.map(|start| start(context))).collect()
}

/// Runs one controller whose work is divided by keys.
pub(crate) fn run<C: Controller>(context: &Context) -> Running {
    let mut running = Running::default();
    let context = context.clone();
    running.spawn(async move {
        let mut wiring = Wiring::new(&context, client::Queue::with_waits(C::FIRST_WAIT, C::LONGEST_WAIT));
        context.settings().queues.add(C::NAME, &wiring.queue);
        let controller = Arc::new(C::new(&mut wiring));
        wiring.subscribe();
        for cache in std::mem::take(&mut wiring.caches) {
            cache.synced().await;
        }
        let mut workers = JoinSet::new();
        for _ in 0..C::WORKERS {
            let controller = controller.clone();
            workers.spawn(work(C::NAME, wiring.queue.clone(), move |key: String| {
                let controller = controller.clone();
                async move { controller.sync(&key).await }
            }));
        }
        while workers.join_next().await.is_some() {}
    });
    running
}

/// Works on the keys of a queue, one after the other, for as long as the queue is open. A panic costs the work on one
/// key only; like any failure it is tried again, ever later.
pub(crate) async fn work<K, F>(name: &'static str, queue: Queue<K>, sync: impl Fn(K) -> F)
where
    K: Clone + Eq + Hash + Debug,
    F: Future<Output = Result<Option<Duration>>> + Send + 'static,
{
    while let Some(key) = queue.next().await {
        let mut task = AbortOnDrop(tokio::spawn(sync(key.clone())));
        match (&mut task.0).await {
            Ok(Ok(again)) => {
                queue.forget(&key);
                if let Some(wait) = again {
                    queue.after(key.clone(), wait);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(controller = name, ?key, %error, "the work failed");
                queue.retry(key.clone());
            }
            Err(error) => {
                tracing::error!(controller = name, ?key, %error, "the work broke off");
                queue.retry(key.clone());
            }
        }
        queue.done(&key);
    }
}

/// A task that does not outlive the one that waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
