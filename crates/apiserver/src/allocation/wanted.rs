//! What a service needs.

use super::{node_port, ports};
use object::Value;

/// What a service lacks, or asks for anew.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// An address: the one asked for, or any.
    pub address: Option<Option<String>>,
    /// The places of the ports whose node ports are missing or new.
    pub ports: Vec<usize>,
    /// The port for health checks: the one asked for, or 0 for any.
    pub health: Option<i64>,
}

impl Wanted {
    /// What a service needs beside what it had.
    pub fn of(service: &Value, old: Option<&Value>) -> Self {
        let text = |object: &Value, key: &str| object.str_at(&["spec", key]).unwrap_or_default().to_owned();
        let number = |object: &Value| object.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int).unwrap_or(0);
        let kind = text(service, "type");
        let mut wanted = Wanted::default();
        if !matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
            return wanted;
        }
        let address = text(service, "clusterIP");
        let had = old.map(|old| text(old, "clusterIP")).unwrap_or_default();
        if address.is_empty() {
            wanted.address = Some(None);
        } else if address != "None" && address != had {
            wanted.address = Some(Some(address));
        }
        let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
        let before: Vec<i64> = old.map(|old| ports(old).map(node_port).collect()).unwrap_or_default();
        if kind != "ClusterIP" {
            let chooses = kind == "NodePort" || allocates;
            let new = ports(service).enumerate().filter(|(_, port)| match node_port(port) {
                0 => chooses,
                number => !before.contains(&number),
            });
            wanted.ports = new.map(|(i, _)| i).collect();
        }
        if kind == "LoadBalancer" && text(service, "externalTrafficPolicy") == "Local" {
            let had = old.map(number).unwrap_or(0);
            wanted.health = Some(number(service)).filter(|n| *n == 0 || *n != had);
        }
        wanted
    }

    /// Whether it needs nothing.
    pub fn is_nothing(&self) -> bool {
        self.address.is_none() && self.ports.is_empty() && self.health.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn headless_and_external_services_need_nothing() {
        for service in [r#"{"spec":{"type":"ClusterIP","clusterIP":"None"}}"#, r#"{"spec":{"type":"ExternalName"}}"#] {
            assert!(Wanted::of(&json::parse(service.as_bytes()).unwrap(), None).is_nothing());
        }
    }
}
