//! Following etcd: one watch of everything, for all watches of this process.

use crate::etcd::Inner;
use crate::grpc::{Error, Messages};
use crate::proto::{DELETE, WatchCreate, WatchRequest, WatchResponse, revision, signed, unsigned};
use crate::{load, reads};
use std::sync::Arc;
use std::time::Duration;
use store::Applied;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

const WATCH: &str = "/etcdserverpb.Watch/Watch";
/// How long to wait before etcd is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often old history is forgotten.
const UPKEEP: Duration = Duration::from_secs(10);

/// Follows for as long as the store is there.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut upkeep = interval(UPKEEP);
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let error = match follow(&inner, &mut upkeep).await {
            Err(error) => error,
            // What came after the last event is forgotten, or etcd has been set back.
            Ok(()) => match load::all(&inner.channel, &inner.names, 0, inner.options.patience).await {
                Ok((revision, entries)) => {
                    tracing::warn!(
                        revision,
                        "what etcd holds was read anew: its history did not reach back far enough"
                    );
                    inner.replica.reset(revision, entries);
                    continue;
                }
                Err(error) => error,
            },
        };
        if inner.trouble.lock().replace(error.to_string()).is_none() {
            tracing::warn!(%error, "etcd cannot be followed");
        }
        sleep(PAUSE).await;
        // By now all watches may see what came before.
        inner.replica.wake_due();
    }
}

/// Follows until something breaks, or (then there is no error) until everything has to be read anew.
async fn follow(inner: &Inner, upkeep: &mut tokio::time::Interval) -> Result<(), Error> {
    let (key, range_end) = inner.names.all();
    let start_revision = signed(inner.replica.revision() + 1);
    let create = WatchCreate { key, range_end, start_revision, progress_notify: true };
    let request = WatchRequest { create: Some(create) };
    let mut messages: Messages<WatchResponse> = inner.channel.stream(WATCH, &request, inner.options.patience).await?;
    loop {
        let wake = inner.replica.next_wake().map(Instant::from_std);
        tokio::select! {
            message = messages.next() => {
                let message = message?;
                if message.compact_revision > 0 {
                    return Ok(());
                }
                if message.canceled {
                    return Err(Error::Broken(message.cancel_reason));
                }
                if message.created {
                    // The member may be behind the others; all of them together are not, unless etcd was set back.
                    let member = revision(message.header.as_ref());
                    if member < inner.replica.revision() && reads::latest(inner).await? < inner.replica.revision() {
                        return Ok(());
                    }
                    if inner.trouble.lock().take().is_some() {
                        tracing::warn!("etcd is followed again");
                    }
                } else {
                    take(inner, message);
                }
            }
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => inner.replica.wake_due(),
            _ = upkeep.tick() => {}
        }
        let options = &inner.options;
        inner.replica.forget_history(options.history_age, options.history_bytes, options.clock.now());
    }
}

/// Takes a message over: events, or else that there are none up to its revision.
fn take(inner: &Inner, message: WatchResponse) {
    let last = message.events.last().and_then(|event| event.kv.as_ref()).map(|kv| unsigned(kv.mod_revision));
    let applied = message.events.into_iter().filter_map(|event| {
        let kv = event.kv?;
        let key = inner.names.ours(&kv.key)?;
        let value = (event.kind != DELETE).then_some(kv.value);
        Some(Applied { revision: unsigned(kv.mod_revision), key, value })
    });
    inner.replica.apply(applied.collect(), inner.options.clock.now());
    inner.replica.advance(last.unwrap_or_else(|| revision(message.header.as_ref())));
}
