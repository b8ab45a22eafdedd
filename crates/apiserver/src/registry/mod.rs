//! Between handlers and the store: keys, the stored form, and the errors of the store in upstream's words.

pub mod codec;
mod continuation;
mod conversions;
mod frames;
mod scan;
mod selection;

pub use codec::Stored;
pub use continuation::Continuation;
pub(crate) use conversions::Conversions;
pub use frames::{BatchKey, FrameKey, Frames};
pub use selection::{Selection, place};

use crate::Server;
use crate::answer::{Failure, Outcome};
use crate::catalogue::Resource;
use crate::ownership::Conversions as Ownerships;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object::{Status, Value};
use std::sync::Arc;
use store::{Entry, ReadError, Revision, WriteError};

/// How many objects of a list are converted side by side.
const CONVERSIONS: usize = 16;

/// The key of an object.
pub fn key(resource: &Resource, namespace: &str, name: &str) -> String {
    let prefix = &resource.storage.prefix;
    if resource.namespaced { format!("{prefix}{namespace}/{name}") } else { format!("{prefix}{name}") }
}

/// What all keys of a collection start with; without a namespace that is all namespaces.
pub fn prefix(resource: &Resource, namespace: &str) -> String {
    let prefix = &resource.storage.prefix;
    if resource.namespaced && !namespace.is_empty() { format!("{prefix}{namespace}/") } else { prefix.clone() }
}

/// The stored object of an entry.
pub fn stored(entry: &Entry) -> Outcome<Stored> {
    Stored::read(entry.value.clone()).ok_or_else(|| unreadable(&entry.key))
}

/// What is told where a stored object cannot be read.
pub fn unreadable(key: &str) -> Failure {
    Status::internal(format!("the stored object {key} cannot be read")).into()
}

/// Whether an object can be served as it is stored (`apiVersion` apart).
pub fn is_current(resource: &Resource, stored: &Stored) -> bool {
    stored.fingerprint() == resource.strategy.fingerprint() && !needs_converter(resource, stored)
}

/// Whether the definition's webhook has to convert the object.
fn needs_converter(resource: &Resource, stored: &Stored) -> bool {
    let webhook = resource.definition.as_ref().is_some_and(|d| d.converts);
    webhook && stored.api_version() != resource.api_version()
}

impl Server {
    /// The entry of a key, for a decision that need not see the newest write of another server: the store itself is
    /// asked only for what is not known here. (Upstream's informers, and what it does where they know nothing.)
    pub(crate) async fn known(&self, key: &str) -> Outcome<Option<Entry>> {
        if let Ok(Some(entry)) = self.store.replica().get(key, None) {
            return Ok(Some(entry));
        }
        self.store.get(key, None).await.map_err(read_failure)
    }

    /// A stored object in the form that its strategy works on, with its version.
    pub(crate) async fn load(&self, resource: &Resource, stored: &Stored, version: Revision) -> Outcome<Value> {
        if needs_converter(resource, stored) {
            let mut object = self.convert_stored(resource, stored).await?;
            if version != 0 {
                object.metadata_mut().insert("resourceVersion", version.to_string());
            }
            return Ok(object);
        }
        let mut object = stored.value(version);
        if !is_current(resource, stored) {
            resource.strategy.load(&mut object);
        } else if resource.is_custom() {
            object.set_at(&["apiVersion"], Value::from(resource.api_version()));
        }
        Ok(object)
    }

    /// A stored object of another version, by way of the definition's webhook.
    async fn convert_stored(&self, resource: &Resource, stored: &Stored) -> Outcome<Value> {
        let mut object = stored.value(0);
        resource.strategy.restore(&mut object);
        let mut object = self.convert(resource, object, &resource.api_version()).await?;
        resource.strategy.coerce(&mut object);
        Ok(object)
    }

    /// Entries of a collection as clients of the resource's version see them: what a webhook has to convert is
    /// converted, everything else is left alone.
    pub(crate) async fn converted(&self, resource: &Arc<Resource>, entries: Vec<Entry>) -> Outcome<Vec<Entry>> {
        if !resource.definition.as_ref().is_some_and(|d| d.converts) {
            return Ok(entries);
        }
        let converted = entries.into_iter().map(|mut entry| async move {
            entry.value = self.converted_value(resource, &entry.key, entry.mod_revision, entry.value).await?;
            Ok(entry)
        });
        stream::iter(converted).buffered(CONVERSIONS).try_collect().await
    }

    /// The stored form that an object of a revision has in the resource's version. A webhook is asked once for it.
    pub(crate) async fn converted_value(
        &self,
        resource: &Arc<Resource>,
        key: &str,
        revision: Revision,
        value: Bytes,
    ) -> Outcome<Bytes> {
        let Some(stored) = Stored::read(value.clone()).filter(|s| needs_converter(resource, s)) else {
            return Ok(value);
        };
        let conversion = resource.definition.as_ref().map_or(0, |d| d.conversion);
        let place = (conversion, revision, format!("{}/{key}", resource.version));
        if let Some(held) = self.conversions.get(&place) {
            return Ok(held);
        }
        let object = self.convert_stored(resource, &stored).await?;
        let converted = Stored::new(&object, resource.strategy.fingerprint()).raw().clone();
        self.conversions.keep(place, converted.clone());
        Ok(converted)
    }

    /// Has the definition's webhook convert what field ownership missed; false if it missed nothing.
    pub(crate) async fn convert_missing(&self, resource: &Resource, conversions: Option<&Ownerships>) -> bool {
        let (Some(conversions), Some(definition)) = (conversions, &resource.definition) else { return false };
        let missing = conversions.missing();
        for (object, wanted) in &missing {
            let converted = self.options.converter.convert(&definition.about, object.clone(), wanted).await;
            conversions.learn(object.clone(), wanted.clone(), converted);
        }
        !missing.is_empty()
    }

    /// Converts an object that was just written to the other versions, in the background, so that lists and watches
    /// need not wait for the webhook. Upstream's watch caches do so too.
    pub(crate) fn convert_ahead(self: &Arc<Self>, resource: &Resource, key: &str) {
        let catalogue = self.catalogue();
        let versions = catalogue.group(&resource.group).map(|g| g.versions.as_slice()).unwrap_or_default();
        let resources: Vec<_> = versions.iter().filter_map(|v| v.resource(&resource.plural)).cloned().collect();
        let (server, key) = (self.clone(), key.to_owned());
        tokio::spawn(async move {
            let Ok(Some(entry)) = server.store.get(&key, None).await else { return };
            for resource in resources {
                // What fails here fails again for whoever asks, who is then told.
                let _ = server.converted_value(&resource, &key, entry.mod_revision, entry.value.clone()).await;
            }
        });
    }

    /// An object that was worked on, in its stored form.
    pub(crate) async fn save(&self, resource: &Resource, mut object: Value) -> Outcome<Stored> {
        let definition = resource.definition.as_ref();
        if definition.is_some_and(|d| d.converts) && resource.storage.version != resource.version {
            let wanted = crate::catalogue::api_version(&resource.group, &resource.storage.version);
            object.remove_at(&["metadata", "resourceVersion"]);
            object = self.convert(resource, object, &wanted).await?;
        }
        let fingerprint = resource.strategy.save(&mut object);
        Ok(Stored::new(&object, fingerprint))
    }

    /// An object of a custom resource in another version, with nothing taken away.
    pub(crate) async fn convert_as_sent(&self, from: &Resource, mut object: Value, wanted: &str) -> Outcome<Value> {
        if from.definition.as_ref().is_some_and(|d| d.converts) {
            return self.convert(from, object, wanted).await.map_err(|failure| match failure {
                Failure::Status(status) => Status::internal(status.message).into(),
                other => other,
            });
        }
        object.set_at(&["apiVersion"], wanted.into());
        Ok(object)
    }

    /// Asks the definition's webhook to convert an object.
    pub(crate) async fn convert(&self, resource: &Resource, object: Value, wanted: &str) -> Outcome<Value> {
        let Some(definition) = &resource.definition else { return Ok(object) };
        let converted = self.options.converter.convert(&definition.about, object, wanted).await;
        converted.map_err(|why| Status::unknown(why).into())
    }
}

/// A failed read.
pub fn read_failure(error: ReadError) -> Failure {
    match error {
        ReadError::Compacted { .. } => Status::expired("The resourceVersion for the provided list is too old.").into(),
        ReadError::Future { requested, current } => too_large_version(requested, current),
        error @ ReadError::Closed => unavailable(&error),
        ReadError::Unavailable(why) => unavailable(&why),
    }
}

/// 504 for a version that the store has not reached.
pub fn too_large_version(requested: Revision, current: Revision) -> Failure {
    let why = format!("Too large resource version: {requested}, current: {current}");
    Status::timeout(why).with_cause("ResourceVersionTooLarge", "", "Too large resource version").into()
}

/// A write that failed for another reason than a conflict.
pub fn write_failure(error: &WriteError) -> Failure {
    match error {
        WriteError::TooLarge { size, limit, .. } => {
            Status::too_large(format!("the object takes {size} bytes, limit is {limit}")).into()
        }
        WriteError::NoSpace { .. } => Status::internal(error).into(),
        WriteError::Overtaken => Status::internal(error).into(),
        // Nobody should do by themselves again what may have been done.
        WriteError::Uncertain(why) => Status::unknown(why.clone()).into(),
        WriteError::Unavailable(why) => unavailable(why),
        error => unavailable(error),
    }
}

fn unavailable(error: &dyn std::fmt::Display) -> Failure {
    Status::new(503, "ServiceUnavailable", error.to_string()).retry_after(1).into()
}
