//! The subsets of an Endpoints object: which addresses offer which ports.

use super::address::{self, Family};
use crate::pods;
use kinds::read::Read;
use object::{Map, Value, json, map};
use std::collections::BTreeMap;

/// The most addresses that an Endpoints object has.
const MOST: usize = 1000;
/// The annotation of those that would have more.
pub const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// An address and whether it is ready.
type Addresses = BTreeMap<(String, String), (Value, bool)>;

/// The subsets of a Service with these pods.
pub fn subsets(service: &Value, pods: &[&Value]) -> Vec<Value> {
    let unready_too = service.sub("spec").flag("publishNotReadyAddresses");
    let ports = service.sub("spec").list("ports");
    let headless = service.sub("spec").text("clusterIP") == "None";
    // By the port's text.
    let mut by_port: BTreeMap<Option<String>, (Value, Addresses)> = BTreeMap::new();
    for pod in pods.iter().filter(|p| address::can_be_endpoint(p, unready_too)) {
        let Some(address) = address_of(service, pod) else { continue };
        let ready = unready_too || pods::is_ready(pod);
        let mut add = |port: Option<Map>| {
            let port = port.map(Value::Object);
            let key = port.as_ref().map(json::to_string);
            let (_, addresses) = by_port.entry(key).or_insert_with(|| (port.unwrap_or_default(), Addresses::new()));
            let identity = (address.text("ip").to_owned(), pod.meta_str("uid").to_owned());
            let known = addresses.entry(identity).or_insert_with(|| (address.clone(), ready));
            // An address that is once not ready is not ready.
            known.1 &= ready;
        };
        if ports.is_empty() && headless {
            add(None);
        }
        for port in ports {
            if let Some(number) = address::port_number(pod, port) {
                add(Some(subset_port(port, number)));
            }
        }
    }
    joined(by_port)
}

/// Ports that the same addresses offer come into one subset.
fn joined(by_port: BTreeMap<Option<String>, (Value, Addresses)>) -> Vec<Value> {
    let mut by_addresses: BTreeMap<String, (Vec<Value>, Addresses)> = BTreeMap::new();
    for (port, addresses) in by_port.into_values() {
        let key: Vec<String> = addresses.iter().map(|((ip, uid), (_, ready))| format!("{ip} {uid} {ready}")).collect();
        let (ports, _) = by_addresses.entry(key.join(",")).or_insert_with(|| (Vec::new(), addresses));
        if !port.is_null() {
            ports.push(port);
        }
    }
    let of = |(ports, addresses): (Vec<Value>, Addresses)| {
        let mut subset = Map::new();
        let (ready, unready): (Vec<_>, Vec<_>) = addresses.into_values().partition(|(_, ready)| *ready);
        for (field, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !list.is_empty() {
                subset.insert(field, list.into_iter().map(|(address, _)| address).collect::<Vec<_>>());
            }
        }
        if !ports.is_empty() {
            subset.insert("ports", ports);
        }
        Value::Object(subset)
    };
    by_addresses.into_values().map(of).collect()
}

fn address_of(service: &Value, pod: &Value) -> Option<Value> {
    let addresses = address::addresses(pod);
    let named = service.sub("spec").has("ipFamilies");
    let headless = service.sub("spec").text("clusterIP") == "None";
    let family = match address::families(service).first() {
        // Nothing says which: the pod's first address does.
        _ if !named && headless => addresses.first().and_then(|ip| Family::of(ip)),
        family => family.copied(),
    };
    let ip = addresses.into_iter().find(|ip| Family::of(ip) == family)?;
    let mut out = map! {
        "ip" => ip, "nodeName" => pod.sub("spec").text("nodeName"), "targetRef" => address::reference(pod),
    };
    let host = address::host_name(pod, service);
    if !host.is_empty() {
        out.insert("hostname", host);
    }
    Some(out.into())
}

fn subset_port(port: &Value, number: i64) -> Map {
    let mut out = map! { "port" => number, "protocol" => address::protocol(port) };
    for field in ["name", "appProtocol"] {
        if !port.text(field).is_empty() {
            out.insert(field, port.text(field));
        }
    }
    out
}

/// Leaves out addresses beyond the most that there may be, those that are not ready first. Tells whether there were some.
pub fn truncate(subsets: &mut [Value]) -> bool {
    let count = |subsets: &[Value], field: &str| subsets.iter().map(|s| s.list(field).len()).sum::<usize>();
    let (ready, unready) = (count(subsets, "addresses"), count(subsets, "notReadyAddresses"));
    if ready + unready <= MOST {
        return false;
    }
    let mut left = [("addresses", ready.min(MOST)), ("notReadyAddresses", MOST.saturating_sub(ready))];
    for subset in subsets {
        for (field, left) in &mut left {
            let Some(list) = subset.get_mut(field).and_then(Value::as_array_mut) else { continue };
            list.truncate(*left);
            *left -= list.len();
            if list.is_empty() {
                subset.remove_at(&[field]);
            }
        }
    }
    true
}

/// The subsets as far as they are compared: without the versions of the pods that they refer to, in a fixed order.
pub fn comparable(subsets: &[Value]) -> Vec<String> {
    let mut out: Vec<String> = subsets
        .iter()
        .map(|subset| {
            let mut subset = subset.clone();
            for field in ["addresses", "notReadyAddresses"] {
                for address in kinds::read::list_mut(&mut subset, field) {
                    address.remove_at(&["targetRef", "resourceVersion"]);
                }
            }
            json::to_string(&subset)
        })
        .collect();
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn pod(name: &str, ip: &str, ready: bool, port: u16) -> Value {
        parse(&format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{name}"}},"spec":{{"nodeName":"n","containers":[{{"ports":[{{"name":"p","containerPort":{port}}}]}}]}},
            "status":{{"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"conditions":[{{"type":"Ready","status":"{}"}}]}}}}"#,
            if ready { "True" } else { "False" }
        ))
    }

    fn shown(service: &str, pods: &[Value]) -> Vec<String> {
        let service = parse(&format!(r#"{{"metadata":{{"name":"s"}},"spec":{service}}}"#));
        let pods: Vec<&Value> = pods.iter().collect();
        let ips = |subset: &Value, field: &str| {
            subset.list(field).iter().map(|a| a.text("ip").to_owned()).collect::<Vec<_>>().join(",")
        };
        let ports = |subset: &Value| {
            subset.list("ports").iter().map(|p| p.int("port").to_string()).collect::<Vec<_>>().join(",")
        };
        let show = |s: &Value| format!("{}|{}|{}", ips(s, "addresses"), ips(s, "notReadyAddresses"), ports(s));
        subsets(&service, &pods).iter().map(show).collect()
    }

    #[test]
    fn addresses_with_the_same_ports_come_together() {
        let pods = [pod("a", "10.0.0.2", true, 80), pod("b", "10.0.0.1", true, 80), pod("c", "10.0.0.3", false, 81)];
        for (service, expected) in [
            (
                r#"{"clusterIP":"10.1.1.1","ports":[{"port":1,"targetPort":8080},{"port":2,"targetPort":8081}]}"#,
                vec!["10.0.0.1,10.0.0.2|10.0.0.3|8080,8081"],
            ),
            (
                r#"{"clusterIP":"10.1.1.1","ports":[{"port":1,"targetPort":"p"}]}"#,
                vec!["10.0.0.1,10.0.0.2||80", "|10.0.0.3|81"],
            ),
            (r#"{"clusterIP":"10.1.1.1","ports":[{"port":1,"targetPort":"none"}]}"#, vec![]),
            (r#"{"clusterIP":"None"}"#, vec!["10.0.0.1,10.0.0.2|10.0.0.3|"]),
            (r#"{"clusterIP":"None","publishNotReadyAddresses":true}"#, vec!["10.0.0.1,10.0.0.2,10.0.0.3||"]),
            (r#"{"clusterIP":"fd00::1","ports":[{"port":1,"targetPort":8080}]}"#, vec![]),
        ] {
            assert_eq!(shown(service, &pods), expected, "{service}");
        }
    }

    #[test]
    fn there_are_not_more_addresses_than_there_may_be() {
        let many = |n: usize| Value::Array(vec![parse("{}"); n]);
        let mut subsets = [
            map! { "addresses" => many(600), "notReadyAddresses" => many(10) }.into(),
            map! { "addresses" => many(395), "notReadyAddresses" => many(10) }.into(),
        ];
        assert!(truncate(&mut subsets));
        let counts: Vec<usize> =
            subsets.iter().flat_map(|s: &Value| ["addresses", "notReadyAddresses"].map(|f| s.list(f).len())).collect();
        assert_eq!(counts, [600, 5, 395, 0]);
        assert!(!truncate(&mut subsets));
    }
}
