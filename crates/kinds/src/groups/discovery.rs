//! The resources of the group `discovery.k8s.io`.

use crate::check::{self, Errors};
use crate::net;
use crate::read::{Read, default_to, list_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, names};

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
        validate,
        validate_update: |new, old| {
            let mut out = validate(new);
            check::immutable(new, old, "addressType", &Path::ROOT, &mut out);
            out
        },
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

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    const MOST: usize = 3;
    let ports: Vec<String> = object
        .list("ports")
        .iter()
        .map(|p| match (p.text("name"), p.opt_int("port")) {
            (_, Some(port)) => port.to_string(),
            ("", None) => "*".to_owned(),
            (name, None) => name.to_owned(),
        })
        .collect();
    let addresses: Vec<&str> = object.list("endpoints").iter().flat_map(|e| e.strings("addresses")).collect();
    let shown = |list: Vec<String>| match list.len() {
        0 => "<unset>".to_owned(),
        n if n > MOST => format!("{} + {} more...", list[..MOST].join(","), n - MOST),
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
                "IPv4" if !net::parse_ip(address).is_some_and(|a| a.is_ipv4()) => {
                    out.push(FieldError::invalid(&here, address, "must be a valid IPv4 address"));
                }
                "IPv6" if !net::parse_ip(address).is_some_and(|a| a.is_ipv6()) => {
                    out.push(FieldError::invalid(&here, address, "must be a valid IPv6 address"));
                }
                "FQDN" => check::name(names::dns1123_subdomain, address, &here, &mut out),
                _ => {}
            }
        }
        if endpoint.has("nodeName") {
            check::name(names::dns1123_subdomain, endpoint.text("nodeName"), &at.child("nodeName"), &mut out);
        }
        if endpoint.has("hostname") {
            check::name(names::dns1123_label, endpoint.text("hostname"), &at.child("hostname"), &mut out);
        }
    }
    let ports = Path::ROOT.child("ports");
    let list = object.list("ports");
    let mut seen: Vec<&str> = Vec::new();
    for (i, port) in list.iter().enumerate() {
        let at = ports.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            check::name(names::dns1123_label, name, &at.child("name"), &mut out);
        }
        if seen.contains(&name) {
            out.push(FieldError::duplicate(&at.child("name"), name));
        }
        seen.push(name);
        if let Some(number) = port.opt_int("port")
            && let Some(why) = check::port_number(number)
        {
            out.push(FieldError::invalid(&at.child("port"), number, why));
        }
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &at, &mut out);
        if port.has("appProtocol") {
            check::label_name(port.text("appProtocol"), &at.child("appProtocol"), &mut out);
        }
    }
    out
}
