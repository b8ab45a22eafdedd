//! For controllers that write their objects in another way than [`Keeper::reconcile`] does, but want them watched: they
//! claim objects, note their writes, and hear of what others do by [`Keeper::drifted`].

use std::sync::Arc;
use std::time::Duration;

use object::Value;

use crate::identity::{Identity, ObjectKey};
use crate::index::Claim;
use crate::keeper::{Keeper, Shared};
use crate::seen::Seen;

impl Keeper {
    /// Replaces what `parent` claims. What is known of an object that stays claimed stays known.
    pub fn claim_objects<'a>(&self, parent: &str, objects: impl IntoIterator<Item = &'a Identity>) {
        let key: Arc<str> = Arc::from(parent);
        let claims = objects.into_iter().map(|id| {
            let claim = Claim {
                parent: key.clone(),
                manager: key.clone(),
                created: false,
                is_recorded: false,
                protects: None,
                leaving: None,
                content: 0,
                disturbed: false,
            };
            (id.object(), id.kind.version.clone(), claim)
        });
        let claims = claims.collect();
        self.shared.index.lock().claim(&key, claims);
        self.shared.watching.notify_one();
    }

    /// Whether an object need not be asked for: a watch covers its kind, nobody changed it, and `content` (a digest,
    /// not 0) is what `parent` settled last.
    pub fn is_settled(&self, parent: &str, id: &Identity, content: u64) -> bool {
        self.shared.index.lock().is_settled(&id.object(), parent, content)
    }

    /// The object of `id` is as `parent` wants it; `content` is a digest of that. `repaired`: it had been, and was
    /// changed by others since; such objects are left alone for ever longer times.
    pub fn settle(&self, parent: &str, id: &Identity, content: u64, repaired: bool) {
        let now = self.shared.now();
        let key = id.object();
        let mut index = self.shared.index.lock();
        if repaired && index.content(&key, parent) == content {
            index.repaired(&key, now);
        }
        index.applied(&key, parent, content, false);
    }

    /// A digest of the versions of all that `parent` claims, as watches tell them: while it stays the same, nobody changed
    /// anything, statuses neither. `None` unless watches cover everything and all of it is settled.
    pub fn versions(&self, parent: &str) -> Option<u64> {
        self.shared.index.lock().versions(parent)
    }

    /// For how long an object is left alone, because somebody changes it back again and again.
    pub fn left_alone(&self, id: &Identity) -> Option<Duration> {
        let now = self.shared.now();
        let until = self.shared.index.lock().is_fought_over(&id.object(), now)?;
        Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
    }

    /// Does work that looks at an object or writes it, and gives it as it then is (`None` if it is gone or unknown): an
    /// event that a watch tells meanwhile is not taken for somebody else's, unless it is a later one.
    pub async fn noting<E>(
        &self,
        id: &Identity,
        work: impl Future<Output = Result<Option<Value>, E>>,
    ) -> Result<Option<Value>, E> {
        let key = id.object();
        self.shared.index.lock().write_begins(&key);
        let mut end = WriteEnds { shared: &self.shared, key: &key, seen: None };
        let done = work.await;
        end.seen = done.as_ref().ok().and_then(Option::as_ref).map(Seen::of);
        done
    }
}

/// Notes the end of a write, even if whoever waited for it went away.
struct WriteEnds<'a> {
    shared: &'a Shared,
    key: &'a ObjectKey,
    seen: Option<Seen>,
}

impl Drop for WriteEnds<'_> {
    fn drop(&mut self) {
        if self.shared.index.lock().write_ends(self.key, self.seen.take(), self.shared.now()) {
            self.shared.drifted.notify_one();
        }
    }
}
