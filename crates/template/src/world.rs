//! What functions have at hand: the values of the rendering, the time, random bytes.

use crate::value::Heap;
use jiff::{Timestamp, tz::TimeZone};
use ring::digest;

pub(crate) struct World<'a> {
    pub heap: Heap<'a>,
    /// The time that `now` gives.
    pub now: Timestamp,
    /// The zone that stands for the local one.
    pub zone: TimeZone,
    random: Random,
}

/// Random bytes from a seed: the hash of the seed and a counter.
struct Random {
    seed: [u8; 32],
    counter: u64,
    block: Vec<u8>,
}

impl<'a> World<'a> {
    pub fn new(heap: Heap<'a>, now: Timestamp, seed: [u8; 32]) -> Self {
        World { heap, now, zone: TimeZone::UTC, random: Random { seed, counter: 0, block: Vec::new() } }
    }

    /// Fills `bytes`.
    pub fn random(&mut self, bytes: &mut [u8]) {
        for b in bytes {
            *b = self.random.byte();
        }
    }

    /// A number below `limit`, which is not 0, without bias that matters.
    pub fn below(&mut self, limit: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random(&mut bytes);
        u64::from_le_bytes(bytes) % limit.max(1)
    }
}

impl Random {
    fn byte(&mut self) -> u8 {
        loop {
            if let Some(b) = self.block.pop() {
                return b;
            }
            let mut context = digest::Context::new(&digest::SHA256);
            context.update(&self.seed);
            context.update(&self.counter.to_le_bytes());
            self.counter += 1;
            self.block = context.finish().as_ref().to_vec();
        }
    }
}
