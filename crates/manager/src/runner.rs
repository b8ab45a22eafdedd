//! Workers that take keys from a queue.

use crate::metrics::Metrics;
use client::{Error, Queue};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What is done for the keys of one queue.
pub(crate) trait Reconciler: Send + Sync + 'static {
    /// For the log and for measurements.
    const NAME: &'static str;

    /// Does the work for one key; no two calls for the same key overlap. Gives after which time there will be work again;
    /// after an error there is, ever later.
    fn sync(&self, key: &str) -> impl Future<Output = Result<Option<Duration>, Error>> + Send;
}

/// Lets `width` workers run.
pub(crate) fn run<R: Reconciler>(
    tasks: &mut JoinSet<()>,
    reconciler: Arc<R>,
    queue: &Queue,
    width: usize,
    metrics: &Metrics,
) {
    metrics.queue(R::NAME, queue);
    for _ in 0..width {
        tasks.spawn(work(reconciler.clone(), queue.clone(), metrics.clone()));
    }
}

async fn work<R: Reconciler>(reconciler: Arc<R>, queue: Queue, metrics: Metrics) {
    while let Some(key) = queue.next().await {
        let began = Instant::now();
        let mut task = JoinSet::new();
        // A panic costs the work on one key only; it is tried again like any failure.
        task.spawn({
            let (reconciler, key) = (reconciler.clone(), key.clone());
            async move { reconciler.sync(&key).await }
        });
        let outcome = task.join_next().await;
        let result = match &outcome {
            Some(Ok(Ok(None))) => "success",
            Some(Ok(Ok(Some(_)))) => "requeue_after",
            _ => "error",
        };
        metrics.reconciled(R::NAME, &key, result, began.elapsed());
        match outcome {
            Some(Ok(Ok(again))) => {
                queue.forget(&key);
                if let Some(wait) = again {
                    queue.after(key.clone(), wait);
                }
            }
            Some(Ok(Err(error))) => {
                tracing::debug!(controller = R::NAME, key, %error, "the work failed");
                queue.retry(key.clone());
            }
            Some(Err(error)) => {
                tracing::error!(controller = R::NAME, key, %error, "the work broke off");
                queue.retry(key.clone());
            }
            None => {}
        }
        queue.done(&key);
    }
}
