//! The scheduler: gives pods nodes.

use super::fit::{complaint, obstacles};
use super::requests::{Ledger, of_pod};
use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES};
use client::{Api, Cache, Result};
use kinds::read::Read;
use object::{Value, go, map};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const WAITING: &str = "unassigned";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// How soon a pod is looked at again whose claims are being bound.
const SOON: Duration = Duration::from_millis(200);

/// Gives pods nodes.
pub struct Scheduler {
    pods_api: Api,
    context: Context,
    pods: Arc<Cache>,
    nodes: Arc<Cache>,
    claims: Arc<Cache>,
    classes: Arc<Cache>,
    ledger: Arc<Mutex<Ledger>>,
    recorder: Recorder,
}

/// How the claims of a pod stand.
enum Claims {
    /// They are bound.
    Bound,
    /// They wait for the pod's node.
    Wait(Vec<Arc<Value>>),
    /// They keep the pod from being scheduled.
    Missing(String),
}

fn waits(pod: &Value) -> bool {
    let spec = pod.sub("spec");
    spec.text("nodeName").is_empty()
        && spec.list("schedulingGates").is_empty()
        && spec.text("schedulerName") == "default-scheduler"
        && pods::is_active(pod)
}

impl Controller for Scheduler {
    const NAME: &'static str = "simulated-scheduler";
    /// One after the other, so that no room is given twice.
    const WORKERS: usize = 1;

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (pods, nodes) = (wiring.cache(&PODS), wiring.cache(&NODES));
        let (claims, classes) = (wiring.cache(&PERSISTENT_VOLUME_CLAIMS), wiring.cache(&STORAGE_CLASSES));
        pods.index(WAITING, |pod| if waits(pod) { vec![String::new()] } else { Vec::new() });
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let (books, all) = (ledger.clone(), pods.clone());
        wiring.on(&pods, move |change, queue| {
            let over = match &change.new {
                Some(pod) => {
                    books.lock().put(pod);
                    pods::is_terminal(pod) && change.old.as_deref().is_some_and(|old| !pods::is_terminal(old))
                }
                None => {
                    books.lock().remove(change.object().meta_str("uid"));
                    true
                }
            };
            if change.new.as_deref().is_some_and(waits) && change.old.as_deref().is_none_or(|old| !waits(old)) {
                queue.add(change.key());
            }
            // There is room for others.
            if over {
                all.indexed(WAITING, "").iter().for_each(|pod| queue.add(client::cache::key(pod)));
            }
        });
        for cache in [&nodes, &claims] {
            let all = pods.clone();
            wiring.on(cache, move |_, queue| {
                all.indexed(WAITING, "").iter().for_each(|pod| queue.add(client::cache::key(pod)));
            });
        }
        let pods_api = context.client().with_user_agent("kube-scheduler").api(&PODS);
        let recorder = context.recorder("default-scheduler");
        Scheduler { pods_api, context, pods, nodes, claims, classes, ledger, recorder }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(pod) = self.pods.get_key(key).filter(|pod| waits(pod)) else { return Ok(None) };
        let claims = self.claims_of(&pod);
        if let Claims::Missing(why) = claims {
            return self.refuse(&pod, &why).await;
        }
        let node = match self.choose(&pod) {
            Ok(node) => node,
            Err(why) => return self.refuse(&pod, &why).await,
        };
        if let Claims::Wait(claims) = claims {
            for claim in claims {
                self.select_node(&claim, &node).await?;
            }
            return Ok(Some(SOON));
        }
        self.bind(&pod, &node).await
    }
}

impl Scheduler {
    /// The node for a pod: the emptiest that fits.
    fn choose(&self, pod: &Value) -> Result<String, String> {
        let asked = of_pod(pod);
        let ledger = self.ledger.lock();
        let mut refused = Vec::new();
        let mut best: Option<(i128, String)> = None;
        let nodes = self.nodes.list();
        for node in nodes.iter().filter(|n| !pods::is_deleting(n)) {
            let why = obstacles(pod, &asked, node, &ledger);
            if !why.is_empty() {
                refused.push(why);
                continue;
            }
            let load = ledger.taken(node.name(), "pods");
            if best.as_ref().is_none_or(|(least, _)| load < *least) {
                best = Some((load, node.name().to_owned()));
            }
        }
        best.map(|(_, name)| name).ok_or_else(|| complaint(refused.len(), &refused))
    }

    fn claims_of(&self, pod: &Value) -> Claims {
        let mut waiting = Vec::new();
        for key in crate::volumes::claims_of_pod(pod) {
            let Some(claim) = self.claims.get_key(&key) else {
                let name = key.split_once('/').map_or(key.as_str(), |(_, name)| name);
                return Claims::Missing(format!("persistentvolumeclaim {} not found", go::quote(name)));
            };
            if claim.annotation(BIND_COMPLETED).is_some() && pods::phase(&claim) == "Bound" {
                continue;
            }
            let class = self.classes.get("", claim.sub("spec").text("storageClassName"));
            if class.is_some_and(|c| c.text("volumeBindingMode") == "WaitForFirstConsumer") {
                waiting.push(claim);
            } else {
                return Claims::Missing("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
        }
        if waiting.is_empty() { Claims::Bound } else { Claims::Wait(waiting) }
    }

    async fn select_node(&self, claim: &Value, node: &str) -> Result<()> {
        if claim.annotation(SELECTED_NODE).is_some() {
            return Ok(());
        }
        let mut new = claim.clone();
        new.metadata_mut().object_entry("annotations").insert(SELECTED_NODE, node);
        self.context.api(&PERSISTENT_VOLUME_CLAIMS).update(&new).await.map(|_| ())
    }

    async fn bind(&self, pod: &Value, node: &str) -> Result<Option<Duration>> {
        let (namespace, name) = (pod.namespace(), pod.name());
        let binding = map! {
            "apiVersion" => "v1", "kind" => "Binding",
            "metadata" => map! { "name" => name, "namespace" => namespace, "uid" => pod.meta_str("uid") },
            "target" => map! { "kind" => "Node", "name" => node },
        };
        match self.pods_api.create_subresource(namespace, name, "binding", &binding.into()).await {
            Ok(_) => {
                self.ledger.lock().assign(pod, node);
                let message = format!("Successfully assigned {namespace}/{name} to {node}");
                self.recorder.event(pod, EventType::Normal, "Scheduled", &message);
                Ok(None)
            }
            // Bound by somebody else, or gone.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says why a pod gets no node.
    async fn refuse(&self, pod: &Value, why: &str) -> Result<Option<Duration>> {
        let told = pods::condition(pod, "PodScheduled")
            .is_some_and(|c| c.text("status") == "False" && c.text("message") == why);
        if told {
            return Ok(None);
        }
        self.recorder.event(pod, EventType::Warning, "FailedScheduling", why);
        let condition = map! {
            "type" => "PodScheduled", "status" => "False", "reason" => "Unschedulable", "message" => why,
            "lastProbeTime" => Value::Null, "lastTransitionTime" => pods::seconds(self.context.now()),
        };
        let patch = map! { "status" => map! { "conditions" => vec![condition] } };
        let patch = client::Patch::Strategic(patch.into());
        match self.pods_api.patch(pod.namespace(), pod.name(), &patch, &client::PatchParams::status()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(None),
        }
    }
}
