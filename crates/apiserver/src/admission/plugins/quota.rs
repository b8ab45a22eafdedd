//! ResourceQuota: charges the quotas of a namespace before something is written, and gives back what was not needed.

use super::{Asked, Plugin};
use crate::Server;
use crate::answer::{Failure, Outcome};
use http::Method;
use jiff::Timestamp;
use kinds::admission::quota::{self, Request};
use object::{Map, Status, Value};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};

/// One namespace is charged by one request at a time; namespaces that share a lock only wait for each other.
static CHARGING: [Mutex<()>; 32] = [const { Mutex::const_new(()) }; 32];
/// How often a quota that somebody else writes at the same time is tried.
const TRIES: usize = 10;

async fn lock(namespace: &str) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    namespace.hash(&mut hasher);
    let index = usize::try_from(hasher.finish() % CHARGING.len() as u64).unwrap_or(0);
    CHARGING[index].lock().await
}

/// What was charged for a write. It has to be given back if the write does not take place.
#[derive(Default)]
pub(crate) struct Charge(Option<Box<Charged>>);

struct Charged {
    server: Arc<Server>,
    namespace: String,
    group: String,
    plural: String,
    subresource: String,
    object: Value,
    old: Option<Value>,
    now: Timestamp,
    quotas: Vec<String>,
}

impl Charged {
    fn request(&self) -> Request<'_> {
        Request {
            group: &self.group,
            plural: &self.plural,
            subresource: &self.subresource,
            object: &self.object,
            old: self.old.as_ref(),
            now: self.now,
        }
    }
}

impl Charge {
    /// Gives back what was charged. What cannot be given back is found by whoever counts anew.
    pub async fn give_back(self) {
        let Some(charged) = self.0 else { return };
        let _lock = lock(&charged.namespace).await;
        for name in &charged.quotas {
            for _ in 0..TRIES {
                let path = path(&charged.namespace, name);
                let Ok(quota) = charged.server.own_request(Method::GET, &path, None).await else { break };
                let used = quota::refund(&quota, &charged.request());
                match put(&charged.server, &charged.namespace, quota, used).await {
                    Err(Failure::Object(409, _)) => {}
                    _ => break,
                }
            }
        }
    }
}

fn path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/resourcequotas/{name}")
}

async fn put(server: &Arc<Server>, namespace: &str, mut quota: Value, used: Map) -> Outcome<Value> {
    quota.set_at(&["status", "used"], Value::Object(used));
    let path = format!("{}/status", path(namespace, quota.name()));
    server.own_request(Method::PUT, &path, Some(&quota)).await
}

/// Charges for a write, or refuses it. A dry run is judged and not charged.
pub(super) async fn charge(asked: Asked<'_>, object: &Value) -> Outcome<Charge> {
    const UNCOUNTED: [&str; 2] = ["events", "bindings"];
    let resource = asked.resource;
    let request = Request {
        group: &resource.group,
        plural: &resource.plural,
        subresource: asked.subresource,
        object,
        old: asked.old,
        now: asked.now,
    };
    if asked.namespace.is_empty()
        || !request.counts()
        || UNCOUNTED.contains(&resource.plural.as_str())
        || !asked.has(Plugin::ResourceQuota)
    {
        return Ok(Charge::default());
    }
    let prefix = format!("/registry/resourcequotas/{}/", asked.namespace);
    if asked.list(&prefix)?.is_empty() {
        return Ok(Charge::default());
    }
    let lock = lock(asked.namespace).await;
    let mut charged = Vec::new();
    let outcome = charge_all(asked, object, &request, &prefix, &mut charged).await;
    drop(lock);
    if charged.is_empty() {
        return outcome.map(|()| Charge::default());
    }
    let charge = Charge(Some(Box::new(Charged {
        server: asked.server.clone(),
        namespace: asked.namespace.to_owned(),
        group: resource.group.clone(),
        plural: resource.plural.clone(),
        subresource: asked.subresource.to_owned(),
        object: object.clone(),
        old: asked.old.cloned(),
        now: asked.now,
        quotas: charged,
    })));
    match outcome {
        Ok(()) => Ok(charge),
        Err(failure) => {
            charge.give_back().await;
            Err(failure)
        }
    }
}

async fn charge_all(
    asked: Asked<'_>,
    object: &Value,
    request: &Request<'_>,
    prefix: &str,
    charged: &mut Vec<String>,
) -> Outcome<()> {
    for _ in 0..TRIES {
        if let Some(why) = quota::negative(request) {
            return Err(asked.forbid(object, &why));
        }
        // All agree before the first is charged.
        let mut wanted = Vec::new();
        for quota in asked.newest(prefix).await? {
            if charged.iter().any(|name| name == quota.name()) {
                continue;
            }
            match quota::charge(&quota, request) {
                Err(why) => return Err(asked.forbid(object, &why)),
                Ok(Some(used)) => wanted.push((quota, used)),
                Ok(None) => {}
            }
        }
        if asked.dry_run {
            return Ok(());
        }
        let mut again = false;
        for (quota, used) in wanted {
            let name = quota.name().to_owned();
            match put(asked.server, asked.namespace, quota, used).await {
                Ok(_) => charged.push(name),
                // Somebody else wrote it, or it is gone.
                Err(Failure::Object(404 | 409, _)) => again = true,
                Err(failure) => return Err(failure),
            }
        }
        if !again {
            return Ok(());
        }
    }
    Err(Status::modified(object::status::Qualified { group: "", name: "resourcequotas" }, "").into())
}
