//! Deployments: rollouts of ReplicaSets.

mod numbers;
mod revision;
mod rollback;
mod rolling;
mod scale;
mod sets;
mod status;
mod work;

use super::claim::Claimer;
use super::owned;
use super::{meta, pods};
use crate::{Context, Controller, Wiring, controller_of};
use client::events::{EventType, Recorder};
use client::resources::{DEPLOYMENTS, PODS, REPLICA_SETS};
use client::{Cache, Result};
use kinds::read::Read;
use numbers::Strategy;
use object::Value;
use std::sync::Arc;
use std::time::Duration;
use work::Work;

/// `deployment-controller`
pub(crate) struct Deployments {
    context: Context,
    recorder: Recorder,
    deployments: Arc<Cache>,
    sets: Arc<Cache>,
    pods: Arc<Cache>,
}

impl Controller for Deployments {
    const NAME: &'static str = "deployment-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let deployments = wiring.cache(&DEPLOYMENTS);
        let sets = wiring.cache(&REPLICA_SETS);
        let pods = wiring.cache(&PODS);
        wiring.on_own(&deployments);
        owned::watch(wiring, &sets, &deployments, &DEPLOYMENTS, owned::selector, None);
        owned::index(&pods);
        // A Deployment that recreates its pods waits until the last old one is gone.
        let (all, owners) = (deployments.clone(), sets.clone());
        wiring.on(&pods, move |change, queue| {
            if !change.is_deletion() {
                return;
            }
            let pod = change.object();
            let name = |object: &Value| controller_of(object).map(|r| r.text("name").to_owned());
            let set = name(pod).and_then(|name| owners.get(pod.namespace(), &name));
            let deployment = set.and_then(|set| name(&set)).and_then(|name| all.get(pod.namespace(), &name));
            if let Some(deployment) = deployment.filter(|d| numbers::strategy(d) == Strategy::Recreate) {
                queue.add(client::cache::key(&deployment));
            }
        });
        let context = wiring.context().clone();
        let recorder = context.recorder("deployment-controller");
        Deployments { context, recorder, deployments, sets, pods }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(deployment) = self.deployments.get_key(key) else { return Ok(None) };
        if owned::selects_all(&deployment) {
            return self.refuse(&deployment).await.map(|()| None);
        }
        let Some(selector) = owned::selector(&deployment) else { return Ok(None) };
        let (owners, objects) = (self.context.api(&DEPLOYMENTS), self.context.api(&REPLICA_SETS));
        let claimer = Claimer::new(&deployment, owners, objects);
        let candidates = owned::candidates(&self.sets, &deployment);
        let sets = claimer.claim(candidates, |set| selector.matches_object(set)).await?;
        Work::new(self, (*deployment).clone(), sets).run().await
    }
}

impl Deployments {
    /// Says that a selector of everything is not followed.
    async fn refuse(&self, deployment: &Value) -> Result<()> {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        self.recorder.event(deployment, EventType::Warning, "SelectingAll", message);
        let generation = meta::generation(deployment);
        if meta::status(deployment).int("observedGeneration") < generation {
            let mut deployment = deployment.clone();
            deployment.set_at(&["status", "observedGeneration"], generation.into());
            self.context.api(&DEPLOYMENTS).update_status(&deployment).await?;
        }
        Ok(())
    }

    /// Whether pods of old sets still run, or may.
    fn old_pods_run(&self, sets: &[Arc<Value>], new: Option<&Arc<Value>>, old: &[Arc<Value>]) -> bool {
        numbers::counted(old, "replicas") > 0
            || sets
                .iter()
                .filter(|set| new.is_none_or(|new| !meta::is_same(new, set)))
                .any(|set| owned::controlled(&self.pods, set).iter().any(|pod| !pods::is_terminal(pod)))
    }
}
