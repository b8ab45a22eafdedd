//! StorageObjectInUseProtection and PersistentVolumeClaimResize.

use super::{Asked, Plugin};
use crate::answer::Outcome;
use kinds::admission::additions;
use kinds::quantity::Quantity;
use object::Value;

/// Keeps a new volume or claim until nobody uses it.
pub(super) fn protect(asked: Asked<'_>, object: &mut Value, finalizer: &str) {
    if asked.creates() && asked.has(Plugin::StorageObjectInUseProtection) {
        additions::protect(object, finalizer);
    }
}

/// Lets claims grow only where their class of storage can.
pub(super) async fn check_resize(asked: Asked<'_>, claim: &Value) -> Outcome<()> {
    let Some(old) = asked.old.filter(|_| asked.updates() && asked.has(Plugin::PersistentVolumeClaimResize)) else {
        return Ok(());
    };
    let size = |claim: &Value| {
        let text = claim.str_at(&["spec", "resources", "requests", "storage"]);
        text.and_then(|t| Quantity::parse(t).ok()).unwrap_or(Quantity::of_integer(0))
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old.str_at(&["status", "phase"]) != Some("Bound") {
        return Err(asked.forbid(claim, "only bound persistent volume claims can be expanded"));
    }
    let named = |claim: &Value| {
        let old = claim.str_at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
        old.or(claim.str_at(&["spec", "storageClassName"])).unwrap_or_default().to_owned()
    };
    let class = named(claim);
    let grows = if class.is_empty() || class != named(old) {
        false
    } else {
        let class = asked.get(&format!("/registry/storageclasses/{class}")).await?;
        class.is_some_and(|c| c.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true))
    };
    if grows {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(asked.forbid(claim, why))
}
