//! How many pods the controllers of pods want.

use super::Failure;
use crate::{Context, Wiring, pods};
use client::resources::{DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS};
use client::{Cache, Resource};
use kinds::read::Read;
use object::{Value, go};
use std::collections::HashMap;
use std::sync::Arc;

/// What controllers want altogether.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// The sum of what they want.
    pub replicas: i64,
    /// Whether there are pods without a controller.
    pub unmanaged: bool,
}

/// Knows what the built-in controllers want; others are asked by their scale.
pub struct Scales {
    caches: Vec<(Resource, Arc<Cache>)>,
}

/// What became of looking for a controller.
enum Found {
    /// It wants so many, and has this uid.
    Scale(String, i64),
    /// It is not there.
    Nothing,
    /// It is of another kind.
    Unknown,
}

impl Scales {
    pub(super) fn new(wiring: &mut Wiring) -> Self {
        let resources = [REPLICATION_CONTROLLERS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS];
        Scales { caches: resources.into_iter().map(|r| (r.clone(), wiring.cache(&r))).collect() }
    }

    /// What the controllers of pods want.
    pub(super) async fn of(&self, context: &Context, pods: &[&Value]) -> Result<Scale, Failure> {
        let mut known: HashMap<String, i64> = HashMap::new();
        let mut seen: HashMap<&str, ()> = HashMap::new();
        let mut out = Scale::default();
        for pod in pods {
            let Some(owner) = pods::controller_of(pod) else {
                out.unmanaged = true;
                continue;
            };
            if seen.insert(owner.text("uid"), ()).is_some() {
                continue;
            }
            let found = match self.built_in(owner, pod.namespace()) {
                Found::Unknown => ask(context, owner, pod.namespace()).await?,
                found => found,
            };
            let Found::Scale(uid, replicas) = found else {
                return Err(Failure::Told(format!("found no controllers for pod {}", go::quote(pod.name()))));
            };
            known.insert(uid, replicas);
        }
        out.replicas = known.values().fold(0, |sum, n| sum.saturating_add(*n));
        Ok(out)
    }

    fn cached(&self, reference: &Value, namespace: &str) -> Option<(&Resource, Option<Arc<Value>>)> {
        let group = reference.text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let (resource, cache) =
            self.caches.iter().find(|(r, _)| r.kind == reference.text("kind") && r.group == group)?;
        let owner = cache.get(namespace, reference.text("name"));
        Some((resource, owner.filter(|o| o.meta_str("uid") == reference.text("uid"))))
    }

    fn built_in(&self, reference: &Value, namespace: &str) -> Found {
        let Some((resource, owner)) = self.cached(reference, namespace) else { return Found::Unknown };
        let Some(owner) = owner else { return Found::Nothing };
        // A ReplicaSet may be a Deployment's.
        if *resource == REPLICA_SETS
            && let Some(above) = pods::controller_of(&owner)
            && above.text("kind") == "Deployment"
        {
            return match self.cached(above, namespace) {
                Some((_, Some(deployment))) => scale_of(&deployment),
                _ => Found::Nothing,
            };
        }
        scale_of(&owner)
    }
}

fn scale_of(owner: &Value) -> Found {
    let replicas = owner.sub("spec").opt_int("replicas").unwrap_or(1);
    Found::Scale(owner.meta_str("uid").to_owned(), replicas)
}

/// Asks a controller of any kind for its scale.
async fn ask(context: &Context, reference: &Value, namespace: &str) -> Result<Found, Failure> {
    let (api_version, kind) = (reference.text("apiVersion"), reference.text("kind"));
    let Some(resource) = context.client().resource_of(api_version, kind).await? else {
        let why = format!("no matches for kind {} in version {}", go::quote(kind), go::quote(api_version));
        return Err(Failure::Told(why));
    };
    let scale = context.api(&resource).get_subresource(namespace, reference.text("name"), "scale").await;
    match scale {
        Ok(scale) if scale.meta_str("uid") == reference.text("uid") => {
            Ok(Found::Scale(scale.meta_str("uid").to_owned(), scale.sub("spec").int("replicas")))
        }
        Ok(_) => Ok(Found::Nothing),
        Err(error) if error.is_not_found() => {
            // The object is not there, or things of this kind have no scale.
            let there = context.api(&resource).find(namespace, reference.text("name")).await?;
            if there.is_none() {
                return Ok(Found::Nothing);
            }
            let name = match &*resource.group {
                "" => resource.plural.to_string(),
                group => format!("{}.{group}", resource.plural),
            };
            Err(Failure::Told(format!("{name} does not implement the scale subresource")))
        }
        Err(error) => Err(error.into()),
    }
}
