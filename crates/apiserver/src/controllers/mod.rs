//! What the server does by itself: it names and serves definitions, and empties what is deleted.

pub(crate) mod definitions;
pub(crate) mod first_objects;
pub(crate) mod lives;
pub(crate) mod namespaces;
mod naming;
pub(crate) mod others;
pub(crate) mod own_service;
mod service_addresses;
mod serving;

pub(crate) use serving::serial;

use crate::Server;
use crate::allocation::is_services;
use crate::answer::Outcome;
use crate::catalogue::Resource;
use crate::handlers::{time, uid};
use crate::registry::{self, Stored};
use object::{Map, Value};
use std::sync::Arc;
use store::{Expect, Write, WriteError};

impl Server {
    /// Called after each committed write of an object.
    pub(crate) async fn committed(self: &Arc<Self>, resource: &Resource, key: &str) {
        if resource.group == "admissionregistration.k8s.io" {
            if let Err(failure) = self.options.admission.configure(self).await {
                tracing::error!(?failure, key, "admission cannot be configured");
            }
        } else if definitions::is_definitions(resource) {
            definitions::changed(self, key).await;
        } else if let Some(definition) = resource.definition.as_ref().filter(|d| d.terminating) {
            definitions::empty(self, &definition.name);
        }
        if is_services(resource) {
            service_addresses::follow(self, key).await;
        }
        if resource.plural == "servicecidrs"
            && resource.group == "networking.k8s.io"
            && let Err(failure) = service_addresses::ensure_range(self).await
        {
            tracing::warn!(?failure, "the range of services' addresses cannot be made");
        }
        if resource.plural == "clusterroles" && resource.group == crate::rbac::GROUP {
            crate::rbac::aggregate(self).await;
        }
        if resource.definition.as_ref().is_some_and(|d| d.converts) {
            self.convert_ahead(resource, key);
        }
    }

    /// A new object of the server's own, with what every object has; its fields are `manager`'s.
    pub(crate) fn new_object(&self, resource: &Resource, mut object: Value, manager: &str) -> Outcome<Value> {
        let now = (self.options.clock)();
        let meta = object.metadata_mut();
        meta.insert("uid", uid()?);
        meta.insert("creationTimestamp", time(now));
        Ok(resource.strategy.ownership().created(object, manager, now.as_second()))
    }

    /// Writes what every cluster has, in one trip. Where another server over the same store was faster, what it wrote stays.
    pub(crate) async fn write_first(&self, writes: Vec<Write>) -> Outcome<()> {
        for result in self.store.write_all(writes).await {
            match result {
                Ok(_) | Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(registry::write_failure(&error)),
            }
        }
        Ok(())
    }

    /// Changes a stored object, as often as it takes; `change` gives nothing to leave it as it is. Gives the object as
    /// it is then, with its version, or nothing if it is not there.
    pub(crate) async fn rewrite<F>(&self, key: &str, mut change: F) -> Outcome<Option<(Value, u64)>>
    where
        F: FnMut(&Value) -> Option<Value>,
    {
        loop {
            let entry = self.store.get(key, None).await.map_err(registry::read_failure)?;
            let Some(entry) = entry else { return Ok(None) };
            let stored = registry::stored(&entry)?;
            let object = stored.value(entry.mod_revision);
            let Some(new) = change(&object) else { return Ok(Some((object, entry.mod_revision))) };
            let stored = Stored::new(&new, stored.fingerprint());
            let write = Write::put(entry.key.clone(), Expect::Revision(entry.mod_revision), stored.raw().clone());
            match self.store.write(write).await {
                Ok(version) => return Ok(Some((new, version))),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(registry::write_failure(&error)),
            }
        }
    }

    /// Deletes an object that has no finalizers, or marks it as going away. Tells whether it is gone.
    pub(crate) async fn drop_or_mark(&self, key: &str) -> Outcome<bool> {
        loop {
            let entry = self.store.get(key, None).await.map_err(registry::read_failure)?;
            let Some(entry) = entry else { return Ok(true) };
            let stored = registry::stored(&entry)?;
            let meta = stored.metadata();
            let holds = meta.get("finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
            if holds && meta.get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
                return Ok(false);
            }
            let expect = Expect::Revision(entry.mod_revision);
            let write = if holds {
                let mut object = stored.value(0);
                mark_going(object.metadata_mut(), time((self.options.clock)()));
                Write::put(entry.key.clone(), expect, Stored::new(&object, stored.fingerprint()).raw().clone())
            } else {
                Write::delete(entry.key.clone(), expect)
            };
            match self.store.write(write).await {
                Ok(_) => return Ok(!holds),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(registry::write_failure(&error)),
            }
        }
    }
}

fn mark_going(meta: &mut Map, time: String) {
    meta.insert("deletionTimestamp", time);
    meta.insert("deletionGracePeriodSeconds", 0);
    if let Some(generation) = meta.get("generation").and_then(Value::as_int).filter(|g| *g > 0) {
        meta.insert("generation", generation + 1);
    }
}

/// Sets a condition; the time of its last change is new when its status is.
pub(crate) fn set_condition(
    conditions: &mut Vec<Value>,
    ty: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let held = conditions.iter_mut().find(|c| c.str_at(&["type"]) == Some(ty));
    let mut since = now.to_owned();
    if let Some(held) = &held
        && held.str_at(&["status"]) == Some(status)
        && let Some(time) = held.str_at(&["lastTransitionTime"])
    {
        since = time.to_owned();
    }
    let condition = Value::Object(object::map! {
        "type" => ty, "status" => status, "reason" => reason, "message" => message, "lastTransitionTime" => since,
    });
    match held {
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
}
