//! `serviceaccount-token-controller`: fills the Secrets that ask for the token of a service account, and deletes them
//! with the account.

use crate::context::Context;
use crate::controller::{Controller, Wiring};
use apiserver::auth::Bound;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::cache::Selection;
use client::resources::{SECRETS, SERVICE_ACCOUNTS};
use client::{Cache, DeleteParams, Error, Result};
use object::Value;
use std::sync::Arc;
use std::time::Duration;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Fills token Secrets; the keys are theirs.
pub struct Tokens {
    context: Context,
    accounts: Arc<Cache>,
    secrets: Arc<Cache>,
}

impl Controller for Tokens {
    const NAME: &'static str = "serviceaccount-token-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let accounts = wiring.cache(&SERVICE_ACCOUNTS);
        let of_type = Selection { field_selector: format!("type={TYPE}"), ..Selection::default() };
        let secrets = wiring.cache_of(&SECRETS, of_type);
        secrets
            .index(ACCOUNT, |secret| vec![place(secret.namespace(), secret.annotation(ACCOUNT).unwrap_or_default())]);
        wiring.on_own(&secrets);
        let held = secrets.clone();
        wiring.on(&accounts, move |change, queue| {
            let account = change.object();
            for secret in held.indexed(ACCOUNT, &place(account.namespace(), account.name())) {
                queue.add(client::cache::key(&secret));
            }
        });
        Tokens { context: wiring.context().clone(), accounts, secrets }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        match self.secrets.get_key(key) {
            None => self.forget(key).await?,
            Some(secret) => match self.account(&secret).await? {
                None => self.delete(&secret).await?,
                Some(uid) => self.fill(&secret, &uid).await?,
            },
        }
        Ok(None)
    }
}

fn place(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Tokens {
    /// The uid of the account that a Secret is for; nothing if it is not there (any more).
    async fn account(&self, secret: &Value) -> Result<Option<String>> {
        let (namespace, name) = (secret.namespace(), secret.annotation(ACCOUNT).unwrap_or_default());
        let wanted = secret.annotation(ACCOUNT_UID).unwrap_or_default();
        let is_it = |account: &Value| wanted.is_empty() || account.meta_str("uid") == wanted;
        if let Some(account) = self.accounts.get(namespace, name).filter(|a| is_it(a)) {
            return Ok(Some(account.meta_str("uid").to_owned()));
        }
        // The cache may be behind.
        if name.is_empty() {
            return Ok(None);
        }
        let account = self.context.api(&SERVICE_ACCOUNTS).find(namespace, name).await?;
        Ok(account.filter(is_it).map(|account| account.meta_str("uid").to_owned()))
    }

    async fn delete(&self, secret: &Value) -> Result<()> {
        let params = DeleteParams::default().with_uid(secret.meta_str("uid"));
        match self.context.api(&SECRETS).delete(secret.namespace(), secret.name(), &params).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts into a Secret what it lacks.
    async fn fill(&self, secret: &Value, account: &str) -> Result<()> {
        if Lacks::of(secret, &self.context.settings().root_ca).is_nothing() {
            return Ok(());
        }
        let api = self.context.api(&SECRETS);
        let Some(mut fresh) = api.find(secret.namespace(), secret.name()).await? else { return Ok(()) };
        let root_ca = &self.context.settings().root_ca;
        let lacks = Lacks::of(&fresh, root_ca);
        if fresh.meta_str("uid") != secret.meta_str("uid") || lacks.is_nothing() {
            return Ok(());
        }
        let mut put = |key: &str, text: &str| fresh.set_at(&["data", key], STANDARD.encode(text).into());
        if lacks.authority {
            put("ca.crt", root_ca);
        }
        if lacks.namespace {
            put("namespace", secret.namespace());
        }
        if lacks.token {
            put("token", &self.sign(secret, account)?);
        }
        let name = secret.annotation(ACCOUNT).unwrap_or_default();
        fresh.set_at(&["metadata", "annotations", ACCOUNT], name.into());
        fresh.set_at(&["metadata", "annotations", ACCOUNT_UID], account.into());
        match api.update(&fresh).await {
            // What was written meanwhile comes by itself.
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    fn sign(&self, secret: &Value, uid: &str) -> Result<String> {
        let name = secret.annotation(ACCOUNT).unwrap_or_default().to_owned();
        let tokens = self.context.server().tokens();
        let accounts = tokens.accounts.as_ref().ok_or_else(|| Error::Content("tokens cannot be signed".to_owned()))?;
        let account = Bound { name, uid: uid.to_owned() };
        let signed = accounts.sign_legacy(secret.namespace(), &account, secret.name());
        signed.map_err(|e| Error::Content(e.to_string()))
    }

    /// A Secret is gone: its account names it no more.
    async fn forget(&self, key: &str) -> Result<()> {
        let Some((namespace, name)) = key.split_once('/') else { return Ok(()) };
        let named = |r: &Value| r.str_at(&["name"]) == Some(name);
        let names = |account: &Value| {
            account.get("secrets").and_then(Value::as_array).is_some_and(|list| list.iter().any(named))
        };
        let api = self.context.api(&SERVICE_ACCOUNTS);
        for account in self.accounts.in_namespace(namespace).iter().filter(|account| names(account)) {
            let Some(mut account) = api.find(namespace, account.name()).await?.filter(names) else { continue };
            if let Some(list) = account.get_mut("secrets").and_then(Value::as_array_mut) {
                list.retain(|r| !named(r));
            }
            match api.update(&account).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a token Secret lacks.
#[derive(Debug, PartialEq, Eq)]
struct Lacks {
    authority: bool,
    namespace: bool,
    token: bool,
}

impl Lacks {
    fn of(secret: &Value, root_ca: &str) -> Self {
        let held = |key: &str| secret.at(&["data", key]).and_then(Value::as_str).unwrap_or_default();
        let authority = !root_ca.is_empty() && held("ca.crt") != STANDARD.encode(root_ca);
        Lacks { authority, namespace: held("namespace").is_empty(), token: held("token").is_empty() }
    }

    fn is_nothing(&self) -> bool {
        !self.authority && !self.namespace && !self.token
    }
}
