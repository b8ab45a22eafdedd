//! The resources of the core group.

mod binding;
mod configmap;
mod endpoints;
mod event;
mod namespace;
mod node;
mod pod;
mod pod_checks;
mod quota;
mod replicationcontroller;
mod secret;
mod service;
mod service_checks;
mod service_given;
mod serviceaccount;
mod volume;
mod volumeclaim;

pub(crate) use endpoints::special as special_address;
pub(crate) use event::{EVENT_COLUMNS, event_cells, source as event_source, validate as validate_event};
pub(crate) use volume::inline_volume;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] = &[
    binding::BINDINGS,
    binding::COMPONENT_STATUSES,
    configmap::CONFIGMAPS,
    endpoints::ENDPOINTS,
    event::EVENTS,
    quota::LIMIT_RANGES,
    namespace::NAMESPACES,
    node::NODES,
    volumeclaim::PERSISTENT_VOLUME_CLAIMS,
    volume::PERSISTENT_VOLUMES,
    pod::PODS,
    pod::POD_TEMPLATES,
    replicationcontroller::REPLICATION_CONTROLLERS,
    quota::RESOURCE_QUOTAS,
    secret::SECRETS,
    serviceaccount::SERVICE_ACCOUNTS,
    service::SERVICES,
];
