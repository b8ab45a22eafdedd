//! Which resources a server has: asked once a group version, and again when a kind is unknown.

use crate::client::Client;
use crate::resource::{Resource, root};
use crate::{Error, Result};
use object::Value;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// What discovery told, by `apiVersion`.
#[derive(Debug, Default)]
pub(crate) struct Discovery(RwLock<HashMap<String, Arc<Vec<Resource>>>>);

impl Discovery {
    pub(crate) async fn find(&self, client: &Client, api_version: &str, kind: &str) -> Result<Option<Resource>> {
        let known = self.0.read().get(api_version).cloned();
        if let Some(found) = known.and_then(|k| k.iter().find(|r| r.kind == kind).cloned()) {
            return Ok(Some(found));
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let list = match client.get_path(&root(group, version)).await {
            Ok(list) => list,
            Err(error) if error.is_not_found() => {
                self.0.write().remove(api_version);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let resources = read(&list, group, version)?;
        let found = resources.iter().find(|r| r.kind == kind).cloned();
        self.0.write().insert(api_version.to_owned(), Arc::new(resources));
        Ok(found)
    }
}

/// The resources (not their subresources) of an `APIResourceList`.
fn read(list: &Value, group: &str, version: &str) -> Result<Vec<Resource>> {
    let items = list.get("resources").and_then(Value::as_array);
    let items = items.ok_or_else(|| Error::Content("discovery gave no resources".to_owned()))?;
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let resources = items.iter().filter(|item| !text(item, "name").contains('/')).map(|item| Resource {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        plural: text(item, "name").into(),
        kind: text(item, "kind").into(),
        namespaced: item.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
    });
    Ok(resources.collect())
}
