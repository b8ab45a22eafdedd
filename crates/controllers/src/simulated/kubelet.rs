//! The kubelets: pods of the simulated nodes run, end and stop.

use super::pod_status::{Addresses, Step, finished, joined, next, started, stop_code, turned, waiting};
use super::script::Script;
use super::{is_simulated, nodes};
use crate::{Context, Controller, Wiring, pods};
use client::events::{EventType, Recorder};
use client::resources::{NODES, PODS};
use client::{Api, Cache, DeleteParams, Result};
use kinds::read::Read;
use object::Value;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

const BY_NODE: &str = "node";
/// Where the addresses of pods begin.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 2);
/// How many there are.
const ADDRESSES: u32 = 1 << 18;

/// Runs the pods of the simulated nodes.
pub struct Kubelet {
    context: Context,
    pods: Arc<Cache>,
    nodes: Arc<Cache>,
    api: Api,
    recorder: Recorder,
    used: Arc<Mutex<Used>>,
    /// The nodes that were there and are deleted.
    gone: Arc<Mutex<HashSet<String>>>,
}

/// The addresses in use.
#[derive(Debug, Default)]
struct Used {
    addresses: HashSet<String>,
    next: u32,
}

impl Used {
    /// An address that no pod has.
    fn take(&mut self) -> String {
        for _ in 0..ADDRESSES {
            let address = Ipv4Addr::from(u32::from(FIRST_ADDRESS) + self.next % ADDRESSES).to_string();
            self.next = self.next.wrapping_add(1);
            if self.addresses.insert(address.clone()) {
                return address;
            }
        }
        // All are taken: two pods share one.
        FIRST_ADDRESS.to_string()
    }
}

impl Controller for Kubelet {
    const NAME: &'static str = "simulated-kubelet";

    fn new(wiring: &mut Wiring) -> Self {
        let context = wiring.context().clone();
        let (pods, nodes) = (wiring.cache(&PODS), wiring.cache(&NODES));
        let used = Arc::new(Mutex::new(Used::default()));
        let known = used.clone();
        wiring.on(&pods, move |change, queue| {
            let address = |pod: &Value| pod.sub("status").text("podIP").to_owned();
            match &change.new {
                None => {
                    known.lock().addresses.remove(&address(change.object()));
                }
                Some(pod) if !pod.sub("spec").text("nodeName").is_empty() => {
                    if !address(pod).is_empty() {
                        known.lock().addresses.insert(address(pod));
                    }
                    queue.add(change.key());
                }
                Some(_) => {}
            }
        });
        pods.index(BY_NODE, |pod| vec![pod.sub("spec").text("nodeName").to_owned()]);
        let gone = Arc::new(Mutex::new(HashSet::new()));
        let (graves, all) = (gone.clone(), pods.clone());
        wiring.on(&nodes, move |change, queue| {
            let name = change.object().name().to_owned();
            if !change.is_deletion() {
                graves.lock().remove(&name);
            } else if is_simulated(change.object()) {
                let held = all.indexed(BY_NODE, &name);
                graves.lock().insert(name);
                held.iter().for_each(|pod| queue.add(client::cache::key(pod)));
            }
        });
        let api = context.client().with_user_agent("kubelet").api(&PODS);
        let recorder = context.recorder("kubelet");
        Kubelet { context, pods, nodes, api, recorder, used, gone }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        let Some(pod) = self.pods.get_key(key) else { return Ok(None) };
        let node = pod.sub("spec").text("nodeName");
        if node.is_empty() {
            return Ok(None);
        }
        match self.nodes.get("", node) {
            Some(node) if is_simulated(&node) => {}
            // What a pod collector does with the pods of nodes that are gone.
            None if self.gone.lock().contains(node) => return self.delete(&pod).await.map(|()| None),
            _ => return Ok(None),
        }
        let script = Script::of(&pod, &self.context.settings().simulated);
        let now = self.context.now();
        match next(&pod, &script, now) {
            Step::Rest => {}
            Step::After(wait) => return Ok(Some(wait)),
            Step::Start => {
                self.put(&pod, started(&pod, &script, &self.addresses(&pod), now)).await?;
                self.tell_start(&pod);
            }
            Step::Wait(why) => {
                self.put(&pod, waiting(&pod, &why, &self.addresses(&pod), now)).await?;
                let message = format!("Error: {why} (simulated)");
                self.recorder.event(&pod, EventType::Warning, "Failed", &message);
            }
            Step::End => self.put(&pod, finished(&pod, script.exit_code, script.goes_on(), now)).await?,
            Step::Join => self.put(&pod, joined(&pod, now)).await?,
            Step::Turn(ready) => self.put(&pod, turned(&pod, ready, now)).await?,
            Step::Remove => self.remove(&pod, &script).await?,
        }
        Ok(None)
    }
}

impl Kubelet {
    fn addresses(&self, pod: &Value) -> Addresses {
        let node = nodes::address(pod.sub("spec").text("nodeName"));
        let own = pod.sub("status").text("podIP");
        let pod = if !own.is_empty() {
            own.to_owned()
        } else if pod.sub("spec").flag("hostNetwork") {
            node.clone()
        } else {
            self.used.lock().take()
        };
        Addresses { pod, node }
    }

    async fn put(&self, pod: &Value, status: Value) -> Result<()> {
        let mut new = pod.clone();
        new.set_at(&["status"], status);
        match self.api.update_status(&new).await {
            // It changed meanwhile: the change is looked at next.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    fn tell_start(&self, pod: &Value) {
        for container in pod.sub("spec").list("containers") {
            let (image, name) = (container.text("image"), container.text("name"));
            let tell = |reason: &str, message: String| {
                self.recorder.event(pod, EventType::Normal, reason, &message);
            };
            tell("Pulled", format!("Container image \"{image}\" already present on machine"));
            tell("Created", format!("Created container: {name}"));
            tell("Started", format!("Started container {name}"));
        }
    }

    /// Ends a pod that was told to stop.
    async fn remove(&self, pod: &Value, script: &Script) -> Result<()> {
        if !pods::is_terminal(pod) && pods::phase(pod) == "Running" {
            let status = finished(pod, stop_code(script), false, self.context.now());
            return self.put(pod, status).await;
        }
        self.delete(pod).await
    }

    /// Deletes a pod without waiting.
    async fn delete(&self, pod: &Value) -> Result<()> {
        // Held by a finalizer, and told to go already.
        if pod.sub("metadata").get("deletionGracePeriodSeconds") == Some(&Value::Int(0)) {
            return Ok(());
        }
        let params =
            DeleteParams { grace_seconds: Some(0), uid: pod.meta_str("uid").to_owned(), ..DeleteParams::default() };
        match self.api.delete(pod.namespace(), pod.name(), &params).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}
