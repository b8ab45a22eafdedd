//! Runs controllers.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use crate::registry::REGISTRY;
use std::sync::Arc;
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
        let controller = Arc::new(C::new(&mut wiring));
        wiring.subscribe();
        for cache in std::mem::take(&mut wiring.caches) {
            cache.synced().await;
        }
        let mut workers = JoinSet::new();
        for _ in 0..C::WORKERS {
            workers.spawn(work(controller.clone(), wiring.queue.clone()));
        }
        while workers.join_next().await.is_some() {}
    });
    running
}

async fn work<C: Controller>(controller: Arc<C>, queue: client::Queue) {
    while let Some(key) = queue.next().await {
        // A panic costs the work on one key only; it is tried again like any failure.
        let task = tokio::spawn({
            let (controller, key) = (controller.clone(), key.clone());
            async move { controller.sync(&key).await }
        });
        let mut task = AbortOnDrop(task);
        let outcome = (&mut task.0).await;
        match outcome {
            Ok(Ok(again)) => {
                queue.forget(&key);
                if let Some(wait) = again {
                    queue.after(key.clone(), wait);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(controller = C::NAME, key, %error, "the work failed");
                queue.retry(key.clone());
            }
            Err(error) => {
                tracing::error!(controller = C::NAME, key, %error, "the work broke off");
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
