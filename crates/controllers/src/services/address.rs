//! Addresses and ports of pods, as Services see them.

use crate::pods;
use kinds::read::Read;
use object::{Map, Value, map};
use std::net::IpAddr;

/// A family of addresses, by the name that slices have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: &str) -> Option<Family> {
        match address.parse() {
            Ok(IpAddr::V4(_)) => Some(Family::V4),
            Ok(IpAddr::V6(_)) => Some(Family::V6),
            Err(_) => None,
        }
    }

    /// As slices and Services write it.
    pub fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }
}

/// The families of a Service, the first one first.
pub fn families(service: &Value) -> Vec<Family> {
    let spec = service.sub("spec");
    let named = spec.strings("ipFamilies").into_iter().map(|f| if f == "IPv6" { Family::V6 } else { Family::V4 });
    let named: Vec<Family> = named.collect();
    if !named.is_empty() {
        return named;
    }
    match spec.text("clusterIP") {
        "None" | "" => vec![Family::V4, Family::V6],
        address => vec![Family::of(address).unwrap_or(Family::V4)],
    }
}

/// Whether a Service has an address of its own.
pub fn has_cluster_address(service: &Value) -> bool {
    !matches!(service.sub("spec").text("clusterIP"), "" | "None")
}

/// The addresses of a pod.
pub fn addresses(pod: &Value) -> Vec<&str> {
    let status = pod.sub("status");
    let all: Vec<&str> = status.list("podIPs").iter().map(|ip| ip.text("ip")).filter(|ip| !ip.is_empty()).collect();
    if all.is_empty() && !status.text("podIP").is_empty() { vec![status.text("podIP")] } else { all }
}

/// Whether a pod can be an endpoint.
pub fn can_be_endpoint(pod: &Value, while_terminating: bool) -> bool {
    !pods::is_terminal(pod) && !addresses(pod).is_empty() && (while_terminating || !pods::is_deleting(pod))
}

/// The host name that a pod has in a Service; empty where it has none.
pub fn host_name<'p>(pod: &'p Value, service: &Value) -> &'p str {
    let spec = pod.sub("spec");
    if spec.text("subdomain") == service.name() && pod.namespace() == service.namespace() {
        spec.text("hostname")
    } else {
        ""
    }
}

/// The number of a Service's port in a pod; nothing if the pod has no port of that name.
pub fn port_number(pod: &Value, port: &Value) -> Option<i64> {
    match port.sub("targetPort") {
        Value::Int(number) => Some(*number),
        Value::String(name) => {
            let spec = pod.sub("spec");
            let sidecars = spec.list("initContainers").iter().filter(|c| c.text("restartPolicy") == "Always");
            let containers = spec.list("containers").iter().chain(sidecars);
            let found = containers
                .flat_map(|c| c.list("ports"))
                .find(|p| p.text("name") == name.as_str() && protocol(p) == protocol(port));
            found.map(|p| p.int("containerPort"))
        }
        _ => port.opt_int("port"),
    }
}

/// The protocol of a port.
pub fn protocol(port: &Value) -> &str {
    match port.text("protocol") {
        "" => "TCP",
        protocol => protocol,
    }
}

/// The reference of an endpoint to its pod.
pub fn reference(pod: &Value) -> Map {
    map! {
        "kind" => "Pod", "namespace" => pod.namespace(), "name" => pod.name(), "uid" => pod.meta_str("uid"),
    }
}

/// The pods that a Service selects by labels; nothing if it selects none.
pub fn selector(service: &Value) -> Option<&Map> {
    let spec = service.sub("spec");
    let selector = spec.members("selector");
    (spec.text("type") != "ExternalName" && !selector.is_empty()).then_some(selector)
}

/// Whether labels have all members of a Service's selector.
pub fn selects(selector: &Map, pod: &Value) -> bool {
    let labels = pod.sub("metadata").members("labels");
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn ports_are_found_by_name_and_protocol() {
        let pod = parse(
            r#"{"spec":{"containers":[{"ports":[{"name":"web","containerPort":80},{"name":"dns","protocol":"UDP","containerPort":53}]}],
            "initContainers":[{"restartPolicy":"Always","ports":[{"name":"side","containerPort":9}]},{"ports":[{"name":"init","containerPort":8}]}]}}"#,
        );
        for (port, number) in [
            (r#"{"port":1,"targetPort":8080}"#, Some(8080)),
            (r#"{"port":1,"targetPort":"web"}"#, Some(80)),
            (r#"{"port":1,"targetPort":"web","protocol":"UDP"}"#, None),
            (r#"{"port":1,"targetPort":"dns","protocol":"UDP"}"#, Some(53)),
            (r#"{"port":1,"targetPort":"side"}"#, Some(9)),
            (r#"{"port":1,"targetPort":"init"}"#, None),
            (r#"{"port":1}"#, Some(1)),
        ] {
            assert_eq!(port_number(&pod, &parse(port)), number, "{port}");
        }
    }

    #[test]
    fn families_are_those_of_the_service() {
        for (spec, expected) in [
            (r#"{"ipFamilies":["IPv6","IPv4"]}"#, vec![Family::V6, Family::V4]),
            (r#"{"clusterIP":"10.0.0.1"}"#, vec![Family::V4]),
            (r#"{"clusterIP":"fd00::1"}"#, vec![Family::V6]),
            (r#"{"clusterIP":"None"}"#, vec![Family::V4, Family::V6]),
        ] {
            assert_eq!(families(&parse(&format!(r#"{{"spec":{spec}}}"#))), expected);
        }
    }
}
