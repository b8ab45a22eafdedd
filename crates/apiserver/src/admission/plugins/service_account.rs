//! ServiceAccount: finds a pod's account.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use crate::handlers::random_suffix;
use kinds::admission::service_account as rules;
use object::{Value, go};
use std::time::Duration;

/// How often the account that every namespace gets is looked for, and how long is waited in between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Gives a new pod its account and what that brings.
pub(super) async fn complete(asked: Asked<'_>, pod: &mut Value) -> Outcome<()> {
    if !asked.creates() || !asked.has(Plugin::ServiceAccount) || rules::is_mirror(pod) {
        return Ok(());
    }
    let name = rules::account_of(pod);
    let account = find(asked, pod, &name).await?;
    rules::equip(pod, &account, &random_suffix()?);
    Ok(())
}

/// Refuses pods that use what their account does not give.
pub(super) async fn check(asked: Asked<'_>, pod: &Value) -> Outcome<()> {
    let debugs = asked.old.is_some() && asked.subresource == "ephemeralcontainers";
    if !(asked.creates() || debugs) || !asked.has(Plugin::ServiceAccount) {
        return Ok(());
    }
    if rules::is_mirror(pod) {
        let refusal = rules::mirror_refusal(pod).filter(|_| !debugs);
        return refusal.map_or(Ok(()), |why| Err(asked.forbid(pod, why)));
    }
    let name = pod.str_at(&["spec", "serviceAccountName"]).unwrap_or_default();
    if name.is_empty() {
        let why = format!("no service account specified for pod {}/{}", asked.namespace, pod.name());
        return if debugs { Ok(()) } else { Err(asked.forbid(pod, &why)) };
    }
    let account = find(asked, pod, name).await?;
    if rules::enforces(&account)
        && let Some(why) = rules::secret_refusal(pod, &account, debugs)
    {
        return Err(asked.forbid(pod, &why));
    }
    Ok(())
}

/// The account. The one that every namespace gets may be on its way.
async fn find(asked: Asked<'_>, pod: &Value, name: &str) -> Outcome<Value> {
    let namespace = asked.namespace;
    let key = format!("/registry/serviceaccounts/{namespace}/{name}");
    let tries = if name == rules::DEFAULT { TRIES } else { 1 };
    for attempt in 1..=tries {
        if let Some(account) = asked.get(&key).await? {
            return Ok(account);
        }
        if attempt < tries {
            tokio::time::sleep(PAUSE).await;
        }
    }
    let quoted = go::quote(name);
    let why = format!("error looking up service account {namespace}/{name}: serviceaccount {quoted} not found");
    Err(asked.forbid(pod, &why))
}
