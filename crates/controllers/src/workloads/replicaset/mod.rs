//! ReplicaSets and ReplicationControllers: so many pods of a template.

mod status;

use super::batches::slow_start;
use super::claim::Claimer;
use super::expectations::Expectations;
use super::owned::{self, ReadSelector};
use super::{meta, pods, ranking};
use crate::pod_control::PodControl;
use crate::{Context, Controller, Wiring};
use client::resources::{PODS, REPLICA_SETS, REPLICATION_CONTROLLERS};
use client::{Cache, Resource, Result};
use kinds::read::Read;
use object::Value;
use object::selector::Labels;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The most pods that are created or deleted at a time.
const BURST: usize = 500;

/// `replicaset-controller`
pub(crate) struct ReplicaSets(Sets);

/// `replicationcontroller-controller`
pub(crate) struct ReplicationControllers(Sets);

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset-controller";

    fn new(wiring: &mut Wiring) -> Self {
        ReplicaSets(Sets::new(wiring, REPLICA_SETS, "replicaset-controller", owned::selector))
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        self.0.sync(key).await
    }
}

impl Controller for ReplicationControllers {
    const NAME: &'static str = "replicationcontroller-controller";

    fn new(wiring: &mut Wiring) -> Self {
        ReplicationControllers(Sets::new(wiring, REPLICATION_CONTROLLERS, "replication-controller", plain_selector))
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        self.0.sync(key).await
    }
}

/// The selector of a ReplicationController, which is a map of labels.
fn plain_selector(owner: &Value) -> Option<Labels> {
    let labels = meta::spec(owner).get("selector").filter(|s| s.as_object().is_some())?;
    let selector = object::map! { "matchLabels" => labels.clone() };
    Labels::from_object(&selector.into()).ok()
}

/// Sets of one kind.
struct Sets {
    context: Context,
    resource: Resource,
    read_selector: ReadSelector,
    sets: Arc<Cache>,
    pods: Arc<Cache>,
    control: PodControl,
    expectations: Arc<Expectations>,
}

impl Sets {
    fn new(wiring: &mut Wiring, resource: Resource, component: &str, read_selector: ReadSelector) -> Self {
        let sets = wiring.cache(&resource);
        let pods = wiring.cache(&PODS);
        let expectations: Arc<Expectations> = Arc::default();
        wiring.on_own(&sets);
        owned::watch(wiring, &pods, &sets, &resource, read_selector, Some(expectations.clone()));
        owned::index(&sets);
        let context = wiring.context().clone();
        let control = PodControl::new(context.client(), context.recorder(component));
        Sets { context, resource, read_selector, sets, pods, control, expectations }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(set) = self.sets.get_key(key) else {
            self.expectations.forget(key);
            return Ok(None);
        };
        let Some(selector) = (self.read_selector)(&set) else { return Ok(None) };
        let in_step = self.expectations.satisfied(key);
        let mut active = owned::candidates(&self.pods, &set);
        active.retain(|pod| pods::is_active(pod));
        let claimer = Claimer::new(&set, self.context.api(&self.resource), self.context.api(&PODS));
        let active = claimer.claim(active, |pod| selector.matches_object(pod)).await?;
        let managed = if in_step && !meta::is_deleting(&set) { self.manage(key, &set, &active).await } else { Ok(()) };
        let now = self.context.now();
        let status = status::status(&set, &active, managed.as_ref().err(), now);
        status::write(&self.context.api(&self.resource), &set, status).await?;
        managed?;
        let min_ready_seconds = meta::min_ready_seconds(&set);
        let mut again = pods::next_available(active.iter().map(|pod| &**pod), min_ready_seconds, now);
        if in_step && active.len().abs_diff(usize::try_from(meta::replicas(&set)).unwrap_or_default()) > BURST {
            again = Some(Duration::ZERO);
        }
        Ok(again)
    }

    /// Creates or deletes pods until there are as many as wanted.
    async fn manage(&self, key: &str, set: &Value, active: &[Arc<Value>]) -> Result<()> {
        let wanted = usize::try_from(meta::replicas(set)).unwrap_or_default();
        if active.len() < wanted {
            return self.create(key, set, (wanted - active.len()).min(BURST)).await;
        }
        if active.len() > wanted {
            return self.delete(key, set, active, (active.len() - wanted).min(BURST)).await;
        }
        Ok(())
    }

    async fn create(&self, key: &str, set: &Value, count: usize) -> Result<()> {
        self.expectations.expect(key, count, []);
        let template = meta::template(set);
        let (created, outcome) =
            slow_start(count, |_| pods::create(&self.control, set, &self.resource, template)).await;
        self.expectations.less_creations(key, count - created);
        // In a namespace that goes away every further creation fails, too; there is nothing to be done about it.
        outcome.or_else(|error| if error.is_namespace_terminating() { Ok(()) } else { Err(error) })
    }

    async fn delete(&self, key: &str, set: &Value, active: &[Arc<Value>], count: usize) -> Result<()> {
        let doomed = ranking::to_delete(active, &self.related(set), count, self.context.now());
        self.expectations.expect(key, 0, doomed.iter().map(|pod| client::cache::key(pod)));
        pods::delete(&self.control, set, &doomed, |pod| self.expectations.deleted(key, pod)).await
    }

    /// The pods of all sets with the same controller: those of one Deployment.
    fn related(&self, set: &Value) -> Vec<Arc<Value>> {
        let Some(uid) = crate::controller_of(set).map(|r| r.text("uid")).filter(|uid| !uid.is_empty()) else {
            return Vec::new();
        };
        let mut seen = HashSet::new();
        let mut related = Vec::new();
        for sibling in owned::controlled_by_uid(&self.sets, uid) {
            for pod in owned::controlled(&self.pods, &sibling) {
                if seen.insert(meta::uid(&pod).to_owned()) {
                    related.push(pod);
                }
            }
        }
        related
    }
}
