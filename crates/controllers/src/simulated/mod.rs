//! Pretends to be what runs pods: nodes, a scheduler that binds pods to them, a kubelet on each, and whoever makes
//! volumes and load balancers. Nothing is really started; objects go through the states that they would go through.
//!
//! A pod says by annotations how it is to behave; see [`script::Script`].

mod balancers;
mod fit;
mod kubelet;
mod nodes;
mod pod_status;
mod provisioner;
mod requests;
mod scheduler;
mod script;

pub(crate) use balancers::Balancers;
pub(crate) use kubelet::Kubelet;
pub(crate) use nodes::Nodes;
pub(crate) use provisioner::Provisioner;
pub(crate) use scheduler::Scheduler;

use std::time::Duration;

/// What is pretended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    /// How many nodes there are.
    pub nodes: usize,
    /// How long a pod that has a node takes to run and be ready, unless the pod says something else.
    pub pod_start: Duration,
    /// How long a pod that is to end runs, unless the pod says something else.
    pub pod_run: Duration,
}

impl Default for Simulated {
    /// Three nodes; pods start within a second and end after another.
    fn default() -> Self {
        Simulated { nodes: 3, pod_start: Duration::from_secs(1), pod_run: Duration::from_secs(1) }
    }
}

/// The label of nodes that are pretended.
const SIMULATED: &str = "simulated.stanchion.dev/node";

/// Whether a node is pretended.
fn is_simulated(node: &object::Value) -> bool {
    node.label(SIMULATED).is_some()
}
