//! What is made of stored objects, and made anew when one of them changes while requests go on.

use crate::answer::Outcome;
use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

/// The newest making of something.
#[derive(Debug)]
pub(super) struct Latest<T> {
    held: ArcSwap<T>,
    /// Held while it is made, so that an older reading never takes the place of a newer one.
    making: tokio::sync::Mutex<()>,
}

impl<T: Default> Default for Latest<T> {
    fn default() -> Self {
        Latest { held: ArcSwap::default(), making: tokio::sync::Mutex::default() }
    }
}

impl<T> Latest<T> {
    /// What was made last, for a short look.
    pub fn look(&self) -> Guard<Arc<T>> {
        self.held.load()
    }

    /// What was made last, to keep.
    pub fn get(&self) -> Arc<T> {
        self.held.load_full()
    }

    /// Makes it anew, of what was made before; that stays where this fails.
    pub async fn renew(&self, make: impl AsyncFnOnce(&T) -> Outcome<T>) -> Outcome<()> {
        let _making = self.making.lock().await;
        let made = make(&self.get()).await?;
        self.held.store(Arc::new(made));
        Ok(())
    }
}
