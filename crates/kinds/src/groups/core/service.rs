//! Services.

use crate::check::{self, Errors};
use crate::net;
use crate::read::{Read, default_text, default_to, list_mut, object_mut};
use crate::resource::{Column, Context, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Map, Value, map, metadata, names};

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

fn externally_accessible(spec: &Value) -> bool {
    match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.list("externalIPs").is_empty(),
        _ => false,
    }
}

fn headless(spec: &Value) -> bool {
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

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let kind = spec.text("type");
    let ports = path.child("ports");
    let list = spec.list("ports");
    if list.is_empty() && !headless(spec) && kind != "ExternalName" {
        out.push(FieldError::required(&ports, ""));
    }
    by_type(spec, &path, &mut out);
    let mut seen: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for (i, value) in list.iter().enumerate() {
        port(value, list.len() > 1, &ports.index(i), &mut seen, &mut out);
    }
    unique_ports(list, &ports, &mut out);
    out.extend(metadata::validate_labels(spec.members("selector"), &path.child("selector")));
    check::required_one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, &mut out);
    let affinity = path.child("sessionAffinityConfig");
    if spec.text("sessionAffinity") == "ClientIP" {
        let client = affinity.child("clientIP");
        let seconds = spec.sub("sessionAffinityConfig").sub("clientIP").int("timeoutSeconds");
        if !(1..=86_400).contains(&seconds) {
            let why = "must be greater than 0 and less than 86400";
            out.push(FieldError::invalid(&client.child("timeoutSeconds"), seconds, why));
        }
    }
    addresses(spec, &path, &mut out);
    let external = path.child("externalIPs");
    for (i, ip) in spec.strings("externalIPs").into_iter().enumerate() {
        net::ip(ip, &external.index(i), &mut out);
    }
    check::required_one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path, &mut out);
    let balancer_only = "may only be used when `type` is 'LoadBalancer'";
    if kind != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if spec.has(key) {
                out.push(FieldError::forbidden(&path.child(key), balancer_only));
            }
        }
        if !spec.list("loadBalancerSourceRanges").is_empty() {
            out.push(FieldError::forbidden(&path.child("LoadBalancerSourceRanges"), balancer_only));
        }
    }
    traffic(spec, &path, &mut out);
    out
}

fn by_type(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    let ports = path.child("ports");
    let list = spec.list("ports");
    match spec.text("type") {
        "ClusterIP" => {
            for (i, _) in list.iter().enumerate().filter(|(_, p)| p.int("nodePort") != 0) {
                let why = "may not be used when `type` is 'ClusterIP'";
                out.push(FieldError::forbidden(&ports.index(i).child("nodePort"), why));
            }
        }
        kind @ ("LoadBalancer" | "NodePort") => {
            if kind == "LoadBalancer" {
                for (i, port) in list.iter().enumerate().filter(|(_, p)| p.int("port") == 10_250) {
                    let why = "may not expose port 10250 externally since it is used by kubelet";
                    out.push(FieldError::invalid(&ports.index(i).child("port"), port.int("port"), why));
                }
            }
            if headless(spec) {
                let addresses = path.child("clusterIPs");
                let why = format!("may not be set to 'None' for {kind} services");
                out.push(FieldError::invalid(&addresses.index(0), "None", why));
            }
            let mut seen: Vec<(&str, i64)> = Vec::new();
            for (i, port) in list.iter().enumerate().filter(|(_, p)| p.int("nodePort") != 0) {
                let key = (port.text("protocol"), port.int("nodePort"));
                if seen.contains(&key) {
                    out.push(FieldError::duplicate(&ports.index(i).child("nodePort"), key.1));
                }
                seen.push(key);
            }
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
            if name.is_empty() {
                out.push(FieldError::required(&path.child("externalName"), ""));
            } else {
                let trimmed = name.strip_suffix('.').unwrap_or(name);
                check::name(names::dns1123_subdomain, trimmed, &path.child("externalName"), out);
            }
        }
        _ => {}
    }
}

fn port<'a>(
    port: &'a Value,
    named: bool,
    path: &Path<'_>,
    seen: &mut std::collections::HashSet<&'a str>,
    out: &mut Errors,
) {
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
    let mut seen = std::collections::HashSet::new();
    for (i, port) in list.iter().enumerate() {
        let (protocol, number) = (port.text("protocol"), port.int("port"));
        if !seen.insert((protocol, number)) {
            let shown = format!(
                "core.ServicePort{{Name:\"\", Protocol:\"{protocol}\", AppProtocol:(*string)(nil), Port:{number}, \
                 TargetPort:intstr.IntOrString{{Type:0, IntVal:0, StrVal:\"\"}}, NodePort:0}}"
            );
            out.push(FieldError::duplicate(&path.index(i), Shown::raw(shown)));
        }
    }
}

fn addresses(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let at = path.child("clusterIPs");
    let list = spec.strings("clusterIPs");
    if let (Some(first), false) = (list.first(), spec.text("clusterIP").is_empty())
        && *first != spec.text("clusterIP")
    {
        let why = "first value must match `clusterIP`";
        out.push(FieldError::invalid(&at, Shown::raw(object::go::string_list(&list)), why));
    }
    if list.len() > 1 && list.contains(&"None") {
        let i = list.iter().position(|a| *a == "None").unwrap_or_default();
        let why = "'None' must be the first and only value";
        out.push(FieldError::invalid(&at.index(i), "None", why));
        return;
    }
    if !headless(spec) {
        for (i, address) in list.iter().enumerate() {
            net::ip(address, &at.index(i), out);
        }
    }
    let families = path.child("ipFamilies");
    for (i, family) in spec.strings("ipFamilies").into_iter().enumerate() {
        if !matches!(family, "IPv4" | "IPv6") {
            out.push(FieldError::not_supported(&families.index(i), family, &["IPv4", "IPv6"]));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if spec.has("ipFamilyPolicy") {
        check::one_of(spec, "ipFamilyPolicy", &policies, path, out);
    }
    // The cluster has IPv4 only; headless services without a selector may say what they like.
    if out.is_empty() && !(headless(spec) && spec.members("selector").is_empty()) {
        if spec.text("ipFamilyPolicy") == "RequireDualStack" {
            let why = "this cluster is not configured for dual-stack services";
            out.push(FieldError::invalid(&path.child("ipFamilyPolicy"), "RequireDualStack", why));
        }
        for (i, family) in spec.strings("ipFamilies").into_iter().enumerate().filter(|(_, f)| *f == "IPv6") {
            out.push(FieldError::invalid(&families.index(i), family, "not configured on this cluster"));
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
    if spec.text("type") != "ExternalName" && spec.has("internalTrafficPolicy") {
        check::one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, out);
    }
    if spec.has("trafficDistribution") {
        check::one_of(spec, "trafficDistribution", &["PreferClose"], path, out);
    }
}

fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = Errors::new();
    let (spec, before) = (new.sub("spec"), old.sub("spec"));
    let path = Path::ROOT.child("spec");
    let stays = spec.text("type") != "ExternalName" && before.text("type") != "ExternalName";
    let (now, was) = (spec.strings("clusterIPs"), before.strings("clusterIPs"));
    if let (true, Some(was), Some(now)) = (stays, was.first(), now.first())
        && was != now
        && *was != "None"
    {
        let at = path.child("clusterIPs");
        out.push(FieldError::invalid(&at.index(0), *now, "may not change once set"));
    }
    out.extend(validate(new));
    out
}

fn validate_status(new: &Value, _: &Value) -> Errors {
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
        if !ingress.text("ip").is_empty() {
            net::ip(ingress.text("ip"), &here.child("ip"), &mut out);
            if !ingress.has("ipMode") {
                out.push(FieldError::required(&here.child("ipMode"), "must be specified when `ip` is set"));
            }
        }
        if !ingress.text("hostname").is_empty() {
            check::name(names::dns1123_subdomain, ingress.text("hostname"), &here.child("hostname"), &mut out);
        }
    }
    out
}
