//! The resources of the group `networking.k8s.io`.

use crate::resource::{Resource, Strategy, Subresource, Version};

pub(crate) const RESOURCES: &[Resource] = &[
    Resource {
        namespaced: false,
        ..Resource::new(
            "networking.k8s.io",
            "IngressClass",
            "ingressclasses",
            &[Version::stored("v1", "io.k8s.api.networking.v1.IngressClass")],
        )
    },
    Resource {
        short_names: &["ing"],
        subresources: &[Subresource::status("Ingress")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "networking.k8s.io",
            "Ingress",
            "ingresses",
            &[Version::stored("v1", "io.k8s.api.networking.v1.Ingress")],
        )
    },
    Resource {
        short_names: &["ip"],
        namespaced: false,
        ..Resource::new(
            "networking.k8s.io",
            "IPAddress",
            "ipaddresses",
            &[Version::stored("v1", "io.k8s.api.networking.v1.IPAddress")],
        )
    },
    Resource {
        short_names: &["netpol"],
        ..Resource::new(
            "networking.k8s.io",
            "NetworkPolicy",
            "networkpolicies",
            &[Version::stored("v1", "io.k8s.api.networking.v1.NetworkPolicy")],
        )
    },
    Resource {
        namespaced: false,
        subresources: &[Subresource::status("ServiceCIDR")],
        strategy: Strategy::WITH_STATUS,
        ..Resource::new(
            "networking.k8s.io",
            "ServiceCIDR",
            "servicecidrs",
            &[Version::stored("v1", "io.k8s.api.networking.v1.ServiceCIDR")],
        )
    },
];
