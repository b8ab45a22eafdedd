//! `serviceaccount-controller`: every namespace has the account `default`.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use client::cache::Selection;
use client::resources::{NAMESPACES, SERVICE_ACCOUNTS};
use client::{Cache, Result};
use object::{Value, map};
use std::sync::Arc;
use std::time::Duration;

/// The account that every namespace has.
const DEFAULT: &str = "default";

/// Makes the account `default` in every namespace; the keys are namespaces.
pub struct ServiceAccounts {
    context: Context,
    namespaces: Arc<Cache>,
    accounts: Arc<Cache>,
}

impl Controller for ServiceAccounts {
    const NAME: &'static str = "serviceaccount-controller";
    const WORKERS: usize = 1;

    fn new(wiring: &mut Wiring) -> Self {
        let namespaces = wiring.cache(&NAMESPACES);
        let named = Selection {
            field_selector: format!("metadata.name={DEFAULT}"),
            metadata_only: true,
            ..Selection::default()
        };
        let accounts = wiring.cache_of(&SERVICE_ACCOUNTS, named);
        wiring.on(&namespaces, |change, queue| {
            if !change.is_deletion() {
                queue.add(change.object().name().to_owned());
            }
        });
        wiring.on(&accounts, |change, queue| {
            if change.is_deletion() {
                queue.add(change.object().namespace().to_owned());
            }
        });
        ServiceAccounts { context: wiring.context().clone(), namespaces, accounts }
    }

    async fn sync(&self, namespace: &str) -> Result<Option<Duration>> {
        let active = self.namespaces.get("", namespace).is_some_and(|n| is_active(&n));
        if !active || self.accounts.get(namespace, DEFAULT).is_some() {
            return Ok(None);
        }
        let account = map! { "metadata" => map! { "name" => DEFAULT, "namespace" => namespace } };
        match self.context.api(&SERVICE_ACCOUNTS).create(namespace, &Value::Object(account)).await {
            Err(error) if !error.is_already_exists() && !error.is_namespace_terminating() => Err(error),
            _ => Ok(None),
        }
    }
}

/// Whether a namespace is not going away.
pub(crate) fn is_active(namespace: &Value) -> bool {
    namespace.str_at(&["status", "phase"]) == Some("Active")
}
