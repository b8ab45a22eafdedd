//! The resources of the group `core`.

use crate::resource::{CHANGE_VERBS, Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource { ..Resource::review("", "Binding", "bindings", &[Version::stored("v1", "io.k8s.api.core.v1.Binding")]) },
    Resource {
        short_names: &["cs"],
        namespaced: false,
        verbs: &["get", "list"],
        ..Resource::new(
            "",
            "ComponentStatus",
            "componentstatuses",
            &[Version::stored("v1", "io.k8s.api.core.v1.ComponentStatus")],
        )
    },
    Resource {
        short_names: &["cm"],
        ..Resource::new("", "ConfigMap", "configmaps", &[Version::stored("v1", "io.k8s.api.core.v1.ConfigMap")])
    },
    Resource {
        short_names: &["ep"],
        ..Resource::new("", "Endpoints", "endpoints", &[Version::stored("v1", "io.k8s.api.core.v1.Endpoints")])
    },
    Resource {
        short_names: &["ev"],
        ..Resource::new("", "Event", "events", &[Version::stored("v1", "io.k8s.api.core.v1.Event")])
    },
    Resource {
        short_names: &["limits"],
        ..Resource::new("", "LimitRange", "limitranges", &[Version::stored("v1", "io.k8s.api.core.v1.LimitRange")])
    },
    Resource {
        short_names: &["ns"],
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[Subresource::new("finalize", "Namespace", &["update"]), Subresource::status("Namespace")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("", "Namespace", "namespaces", &[Version::stored("v1", "io.k8s.api.core.v1.Namespace")])
    },
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
    Resource {
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            Subresource::new("attach", "PodAttachOptions", &["create", "get"]),
            Subresource::new("binding", "Binding", &["create"]),
            Subresource::new("ephemeralcontainers", "Pod", CHANGE_VERBS),
            Subresource { group: "policy", version: "v1", ..Subresource::new("eviction", "Eviction", &["create"]) },
            Subresource::new("exec", "PodExecOptions", &["create", "get"]),
            Subresource::new("log", "Pod", &["get"]),
            Subresource::new("portforward", "PodPortForwardOptions", &["create", "get"]),
            Subresource::new("proxy", "PodProxyOptions", &["create", "delete", "get", "patch", "update"]),
            Subresource::new("resize", "Pod", CHANGE_VERBS),
            Subresource::status("Pod"),
        ],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new("", "Pod", "pods", &[Version::stored("v1", "io.k8s.api.core.v1.Pod")])
    },
    Resource {
        ..Resource::new("", "PodTemplate", "podtemplates", &[Version::stored("v1", "io.k8s.api.core.v1.PodTemplate")])
    },
    Resource {
        short_names: &["rc"],
        categories: &["all"],
        subresources: &[Subresource::SCALE, Subresource::status("ReplicationController")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "",
            "ReplicationController",
            "replicationcontrollers",
            &[Version::stored("v1", "io.k8s.api.core.v1.ReplicationController")],
        )
    },
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
    Resource { ..Resource::new("", "Secret", "secrets", &[Version::stored("v1", "io.k8s.api.core.v1.Secret")]) },
    Resource {
        short_names: &["sa"],
        subresources: &[Subresource {
            group: "authentication.k8s.io",
            version: "v1",
            ..Subresource::new("token", "TokenRequest", &["create"])
        }],
        ..Resource::new(
            "",
            "ServiceAccount",
            "serviceaccounts",
            &[Version::stored("v1", "io.k8s.api.core.v1.ServiceAccount")],
        )
    },
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
