//! Watch events as they go over the wire, shared by the watchers that get the same one.

use bytes::Bytes;
use parking_lot::Mutex;
use std::hash::{BuildHasher, Hash, RandomState};
use store::Key;

/// The largest that is kept, in bytes: together with the number of slots it bounds the memory.
const LARGEST: usize = 64 * 1024;

/// What tells one frame from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// The event's revision.
    pub revision: u64,
    /// Names the resource in its version; see [`crate::catalogue::Resource::serial`].
    pub serial: u64,
    /// What the frame shows of the object, and the type of the event.
    pub form: u8,
}

/// What tells the events that a watcher gets at once from others: watchers that were woken together get the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchKey {
    /// The first event's key, of which `form` may say more.
    pub first: FrameKey,
    /// The last event's revision.
    pub last: u64,
    /// What the watched keys begin with.
    pub prefix: Key,
}

type Slot<K> = Mutex<Option<(K, Bytes)>>;

/// What was last sent, by what tells it from others.
#[derive(Debug)]
pub struct Frames<K> {
    slots: Box<[Slot<K>]>,
    hasher: RandomState,
}

impl<K: Hash + Eq> Frames<K> {
    /// Keeps `slots` frames at the most. Watchers of one kind get an event at nearly the same time, so few will do.
    pub fn new(slots: usize) -> Self {
        Frames { slots: (0..slots.max(1)).map(|_| Mutex::new(None)).collect(), hasher: RandomState::new() }
    }

    /// The frame of a key, made by `make` if nobody did before.
    pub fn get(&self, key: K, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let mixed = self.hasher.hash_one(&key);
        let Some(slot) = self.slots.get(mixed as usize % self.slots.len()) else { return make().into() };
        let mut slot = slot.lock();
        if let Some((held, frame)) = &*slot
            && *held == key
        {
            return frame.clone();
        }
        // Made under the lock, so that others wait for it rather than make it again.
        let frame = Bytes::from(make());
        if frame.len() <= LARGEST {
            *slot = Some((key, frame.clone()));
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_made_once() {
        let frames = Frames::new(256);
        let key = FrameKey { revision: 5, serial: 1, form: 0 };
        assert_eq!(frames.get(key, || b"a".to_vec()), "a");
        assert_eq!(frames.get(key, || b"b".to_vec()), "a");
        assert_eq!(frames.get(FrameKey { form: 1, ..key }, || b"c".to_vec()), "c");
    }
}
