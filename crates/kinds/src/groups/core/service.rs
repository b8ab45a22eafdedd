//! Services.

use super::service_checks::{validate, validate_status, validate_update, warnings};
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Context, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::{Map, Value, map, names};

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
        generation: Generation::None,
        prepare_create,
        prepare_update,
        validate,
        validate_update,
        validate_status,
        warnings,
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

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object.set_at(&["status"], map! { "loadBalancer" => Map::new() }.into());
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    let address = spec.text("clusterIP").to_owned();
    if !address.is_empty() && spec.list("clusterIPs").is_empty() {
        spec.set_at(&["clusterIPs"], vec![address].into());
    }
    families(spec);
}

/// The families of addresses, on a cluster with IPv4 only: headless services without a selector take part in both.
fn families(spec: &mut Value) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let both = headless(spec) && spec.members("selector").is_empty();
    if both && !spec.has("ipFamilyPolicy") && spec.list("ipFamilies").is_empty() {
        spec.set_at(&["ipFamilyPolicy"], "RequireDualStack".into());
        spec.set_at(&["ipFamilies"], vec!["IPv4", "IPv6"].into());
        return;
    }
    default_to(spec, "ipFamilyPolicy", "SingleStack");
    if spec.list("ipFamilies").is_empty() {
        spec.set_at(&["ipFamilies"], vec!["IPv4"].into());
    }
}

/// Keeps what was allocated where the client leaves it out, and drops what a new type has no use for.
fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    let before = old.sub("spec");
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    let needs_address = |s: &Value| s.text("type") != "ExternalName";
    let needs_node_port = |s: &Value| matches!(s.text("type"), "NodePort" | "LoadBalancer");
    if needs_address(spec) && needs_address(before) {
        if spec.text("clusterIP").is_empty() {
            spec.set_at(&["clusterIP"], before.text("clusterIP").into());
        }
        if spec.list("clusterIPs").is_empty() && spec.text("clusterIP") == before.text("clusterIP") {
            spec.set_at(&["clusterIPs"], before.sub("clusterIPs").clone());
        }
    }
    if spec.text("clusterIP") != before.text("clusterIP") && spec.sub("clusterIPs") == before.sub("clusterIPs") {
        match spec.text("clusterIP").to_owned() {
            address if address.is_empty() => {
                spec.remove_at(&["clusterIPs"]);
            }
            address => spec.set_at(&["clusterIPs"], vec![address].into()),
        }
    }
    if needs_node_port(spec) && needs_node_port(before) {
        let known = |port: &Value| {
            let same = |p: &&Value| p.text("protocol") == port.text("protocol") && p.int("port") == port.int("port");
            before.list("ports").iter().find(same).map(|p| p.int("nodePort"))
        };
        for port in list_mut(spec, "ports") {
            if let (0, Some(number)) = (port.int("nodePort"), known(port).filter(|n| *n != 0)) {
                port.set_at(&["nodePort"], Value::Int(number));
            }
        }
    }
    if !needs_address(spec) && needs_address(before) {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if spec.sub(key) == before.sub(key) {
                spec.remove_at(&[key]);
            }
        }
    }
    if needs_node_port(before) && !needs_node_port(spec) {
        for (port, old) in list_mut(spec, "ports").iter_mut().zip(before.list("ports")) {
            if port.int("nodePort") == old.int("nodePort") {
                port.remove_at(&["nodePort"]);
            }
        }
    }
    if externally_accessible(before)
        && !externally_accessible(spec)
        && spec.text("externalTrafficPolicy") == before.text("externalTrafficPolicy")
    {
        spec.remove_at(&["externalTrafficPolicy"]);
    }
    if spec.text("type") != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if spec.sub(key) == before.sub(key) {
                spec.remove_at(&[key]);
            }
        }
    }
    families(spec);
    if object.sub("spec").text("type") != "LoadBalancer" {
        object.set_at(&["status", "loadBalancer"], Map::new().into());
    }
}
