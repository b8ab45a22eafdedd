//! When to look again although nothing was heard.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// `period` with up to a tenth more, so that many parents do not come due at the same time. Parents with different
/// `seed`s are spread; each run of one parent has another `round`.
pub fn jittered(period: Duration, seed: &str, round: u64) -> Duration {
    let mut hasher = DefaultHasher::new();
    (seed, round).hash(&mut hasher);
    let thousandths = u32::try_from(hasher.finish() % 101).unwrap_or_default();
    period.saturating_add(period.saturating_mul(thousandths) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_spread_over_a_tenth_of_the_period() {
        let period = Duration::from_secs(60);
        let times: Vec<Duration> = (0..200).map(|parent| jittered(period, &parent.to_string(), 7)).collect();
        assert!(times.iter().all(|time| (period..=period + period / 10).contains(time)));
        let distinct: std::collections::HashSet<_> = times.iter().collect();
        assert!(distinct.len() > 50, "{}", distinct.len());
        assert_ne!(jittered(period, "a", 1), jittered(period, "a", 2));
    }
}
