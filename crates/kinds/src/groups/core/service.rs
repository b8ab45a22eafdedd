//! Services.

use super::service_checks::{status_warnings, validate, validate_status, validate_update, warnings};
use super::service_given::{prepare_create, prepare_update};
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::{Value, names};

pub(super) const SERVICES: Resource = Resource {
    short_names: &["svc"],
    categories: &["all"],
    subresources: &[
        Subresource::new("proxy", "ServiceProxyOptions", &["create", "delete", "get", "patch", "update"]),
        Subresource::status("Service"),
    ],
    columns: &[
        Column::NAME,
        Column::new("Type", "string"),
        Column::new("Cluster-IP", "string"),
        Column::new("External-IP", "string"),
        Column::new("Port(s)", "string"),
        Column::AGE,
        Column::wide("Selector", "string"),
    ],
    cells,
    selectable: &[
        SelectableField { name: "spec.clusterIP", value: |object| object.sub("spec").text("clusterIP").to_owned() },
        SelectableField { name: "spec.type", value: |object| object.sub("spec").text("type").to_owned() },
    ],
    strategy: Strategy {
        name: names::dns1035_label,
        create_on_update: true,
        generation: Generation::None,
        prepare_create,
        prepare_update,
        validate,
        validate_update,
        validate_status,
        warnings,
        status_warnings,
        returns_deleted: true,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "",
        "Service",
        "services",
        &[Version::stored("v1", "io.k8s.api.core.v1.Service").with_default(default)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let kind = spec.text("type");
    let none = |s: &str| if s.is_empty() { "<none>".to_owned() } else { s.to_owned() };
    let internal = match spec.strings("clusterIPs").first() {
        Some(ip) => (*ip).to_owned(),
        None => none(spec.text("clusterIP")),
    };
    let balancer = table::load_balancer(object.sub("status").sub("loadBalancer"));
    let external_ips = spec.strings("externalIPs").join(",");
    let external = match kind {
        "ExternalName" => spec.text("externalName").to_owned(),
        "LoadBalancer" => match (balancer.is_empty(), external_ips.is_empty()) {
            (true, true) => "<pending>".to_owned(),
            (true, false) => external_ips,
            (false, true) => balancer,
            (false, false) => format!("{balancer},{external_ips}"),
        },
        _ => none(&external_ips),
    };
    let ports: Vec<String> = spec
        .list("ports")
        .iter()
        .map(|p| match p.int("nodePort") {
            0 => format!("{}/{}", p.int("port"), p.text("protocol")),
            node => format!("{}:{node}/{}", p.int("port"), p.text("protocol")),
        })
        .collect();
    vec![
        object.name().into(),
        kind.into(),
        internal.into(),
        external.into(),
        none(&ports.join(",")).into(),
        table::age(object, now),
        table::labels(spec.members("selector")).into(),
    ]
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_text(spec, "sessionAffinity", "None");
    match spec.text("sessionAffinity") {
        "None" => {
            spec.remove_at(&["sessionAffinityConfig"]);
        }
        "ClientIP" => {
            let seconds = spec.at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
            if seconds.is_none_or(Value::is_null) {
                spec.set_at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"], Value::Int(10_800));
            }
        }
        _ => {}
    }
    default_text(spec, "type", "ClusterIP");
    for port in list_mut(spec, "ports") {
        default_text(port, "protocol", "TCP");
        let unset = match port.sub("targetPort") {
            Value::String(s) => s.is_empty(),
            other => other.as_int().unwrap_or(0) == 0,
        };
        if unset {
            let number = port.int("port");
            port.set_at(&["targetPort"], Value::Int(number));
        }
    }
    let kind = spec.text("type").to_owned();
    if externally_accessible(spec) {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        default_to(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = object_mut(object, &["status", "loadBalancer"]) {
            for ingress in list_mut(balancer, "ingress") {
                if !ingress.text("ip").is_empty() {
                    default_to(ingress, "ipMode", "VIP");
                }
            }
        }
    }
}

/// Whether a Service can be reached from outside of the cluster.
pub(super) fn externally_accessible(spec: &Value) -> bool {
    match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.list("externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether a Service stands for its endpoints without an address of its own.
pub(super) fn headless(spec: &Value) -> bool {
    spec.text("clusterIP") == "None"
}
