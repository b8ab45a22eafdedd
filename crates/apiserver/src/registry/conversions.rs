//! What conversion webhooks made of stored objects, for lists and watches: an object of a revision is converted once
//! for each version, as in upstream's watch cache.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use store::Revision;

/// How much is kept, in bytes.
const MAX: usize = 64 << 20;

/// What the conversion depends on ([`crate::catalogue::Definition::conversion`]), the revision, and the version with
/// the key.
type Place = (u64, Revision, String);

/// Converted objects in their stored form.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    size: usize,
    new: HashMap<Place, Bytes>,
    old: HashMap<Place, Bytes>,
}

impl Conversions {
    /// A conversion that was made before.
    pub fn get(&self, place: &Place) -> Option<Bytes> {
        let held = self.0.lock();
        held.new.get(place).or_else(|| held.old.get(place)).cloned()
    }

    /// Keeps a conversion. The older half goes when there are too many.
    pub fn keep(&self, place: Place, value: Bytes) {
        let mut held = self.0.lock();
        held.size += value.len() + place.2.len();
        if held.size > MAX / 2 {
            held.old = std::mem::take(&mut held.new);
            held.size = value.len() + place.2.len();
        }
        held.new.insert(place, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_half_goes_when_there_is_too_much() {
        let conversions = Conversions::default();
        let value = Bytes::from(vec![0; MAX / 4]);
        let place = |i: u64| (1, i, "k".to_owned());
        for i in 0..4 {
            conversions.keep(place(i), value.clone());
        }
        assert!(conversions.get(&place(3)).is_some() && conversions.get(&place(0)).is_none());
    }
}
