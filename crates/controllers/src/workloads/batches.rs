//! Doing many things of a kind, a few at first: what fails for one fails for all.

use client::Result;
use futures_util::future::join_all;

/// The most that is done side by side.
const MOST: usize = 500;

/// Does `count` things, in batches of 1, 2, 4, ...; the batch in which something fails is the last. Gives how many things
/// were done, and the first failure.
pub(crate) async fn slow_start<F>(count: usize, mut act: impl FnMut(usize) -> F) -> (usize, Result<()>)
where
    F: Future<Output = Result<()>>,
{
    let (mut next, mut done, mut size) = (0, 0, 1.min(count));
    while size > 0 {
        let outcomes = join_all((next..next + size).map(&mut act)).await;
        next += size;
        done += outcomes.iter().filter(|o| o.is_ok()).count();
        if let Some(error) = outcomes.into_iter().find_map(Result::err) {
            return (done, Err(error));
        }
        size = (2 * size).min(MOST).min(count - next);
    }
    (done, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Error;
    use std::cell::RefCell;

    #[tokio::test]
    async fn batches_grow_until_something_fails() {
        let tried = RefCell::new(Vec::new());
        let (done, outcome) = slow_start(10, |i| {
            tried.borrow_mut().push(i);
            async move { if i == 4 { Err(Error::Content("no".to_owned())) } else { Ok(()) } }
        })
        .await;
        assert_eq!((done, outcome.is_err()), (6, true));
        assert_eq!(tried.into_inner(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(slow_start(0, |_| async { Ok(()) }).await.0, 0);
    }
}
