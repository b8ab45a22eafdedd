//! When the watches of a place see its events: few at every commit, many in turns.
//!
//! To wake a watch costs much more than to send one more event with it. Where many watches see many events, they are
//! in groups that take turns: between two turns of a group lies a pause, and within the pause the group sees nothing,
//! however often its watches ask. Thus each sends one large piece a pause, all of a group the same one, and the work
//! is spread evenly over the time, so that other requests never wait behind all watches at once.

use std::time::{Duration, Instant};

use crate::Revision;

/// How many groups there are.
pub(super) const GROUPS: usize = 8;

/// Up to so many watches of a place see everything at once.
const FEW: usize = 32;

/// Between two turns of a group lies so much for each watch of the place: about what it takes this program and its
/// clients on the same machine to bring an event to all of them.
const PAUSE_PER_WATCH: Duration = Duration::from_micros(25);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// Turns do not come more often than this: then several groups have theirs together.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// Up to where the groups of a place's watches see events.
#[derive(Debug)]
pub(super) struct Rounds {
    visible: [Revision; GROUPS],
    /// The group whose turn is next.
    next: usize,
    /// When the last turn was, or should have been.
    turned: Option<Instant>,
}

impl Rounds {
    /// All groups have seen what there was up to `since`.
    pub fn new(since: Revision) -> Self {
        Rounds { visible: [since; GROUPS], next: 0, turned: None }
    }

    /// Up to where a group sees events.
    pub fn visible(&self, group: usize) -> Revision {
        self.visible.get(group).copied().unwrap_or(Revision::MAX)
    }

    /// Shows what there is up to `last` to the groups whose turn it is, of so many watches in all, and tells `woken` of
    /// each. Gives when the next turn is, if there are groups left that have not seen it.
    pub fn turn(
        &mut self,
        watches: usize,
        last: Revision,
        now: Instant,
        mut woken: impl FnMut(usize),
    ) -> Option<Instant> {
        let pause = PAUSE_PER_WATCH.saturating_mul(u32::try_from(watches).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
        let step = pause / GROUPS as u32;
        let turned = self.turned.filter(|turned| watches > FEW && *turned + pause > now);
        // After a quiet time there is no reason to wait.
        let Some(mut turned) = turned else {
            self.visible = [last; GROUPS];
            self.turned = Some(now);
            (0..GROUPS).for_each(woken);
            return None;
        };
        while turned + step <= now {
            turned += step;
            if let Some(visible) = self.visible.get_mut(self.next) {
                *visible = last;
            }
            woken(self.next);
            self.next = (self.next + 1) % GROUPS;
        }
        self.turned = Some(turned);
        let left = self.visible.iter().any(|visible| *visible < last);
        left.then(|| (turned + step).max(now + SHORTEST_STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which groups have a turn at these moments, in microseconds, and when they are to have the next.
    fn turns(watches: usize, moments: &[(u64, Revision)]) -> Vec<(Vec<usize>, Option<u64>)> {
        let start = Instant::now();
        let mut rounds = Rounds::new(0);
        let mut all = Vec::new();
        for (at, last) in moments {
            let mut groups = Vec::new();
            let next = rounds.turn(watches, *last, start + Duration::from_micros(*at), |group| groups.push(group));
            assert!(groups.iter().all(|group| rounds.visible(*group) == *last));
            all.push((groups, next.map(|next| next.duration_since(start).as_micros() as u64)));
        }
        all
    }

    fn everybody() -> Vec<usize> {
        (0..GROUPS).collect()
    }

    #[test]
    fn few_watches_see_everything_at_once() {
        assert_eq!(turns(32, &[(0, 1), (0, 2), (10, 3)]), vec![(everybody(), None); 3]);
    }

    #[test]
    fn many_watches_see_rare_events_at_once() {
        assert_eq!(turns(1000, &[(0, 1), (25_000, 2), (60_000, 3)]), vec![(everybody(), None); 3]);
    }

    #[test]
    fn many_watches_see_frequent_events_in_turns() {
        let moments = [(0, 1), (1000, 2), (3125, 2), (6250, 3), (12_500, 3), (22_000, 3), (25_000, 3), (26_000, 3)];
        let expected = [
            (everybody(), None),
            (vec![], Some(3125)),
            (vec![0], Some(6250)),
            (vec![1], Some(9375)),
            // What came late is made up for.
            (vec![2, 3], Some(15_625)),
            (vec![4, 5, 6], Some(25_000)),
            (vec![7], Some(28_125)),
            (vec![], Some(28_125)),
        ];
        assert_eq!(turns(1000, &moments), expected);
        // The first group has not seen the third event.
        assert_eq!(turns(1000, &moments[..8]).last().unwrap().1, Some(28_125));
    }

    #[test]
    fn turns_do_not_come_too_often() {
        assert_eq!(turns(40, &[(0, 1), (100, 2), (900, 2)])[1], (vec![], Some(1100)));
    }

    #[test]
    fn a_long_pause_of_the_program_is_not_made_up_for() {
        assert_eq!(turns(1000, &[(0, 1), (1000, 2), (1_000_000, 3)])[2], (everybody(), None));
    }
}
