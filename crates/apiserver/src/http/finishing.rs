//! Work that goes on though nobody waits for it any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// What was begun is finished, though the client goes away: a write is more than its commit. The work is done where it
/// is waited for, which wakes nobody; dropped before its end, it becomes a task of its own.
///
/// Gives nothing where the work panicked.
pub(super) struct Finishing<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Finishing<T> {
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Finishing(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(work) = &mut self.0 else { return Poll::Ready(None) };
        let done = match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(done)) => Some(done),
            // The panic itself was told by the hook.
            Err(_) => {
                tracing::error!("a request handler failed");
                None
            }
        };
        self.0 = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_is_done_is_given() {
        assert_eq!(Finishing::new(async { 5 }).await, Some(5));
    }

    #[tokio::test]
    async fn a_panic_gives_nothing() {
        let broken = Finishing::new(async {
            if Handle::try_current().is_ok() {
                panic!("as is tested")
            }
        });
        assert_eq!(broken.await, None);
    }

    #[tokio::test]
    async fn dropped_work_goes_on() {
        let (go, wait) = oneshot::channel::<()>();
        let (done, seen) = oneshot::channel();
        let mut work = Finishing::new(async move {
            let _ = wait.await;
            let _ = done.send(7);
        });
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go.send(()).unwrap();
        assert_eq!(seen.await, Ok(7));
    }
}
