//! `disruption-controller`: says in the status of each PodDisruptionBudget how many of its pods may go.

mod rules;
mod scale;

use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{POD_DISRUPTION_BUDGETS, PODS};
use client::{Cache, Change, Queue, Result};
use kinds::read::Read;
use object::selector::Labels;
use object::{Value, go};
use scale::Scales;
use std::sync::Arc;
use std::time::Duration;

/// Marks keys of pods, which are looked at for marks of disruptions that did not come.
const POD: &str = "pod:";

/// Keeps the status of budgets.
pub struct Disruption {
    context: Context,
    budgets: Arc<Cache>,
    pods: Arc<Cache>,
    scales: Scales,
    recorder: Recorder,
}

/// Why a budget could not be looked after.
enum Failure {
    /// A request failed.
    Request(client::Error),
    /// The budget or its pods are not as they should be; the status tells it.
    Told(String),
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Failure::Request(error)
    }
}

impl Controller for Disruption {
    const NAME: &'static str = "disruption-controller";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (budgets, pods) = (wiring.cache(&POD_DISRUPTION_BUDGETS), wiring.cache(&PODS));
        let recorder = context.recorder("controllermanager");
        wiring.on_own(&budgets);
        let (all, events, clock) = (budgets.clone(), recorder.clone(), context.clock().clone());
        wiring.on(&pods, move |change, queue| {
            pod_change(change, queue, &all, &events);
            let stale = change.new.as_deref().and_then(|pod| rules::stale_disruption_in(pod, clock()));
            if let Some(wait) = stale {
                queue.after(format!("{POD}{}", change.key()), wait.try_into().unwrap_or_default());
            }
        });
        let scales = Scales::new(wiring);
        Disruption { context, budgets, pods, scales, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        if let Some(key) = key.strip_prefix(POD) {
            return self.clear_stale_mark(key).await;
        }
        let Some(budget) = self.budgets.get_key(key) else { return Ok(None) };
        let why = match self.look_after(&budget).await {
            Ok(again) => return Ok(again),
            Err(Failure::Request(error)) if error.is_conflict() => return Err(error),
            Err(Failure::Request(error)) => error.to_string(),
            Err(Failure::Told(why)) => why,
        };
        let failed = rules::failed(&budget, &why, self.context.now());
        self.context.api(&POD_DISRUPTION_BUDGETS).update_status(&failed).await?;
        Ok(None)
    }
}

/// A changed pod means work for the budgets that select it; of several upstream names one and tells the pod.
fn pod_change(change: &Change, queue: &Queue, budgets: &Cache, recorder: &Recorder) {
    let concerned = budgets.in_namespace(change.object().namespace());
    let selected = |pod: &Value| -> Vec<&Arc<Value>> {
        concerned.iter().filter(|b| selector(b).is_ok_and(|s| s.is_some_and(|s| s.matches_object(pod)))).collect()
    };
    if let Some(old) = &change.old {
        selected(old).iter().for_each(|budget| queue.add(client::cache::key(budget)));
    }
    let Some(pod) = change.new.as_deref() else { return };
    let found = selected(pod);
    found.iter().for_each(|budget| queue.add(client::cache::key(budget)));
    if let [first, _, ..] = found.as_slice() {
        let (namespace, name) = (go::quote(pod.namespace()), go::quote(pod.name()));
        let chosen = go::quote(first.name());
        let message =
            format!("Pod {namespace}/{name} matches multiple PodDisruptionBudgets.  Chose {chosen} arbitrarily.");
        recorder.event(pod, EventType::Warning, "MultiplePodDisruptionBudgets", &message);
    }
}

/// The selector of a budget; nothing if it selects no pod.
fn selector(budget: &Value) -> Result<Option<Labels>, String> {
    let selector = budget.sub("spec").get("selector").filter(|s| !s.is_null());
    selector.map(Labels::from_object).transpose()
}

impl Disruption {
    fn tell(&self, object: &Value, ty: EventType, reason: &str, message: &str) {
        self.recorder.event(object, ty, reason, message);
    }

    async fn look_after(&self, budget: &Value) -> Result<Option<Duration>, Failure> {
        let selected = match selector(budget) {
            Ok(Some(selector)) => self.pods.select(budget.namespace(), &selector),
            Ok(None) => Vec::new(),
            Err(why) => {
                self.tell(budget, EventType::Warning, "NoPods", &format!("Failed to get pods: {why}"));
                return Err(Failure::Told(why));
            }
        };
        let pods: Vec<&Value> = selected.iter().map(|p| &**p).collect();
        if pods.is_empty() {
            self.tell(budget, EventType::Normal, "NoPods", "No matching pods found");
        }
        let expected = match self.expected(budget, &pods).await {
            Ok(expected) => expected,
            Err(why) => {
                let message = match &why {
                    Failure::Request(error) => error.to_string(),
                    Failure::Told(why) => why.clone(),
                };
                let message = format!("Failed to calculate the number of expected pods: {message}");
                self.tell(budget, EventType::Warning, "CalculateExpectedPodCountFailed", &message);
                return Err(why);
            }
        };
        let now = self.context.now();
        let disrupted = rules::disrupted(budget, &pods, now);
        for pod in pods.iter().filter(|p| disrupted.overdue.iter().any(|name| name == p.name())) {
            // Upstream names the namespace twice.
            let namespace = budget.namespace();
            let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            self.tell(pod, EventType::Warning, "NotDeleted", &message);
        }
        let healthy = rules::healthy(&pods, &disrupted);
        if let Some(new) = rules::with_status(budget, expected, healthy, &disrupted.pods, now) {
            self.context.api(&POD_DISRUPTION_BUDGETS).update_status(&new).await?;
        }
        Ok(disrupted.recheck.map(|time| time.duration_since(now).try_into().unwrap_or_default()))
    }

    async fn expected(&self, budget: &Value, pods: &[&Value]) -> Result<rules::Expected, Failure> {
        let mut scale = 0;
        if rules::needs_scale(budget) {
            let found = self.scales.of(&self.context, pods).await?;
            if found.unmanaged {
                let selector = kinds::table::go_selector(budget.sub("spec").sub("selector"));
                let message = format!(
                    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
                     result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. \
                     To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
                );
                self.tell(budget, EventType::Warning, "UnmanagedPods", &message);
            }
            scale = found.replicas;
        }
        rules::expected(budget, pods.len() as i64, scale).map_err(Failure::Told)
    }

    /// Takes the mark of a disruption that did not come off a pod.
    async fn clear_stale_mark(&self, key: &str) -> Result<Option<Duration>> {
        let Some(pod) = self.pods.get_key(key) else { return Ok(None) };
        let now = self.context.now();
        let Some(wait) = rules::stale_disruption_in(&pod, now) else { return Ok(None) };
        if wait.is_positive() {
            return Ok(Some(wait.try_into().unwrap_or_default()));
        }
        let mut new = (*pod).clone();
        if let Some(status) = new.get_mut("status") {
            for condition in kinds::read::list_mut(status, "conditions") {
                if condition.text("type") == "DisruptionTarget" {
                    let time = pods::seconds(now);
                    *condition = object::map! {
                        "type" => "DisruptionTarget", "status" => "False", "lastProbeTime" => Value::Null,
                        "lastTransitionTime" => time,
                    }
                    .into();
                }
            }
        }
        self.context.api(&PODS).update_status(&new).await?;
        Ok(None)
    }
}
