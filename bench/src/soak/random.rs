//! Random numbers that a seed repeats.

/// A generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }
}
