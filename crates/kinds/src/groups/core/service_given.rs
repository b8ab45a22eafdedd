//! What the server gives to a Service: the families of its addresses, and on updates what it was given before.

use super::service::{externally_accessible, headless};
use crate::read::{Read, default_to, list_mut, object_mut};
use crate::resource::Context;
use object::{Map, Value, map};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// The policy of families that a Service without a second address follows.
const SINGLE: &str = "SingleStack";
/// The families of addresses; a cluster has the first one only.
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

pub(super) fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object.set_at(&["status"], map! { "loadBalancer" => Map::new() }.into());
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    let address = spec.text("clusterIP").to_owned();
    if !address.is_empty() && spec.list("clusterIPs").is_empty() {
        spec.set_at(&["clusterIPs"], vec![address].into());
    }
    families(spec, &Value::Null);
    hide_policy(spec);
}

/// Keeps what was given where the client leaves it out, and drops what a new type has no use for.
pub(super) fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    let before = old.sub("spec");
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    keep(spec, before);
    match_addresses(spec, before);
    families(spec, before);
    drop_useless(spec, before);
    hide_policy(spec);
    if object.sub("spec").text("type") != "LoadBalancer" {
        object.set_at(&["status", "loadBalancer"], Map::new().into());
    }
}

fn needs_address(spec: &Value) -> bool {
    spec.text("type") != "ExternalName"
}

fn needs_node_port(spec: &Value) -> bool {
    matches!(spec.text("type"), "NodePort" | "LoadBalancer")
}

/// Whether a load balancer asks nodes whether they have endpoints.
pub(super) fn needs_health_check(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer" && spec.text("externalTrafficPolicy") == "Local"
}

fn node_ports(spec: &Value) -> HashSet<i64> {
    spec.list("ports").iter().map(|port| port.int("nodePort")).filter(|number| *number != 0).collect()
}

/// Fills in what the Service was given before and its author left out, so that the same text can be sent twice.
fn keep(spec: &mut Value, before: &Value) {
    if needs_address(spec) && needs_address(before) {
        if spec.text("clusterIP").is_empty() && !before.text("clusterIP").is_empty() {
            spec.set_at(&["clusterIP"], before.text("clusterIP").into());
        }
        if spec.list("clusterIPs").is_empty() && !before.list("clusterIPs").is_empty() {
            spec.set_at(&["clusterIPs"], before.sub("clusterIPs").clone());
        }
    }
    if needs_node_port(spec) && needs_node_port(before) {
        let (now, was) = (node_ports(spec), node_ports(before));
        let named: HashMap<&str, i64> =
            before.list("ports").iter().map(|port| (port.text("name"), port.int("nodePort"))).collect();
        for port in list_mut(spec, "ports").iter_mut().filter(|port| port.int("nodePort") == 0) {
            // What another port has still cannot be this one's.
            let known = named.get(port.text("name")).filter(|number| was.contains(number) && !now.contains(number));
            if let Some(number) = known {
                port.set_at(&["nodePort"], Value::Int(*number));
            }
        }
    }
    const HEALTH: &str = "healthCheckNodePort";
    let number = before.int(HEALTH);
    if needs_health_check(spec) && needs_health_check(before) && spec.int(HEALTH) == 0 && number != 0 {
        spec.set_at(&[HEALTH], Value::Int(number));
    }
}

/// `clusterIP` is the first of `clusterIPs`, whichever of the two a client knows.
fn match_addresses(spec: &mut Value, before: &Value) {
    let same_first = spec.text("clusterIP") == before.text("clusterIP");
    if same_first && spec.list("clusterIPs").is_empty() && !before.list("clusterIPs").is_empty() {
        spec.set_at(&["clusterIPs"], before.sub("clusterIPs").clone());
    }
    if !same_first && spec.list("clusterIPs") == before.list("clusterIPs") {
        match spec.text("clusterIP").to_owned() {
            address if address.is_empty() => {
                spec.remove_at(&["clusterIPs"]);
            }
            address => spec.set_at(&["clusterIPs"], vec![address].into()),
        }
    }
}

/// Whether an update is about other things than addresses: a Service that would like two has what it had.
pub(super) fn prefers_as_before(spec: &Value, before: &Value) -> bool {
    let prefers = |spec: &Value| spec.text("ipFamilyPolicy") == "PreferDualStack";
    let same = |key: &str| spec.list(key) == before.list(key);
    needs_address(spec)
        && spec.text("type") == before.text("type")
        && prefers(spec)
        && (prefers(before) || !before.has("ipFamilyPolicy"))
        && same("clusterIPs")
        && same("ipFamilies")
}

/// Whether a Service stands for endpoints that somebody else writes: these may have addresses of both families.
pub(super) fn stands_for_any(spec: &Value) -> bool {
    headless(spec) && spec.members("selector").is_empty()
}

/// The policy and the families of addresses, on a cluster with IPv4 only; `before` is null for a new Service.
fn families(spec: &mut Value, before: &Value) {
    if !needs_address(spec) || prefers_as_before(spec, before) {
        return;
    }
    let policy = match before.text("ipFamilyPolicy") {
        "" if stands_for_any(spec) => "RequireDualStack",
        "" => SINGLE,
        policy => policy,
    };
    default_to(spec, "ipFamilyPolicy", policy);
    let single = spec.text("ipFamilyPolicy") == SINGLE;
    for key in ["clusterIPs", "ipFamilies"] {
        let list = spec.list(key);
        if single && list.len() > 1 && list == before.list(key) {
            let first = list[..1].to_vec();
            spec.set_at(&[key], first.into());
        }
    }
    let mut list: Vec<String> = spec.strings("ipFamilies").into_iter().map(str::to_owned).collect();
    // Less than before is a wish, which the policy allows or does not.
    let reduced = !list.is_empty() && list.len() < before.list("ipFamilies").len();
    // What has no family here, or is no address, is left for the checks.
    let addresses = spec.strings("clusterIPs");
    for address in addresses.iter().skip(list.len()) {
        if !crate::net::parse_ip(address).is_some_and(|address| matches!(address.to_canonical(), IpAddr::V4(_))) {
            break;
        }
        list.push(FAMILIES[0].to_owned());
    }
    if list.is_empty() && (addresses.is_empty() || headless(spec)) {
        list.push(FAMILIES[0].to_owned());
    }
    if let ([first], true) = (&list[..], stands_for_any(spec) && !single && !reduced)
        && let Some(other) = FAMILIES.iter().position(|family| family == first).map(|at| FAMILIES[1 - at])
    {
        list.push(other.to_owned());
    }
    if !list.is_empty() {
        spec.set_at(&["ipFamilies"], list.into());
    }
}

/// Drops what only the old type had use for, unless its value was changed too: then the checks say so.
fn drop_useless(spec: &mut Value, before: &Value) {
    let drop_same = |spec: &mut Value, keys: &[&str]| {
        if keys.iter().all(|key| spec.sub(key) == before.sub(key)) {
            for key in keys {
                spec.remove_at(&[key]);
            }
        }
    };
    if needs_address(before) && !needs_address(spec) {
        drop_same(spec, &["clusterIP", "clusterIPs"]);
        drop_same(spec, &["ipFamilies"]);
        drop_same(spec, &["ipFamilyPolicy"]);
    }
    if needs_node_port(before) && !needs_node_port(spec) && node_ports(spec).is_subset(&node_ports(before)) {
        for port in list_mut(spec, "ports") {
            port.remove_at(&["nodePort"]);
        }
    }
    if needs_health_check(before) && !needs_health_check(spec) {
        drop_same(spec, &["healthCheckNodePort"]);
    }
    if before.text("type") == "LoadBalancer" && spec.text("type") != "LoadBalancer" {
        drop_same(spec, &["allocateLoadBalancerNodePorts"]);
        drop_same(spec, &["loadBalancerClass"]);
    }
    if externally_accessible(before) && !externally_accessible(spec) {
        drop_same(spec, &["externalTrafficPolicy"]);
    }
}

/// Upstream shows no policy for the traffic inside of the cluster where there is none; one that is wrong is refused.
fn hide_policy(spec: &mut Value) {
    if !needs_address(spec) && matches!(spec.text("internalTrafficPolicy"), "Cluster" | "Local") {
        spec.remove_at(&["internalTrafficPolicy"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use object::json;

    fn value(spec: &str) -> Value {
        json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap()
    }

    fn updated(new: &str, old: &str) -> String {
        let mut object = value(new);
        let context = Context { now: Timestamp::UNIX_EPOCH, user: None };
        prepare_update(&mut object, &value(old), &context);
        json::to_string(object.sub("spec"))
    }

    #[test]
    fn what_was_given_is_kept_where_it_is_left_out() {
        const IP4: &str = r#""ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack""#;
        const ONE: &str = r#""clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"]"#;
        for (new, old, wanted) in [
            (
                r#"{"type":"ClusterIP"}"#.to_owned(),
                format!(r#"{{"type":"ClusterIP",{ONE},{IP4}}}"#),
                format!(r#"{{{ONE},{IP4},"type":"ClusterIP"}}"#),
            ),
            // Another address takes the old one's place in the list, so that the checks refuse it.
            (
                r#"{"type":"ClusterIP","clusterIP":"10.0.0.8"}"#.to_owned(),
                format!(r#"{{"type":"ClusterIP",{ONE},{IP4}}}"#),
                format!(r#"{{"clusterIP":"10.0.0.8","clusterIPs":["10.0.0.8"],{IP4},"type":"ClusterIP"}}"#),
            ),
            // Node ports follow the names of ports, and no number is given twice.
            (
                r#"{"type":"NodePort","ports":[{"name":"b","port":2},{"name":"a","port":9,"protocol":"UDP"}]}"#
                    .to_owned(),
                format!(
                    r#"{{"type":"NodePort",{ONE},{IP4},"ports":[{{"name":"a","nodePort":30001,"port":1}},{{"name":"b","nodePort":30002,"port":2}}]}}"#
                ),
                format!(
                    r#"{{{ONE},{IP4},"ports":[{{"name":"b","nodePort":30002,"port":2}},{{"name":"a","nodePort":30001,"port":9,"protocol":"UDP"}}],"type":"NodePort"}}"#
                ),
            ),
            (
                r#"{"type":"NodePort","ports":[{"name":"a","port":1},{"name":"c","nodePort":30001,"port":3}]}"#
                    .to_owned(),
                format!(r#"{{"type":"NodePort",{ONE},{IP4},"ports":[{{"name":"a","nodePort":30001,"port":1}}]}}"#),
                format!(
                    r#"{{{ONE},{IP4},"ports":[{{"name":"a","port":1}},{{"name":"c","nodePort":30001,"port":3}}],"type":"NodePort"}}"#
                ),
            ),
            (
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local"}"#.to_owned(),
                format!(
                    r#"{{"type":"LoadBalancer","externalTrafficPolicy":"Local",{ONE},{IP4},"healthCheckNodePort":30005}}"#
                ),
                format!(
                    r#"{{{ONE},"externalTrafficPolicy":"Local","healthCheckNodePort":30005,{IP4},"type":"LoadBalancer"}}"#
                ),
            ),
        ] {
            assert_eq!(updated(&new, &old), wanted, "{new}");
        }
    }

    #[test]
    fn what_another_type_has_no_use_for_is_dropped_if_it_is_unchanged() {
        const BEFORE: &str = r#"{"type":"LoadBalancer","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ipFamilies":["IPv4"],
            "ipFamilyPolicy":"SingleStack","externalTrafficPolicy":"Local","healthCheckNodePort":30005,"internalTrafficPolicy":"Cluster",
            "allocateLoadBalancerNodePorts":true,"ports":[{"nodePort":30001,"port":1},{"nodePort":30002,"port":2}]}"#;
        const KEPT: &str = r#""clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"]"#;
        const IP4: &str = r#""ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack""#;
        for (new, wanted) in [
            (
                // A port less: the other's number is still an old one.
                r#"{"type":"ClusterIP","externalTrafficPolicy":"Local","healthCheckNodePort":30005,"allocateLoadBalancerNodePorts":true,"ports":[{"nodePort":30002,"port":2}]}"#,
                format!(r#"{{{KEPT},{IP4},"ports":[{{"port":2}}],"type":"ClusterIP"}}"#),
            ),
            (
                r#"{"type":"ClusterIP","healthCheckNodePort":30006,"ports":[{"nodePort":30003,"port":2}]}"#,
                format!(
                    r#"{{{KEPT},"healthCheckNodePort":30006,{IP4},"ports":[{{"nodePort":30003,"port":2}}],"type":"ClusterIP"}}"#
                ),
            ),
            (
                r#"{"type":"ExternalName","clusterIP":"10.0.0.9","externalName":"a","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"]}"#,
                r#"{"externalName":"a","type":"ExternalName"}"#.to_owned(),
            ),
            (
                r#"{"type":"ExternalName","externalName":"a","internalTrafficPolicy":"Local"}"#,
                r#"{"externalName":"a","type":"ExternalName"}"#.to_owned(),
            ),
        ] {
            assert_eq!(updated(new, BEFORE), wanted, "{new}");
        }
    }

    #[test]
    fn families_follow_policy_addresses_and_what_was_before() {
        let list = |spec: &Value| (spec.text("ipFamilyPolicy").to_owned(), spec.strings("ipFamilies").join(","));
        for (new, old, policy, wanted) in [
            (r#"{"type":"ClusterIP"}"#, "", "SingleStack", "IPv4"),
            (r#"{"type":"ClusterIP","clusterIP":"None","selector":{"a":"b"}}"#, "", "SingleStack", "IPv4"),
            (r#"{"type":"ClusterIP","clusterIP":"None"}"#, "", "RequireDualStack", "IPv4,IPv6"),
            (r#"{"type":"ClusterIP","clusterIP":"None","ipFamilies":["IPv6"]}"#, "", "RequireDualStack", "IPv6,IPv4"),
            (r#"{"type":"ClusterIP","clusterIP":"None","ipFamilyPolicy":"SingleStack"}"#, "", "SingleStack", "IPv4"),
            (
                r#"{"type":"ClusterIP","clusterIP":"None","ipFamilyPolicy":"PreferDualStack"}"#,
                "",
                "PreferDualStack",
                "IPv4,IPv6",
            ),
            (r#"{"type":"ClusterIP","clusterIP":"fd00::1","clusterIPs":["fd00::1"]}"#, "", "SingleStack", ""),
            (
                r#"{"type":"ClusterIP"}"#,
                r#"{"type":"ClusterIP","ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4"]}"#,
                "PreferDualStack",
                "IPv4",
            ),
            (
                r#"{"type":"ClusterIP","clusterIP":"None","ipFamilies":["IPv4"]}"#,
                r#"{"type":"ClusterIP","clusterIP":"None","ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}"#,
                "RequireDualStack",
                "IPv4",
            ),
            (
                r#"{"type":"ClusterIP","clusterIP":"None","ipFamilyPolicy":"SingleStack","ipFamilies":["IPv6","IPv4"]}"#,
                r#"{"type":"ClusterIP","clusterIP":"None","ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6","IPv4"]}"#,
                "SingleStack",
                "IPv6",
            ),
        ] {
            let mut spec = json::parse(new.as_bytes()).unwrap();
            let before = if old.is_empty() { Value::Null } else { json::parse(old.as_bytes()).unwrap() };
            families(&mut spec, &before);
            assert_eq!(list(&spec), (policy.to_owned(), wanted.to_owned()), "{new}");
        }
    }
}
