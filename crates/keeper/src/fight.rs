//! Two actors that change an object in turns: each repair in a short time makes the next one wait longer.

use jiff::{SignedDuration, Timestamp};

/// Repairs that follow each other within this time count together.
const WINDOW: SignedDuration = SignedDuration::from_mins(1);
/// So many repairs are made without waiting.
const PATIENCE: u32 = 3;
/// The longest wait between two repairs, in seconds.
const LONGEST: i64 = 300;

/// The repairs of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fight {
    repairs: u32,
    last: Timestamp,
}

impl Fight {
    /// The object was repaired.
    pub fn repaired(&mut self, now: Timestamp) {
        // After a wait the window begins anew at its end, or a long wait would always look like peace.
        let quiet = WINDOW.saturating_add(self.wait());
        self.repairs = if now.duration_since(self.last) > quiet { 1 } else { self.repairs.saturating_add(1) };
        self.last = now;
    }

    /// Until when the object is left alone; `None` if it may be repaired at `now`.
    pub fn until(&self, now: Timestamp) -> Option<Timestamp> {
        let wait = self.wait();
        let until = self.last.saturating_add(wait).unwrap_or(Timestamp::MAX);
        (!wait.is_zero() && now < until).then_some(until)
    }

    fn wait(&self) -> SignedDuration {
        match self.repairs.checked_sub(PATIENCE) {
            None | Some(0) => SignedDuration::ZERO,
            Some(over) => SignedDuration::from_secs((1_i64 << (over - 1).min(16)).min(LONGEST)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fight_is_slowed_down_and_forgotten_after_a_while() {
        let mut now = Timestamp::UNIX_EPOCH;
        let mut fight = Fight::default();
        let mut waits = Vec::new();
        for _ in 0..14 {
            fight.repaired(now);
            let until = fight.until(now).unwrap_or(now);
            waits.push(until.duration_since(now).as_secs());
            now = until;
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        now += SignedDuration::from_mins(10);
        fight.repaired(now);
        assert_eq!(fight.until(now), None);
    }
}
