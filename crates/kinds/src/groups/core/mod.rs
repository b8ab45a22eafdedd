//! The resources of the core group.

mod binding;
mod configmap;
mod event;
mod namespace;
mod pod;
mod replicationcontroller;
mod secret;
mod serviceaccount;

pub(crate) use event::{EVENT_COLUMNS, EVENT_FIELDS, event_cells, validate as validate_event};

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    binding::BINDINGS,
    binding::COMPONENT_STATUSES,
    configmap::CONFIGMAPS,
    Resource {
        short_names: &["ep"],
        ..Resource::new("", "Endpoints", "endpoints", &[Version::stored("v1", "io.k8s.api.core.v1.Endpoints")])
    },
    event::EVENTS,
    Resource {
        short_names: &["limits"],
        ..Resource::new("", "LimitRange", "limitranges", &[Version::stored("v1", "io.k8s.api.core.v1.LimitRange")])
    },
    namespace::NAMESPACES,
    Resource {
        short_names: &["no"],
        namespaced: false,
        subresources: &[
            Subresource::new("proxy", "NodeProxyOptions", &["create", "delete", "get", "patch", "update"]),
            Subresource::status("Node"),
        ],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("", "Node", "nodes", &[Version::stored("v1", "io.k8s.api.core.v1.Node")])
    },
    Resource {
        short_names: &["pvc"],
        subresources: &[Subresource::status("PersistentVolumeClaim")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolumeClaim")],
        )
    },
    Resource {
        short_names: &["pv"],
        namespaced: false,
        subresources: &[Subresource::status("PersistentVolume")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "",
            "PersistentVolume",
            "persistentvolumes",
            &[Version::stored("v1", "io.k8s.api.core.v1.PersistentVolume")],
        )
    },
    pod::PODS,
    pod::POD_TEMPLATES,
    replicationcontroller::REPLICATION_CONTROLLERS,
    Resource {
        short_names: &["quota"],
        subresources: &[Subresource::status("ResourceQuota")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "",
            "ResourceQuota",
            "resourcequotas",
            &[Version::stored("v1", "io.k8s.api.core.v1.ResourceQuota")],
        )
    },
    secret::SECRETS,
    serviceaccount::SERVICE_ACCOUNTS,
    Resource {
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[
            Subresource::new("proxy", "ServiceProxyOptions", &["create", "delete", "get", "patch", "update"]),
            Subresource::status("Service"),
        ],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("", "Service", "services", &[Version::stored("v1", "io.k8s.api.core.v1.Service")])
    },
];
