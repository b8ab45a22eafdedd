//! What other servers write to the same store, and this one has to know to answer requests: definitions, webhooks and
//! policies. (Roles are followed by whoever authorises.) A server knows its own writes when it answers them, and others'
//! a moment later.

use super::definitions;
use crate::Server;
use crate::admission;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Event, ListOptions, Range, Revision, Watch, WatchError};

/// How long to wait when the store cannot be followed.
const PAUSE: Duration = Duration::from_secs(1);

/// What is followed.
#[derive(Clone, Copy)]
enum Topic {
    Definitions,
    /// What admission is configured by, of these keys.
    Admission(&'static str),
}

/// Follows what comes after a revision, for as long as the server is there. Must be called inside a runtime.
pub(crate) fn follow(server: &Arc<Server>, after: Revision) {
    let admission = admission::CONFIGURATION.map(Topic::Admission);
    for topic in admission.into_iter().chain([Topic::Definitions]) {
        tokio::spawn(topic.run(Arc::downgrade(server), after));
    }
}

impl Topic {
    fn range(self) -> Range {
        Range::prefix(match self {
            Topic::Definitions => definitions::PREFIX,
            Topic::Admission(prefix) => prefix,
        })
    }

    async fn run(self, server: Weak<Server>, mut after: Revision) {
        loop {
            let Some(held) = server.upgrade() else { return };
            let watch = held.store.watch(&self.range(), after).await;
            drop(held);
            let error = match watch {
                Ok(watch) => self.read(&server, watch).await,
                Err(error) => error,
            };
            let Some(server) = server.upgrade() else { return };
            if matches!(error, WatchError::Closed) {
                return;
            }
            tracing::warn!(%error, "definitions or webhooks are read anew");
            // What is read now is at least as new as this.
            after = server.store.revision();
            while !self.reload(&server).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Takes over what a watch tells, until it ends.
    async fn read(self, server: &Weak<Server>, mut watch: Watch) -> WatchError {
        loop {
            let batch = match watch.next().await {
                Ok(batch) => batch,
                Err(error) => return error,
            };
            let Some(server) = server.upgrade() else { return WatchError::Closed };
            match self {
                Topic::Definitions => {
                    for event in batch.events.iter() {
                        definition(&server, event).await;
                    }
                }
                Topic::Admission(_) => drop(self.reload(&server).await),
            }
        }
    }

    /// Reads everything; false if that fails.
    async fn reload(self, server: &Arc<Server>) -> bool {
        match self {
            Topic::Admission(_) => {
                let configured = server.options.admission.configure(server).await;
                configured.inspect_err(|failure| tracing::error!(?failure, "admission cannot be configured")).is_ok()
            }
            Topic::Definitions => {
                let Ok(page) = server.store.list(&self.range(), ListOptions::default()).await else { return false };
                let mut keys: Vec<String> = page.entries.iter().map(|entry| entry.key.to_string()).collect();
                keys.extend(definitions::known(server).await);
                keys.sort_unstable();
                keys.dedup();
                for key in keys {
                    definitions::changed(server, &key).await;
                }
                true
            }
        }
    }
}

/// A definition was written; perhaps here, and then it is known.
async fn definition(server: &Arc<Server>, event: &Event) {
    let written = event.value.as_ref().map(|_| event.revision);
    if !definitions::knows(server, &event.key, written).await {
        definitions::changed(server, &event.key).await;
    }
}
