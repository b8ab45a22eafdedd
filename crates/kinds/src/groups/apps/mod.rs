//! The resources of the group `apps`.

mod controllerrevision;
mod daemonset;
mod deployment;
mod replicaset;
mod statefulset;
mod workload;

use crate::resource::Resource;

pub(crate) use workload::{
    Workload, available_are_ready, mismatch, replica_status, validate_template as validate_workload_template,
};

pub(crate) const RESOURCES: &[Resource] = &[
    controllerrevision::CONTROLLER_REVISIONS,
    daemonset::DAEMONSETS,
    deployment::DEPLOYMENTS,
    replicaset::REPLICASETS,
    statefulset::STATEFULSETS,
];
