//! For whom the volumes of a pod need tokens.

use crate::registry::Stored;
use object::Value;
use store::Store;

/// Whether a volume of a pod needs a token for somebody: a projected token, or that of a driver, whichever way the volume
/// leads to it. The error says what could not be found on the way, unless another volume needs the token.
pub(super) async fn names(store: &dyn Store, pod: &Value, audience: &str) -> Result<bool, String> {
    let mut failed = Vec::new();
    for volume in list(pod, &["spec", "volumes"]) {
        let tokens = list(volume, &["projected", "sources"]).iter().filter_map(|s| s.get("serviceAccountToken"));
        if tokens.into_iter().any(|token| token.str_at(&["audience"]).unwrap_or_default() == audience) {
            return Ok(true);
        }
        match needs(store, pod, volume, audience).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => failed.push(why),
        }
    }
    match failed.as_slice() {
        [] => Ok(false),
        [one] => Err(one.clone()),
        all => Err(format!("[{}]", all.join(", "))),
    }
}

/// Whether the driver of a volume needs a token for somebody.
async fn needs(store: &dyn Store, pod: &Value, volume: &Value, audience: &str) -> Result<bool, String> {
    let driver = if let Some(driver) = volume.str_at(&["csi", "driver"]) {
        driver.to_owned()
    } else if let Some(claim) = volume.str_at(&["persistentVolumeClaim", "claimName"]) {
        driver_of_claim(store, pod.namespace(), claim).await?
    } else if volume.get("ephemeral").is_some_and(|e| !e.is_null()) {
        let name = volume.str_at(&["name"]).unwrap_or_default();
        driver_of_claim(store, pod.namespace(), &format!("{}-{name}", pod.name())).await?
    } else {
        return Ok(false);
    };
    if driver.is_empty() {
        return Ok(false);
    }
    let driver = get(store, "csidrivers", "csidriver.storage.k8s.io", &driver, &driver).await?;
    let mut requests = list(&driver, &["spec", "tokenRequests"]).iter();
    Ok(requests.any(|request| request.str_at(&["audience"]).unwrap_or_default() == audience))
}

/// The driver of the volume that a claim has; empty if it has none, or one without a driver.
async fn driver_of_claim(store: &dyn Store, namespace: &str, name: &str) -> Result<String, String> {
    let place = format!("{namespace}/{name}");
    let claim = get(store, "persistentvolumeclaims", "persistentvolumeclaim", &place, name).await?;
    let Some(volume) = claim.str_at(&["spec", "volumeName"]).filter(|name| !name.is_empty()) else {
        return Ok(String::new());
    };
    let volume = get(store, "persistentvolumes", "persistentvolume", volume, volume).await?;
    Ok(volume.str_at(&["spec", "csi", "driver"]).unwrap_or_default().to_owned())
}

async fn get(store: &dyn Store, plural: &str, kind: &str, place: &str, name: &str) -> Result<Value, String> {
    let entry = store.get(&format!("/registry/{plural}/{place}"), None).await.map_err(|error| error.to_string())?;
    let stored = entry.and_then(|entry| Stored::read(entry.value));
    stored.map(|stored| stored.value(0)).ok_or_else(|| format!("{kind} {} not found", object::go::quote(name)))
}

fn list<'v>(object: &'v Value, path: &[&str]) -> &'v [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}
