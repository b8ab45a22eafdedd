//! Work on many objects at a time, of which those of one tenant keep no others waiting.

use std::collections::{HashMap, VecDeque};

use compact_str::CompactString;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// Which part of all that is worked on at a time one tenant has at most, if there are others.
const SHARE: usize = 4;

/// Does `work` for all of `all`, pieces of tenants, `width` at a time. Tenants take turns, and of one that is slow only a
/// part is worked on at a time while others have something to do. What became of each is told as it is done.
pub(crate) async fn in_turns<T, O, F>(
    all: impl IntoIterator<Item = (CompactString, T)>,
    width: usize,
    work: impl Fn(T) -> F,
    mut done: impl FnMut(O),
) where
    F: Future<Output = O>,
{
    let mut lanes: HashMap<CompactString, (VecDeque<T>, usize)> = HashMap::new();
    let mut turns: VecDeque<CompactString> = VecDeque::new();
    for (tenant, piece) in all {
        let (pieces, _) = lanes.entry(tenant).or_insert_with_key(|tenant| {
            turns.push_back(tenant.clone());
            Default::default()
        });
        pieces.push_back(piece);
    }
    let mut share = share_of(width, lanes.len());
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < width
            && let Some(tenant) = turns.pop_front()
        {
            let Some((pieces, busy)) = lanes.get_mut(&tenant) else { continue };
            let Some(piece) = pieces.pop_front() else { continue };
            *busy += 1;
            if *busy < share && !pieces.is_empty() {
                turns.push_back(tenant.clone());
            }
            let work = work(piece);
            running.push(async move { (tenant, work.await) });
        }
        let Some((tenant, outcome)) = running.next().await else { return };
        if let Some((pieces, busy)) = lanes.get_mut(&tenant) {
            // One that had all of its share had no turn.
            if *busy == share && !pieces.is_empty() {
                turns.push_back(tenant.clone());
            }
            *busy -= 1;
            if *busy == 0 && pieces.is_empty() {
                lanes.remove(&tenant);
                if lanes.len() == 1 {
                    // The last one gets what all others had, also if it had no turn.
                    share = share_of(width, 1);
                    turns = lanes.keys().cloned().collect();
                }
            }
        }
        done(outcome);
    }
}

/// How many pieces of one tenant are worked on at a time, where so many have some that are not done.
fn share_of(width: usize, tenants: usize) -> usize {
    if tenants > 1 { (width / SHARE).max(1) } else { width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::Cell;
    use std::future::{pending, ready};

    fn pieces(tenants: &[(&str, usize)]) -> Vec<(CompactString, String)> {
        let all =
            tenants.iter().flat_map(|(tenant, n)| (0..*n).map(move |i| ((*tenant).into(), format!("{tenant}{i}"))));
        all.collect()
    }

    #[test]
    fn a_tenant_whose_work_hangs_keeps_no_other_waiting() {
        let (hanging, mut done) = (Cell::new(0), Vec::new());
        let work = |piece: String| {
            if piece.starts_with('a') {
                hanging.set(hanging.get() + 1);
                pending().left_future()
            } else {
                assert!(hanging.get() <= 2, "{piece}: {} hang", hanging.get());
                ready(piece).right_future()
            }
        };
        let run = in_turns(pieces(&[("a", 100), ("b", 5), ("c", 1)]), 8, work, |piece| done.push(piece));
        assert_eq!(run.now_or_never(), None);
        done.sort();
        // Nobody is left whom it could keep waiting.
        assert_eq!((hanging.get(), done.join(" ")), (8, "b0 b1 b2 b3 b4 c0".to_owned()));
    }

    #[tokio::test]
    async fn the_last_tenant_has_all_when_the_others_are_done() {
        let (now, most, most_beside) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let (left, now) = (Cell::new(3), &now);
        let work = async |piece: String| {
            if piece.starts_with('b') {
                tokio::task::yield_now().await;
                left.set(left.get() - 1);
                return;
            }
            now.set(now.get() + 1);
            let most = if left.get() > 0 { &most_beside } else { &most };
            most.set(most.get().max(now.get()));
            tokio::task::yield_now().await;
            now.set(now.get() - 1);
        };
        in_turns(pieces(&[("a", 100), ("b", 3)]), 8, work, drop).await;
        assert_eq!((most_beside.get(), most.get()), (2, 8));
    }

    #[tokio::test]
    async fn everything_is_done_once_and_a_tenant_alone_has_all() {
        for tenants in [&[("a", 50)][..], &[("a", 7), ("b", 33), ("c", 1)], &[]] {
            let (now, most, mut done) = (Cell::new(0), Cell::new(0), Vec::new());
            let work = async |piece: String| {
                now.set(now.get() + 1);
                most.set(most.get().max(now.get()));
                tokio::task::yield_now().await;
                now.set(now.get() - 1);
                piece
            };
            in_turns(pieces(tenants), 8, work, |piece| done.push(piece)).await;
            done.sort();
            let mut expected: Vec<String> = pieces(tenants).into_iter().map(|(_, piece)| piece).collect();
            expected.sort();
            assert_eq!(done, expected);
            assert!(most.get() <= 8 && (tenants.len() != 1 || most.get() == 8), "{}", most.get());
        }
    }
}
