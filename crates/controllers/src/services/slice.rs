//! What belongs into the EndpointSlices of a Service: its pods as endpoints, by their ports.

use super::address::{self, Family};
use super::reconcile::Group;
use crate::pods;
use client::Cache;
use kinds::read::Read;
use object::{Map, Value, map};

/// What belongs into the slices of a Service.
#[derive(Debug, Default)]
pub struct Desired {
    /// Endpoints by their ports.
    pub groups: Vec<Group>,
    /// The pods that are left out because their node is not there.
    pub without_node: Vec<String>,
}

/// The endpoints of one family that a Service with these pods has.
pub fn desired(service: &Value, pods: &[&Value], family: Family, nodes: &Cache) -> Desired {
    let spec = service.sub("spec");
    let unready_too = spec.flag("publishNotReadyAddresses");
    let mut out = Desired::default();
    for pod in pods.iter().filter(|p| address::can_be_endpoint(p, true)) {
        let ports = ports(service, pod);
        let group = match out.groups.iter().position(|g| g.ports == ports) {
            Some(at) => at,
            None => {
                out.groups.push(Group { family: family.name(), ports, endpoints: Vec::new() });
                out.groups.len() - 1
            }
        };
        let node = nodes.get("", pod.sub("spec").text("nodeName"));
        if node.is_none() && !unready_too {
            out.without_node.push(pod.name().to_owned());
            continue;
        }
        if let Some(endpoint) = endpoint(service, pod, node.as_deref(), family)
            && let Some(group) = out.groups.get_mut(group)
        {
            group.endpoints.push(endpoint);
        }
    }
    out
}

fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let port = |port: &Value| {
        let number = address::port_number(pod, port)?;
        let mut out = map! { "name" => port.text("name"), "protocol" => address::protocol(port), "port" => number };
        if port.has("appProtocol") {
            out.insert("appProtocol", port.text("appProtocol"));
        }
        Some(Value::Object(out))
    };
    service.sub("spec").list("ports").iter().filter_map(port).collect()
}

fn endpoint(service: &Value, pod: &Value, node: Option<&Value>, family: Family) -> Option<Value> {
    let addresses: Vec<&str> =
        address::addresses(pod).into_iter().filter(|ip| Family::of(ip) == Some(family)).collect();
    if addresses.is_empty() {
        return None;
    }
    let (serving, terminating) = (pods::is_ready(pod), pods::is_deleting(pod));
    let ready = service.sub("spec").flag("publishNotReadyAddresses") || serving && !terminating;
    let mut out = map! {
        "addresses" => addresses,
        "conditions" => map! { "ready" => ready, "serving" => serving, "terminating" => terminating },
        "targetRef" => address::reference(pod),
    };
    let zone = node.and_then(|n| n.label("topology.kubernetes.io/zone")).unwrap_or_default();
    let texts = [
        ("nodeName", pod.sub("spec").text("nodeName")),
        ("zone", zone),
        ("hostname", address::host_name(pod, service)),
    ];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.insert(field, text);
    }
    let close = service.sub("spec").text("trafficDistribution") == "PreferClose";
    if close && ready && !zone.is_empty() {
        out.insert("hints", map! { "forZones" => vec![map! { "name" => zone }] });
    }
    Some(out.into())
}

/// The labels of a Service's slices, made of the Service's own.
pub fn labels(service: &Value, managed_by: &str) -> Map {
    let mut out = service.sub("metadata").members("labels").clone();
    out.retain(|key, _| !matches!(key, SERVICE_NAME | MANAGED_BY | HEADLESS));
    out.insert(SERVICE_NAME, service.name());
    out.insert(MANAGED_BY, managed_by);
    if !address::has_cluster_address(service) {
        out.insert(HEADLESS, "");
    }
    out
}

/// The label with the name of the Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that says who keeps a slice.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
