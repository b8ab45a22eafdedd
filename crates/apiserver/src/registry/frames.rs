//! Watch events as they go over the wire, shared by the watchers that get the same one.

use bytes::Bytes;
use parking_lot::Mutex;

/// How many events are kept. Watchers of one kind get an event at nearly the same time.
const SLOTS: usize = 256;
/// The largest event that is kept, in bytes: together with [`SLOTS`] it bounds the memory.
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

type Slot = Mutex<Option<(FrameKey, Bytes)>>;

/// The frames of the last events.
#[derive(Debug)]
pub struct Frames {
    slots: Box<[Slot]>,
}

impl Default for Frames {
    fn default() -> Self {
        Frames { slots: (0..SLOTS).map(|_| Mutex::new(None)).collect() }
    }
}

impl Frames {
    /// The frame of a key, made by `make` if nobody did before.
    pub fn get(&self, key: FrameKey, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let mixed = key.revision.wrapping_mul(31) ^ key.serial.wrapping_mul(7) ^ u64::from(key.form);
        let Some(slot) = self.slots.get(mixed as usize % SLOTS) else { return make().into() };
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
        let frames = Frames::default();
        let key = FrameKey { revision: 5, serial: 1, form: 0 };
        assert_eq!(frames.get(key, || b"a".to_vec()), "a");
        assert_eq!(frames.get(key, || b"b".to_vec()), "a");
        assert_eq!(frames.get(FrameKey { form: 1, ..key }, || b"c".to_vec()), "c");
    }
}
