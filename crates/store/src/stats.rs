//! Sizes and counters, for metrics.

use std::time::Duration;

/// A picture of a store's sizes and of what it did since it was opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Keys that exist.
    pub keys: u64,
    /// Bytes of the existing keys and values.
    pub live_bytes: u64,
    /// Bytes of the store's files.
    pub disk_bytes: u64,
    /// Events kept for watches and for reads at older revisions.
    pub history_events: u64,
    /// Bytes that are kept only because of the history.
    pub history_bytes: u64,
    /// Running watches.
    pub watches: u64,
    /// Writes committed.
    pub writes: u64,
    /// How long it took to make commits durable; `count` is the number of commits.
    pub sync: Histogram,
    /// How long requests to a program behind the store took, by what it was asked and of which kind of object; empty
    /// where there is none.
    pub requests: Vec<(&'static str, String, Histogram)>,
}

/// Durations counted by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// For each of [`Histogram::BOUNDS`], how many durations were at most that long, and longer than the bound
    /// before it; one more for the rest.
    pub buckets: [u64; 29],
    /// How many durations there were.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
}

impl Histogram {
    /// Upper bounds of the buckets in microseconds: upstream's for etcd, from 5 ms to a minute, and some for what is
    /// faster.
    pub const BOUNDS: [u64; 28] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000,
        1_250_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000, 8_000_000, 10_000_000, 15_000_000,
        20_000_000, 30_000_000, 45_000_000, 60_000_000,
    ];

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = duration.as_micros();
        let slot = Self::BOUNDS.iter().position(|bound| micros <= u128::from(*bound)).unwrap_or(Self::BOUNDS.len());
        if let Some(bucket) = self.buckets.get_mut(slot) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += duration;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(bucket, more)| *bucket += more);
        self.count += other.count;
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_they_fit() {
        let mut histogram = Histogram::default();
        for micros in [1, 250, 251, 600_000, 600_001, 9_000_000, 70_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!((histogram.buckets[0], histogram.buckets[1]), (2, 1));
        assert_eq!((histogram.buckets[11], histogram.buckets[12], histogram.buckets[22]), (1, 1, 1));
        assert_eq!(histogram.buckets[28], 1);
        assert_eq!((histogram.count, histogram.sum), (7, Duration::from_micros(80_200_503)));
        let mut sum = histogram.clone();
        sum.add(&histogram);
        assert_eq!((sum.buckets[0], sum.count, sum.sum), (4, 14, 2 * histogram.sum));
    }
}
