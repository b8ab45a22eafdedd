//! The watches that heal: one for each kind under management, of metadata alone, selected by label. A kind's watch is
//! opened with its first object and closed with its last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::task::{AbortHandle, JoinSet};

use client::{Error, WatchEvent};

use crate::cluster::Cluster;
use crate::identity::{Identity, Kind, ObjectKey};
use crate::keeper::{Keeper, Shared};
use crate::seen::Seen;

/// The first and the longest wait before a watch that failed is opened again.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

impl Keeper {
    /// Watches everything under management, and tells of it by [`Keeper::drifted`]. Never ends; dropping it closes the
    /// watches. `cluster` is the keeper's own view, which may list and watch every kind that is managed.
    pub async fn watch(&self, cluster: Arc<dyn Cluster>) {
        let mut tasks = JoinSet::new();
        let mut open: HashMap<Kind, AbortHandle> = HashMap::new();
        let shared = &self.shared;
        loop {
            let kinds = shared.index.lock().kinds();
            open.retain(|kind, task| {
                let stays = kinds.contains(kind);
                if !stays {
                    task.abort();
                }
                stays
            });
            for kind in kinds {
                open.entry(kind)
                    .or_insert_with_key(|kind| tasks.spawn(follow(self.shared.clone(), cluster.clone(), kind.clone())));
            }
            let now = shared.now();
            let due = shared.index.lock().due(now);
            shared.drifted.notify_one();
            let wait = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
            tokio::select! {
                () = shared.watching.notified() => {}
                () = tokio::time::sleep(wait.unwrap_or(WAITS.1).min(WAITS.1)) => {}
                // A finished task frees its place; it only ends by being told to.
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

async fn follow(shared: Arc<Shared>, cluster: Arc<dyn Cluster>, kind: Kind) {
    let mut wait = WAITS.0;
    loop {
        match list(&shared, cluster.as_ref(), &kind).await {
            Ok(version) => {
                wait = WAITS.0;
                let error = stay(&shared, cluster.as_ref(), &kind, version).await;
                tracing::debug!(%kind, %error, "the watch of a managed kind starts anew");
            }
            Err(error) => tracing::debug!(%kind, %error, "a managed kind cannot be listed"),
        }
        shared.index.lock().watch_is_lost(&kind);
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAITS.1);
    }
}

/// Lists a kind, and tells what is missing or different; where the watch goes on.
async fn list(shared: &Shared, cluster: &dyn Cluster, kind: &Kind) -> Result<String, Error> {
    shared.index.lock().list_begins(kind);
    let mut token = String::new();
    loop {
        let page = cluster.list_metadata(kind, &shared.options.selector, &token).await?;
        let now = shared.now();
        let mut index = shared.index.lock();
        for object in &page.items {
            if let Some(key) = key(kind, object) {
                index.found(&key, Seen::of(object), now);
            }
        }
        token = page.continue_token;
        if token.is_empty() {
            index.list_ends(kind, &page.resource_version, now);
            drop(index);
            shared.drifted.notify_one();
            return Ok(page.resource_version);
        }
    }
}

/// Watches from `version` on, over as many connections as it takes, until something was missed.
async fn stay(shared: &Shared, cluster: &dyn Cluster, kind: &Kind, mut version: String) -> Error {
    loop {
        let mut events = match cluster.watch_metadata(kind, &shared.options.selector, &version).await {
            Ok(events) => events,
            Err(error) => return error,
        };
        let mut is_empty = true;
        while let Some(event) = events.next().await {
            is_empty = false;
            let now = shared.now();
            match event {
                Err(error) => return error,
                Ok(WatchEvent::Bookmark(at)) => version = at,
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    object.meta_str("resourceVersion").clone_into(&mut version);
                    if let Some(key) = key(kind, &object) {
                        shared.index.lock().saw(&key, Seen::of(&object), now);
                    }
                }
                Ok(WatchEvent::Deleted(object)) => {
                    object.meta_str("resourceVersion").clone_into(&mut version);
                    if let Some(key) = key(kind, &object) {
                        shared.index.lock().lost(&key, Some(Seen::of(&object)), now);
                    }
                }
            }
            shared.drifted.notify_one();
        }
        if is_empty {
            // Servers that end a watch at once are not asked again and again.
            tokio::time::sleep(WAITS.0).await;
        }
    }
}

fn key(kind: &Kind, object: &object::Value) -> Option<ObjectKey> {
    let name = object.name();
    let identity = Identity { kind: kind.clone(), namespace: object.namespace().into(), name: name.into() };
    (!name.is_empty()).then(|| identity.object())
}
