//! `resourcequota-controller`: counts what a quota limits.
//!
//! Admission charges quotas for what is created; here everything is counted anew when a quota changes, when something
//! goes, when pods, services and claims change, and a while after something came.

use crate::context::{self, Context};
use crate::controller::{Controller, Wiring};
use crate::runner::Running;
use crate::writes;
use client::resources::RESOURCE_QUOTAS;
use client::{Cache, ListParams, Resource, Result};
use jiff::Timestamp;
use kinds::admission::quota::{is_about, usage, within_scopes};
use kinds::quantity::Quantity;
use object::{Map, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Range;

/// How long to wait for further deletions.
const AFTER_DELETION: Duration = Duration::from_millis(20);
/// When what was created is counted: admission has charged it already.
const AFTER_CREATION: Duration = Duration::from_secs(1);
/// How long a quota has to stay as it is before less is counted than it says: what was charged may not be written yet.
const SETTLED: Duration = Duration::from_millis(300);
/// Kinds whose objects take more or less as they change.
const CHANGING: [&str; 3] = ["/registry/pods/", "/registry/services/", "/registry/persistentvolumeclaims/"];

/// Counts for quotas; the keys are theirs.
pub struct ResourceQuotas {
    context: Context,
    /// The quotas of which less was counted than they say: in which version, and since when.
    doubted: Mutex<HashMap<String, (String, Instant)>>,
    /// Follows all writes while there are quotas.
    _following: Arc<Mutex<Option<Running>>>,
}

impl Controller for ResourceQuotas {
    const NAME: &'static str = "resourcequota-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let quotas = wiring.cache(&RESOURCE_QUOTAS);
        let following: Arc<Mutex<Option<Running>>> = Arc::default();
        let context = wiring.context().clone();
        let (slot, held) = (Arc::downgrade(&following), quotas.clone());
        wiring.on(&quotas, move |change, queue| {
            if !change.is_deletion() {
                queue.add(change.key());
            }
            let Some(slot) = slot.upgrade() else { return };
            let mut slot = slot.lock();
            if held.is_empty() {
                *slot = None;
            } else if slot.is_none() {
                *slot = Some(follow(&context, &held, queue));
            }
        });
        ResourceQuotas { context: wiring.context().clone(), doubted: Mutex::default(), _following: following }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some((namespace, name)) = key.split_once('/') else { return Ok(None) };
        let api = self.context.api(&RESOURCE_QUOTAS);
        // What is charged between this and the write makes the write fail, and is counted then.
        let Some(mut quota) = api.find(namespace, name).await? else {
            self.doubted.lock().remove(key);
            return Ok(None);
        };
        let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let used = self.count(namespace, &quota, &hard).await?;
        if let Some(wait) = self.doubt(key, &quota, &used) {
            return Ok(Some(wait));
        }
        if let Some(status) = status(&quota, hard, used) {
            quota.set_at(&["status"], status);
            match api.update_status(&quota).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Lets changes of objects be counted.
fn follow(context: &Context, quotas: &Arc<Cache>, queue: &client::Queue) -> Running {
    let (held, again) = (quotas.clone(), queue.clone());
    let missed = move || held.list().iter().for_each(|quota| again.add(client::cache::key(quota)));
    let (quotas, queue) = (quotas.clone(), queue.clone());
    writes::follow(context, missed, move |event| {
        let wait = match (&event.previous, &event.value) {
            (_, None) => AFTER_DELETION,
            (None, _) => AFTER_CREATION,
            _ if CHANGING.iter().any(|prefix| event.key.starts_with(prefix)) => AFTER_DELETION,
            _ => return,
        };
        for quota in quotas.in_namespace(writes::namespace(&event.key)) {
            queue.after(client::cache::key(&quota), wait);
        }
    })
}

impl ResourceQuotas {
    /// How long to wait before a quota is believed to take less than it says.
    fn doubt(&self, key: &str, quota: &Value, counted: &BTreeMap<String, Quantity>) -> Option<Duration> {
        let mut doubted = self.doubted.lock();
        if !takes_less(quota, counted) {
            doubted.remove(key);
            return None;
        }
        let version = quota.meta_str("resourceVersion");
        match doubted.get(key).filter(|(held, _)| held == version) {
            Some((_, since)) if since.elapsed() >= SETTLED => {
                doubted.remove(key);
                None
            }
            Some((_, since)) => Some(SETTLED.saturating_sub(since.elapsed())),
            None => {
                doubted.insert(key.to_owned(), (version.to_owned(), Instant::now()));
                Some(SETTLED)
            }
        }
    }

    /// What the objects of a namespace take of a quota.
    async fn count(&self, namespace: &str, quota: &Value, hard: &Map) -> Result<BTreeMap<String, Quantity>> {
        let mut out = BTreeMap::new();
        for (resource, prefix) in self.counted(hard) {
            let names: Vec<&str> =
                hard.keys().filter(|name| is_about(&resource.group, &resource.plural, name)).collect();
            let range = Range::prefix(format!("{prefix}{namespace}/"));
            let count = self.context.server().store().count(&range).await.unwrap_or(0);
            let mut add = |name: &str, amount: Quantity| {
                let sum: &mut Quantity = out.entry(name.to_owned()).or_insert_with(|| Quantity::of_integer(0));
                // The sum is written as its parts are.
                *sum = if sum.sign().is_eq() { amount } else { sum.plus(amount) };
            };
            names.iter().for_each(|name| add(name, Quantity::of_integer(0)));
            if count == 0 {
                continue;
            }
            let now = self.context.now();
            for object in self.objects(namespace, &resource, quota, &names).await? {
                let taken = taken(quota, &resource, &object, now);
                for (name, amount) in taken.into_iter().filter(|(name, _)| names.contains(&name.as_str())) {
                    add(&name, amount);
                }
            }
        }
        Ok(out)
    }

    /// The objects of a namespace; only their metadata where that is enough.
    async fn objects(&self, namespace: &str, resource: &Resource, quota: &Value, names: &[&str]) -> Result<Vec<Value>> {
        let scoped = quota.at(&["spec", "scopes"]).is_some() || quota.at(&["spec", "scopeSelector"]).is_some();
        let plain = |name: &&str| name.starts_with("count/") || **name == *resource.plural;
        let pods = resource.group.is_empty() && resource.plural == "pods";
        let metadata_only = !scoped && names.iter().all(plain) && !pods;
        let list = ListParams { metadata_only, ..ListParams::default() };
        Ok(self.context.api(resource).list(namespace, &list).await?.items)
    }

    /// The resources that some limit is about, with what their keys start with.
    fn counted(&self, hard: &Map) -> Vec<(Resource, String)> {
        let catalogue = self.context.server().catalogue();
        let mut seen = BTreeSet::new();
        let wanted = |r: &&Arc<apiserver::catalogue::Resource>| {
            r.namespaced && r.verbs.contains(&"list") && hard.keys().any(|name| is_about(&r.group, &r.plural, name))
        };
        let found = catalogue.resources().filter(wanted).filter(|r| seen.insert((r.group.clone(), r.plural.clone())));
        found.map(|r| (context::resource(r), r.storage.prefix.clone())).collect()
    }
}

/// What an object takes of a quota.
fn taken(quota: &Value, resource: &Resource, object: &Value, now: Timestamp) -> BTreeMap<String, Quantity> {
    if !within_scopes(quota, &resource.group, &resource.plural, object) {
        return BTreeMap::new();
    }
    usage(&resource.group, &resource.plural, object, now)
}

/// Whether less was counted than a quota says.
fn takes_less(quota: &Value, counted: &BTreeMap<String, Quantity>) -> bool {
    let held = |name: &str| quota.at(&["status", "used", name]).and_then(Value::as_str);
    let held = |name: &str| held(name).and_then(|text| Quantity::parse(text).ok());
    counted.iter().any(|(name, amount)| held(name).is_some_and(|held| amount.minus(held).sign().is_lt()))
}

/// The status that a quota should have; nothing if it has it. What nobody counts keeps its value.
fn status(quota: &Value, hard: Map, counted: BTreeMap<String, Quantity>) -> Option<Value> {
    let held = |part: &str| quota.at(&["status", part]).and_then(Value::as_object);
    let mut used: Map = held("used").cloned().unwrap_or_default();
    used.retain(|name, _| hard.contains_key(name));
    for (name, amount) in counted {
        used.insert(name, amount.to_string());
    }
    let same = held("hard").is_some_and(|h| equal(h, &hard)) && held("used").is_some_and(|u| equal(u, &used));
    (!same).then(|| Value::Object(object::map! { "hard" => hard, "used" => used }))
}

/// Whether these are the same amounts, however they are written.
fn equal(a: &Map, b: &Map) -> bool {
    let amount = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    a.len() == b.len()
        && a.iter().all(|(name, value)| match (amount(value), b.get(name).and_then(amount)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, map};

    #[test]
    fn a_status_is_written_only_when_amounts_change() {
        let quota = |status: &str| {
            let text = format!(r#"{{"spec":{{"hard":{{"pods":"2","x":"1"}}}},"status":{status}}}"#);
            json::parse(text.as_bytes()).unwrap()
        };
        let hard = map! { "pods" => "2", "x" => "1" };
        let counted = || BTreeMap::from([("pods".to_owned(), Quantity::of_integer(1))]);
        let held = r#"{"hard":{"pods":"2000m","x":"1"},"used":{"pods":"1","x":"7"}}"#;
        assert_eq!(status(&quota(held), hard.clone(), counted()), None);
        assert!(!takes_less(&quota(held), &counted()));
        assert!(takes_less(&quota(r#"{"used":{"pods":"2"}}"#), &counted()));
        let first = status(&quota("{}"), hard, counted()).unwrap();
        assert_eq!(json::to_string(&first), r#"{"hard":{"pods":"2","x":"1"},"used":{"pods":"1"}}"#);
    }
}
