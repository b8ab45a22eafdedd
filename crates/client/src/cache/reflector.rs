//! Keeps a cache as the server has it: a list, then a watch from there, and again a list when the watch cannot go on.

use super::{Selection, Shared, is_outdated, key};
use crate::{Api, ListParams, Result, WatchEvent, WatchParams};
use object::Value;
use std::sync::Arc;
use std::time::Duration;

/// How many objects a page of the list has.
const PAGE: u32 = 200;
/// The first wait after a failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What is left of each object.
type Reduce = fn(&mut Value);

pub(super) async fn run(api: Api, selection: Selection, reduce: Reduce, shared: Arc<Shared>) {
    let mut wait = FIRST_WAIT;
    loop {
        if let Err(error) = follow(&api, &selection, reduce, &shared, &mut wait).await {
            tracing::debug!(%error, resource = %api.resource().plural, "a cache cannot follow the server");
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Lists, then watches until the watch has to begin anew.
async fn follow(api: &Api, selection: &Selection, reduce: Reduce, shared: &Shared, wait: &mut Duration) -> Result<()> {
    let (items, mut version) = list(api, selection, reduce).await?;
    shared.replace(items);
    *wait = FIRST_WAIT;
    loop {
        let before = version.clone();
        match watch(api, selection, reduce, shared, &mut version).await {
            Err(error) if is_outdated(&error) => return Err(error),
            outcome => {
                if version != before {
                    *wait = FIRST_WAIT;
                }
                // A watch that ended by itself, as all do at times, goes on at once unless that brought nothing.
                if outcome.is_err() || version == before {
                    tokio::time::sleep(*wait).await;
                    *wait = (*wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }
}

async fn list(api: &Api, selection: &Selection, reduce: Reduce) -> Result<(Vec<Value>, String)> {
    let mut params = ListParams {
        label_selector: selection.label_selector.clone(),
        field_selector: selection.field_selector.clone(),
        metadata_only: selection.metadata_only,
        limit: PAGE,
        ..ListParams::default()
    };
    let mut items: Vec<Value> = Vec::new();
    loop {
        let page = match api.list(&selection.namespace, &params).await {
            Err(error) if error.is_expired() && params.limit != 0 => {
                // The list took so long that its version is gone: all at once then.
                params.limit = 0;
                params.continue_token.clear();
                items.clear();
                continue;
            }
            page => page?,
        };
        items.extend(page.items.into_iter().map(|object| trimmed(object, reduce)));
        if page.continue_token.is_empty() {
            return Ok((items, page.resource_version));
        }
        params.continue_token = page.continue_token;
    }
}

/// Follows a watch to its end; `version` is how far it came.
async fn watch(api: &Api, selection: &Selection, reduce: Reduce, shared: &Shared, version: &mut String) -> Result<()> {
    let params = WatchParams {
        label_selector: selection.label_selector.clone(),
        field_selector: selection.field_selector.clone(),
        resource_version: version.clone(),
        metadata_only: selection.metadata_only,
        bookmarks: true,
        timeout_seconds: 0,
    };
    let mut watch = api.watch(&selection.namespace, &params).await?;
    while let Some(event) = watch.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                version.replace_range(.., object.meta_str("resourceVersion"));
                shared.put(trimmed(object, reduce));
            }
            WatchEvent::Deleted(object) => {
                version.replace_range(.., object.meta_str("resourceVersion"));
                shared.remove(&key(&object));
            }
            WatchEvent::Bookmark(reached) => *version = reached,
        }
    }
    Ok(())
}

/// Nobody who reads a cache asks who owns which field, and the answer is long.
fn trimmed(mut object: Value, reduce: Reduce) -> Value {
    object.remove_at(&["metadata", "managedFields"]);
    reduce(&mut object);
    object
}
