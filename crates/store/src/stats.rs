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
    /// How long requests to a program behind the store took, by what it was asked; empty where there is none.
    pub requests: Vec<(&'static str, Histogram)>,
}

/// Durations counted by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// For each of [`Histogram::BOUNDS`], how many durations were at most that long, and longer than the bound
    /// before it; one more for the rest.
    pub buckets: [u64; 20],
    /// How many durations there were.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
}

impl Histogram {
    /// Upper bounds of the buckets in microseconds: powers of two from 250 µs to a minute.
    pub const BOUNDS: [u64; 19] = [
        250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000,
        4_096_000, 8_192_000, 16_384_000, 32_768_000, 65_536_000,
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
        for micros in [1, 250, 251, 512_000, 512_001, 9_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!((histogram.buckets[0], histogram.buckets[1]), (2, 1));
        assert_eq!((histogram.buckets[11], histogram.buckets[12], histogram.buckets[16]), (1, 1, 1));
        assert_eq!((histogram.count, histogram.sum), (6, Duration::from_micros(10_024_503)));
        let mut sum = histogram.clone();
        sum.add(&histogram);
        assert_eq!((sum.buckets[0], sum.count, sum.sum), (4, 12, 2 * histogram.sum));
    }
}
