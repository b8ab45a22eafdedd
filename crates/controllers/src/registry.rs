//! The controllers that there are.

use crate::context::Context;
use crate::controller::Controller;
use crate::runner::{Running, run};

/// What a controller is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// What every cluster needs.
    Base,
    /// Workloads: Deployments, Jobs, Services and the like.
    Workloads,
    /// Plays scheduler and kubelet, which a server without nodes has not.
    Simulated,
}

/// A controller that can be started.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Upstream's name, as in `--controllers`.
    pub name: &'static str,
    /// What it is for.
    pub area: Area,
    /// Starts it; nothing for those that run inside the server itself.
    pub(crate) start: Option<fn(&Context) -> Running>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("area", &self.area).finish_non_exhaustive()
    }
}

/// A controller whose work is divided by keys.
const fn keyed<C: Controller>(area: Area) -> Entry {
    Entry { name: C::NAME, area, start: Some(run::<C>) }
}

/// A controller that is a part of the API server.
const fn inside(name: &'static str) -> Entry {
    Entry { name, area: Area::Base, start: None }
}

/// All controllers.
pub const REGISTRY: &[Entry] = &[
    keyed::<crate::certificates::Approver>(Area::Base),
    keyed::<crate::certificates::Cleaner>(Area::Base),
    keyed::<crate::certificates::Signer>(Area::Base),
    inside("clusterrole-aggregation-controller"),
    Entry { name: crate::garbage::NAME, area: Area::Base, start: Some(crate::garbage::start) },
    keyed::<crate::namespaces::Namespaces>(Area::Base),
    keyed::<crate::policy_status::PolicyStatus>(Area::Base),
    keyed::<crate::quota::ResourceQuotas>(Area::Base),
    keyed::<crate::root_ca::RootCa>(Area::Base),
    keyed::<crate::service_accounts::ServiceAccounts>(Area::Base),
    keyed::<crate::service_cidrs::ServiceCidrs>(Area::Base),
    keyed::<crate::tokens::Tokens>(Area::Base),
    keyed::<crate::ttl::TtlAfterFinished>(Area::Base),
    keyed::<crate::cronjob::CronJobs>(Area::Workloads),
    keyed::<crate::disruption::Disruption>(Area::Workloads),
    keyed::<crate::job::Jobs>(Area::Workloads),
    keyed::<crate::services::EndpointSlices>(Area::Workloads),
    keyed::<crate::services::EndpointsController>(Area::Workloads),
    keyed::<crate::services::Mirroring>(Area::Workloads),
    keyed::<crate::simulated::Balancers>(Area::Simulated),
    keyed::<crate::simulated::Kubelet>(Area::Simulated),
    keyed::<crate::simulated::Nodes>(Area::Simulated),
    keyed::<crate::simulated::Provisioner>(Area::Simulated),
    keyed::<crate::simulated::Scheduler>(Area::Simulated),
    keyed::<crate::volumes::Binder>(Area::Workloads),
    keyed::<crate::volumes::ClaimProtection>(Area::Workloads),
    keyed::<crate::volumes::EphemeralVolumes>(Area::Workloads),
    keyed::<crate::volumes::VolumeProtection>(Area::Workloads),
    keyed::<crate::workloads::daemonset::DaemonSets>(Area::Workloads),
    keyed::<crate::workloads::deployment::Deployments>(Area::Workloads),
    keyed::<crate::workloads::replicaset::ReplicaSets>(Area::Workloads),
    keyed::<crate::workloads::replicaset::ReplicationControllers>(Area::Workloads),
    keyed::<crate::workloads::statefulset::StatefulSets>(Area::Workloads),
];
