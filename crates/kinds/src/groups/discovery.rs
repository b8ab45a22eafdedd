//! The resources of the group `discovery.k8s.io`.

use crate::check::{self, Errors};
use crate::groups::core::special_address as special;
use crate::net;
use crate::read::{Read, default_to, list_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, metadata, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    columns: &[
        Column::NAME,
        Column::new("AddressType", "string"),
        Column::new("Ports", "string"),
        Column::new("Endpoints", "string"),
        Column::AGE,
    ],
    cells,
    strategy: Strategy {
        generation: Generation::Counts(&[&["endpoints"], &["ports"], &["addressType"], &["metadata", "labels"]]),
        drop_disabled,
        validate,
        validate_update: |new, old| {
            let mut out = validate(new);
            check::immutable(new, old, "addressType", &Path::ROOT, &mut out);
            out
        },
        warnings,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "discovery.k8s.io",
        "EndpointSlice",
        "endpointslices",
        &[Version::stored("v1", "io.k8s.api.discovery.v1.EndpointSlice").with_default(|object| {
            for port in list_mut(object, "ports") {
                default_to(port, "name", "");
                default_to(port, "protocol", "TCP");
            }
        })],
    )
}];

/// Drops for which nodes an endpoint is, which is off.
fn drop_disabled(object: &mut Value, old: &Value) {
    let has = |endpoint: &Value| !endpoint.sub("hints").list("forNodes").is_empty();
    if old.list("endpoints").iter().any(has) {
        return;
    }
    for endpoint in list_mut(object, "endpoints") {
        if endpoint.sub("hints").has("forNodes") {
            endpoint.remove_at(&["hints", "forNodes"]);
        }
    }
}

/// Addresses in odd forms; the controllers' own are in order.
fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let managed = object.sub("metadata").sub("labels").text("endpointslice.kubernetes.io/managed-by");
    if matches!(managed, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io")
        || !matches!(object.text("addressType"), "IPv4" | "IPv6")
    {
        return out;
    }
    let endpoints = Path::ROOT.child("endpoints");
    for (i, endpoint) in object.list("endpoints").iter().enumerate() {
        let item = endpoints.index(i);
        let at = item.child("addresses");
        for (j, address) in endpoint.strings("addresses").into_iter().enumerate() {
            net::ip_warning(address, &at.index(j), &mut out);
        }
    }
    out
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    const MOST: usize = 3;
    let ports: Vec<String> = object
        .list("ports")
        .iter()
        .map(|p| match p.opt_int("port") {
            Some(port) => port.to_string(),
            None if p.has("name") => p.text("name").to_owned(),
            None => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<&str> = object.list("endpoints").iter().flat_map(|e| e.strings("addresses")).collect();
    let shown = |list: Vec<String>| match list.len() {
        n if n > MOST => format!("{} + {} more...", list[..MOST].join(","), n - MOST),
        _ if list.iter().all(String::is_empty) && list.len() < 2 => "<unset>".to_owned(),
        _ => list.join(","),
    };
    vec![
        object.name().into(),
        object.text("addressType").into(),
        shown(ports).into(),
        shown(addresses.into_iter().map(str::to_owned).collect()).into(),
        table::age(object, now),
    ]
}

const MOST_LABELS: usize = 16;
const MOST_PORTS: usize = 20_000;
const MOST_ZONES: usize = 8;

/// A domain name of at least two parts.
fn full_name(name: &str, path: &Path<'_>, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let complaints = names::dns1123_subdomain(name);
    if !complaints.is_empty() {
        out.push(FieldError::invalid(path, name, complaints.join(",")));
        return;
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        out.push(FieldError::invalid(path, name, why));
        return;
    }
    for label in name.split('.') {
        let complaints = names::dns1123_label(label);
        if !complaints.is_empty() {
            out.push(FieldError::invalid(path, label, complaints.join(",")));
        }
    }
}

fn hints(hints: &Value, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("forZones");
    let zones = hints.list("forZones");
    if zones.len() > MOST_ZONES {
        out.push(FieldError::too_many(&at, zones.len(), MOST_ZONES as i64));
        return;
    }
    for (i, zone) in zones.iter().enumerate() {
        let (name, zone_path) = (zone.text("name"), at.index(i));
        let here = zone_path.child("name");
        if zones.iter().take(i).any(|z| z.text("name") == name) {
            out.push(FieldError::duplicate(&here, name));
        }
        check::name(names::label_value, name, &here, out);
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let kind = object.text("addressType");
    check::required_one_of(object, "addressType", &["FQDN", "IPv4", "IPv6"], &Path::ROOT, &mut out);
    let endpoints = Path::ROOT.child("endpoints");
    let list = object.list("endpoints");
    if list.len() > 1000 {
        out.push(FieldError::too_many(&endpoints, list.len(), 1000));
        return out;
    }
    for (i, endpoint) in list.iter().enumerate() {
        let at = endpoints.index(i);
        let addresses = at.child("addresses");
        let values = endpoint.strings("addresses");
        if values.is_empty() {
            out.push(FieldError::required(&addresses, "must contain at least 1 address"));
        } else if values.len() > 100 {
            out.push(FieldError::too_many(&addresses, values.len(), 100));
        }
        for (j, address) in values.into_iter().enumerate() {
            let here = addresses.index(j);
            match kind {
                "IPv4" | "IPv6" => {
                    if net::parse_ip(address).is_none_or(|a| a.is_ipv4() != (kind == "IPv4")) {
                        out.push(FieldError::invalid(&here, address, format!("must be a valid {kind} address")));
                    }
                    special(address, &here, &mut out);
                }
                "FQDN" => full_name(address, &here, &mut out),
                _ => {}
            }
        }
        if endpoint.has("nodeName") {
            check::name(names::dns1123_subdomain, endpoint.text("nodeName"), &at.child("nodeName"), &mut out);
        }
        if endpoint.has("hostname") {
            check::name(names::dns1123_label, endpoint.text("hostname"), &at.child("hostname"), &mut out);
        }
        let topology = endpoint.members("deprecatedTopology");
        let here = at.child("deprecatedTopology");
        if topology.len() > MOST_LABELS {
            out.push(FieldError::too_many(&here, topology.len(), MOST_LABELS as i64));
        }
        out.extend(metadata::validate_labels(topology, &here));
        hints(endpoint.sub("hints"), &at.child("hints"), &mut out);
    }
    let ports = Path::ROOT.child("ports");
    let list = object.list("ports");
    if list.len() > MOST_PORTS {
        out.push(FieldError::too_many(&ports, list.len(), MOST_PORTS as i64));
        return out;
    }
    let mut seen = std::collections::HashSet::new();
    for (i, port) in list.iter().enumerate() {
        let at = ports.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            check::name(names::dns1123_label, name, &at.child("name"), &mut out);
        }
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &at, &mut out);
        if port.has("appProtocol") {
            check::label_name(port.text("appProtocol"), &at.child("appProtocol"), &mut out);
        }
    }
    out
}
