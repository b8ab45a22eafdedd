//! Follows the writes of all objects: for controllers that would otherwise need a cache of every kind.

use crate::context::Context;
use crate::runner::Running;
use std::time::Duration;
use store::{Event, Range};

/// How long to wait when the store cannot be followed.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls this for every write from now on, until the result is dropped. When the store forgets faster than it is
/// followed, writes are left out: `missed` is called then.
pub(crate) fn follow(
    context: &Context,
    missed: impl Fn() + Send + 'static,
    each: impl Fn(&Event) + Send + 'static,
) -> Running {
    let store = context.server().store().clone();
    let mut running = Running::default();
    let mut after = store.revision();
    running.spawn(async move {
        loop {
            if let Ok(mut watch) = store.watch(&Range::prefix("/registry/"), after).await {
                while let Ok(batch) = watch.next().await {
                    batch.events.iter().for_each(|event| each(event));
                }
            }
            tokio::time::sleep(PAUSE).await;
            after = store.revision();
            missed();
        }
    });
    running
}

/// The namespace in a key, `/registry/PLURAL/NAMESPACE/NAME`, often with a group before the plural. For objects without
/// a namespace that is the plural.
pub(crate) fn namespace(key: &str) -> &str {
    key.rsplit('/').nth(1).unwrap_or_default()
}
