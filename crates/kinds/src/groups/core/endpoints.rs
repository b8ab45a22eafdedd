//! Endpoints.

use crate::check::{self, Errors};
use crate::net;
use crate::read::{Read, default_text, list_mut};
use crate::resource::{Column, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};
use object::names;
use std::net::IpAddr;

pub(super) const ENDPOINTS: Resource = Resource {
    short_names: &["ep"],
    columns: &[Column::NAME, Column::new("Endpoints", "string"), Column::AGE],
    cells: |object, now| vec![object.name().into(), shown(object).into(), table::age(object, now)],
    strategy: Strategy {
        create_on_update: true,
        validate,
        validate_update: |new, _| validate(new),
        warnings,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "",
        "Endpoints",
        "endpoints",
        &[Version::stored("v1", "io.k8s.api.core.v1.Endpoints")
            .deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            .with_default(|object| {
                for subset in list_mut(object, "subsets") {
                    for port in list_mut(subset, "ports") {
                        default_text(port, "protocol", "TCP");
                    }
                }
            })],
    )
};

/// The first three addresses with their ports.
/// Addresses in odd forms; a controller's own are in order.
fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let managed = object.sub("metadata").sub("labels").text("endpoints.kubernetes.io/managed-by");
    if managed == "endpoint-controller" {
        return out;
    }
    let subsets = Path::ROOT.child("subsets");
    for (i, subset) in object.list("subsets").iter().enumerate() {
        let at = subsets.index(i);
        for key in ["addresses", "notReadyAddresses"] {
            let list = at.child(key);
            for (j, address) in subset.list(key).iter().enumerate() {
                let item = list.index(j);
                net::ip_warning(address.text("ip"), &item.child("ip"), &mut out);
            }
        }
    }
    out
}

fn shown(object: &Value) -> String {
    const MOST: usize = 3;
    let mut list: Vec<String> = Vec::new();
    let mut count = 0;
    for subset in object.list("subsets") {
        let (addresses, ports) = (subset.list("addresses"), subset.list("ports"));
        let hosts = || addresses.iter().map(|address| address.text("ip"));
        count += addresses.len() * ports.len().max(1);
        if ports.is_empty() {
            list.extend(hosts().map(str::to_owned).take(MOST));
        }
        for port in ports {
            let of = |host: &str| match host.contains(':') {
                true => format!("[{host}]:{}", port.int("port")),
                false => format!("{host}:{}", port.int("port")),
            };
            list.extend(hosts().map(of).take(MOST));
        }
    }
    list.truncate(MOST);
    match count {
        _ if object.list("subsets").is_empty() => "<none>".to_owned(),
        n if n > MOST => format!("{} + {} more...", list.join(","), n - MOST),
        _ => list.join(","),
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let subsets = Path::ROOT.child("subsets");
    for (i, subset) in object.list("subsets").iter().enumerate() {
        let at = subsets.index(i);
        let (ready, not_ready) = (subset.list("addresses"), subset.list("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            out.push(FieldError::required(&at, "must specify `addresses` or `notReadyAddresses`"));
        }
        for (key, list) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            let path = at.child(key);
            for (j, value) in list.iter().enumerate() {
                address(value, &path.index(j), &mut out);
            }
        }
        let ports = at.child("ports");
        let list = subset.list("ports");
        for (j, port) in list.iter().enumerate() {
            let here = ports.index(j);
            let name = port.text("name");
            if list.len() > 1 && name.is_empty() {
                out.push(FieldError::required(&here.child("name"), ""));
            } else if !name.is_empty() {
                check::name(names::dns1123_label, name, &here.child("name"), &mut out);
            }
            if let Some(why) = check::port_number(port.int("port")) {
                out.push(FieldError::invalid(&here.child("port"), port.int("port"), why));
            }
            check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, &mut out);
            if port.has("appProtocol") {
                check::label_name(port.text("appProtocol"), &here.child("appProtocol"), &mut out);
            }
        }
    }
    out
}

fn address(value: &Value, path: &Path<'_>, out: &mut Errors) {
    let ip = value.text("ip");
    net::ip(ip, &path.child("ip"), out);
    if !value.text("hostname").is_empty() {
        check::name(names::dns1123_label, value.text("hostname"), &path.child("hostname"), out);
    }
    if value.has("nodeName") {
        check::name(names::dns1123_subdomain, value.text("nodeName"), &path.child("nodeName"), out);
    }
    special(ip, &path.child("ip"), out);
}

/// Addresses that mean something else than a peer.
pub(crate) fn special(ip: &str, path: &Path<'_>, out: &mut Errors) {
    let Some(address) = net::parse_ip(ip).map(|address| address.to_canonical()) else {
        out.push(FieldError::invalid(path, ip, "must be a valid IP address"));
        return;
    };
    let (link_local, multicast) = match address {
        IpAddr::V4(a) => (a.is_link_local(), a.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(a) => (a.is_unicast_link_local(), a.segments()[0] & 0xff0f == 0xff02),
    };
    let why = if address.is_unspecified() {
        &format!("may not be unspecified ({ip})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    } else if link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    } else if multicast {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
    } else {
        return;
    };
    out.push(FieldError::invalid(path, ip, why));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_no_peers_are_refused() {
        for (ip, why) in [
            ("10.0.0.1", ""),
            ("fd00::1", ""),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("::", "may not be unspecified (::)"),
            ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("nope", "must be a valid IP address"),
        ] {
            let mut out = Errors::new();
            special(ip, &Path::ROOT.child("ip"), &mut out);
            assert_eq!(out.first().map_or("", |e| e.detail.as_str()), why, "{ip}");
        }
    }
}
