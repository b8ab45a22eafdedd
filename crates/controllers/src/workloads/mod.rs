//! The controllers of workloads: ReplicaSets, ReplicationControllers, Deployments, StatefulSets and DaemonSets.
//!
//! Rules are functions of objects and the time; what fetches and writes is thin and beside them.

mod batches;
mod claim;
mod conditions;
pub(crate) mod daemonset;
pub(crate) mod deployment;
mod expectations;
mod hash;
mod meta;
mod owned;
mod pods;
mod ranking;
pub(crate) mod replicaset;
mod revisions;
mod share;
pub(crate) mod statefulset;
