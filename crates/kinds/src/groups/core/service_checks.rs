//! What is checked when Services are created and changed.

use super::endpoints::special;
use super::service::{externally_accessible, headless};
use super::service_given::{needs_health_check, prefers_as_before, stands_for_any};
use crate::check::{self, Errors};
use crate::net;
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::{Value, metadata, names};
use std::collections::HashSet;

const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// Checks a Service to be created.
pub(super) fn validate(object: &Value) -> Errors {
    let alone = allocation(object.sub("spec"), &Value::Null);
    if alone.is_empty() { whole(object) } else { alone }
}

/// What keeps a Service from getting its addresses; `before` is null for a new one. Upstream gives them first, and says
/// nothing else then. Each step is looked at if the ones before it found nothing.
fn allocation(spec: &Value, before: &Value) -> Errors {
    let mut out = Errors::new();
    if spec.text("type") == "ExternalName" || prefers_as_before(spec, before) {
        return out;
    }
    let path = Path::ROOT.child("spec");
    addresses(spec, &path, &mut out);
    if out.is_empty() {
        stacks(spec, before, &path, &mut out);
    }
    // Those that stand for the endpoints of others may say what they like.
    if out.is_empty() && !stands_for_any(spec) {
        of_cluster(spec, &path, &mut out);
    }
    out
}

/// Checks that policy, families and addresses are about as many stacks.
fn stacks(spec: &Value, before: &Value, path: &Path<'_>, out: &mut Errors) {
    const SINGLE: &str = "SingleStack";
    let policy = spec.text("ipFamilyPolicy");
    let mut refuse = |why: String| out.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, why));
    for (key, what, all) in [("clusterIPs", "cluster IP", "cluster IPs"), ("ipFamilies", "IP family", "IP families")] {
        let count = spec.list(key).len();
        if policy != SINGLE && !before.is_null() && (1..before.list(key).len()).contains(&count) {
            refuse(format!("must be '{SINGLE}' to release the secondary {what}"));
        }
        if policy == SINGLE && count == 2 {
            refuse(format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {all} are specified"));
        }
    }
    let (list, at) = (spec.strings("clusterIPs"), path.child("clusterIPs"));
    let missing = list.iter().enumerate().skip(spec.list("ipFamilies").len());
    for (i, address) in missing.take_while(|(_, address)| **address != "None") {
        if net::parse_ip(address).is_some_and(|address| !address.to_canonical().is_ipv4()) {
            out.push(FieldError::invalid(&at.index(i), shown_list(&list), "IPv6 is not configured on this cluster"));
        }
    }
}

/// Checks that the cluster has what is asked for: it has IPv4 only.
fn of_cluster(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if spec.text("ipFamilyPolicy") == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        out.push(FieldError::invalid(&path.child("ipFamilyPolicy"), "RequireDualStack", why));
    }
    let families = path.child("ipFamilies");
    for (i, family) in spec.strings("ipFamilies").into_iter().enumerate().filter(|(_, f)| *f == "IPv6") {
        out.push(FieldError::invalid(&families.index(i), family, "not configured on this cluster"));
    }
}

fn whole(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let kind = spec.text("type");
    topology(object, &mut out);
    let ports = path.child("ports");
    let list = spec.list("ports");
    if list.is_empty() && !headless(spec) && kind != "ExternalName" {
        out.push(FieldError::required(&ports, ""));
    }
    by_type(spec, &path, &mut out);
    let mut seen: HashSet<&str> = HashSet::new();
    for (i, value) in list.iter().enumerate() {
        port(value, list.len() > 1, &ports.index(i), &mut seen, &mut out);
    }
    unique_ports(list, &ports, &mut out);
    out.extend(metadata::validate_labels(spec.members("selector"), &path.child("selector")));
    affinity(spec, &path, &mut out);
    let external = path.child("externalIPs");
    for (i, ip) in spec.strings("externalIPs").into_iter().enumerate() {
        match net::parse_ip(ip) {
            Some(_) => special(ip, &external.index(i), &mut out),
            None => net::ip(ip, &external.index(i), &mut out),
        }
    }
    check::required_one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path, &mut out);
    source_ranges(object, &path, &mut out);
    for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if kind != "LoadBalancer" && spec.has(key) {
            out.push(FieldError::forbidden(&path.child(key), BALANCER_ONLY));
        }
    }
    if kind == "LoadBalancer" && spec.has("loadBalancerClass") {
        check::label_name(spec.text("loadBalancerClass"), &path.child("loadBalancerClass"), &mut out);
    }
    traffic(spec, &path, &mut out);
    out
}

/// The old and the new annotation about zones say the same.
fn topology(object: &Value, out: &mut Errors) {
    if let (Some(hints), Some(mode)) = (object.annotation(TOPOLOGY_HINTS), object.annotation(TOPOLOGY_MODE))
        && hints != mode
    {
        let meta = Path::ROOT.child("metadata");
        let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        out.push(FieldError::invalid(&meta.child("annotations").key(TOPOLOGY_MODE), mode, why));
    }
}

fn by_type(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let ports = path.child("ports");
    match spec.text("type") {
        "ClusterIP" => {
            for (i, _) in spec.list("ports").iter().enumerate().filter(|(_, p)| p.int("nodePort") != 0) {
                let why = "may not be used when `type` is 'ClusterIP'";
                out.push(FieldError::forbidden(&ports.index(i).child("nodePort"), why));
            }
        }
        kind @ ("LoadBalancer" | "NodePort") if headless(spec) => {
            let addresses = path.child("clusterIPs");
            let why = format!("may not be set to 'None' for {kind} services");
            out.push(FieldError::invalid(&addresses.index(0), "None", why));
        }
        "ExternalName" => {
            for (key, set) in [
                ("clusterIPs", !spec.list("clusterIPs").is_empty()),
                ("ipFamilies", !spec.list("ipFamilies").is_empty()),
                ("ipFamilyPolicy", spec.has("ipFamilyPolicy")),
            ] {
                if set {
                    out.push(FieldError::forbidden(&path.child(key), "may not be set for ExternalName services"));
                }
            }
            let name = spec.text("externalName");
            let trimmed = name.strip_suffix('.').unwrap_or(name);
            if trimmed.is_empty() {
                out.push(FieldError::required(&path.child("externalName"), ""));
            } else {
                check::name(names::dns1123_subdomain, trimmed, &path.child("externalName"), out);
            }
        }
        _ => {}
    }
}

fn port<'a>(port: &'a Value, named: bool, path: &Path<'_>, seen: &mut HashSet<&'a str>, out: &mut Errors) {
    let name = port.text("name");
    let at = path.child("name");
    if named && name.is_empty() {
        out.push(FieldError::required(&at, ""));
    } else if !name.is_empty() {
        check::name(names::dns1123_label, name, &at, out);
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&at, name));
        }
    }
    let number = port.int("port");
    if let Some(why) = check::port_number(number) {
        out.push(FieldError::invalid(&path.child("port"), number, why));
    }
    check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], path, out);
    check::port_or_name(port.sub("targetPort"), &path.child("targetPort"), out);
    if port.has("appProtocol") {
        check::label_name(port.text("appProtocol"), &path.child("appProtocol"), out);
    }
}

fn unique_ports(list: &[Value], path: &Path<'_>, out: &mut Errors) {
    let (mut seen, mut nodes) = (HashSet::new(), HashSet::new());
    for (i, port) in list.iter().enumerate() {
        let (protocol, number, node) = (port.text("protocol"), port.int("port"), port.int("nodePort"));
        if node != 0 && !nodes.insert((protocol, node)) {
            out.push(FieldError::duplicate(&path.index(i).child("nodePort"), node));
        }
        if !seen.insert((protocol, number)) {
            let shown = format!(
                "core.ServicePort{{Name:\"\", Protocol:\"{protocol}\", AppProtocol:(*string)(nil), Port:{number}, \
                 TargetPort:intstr.IntOrString{{Type:0, IntVal:0, StrVal:\"\"}}, NodePort:0}}"
            );
            out.push(FieldError::duplicate(&path.index(i), Shown::raw(shown)));
        }
    }
}

fn affinity(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    check::required_one_of(spec, "sessionAffinity", &["ClientIP", "None"], path, out);
    let at = path.child("sessionAffinityConfig");
    let config = spec.sub("sessionAffinityConfig");
    match spec.text("sessionAffinity") {
        "ClientIP" => {
            let client = at.child("clientIP");
            let seconds = config.sub("clientIP").int("timeoutSeconds");
            if !(1..=86_400).contains(&seconds) {
                let why = "must be greater than 0 and less than 86400";
                out.push(FieldError::invalid(&client.child("timeoutSeconds"), seconds, why));
            }
        }
        "None" if spec.has("sessionAffinityConfig") => {
            out.push(FieldError::forbidden(&at, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn shown_list(list: &[&str]) -> Shown {
    Shown::raw(object::go::string_list(list))
}

/// Checks addresses, families and policy by themselves.
fn addresses(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("clusterIPs");
    let list = spec.strings("clusterIPs");
    match (spec.text("clusterIP"), list.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            out.push(FieldError::invalid(&at, shown_list(&list), why));
        }
        (_, None) => out.push(FieldError::required(&at, "")),
        (address, Some(first)) => {
            if *first != address {
                out.push(FieldError::invalid(&at, shown_list(&list), "first value must match `clusterIP`"));
            }
        }
    }
    let families = path.child("ipFamilies");
    let wanted = spec.strings("ipFamilies");
    for (i, family) in wanted.iter().enumerate() {
        if !matches!(*family, "IPv4" | "IPv6") {
            out.push(FieldError::not_supported(&families.index(i), *family, &["IPv4", "IPv6"]));
        }
        if wanted.iter().take(i).any(|f| f == family) {
            out.push(FieldError::duplicate(&families.index(i), *family));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if spec.has("ipFamilyPolicy") {
        check::one_of(spec, "ipFamilyPolicy", &policies, path, out);
    }
    let mut bad = false;
    for (i, address) in list.iter().enumerate() {
        if i == 0 && *address == "None" {
            if list.len() > 1 {
                bad = true;
                out.push(FieldError::invalid(&at, shown_list(&list), "'None' must be the first and only value"));
            }
        } else if net::parse_ip(address).is_none() {
            bad = true;
            net::ip(address, &at.index(i), out);
        }
    }
    if list.len() > 2 {
        out.push(FieldError::invalid(&at, shown_list(&list), "may only hold up to 2 values"));
    }
    if bad {
        return;
    }
    let v4: Vec<bool> = list.iter().filter_map(|a| net::parse_ip(a)).map(|a| a.is_ipv4()).collect();
    if list.len() > 1 && !(v4.contains(&true) && v4.contains(&false)) {
        let why = "may specify no more than one IP for each IP family";
        out.push(FieldError::invalid(&at, shown_list(&list), why));
    }
    if !headless(spec) {
        for (i, ((address, family), v4)) in list.iter().zip(&wanted).zip(&v4).enumerate() {
            if matches!(*family, "IPv4" | "IPv6") && (*family == "IPv4") != *v4 {
                let why = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
                out.push(FieldError::invalid(&at.index(i), *address, why));
            }
        }
    }
}

/// The networks from which a load balancer takes connections; the field, or the annotation from before there was one.
fn source_ranges(object: &Value, path: &Path<'_>, out: &mut Errors) {
    let spec = object.sub("spec");
    let balancer = spec.text("type") == "LoadBalancer";
    let list = spec.strings("loadBalancerSourceRanges");
    if !list.is_empty() {
        let at = path.child("LoadBalancerSourceRanges");
        if !balancer {
            out.push(FieldError::forbidden(&at, BALANCER_ONLY));
        }
        for (i, range) in list.iter().enumerate() {
            net::cidr(range.trim(), &at.index(i), out);
        }
    } else if let Some(ranges) = object.annotation(SOURCE_RANGES) {
        let meta = Path::ROOT.child("metadata");
        let annotations = meta.child("annotations");
        let at = annotations.key(SOURCE_RANGES);
        if !balancer {
            out.push(FieldError::forbidden(&at, BALANCER_ONLY));
        }
        for range in ranges.trim().split(',').filter(|_| !ranges.trim().is_empty()) {
            net::cidr(range.trim(), &at, out);
        }
    }
}

fn traffic(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let external = spec.text("externalTrafficPolicy");
    if !externally_accessible(spec) {
        if !external.is_empty() {
            let why = "may only be set for externally-accessible services";
            out.push(FieldError::invalid(&path.child("externalTrafficPolicy"), external, why));
        }
    } else {
        check::required_one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], path, out);
    }
    let health = spec.int("healthCheckNodePort");
    if health != 0 {
        let at = path.child("healthCheckNodePort");
        if !needs_health_check(spec) {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            out.push(FieldError::invalid(&at, health, why));
        } else if let Some(why) = check::port_number(health) {
            out.push(FieldError::invalid(&at, health, why));
        }
    }
    if spec.has("internalTrafficPolicy") {
        check::one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, out);
    }
    if spec.has("trafficDistribution") {
        check::one_of(spec, "trafficDistribution", &["PreferClose"], path, out);
    }
}

/// Checks a changed Service.
pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = allocation(new.sub("spec"), old.sub("spec"));
    if !out.is_empty() {
        return out;
    }
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    let path = Path::ROOT.child("spec");
    let stays = spec.text("type") != "ExternalName" && before.text("type") != "ExternalName";
    if stays && !(headless(spec) && headless(before)) {
        kept_addresses(spec, before, &path, &mut out);
    }
    if stays && !headless(spec) && !headless(before) {
        kept_families(spec, before, &path, &mut out);
    }
    let balancer = |s: &Value| s.text("type") == "LoadBalancer";
    let class = "loadBalancerClass";
    if balancer(spec) && balancer(before) && spec.sub(class) != before.sub(class) {
        out.push(FieldError::invalid(&path.child(class), spec.sub(class), "may not change once set"));
    }
    let health = "healthCheckNodePort";
    if needs_health_check(spec) && needs_health_check(before) && spec.int(health) != before.int(health) {
        out.push(FieldError::forbidden(&path.child(health), check::IMMUTABLE));
    }
    out.extend(whole(new));
    out
}

/// The first address stays; a second may come and go.
fn kept_addresses(spec: &Value, before: &Value, path: &Path<'_>, out: &mut Errors) {
    let (now, was) = (spec.strings("clusterIPs"), before.strings("clusterIPs"));
    let at = path.child("clusterIPs");
    let mut changed = |i: usize, why: &str| out.push(FieldError::invalid(&at.index(i), shown_list(&now), why));
    if was.len() == now.len() {
        for i in (0..was.len()).filter(|i| was[*i] != now[*i]) {
            changed(i, "may not change once set");
        }
        return;
    }
    if now.is_empty() {
        changed(0, "primary clusterIP can not be unset");
    }
    if let (Some(was), Some(now)) = (was.first(), now.first())
        && was != now
    {
        changed(0, "may not change once set");
    }
    if was.len() > now.len() && now.len() == 1 && spec.text("ipFamilyPolicy") != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        out.push(FieldError::invalid(&path.child("ipFamilyPolicy"), spec.sub("ipFamilyPolicy"), why));
    }
}

/// The same for the families of addresses.
fn kept_families(spec: &Value, before: &Value, path: &Path<'_>, out: &mut Errors) {
    let (now, was) = (spec.strings("ipFamilies"), before.strings("ipFamilies"));
    let families = path.child("ipFamilies");
    let at = families.index(0);
    let all = check::go_list("core.IPFamily", &now);
    if was.len() == now.len() {
        for _ in was.iter().zip(&now).filter(|(was, now)| was != now) {
            out.push(FieldError::invalid(&at, all.clone(), "may not change once set"));
        }
        return;
    }
    if was.len() > now.len() && spec.strings("clusterIPs").is_empty() {
        out.push(FieldError::invalid(&at, all, "primary ipFamily can not be unset"));
    }
    if let (Some(was), Some(now)) = (was.first(), now.first())
        && was != now
    {
        // Upstream shows the addresses here.
        out.push(FieldError::invalid(&at, shown_list(&spec.strings("clusterIPs")), "may not change once set"));
    }
    if was.len() > now.len() && now.len() == 1 && spec.text("ipFamilyPolicy") != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        out.push(FieldError::invalid(&path.child("ipFamilyPolicy"), spec.sub("ipFamilyPolicy"), why));
    }
}

/// Warnings about what a Service says in vain.
pub(super) fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let spec = object.sub("spec");
    let mut out = Vec::new();
    if object.annotation(TOPOLOGY_HINTS).is_some() {
        out.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let path = Path::ROOT.child("spec");
    let lists = |key: &str, warn: fn(&str, &Path<'_>, &mut Vec<String>), out: &mut Vec<String>| {
        let at = path.child(key);
        for (i, item) in spec.strings(key).into_iter().enumerate() {
            warn(item, &at.index(i), out);
        }
    };
    lists("clusterIPs", net::ip_warning, &mut out);
    lists("externalIPs", net::ip_warning, &mut out);
    net::ip_warning(spec.text("loadBalancerIP"), &path.child("loadBalancerIP"), &mut out);
    lists("loadBalancerSourceRanges", net::cidr_warning, &mut out);
    if spec.text("type") == "ExternalName" && !spec.list("externalIPs").is_empty() {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    out
}

/// Warnings about addresses that a load balancer reports. (Upstream names the entry, not its member.)
pub(super) fn status_warnings(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let status = Path::ROOT.child("status");
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    for (i, ingress) in object.sub("status").sub("loadBalancer").list("ingress").iter().enumerate() {
        net::ip_warning(ingress.text("ip"), &at.index(i), &mut out);
    }
    out
}

/// Checks what a load balancer reports.
pub(super) fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = Path::ROOT.child("status");
    let balancer = status.child("loadBalancer");
    let list = new.sub("status").sub("loadBalancer").list("ingress");
    let at = balancer.child("ingress");
    if !list.is_empty() && new.sub("spec").text("type") != "LoadBalancer" {
        out.push(FieldError::forbidden(&at, "may only be used when `spec.type` is 'LoadBalancer'"));
        return out;
    }
    for (i, ingress) in list.iter().enumerate() {
        let here = at.index(i);
        let (ip, name) = (ingress.text("ip"), ingress.text("hostname"));
        if !ip.is_empty() {
            net::ip(ip, &here.child("ip"), &mut out);
        }
        match (ingress.has("ipMode"), ip.is_empty()) {
            (false, false) => {
                out.push(FieldError::required(&here.child("ipMode"), "must be specified when `ip` is set"));
            }
            (true, true) => {
                let why = "may not be specified when `ip` is not set";
                out.push(FieldError::forbidden(&here.child("ipMode"), why));
            }
            (true, false) => check::one_of(ingress, "ipMode", &["Proxy", "VIP"], &here, &mut out),
            (false, true) => {}
        }
        if !name.is_empty() {
            check::name(names::dns1123_subdomain, name, &here.child("hostname"), &mut out);
            if net::parse_ip(name).is_some() {
                let why = "must be a DNS name, not an IP address";
                out.push(FieldError::invalid(&here.child("hostname"), name, why));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn service(spec: &str) -> Value {
        json::parse(format!(r#"{{"metadata":{{"name":"s"}},"spec":{spec}}}"#).as_bytes()).unwrap()
    }

    fn texts(errors: &Errors) -> Vec<String> {
        errors.iter().map(|e| format!("{}: {}", e.field, e.body())).collect()
    }

    #[test]
    fn services_are_checked_in_upstreams_words() {
        let base = r#""ports":[{"port":80,"protocol":"TCP","targetPort":80}],"sessionAffinity":"None","internalTrafficPolicy":"Cluster""#;
        for (own, wanted) in [
            (
                r#""type":"ClusterIP","externalIPs":["127.0.0.1"],"externalTrafficPolicy":"Cluster""#,
                r#"spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)"#,
            ),
            (
                r#""type":"ClusterIP","healthCheckNodePort":30000"#,
                "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ),
            (
                r#""type":"ClusterIP","clusterIP":"None","clusterIPs":["None","10.0.0.1"]"#,
                r#"spec.clusterIPs: Invalid value: []string{"None", "10.0.0.1"}: 'None' must be the first and only value"#,
            ),
            (
                r#""type":"LoadBalancer","externalTrafficPolicy":"Cluster","loadBalancerSourceRanges":["10.0.0.0"]"#,
                r#"spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#,
            ),
        ] {
            let found = validate(&service(&format!("{{{base},{own}}}")));
            assert_eq!(texts(&found), [wanted], "{own}");
        }
    }

    #[test]
    fn addresses_are_of_as_many_stacks_as_the_policy_says() {
        const SINGLE: &str =
            r#""clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"SingleStack""#;
        const BOTH: &str = r#""clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"RequireDualStack""#;
        for (new, old, wanted) in [
            (
                SINGLE,
                "",
                r#"spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"#,
            ),
            (
                r#""clusterIP":"fd00::1","clusterIPs":["fd00::1"],"ipFamilyPolicy":"SingleStack""#,
                "",
                r#"spec.clusterIPs[0]: Invalid value: []string{"fd00::1"}: IPv6 is not configured on this cluster"#,
            ),
            (
                r#""clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"RequireDualStack""#,
                BOTH,
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary IP family"#,
            ),
            (
                r#""clusterIP":"10.0.0.8","clusterIPs":["10.0.0.8"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"RequireDualStack""#,
                "",
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#,
            ),
        ] {
            let spec = |text: &str| service(&format!(r#"{{"type":"ClusterIP",{text}}}"#));
            let before = if old.is_empty() { Value::Null } else { spec(old).sub("spec").clone() };
            assert_eq!(texts(&allocation(spec(new).sub("spec"), &before)), [wanted], "{new}");
        }
    }

    #[test]
    fn odd_addresses_of_a_load_balancer_are_named() {
        let object = json::parse(br#"{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{"ip":"1.2.3.04"}]}}}"#);
        let why = r#"status.loadBalancer.ingress[1]: non-standard IP address "1.2.3.04" will be considered invalid in a future Kubernetes release: use "1.2.3.4""#;
        assert_eq!(status_warnings(&object.unwrap()), [why]);
    }

    #[test]
    fn the_first_address_of_a_service_stays() {
        let spec = |ip: &str| service(&format!(r#"{{"type":"ClusterIP","clusterIP":"{ip}","clusterIPs":["{ip}"]}}"#));
        let about = |e: &FieldError| e.field.starts_with("spec.clusterIPs");
        let changed = validate_update(&spec("10.0.0.2"), &spec("10.0.0.1"));
        let changed: Errors = changed.into_iter().filter(about).collect();
        let why = r#"spec.clusterIPs[0]: Invalid value: []string{"10.0.0.2"}: may not change once set"#;
        assert_eq!(texts(&changed), [why]);
        assert!(!validate_update(&spec("10.0.0.1"), &spec("10.0.0.1")).iter().any(about));
    }
}
