//! Leases: how etcd deletes keys by itself. Keys that expire at about the same time share one, as upstream has it.

use crate::grpc::{Channel, Error, Repeat};
use crate::proto::{LeaseGrantRequest, LeaseGrantResponse};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
/// The most keys of one lease.
const KEYS: u32 = 1000;
/// The longest that a key outlives its time.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    id: i64,
    ends: SystemTime,
    keys: u32,
}

impl Leases {
    /// A lease for a key that expires then: it ends later by a twentieth of the time until then at most, and by no more
    /// than a minute.
    pub(crate) async fn lease(
        &self,
        channel: &Channel,
        expires: SystemTime,
        now: SystemTime,
        patience: Duration,
    ) -> Result<i64, Error> {
        let left = expires.duration_since(now).unwrap_or_default();
        let spare = (left / 20).min(LONGEST);
        let mut held = self.held.lock().await;
        if let Some(held) = held.as_mut()
            && held.serves(expires, spare)
        {
            held.keys += 1;
            return Ok(held.id);
        }
        let seconds = (left + spare).as_secs().saturating_add(1);
        let request = LeaseGrantRequest { ttl: i64::try_from(seconds).unwrap_or(i64::MAX) };
        // A lease too many does no harm.
        let response: LeaseGrantResponse = channel.call(GRANT, &request, patience, Repeat::Freely).await?;
        *held = Some(Held { id: response.id, ends: now + Duration::from_secs(seconds), keys: 1 });
        Ok(response.id)
    }

    /// Takes note that etcd does not know a lease any more.
    pub(crate) async fn forget(&self, id: i64) {
        let mut held = self.held.lock().await;
        if held.as_ref().is_some_and(|held| held.id == id) {
            *held = None;
        }
    }
}

impl Held {
    fn serves(&self, expires: SystemTime, spare: Duration) -> bool {
        self.keys < KEYS && self.ends >= expires && self.ends <= expires + spare + Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_serves_what_expires_a_little_earlier() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let spare = Duration::from_secs(60);
        let held = Held { id: 1, ends: at(3660), keys: 1 };
        for (expires, serves) in [(3600, true), (3660, true), (3661, false), (3500, false)] {
            assert_eq!(held.serves(at(expires), spare), serves, "{expires}");
        }
        assert!(!Held { keys: KEYS, ..held }.serves(at(3600), spare));
    }
}
