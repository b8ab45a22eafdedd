//! Owners that are known to be absent.

use super::identity::Coordinates;
use std::collections::{HashSet, VecDeque};

/// The most owners that are remembered. A uid is never given again, so one that is absent stays so; what is forgotten
/// is only asked for again.
const REMEMBERED: usize = 4096;

/// The owners last found absent.
#[derive(Debug, Default)]
pub(super) struct Absent {
    known: HashSet<Coordinates>,
    order: VecDeque<Coordinates>,
}

impl Absent {
    pub(super) fn add(&mut self, owner: Coordinates) {
        if !self.known.insert(owner.clone()) {
            return;
        }
        self.order.push_back(owner);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn has(&self, owner: &Coordinates) -> bool {
        self.known.contains(owner)
    }
}
