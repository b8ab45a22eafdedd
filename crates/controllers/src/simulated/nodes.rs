//! The nodes.

use super::{SIMULATED, is_simulated};
use crate::{Context, Controller, Wiring, pods};
use client::resources::NODES;
use client::{Cache, DeleteParams, Result};
use kinds::read::Read;
use object::{Map, Value, map};
use std::sync::Arc;
use std::time::Duration;

/// The key for all nodes together.
const ALL: &str = "";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Keeps the nodes: as many as are wanted, ready.
pub struct Nodes {
    context: Context,
    nodes: Arc<Cache>,
}

impl Controller for Nodes {
    const NAME: &'static str = "simulated-nodes";
    const WORKERS: usize = 1;

    fn new(wiring: &mut Wiring) -> Self {
        let nodes = wiring.cache(&NODES);
        wiring.queue().add(ALL.to_owned());
        wiring.on(&nodes, |change, queue| {
            if change.new.as_deref().is_some_and(is_simulated) {
                queue.add(change.key());
            }
        });
        Nodes { context: wiring.context().clone(), nodes }
    }

    async fn sync(&self, key: &str) -> Result<Option<Duration>> {
        if key == ALL {
            self.make().await?;
        } else if let Some(node) = self.nodes.get_key(key).filter(|node| is_simulated(node)) {
            self.make_ready(&node).await?;
        }
        Ok(None)
    }
}

impl Nodes {
    /// Makes the nodes that are missing, and removes those of an earlier start that are too many.
    async fn make(&self) -> Result<()> {
        let api = self.context.api(&NODES);
        let count = self.context.settings().simulated.nodes;
        for number in 1..=count {
            if self.nodes.get("", &name(number)).is_some() {
                continue;
            }
            match api.create("", &node(number)).await {
                Err(error) if !error.is_already_exists() => return Err(error),
                _ => {}
            }
        }
        let wanted: Vec<String> = (1..=count).map(name).collect();
        for node in self.nodes.list() {
            if is_simulated(&node) && !wanted.iter().any(|name| name == node.name()) {
                match api.delete("", node.name(), &DeleteParams::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Takes the taint off that new nodes have, and says that the node is ready.
    async fn make_ready(&self, node: &Value) -> Result<()> {
        let api = self.context.api(&NODES);
        let mut node = node.clone();
        if pods::condition(&node, "Ready").is_none() {
            let time = pods::seconds(self.context.now());
            node.set_at(&["status"], status(node.name(), &time).into());
            node = api.update_status(&node).await?;
        }
        let mut taints = node.sub("spec").list("taints").to_vec();
        let before = taints.len();
        taints.retain(|t| t.text("key") != NOT_READY);
        if taints.len() < before {
            if taints.is_empty() {
                node.remove_at(&["spec", "taints"]);
            } else {
                node.set_at(&["spec", "taints"], taints.into());
            }
            api.update(&node).await?;
        }
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("node-{number}")
}

fn node(number: usize) -> Value {
    let name = name(number);
    // Three zones in turn.
    let zone = ["a", "b", "c"][(number - 1) % 3];
    let labels = map! {
        SIMULATED => "true", "kubernetes.io/hostname" => name.as_str(), "kubernetes.io/os" => "linux",
        "kubernetes.io/arch" => "amd64", "topology.kubernetes.io/zone" => format!("zone-{zone}"),
        "topology.kubernetes.io/region" => "region-1",
    };
    let meta = map! { "name" => name.as_str(), "labels" => labels };
    map! { "apiVersion" => "v1", "kind" => "Node", "metadata" => meta }.into()
}

/// The address of a node, from the range for documentation.
pub(super) fn address(name: &str) -> String {
    let number: usize = name.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).unwrap_or_default();
    format!("198.51.{}.{}", 100 + number / 250 % 100, number % 250 + 1)
}

fn status(name: &str, time: &str) -> Map {
    let amounts = || {
        map! { "cpu" => "16", "memory" => "64Gi", "ephemeral-storage" => "500Gi", "pods" => "250" }
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        map! {
            "type" => kind, "status" => status, "reason" => reason, "message" => message,
            "lastHeartbeatTime" => time, "lastTransitionTime" => time,
        }
    };
    let conditions = vec![
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let addresses = vec![
        map! { "type" => "InternalIP", "address" => address(name) },
        map! { "type" => "Hostname", "address" => name },
    ];
    map! {
        "capacity" => amounts(), "allocatable" => amounts(), "conditions" => conditions, "addresses" => addresses,
        "nodeInfo" => map! {
            "architecture" => "amd64", "operatingSystem" => "linux", "kernelVersion" => "simulated",
            "osImage" => "simulated", "containerRuntimeVersion" => "simulated://1", "kubeletVersion" => "v1.33.0",
            "kubeProxyVersion" => "", "machineID" => "", "systemUUID" => "", "bootID" => "",
        },
    }
}
