//! The built-in groups, one file each.

use crate::resource::Resource;

pub(crate) mod admissionregistration;
mod apiextensions;
mod apiregistration;
pub(crate) mod apps;
pub(crate) mod authentication;
mod authorization;
mod autoscaling;
mod batch;
pub(crate) mod certificates;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
pub(crate) mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
pub(crate) mod scheduling;
mod storage;

/// The groups in the order in which discovery lists them.
pub(crate) const GROUPS: [&[Resource]; 20] = [
    core::RESOURCES,
    apiregistration::RESOURCES,
    apps::RESOURCES,
    events::RESOURCES,
    authentication::RESOURCES,
    authorization::RESOURCES,
    autoscaling::RESOURCES,
    batch::RESOURCES,
    certificates::RESOURCES,
    networking::RESOURCES,
    policy::RESOURCES,
    rbac::RESOURCES,
    storage::RESOURCES,
    admissionregistration::RESOURCES,
    apiextensions::RESOURCES,
    scheduling::RESOURCES,
    coordination::RESOURCES,
    node::RESOURCES,
    discovery::RESOURCES,
    flowcontrol::RESOURCES,
];
