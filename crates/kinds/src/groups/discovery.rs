//! The resources of the group `discovery.k8s.io`.

use crate::check::{self, Errors};
use crate::groups::core::special_address as special;
use crate::net;
use crate::read::{Read, default_to, list_mut};
use crate::resource::{Column, Generation, MetadataChecks, Resource, Strategy, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path};
use object::{Value, metadata, names};
use std::collections::HashSet;

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
        metadata: MetadataChecks { anew: 1, update: false, ..MetadataChecks::ONCE },
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

/// Drops what features that are off, and what only early versions of the group had.
fn drop_disabled(object: &mut Value, old: &Value) {
    drop_nodes(object, old);
    drop_topology(object, old);
}

/// Drops labels of where endpoints are. The node of an endpoint that was among them is kept where it belongs now.
fn drop_topology(object: &mut Value, old: &Value) {
    const HOSTNAME: &str = "kubernetes.io/hostname";
    if old.has("endpoints") && object.sub("endpoints") == old.sub("endpoints") {
        return;
    }
    let hostname = |endpoint: &Value| endpoint.sub("deprecatedTopology").text(HOSTNAME).to_owned();
    let before: HashSet<String> = old.list("endpoints").iter().map(hostname).filter(|name| !name.is_empty()).collect();
    for endpoint in list_mut(object, "endpoints") {
        if !endpoint.has("deprecatedTopology") {
            continue;
        }
        let name = hostname(endpoint);
        if !endpoint.has("nodeName") && before.contains(&name) && names::dns1123_subdomain(&name).is_empty() {
            endpoint.set_at(&["nodeName"], name.into());
        }
        endpoint.remove_at(&["deprecatedTopology"]);
    }
}

/// Drops for which nodes an endpoint is, which is off.
fn drop_nodes(object: &mut Value, old: &Value) {
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

/// Names as addresses, where they are new, and addresses in odd forms; the controllers' own are in order.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if old.is_none() && object.text("addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managed = object.sub("metadata").sub("labels").text("endpointslice.kubernetes.io/managed-by");
    if matches!(managed, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
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
const MOST_HINTS: usize = 8;
const ZONE: &str = "topology.kubernetes.io/zone";

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
            return;
        }
    }
}

/// For which zones and nodes an endpoint is.
fn hints(hints: &Value, path: &Path<'_>, out: &mut Errors) {
    let rules: [(&str, names::NameCheck); 2] =
        [("forZones", names::label_value), ("forNodes", names::dns1123_subdomain)];
    for (key, check) in rules {
        let at = path.child(key);
        let list = hints.list(key);
        if list.len() > MOST_HINTS {
            out.push(FieldError::too_many(&at, list.len(), MOST_HINTS as i64));
            return;
        }
        for (i, hint) in list.iter().enumerate() {
            let (name, item) = (hint.text("name"), at.index(i));
            let here = item.child("name");
            if list.iter().take(i).any(|h| h.text("name") == name) {
                out.push(FieldError::duplicate(&here, name));
            }
            check::name(check, name, &here, out);
        }
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
        let topology = endpoint.members("deprecatedTopology");
        let here = at.child("deprecatedTopology");
        if topology.len() > MOST_LABELS {
            out.push(FieldError::too_many(&here, topology.len(), MOST_LABELS as i64));
        }
        out.extend(metadata::validate_labels(topology, &here));
        if topology.contains_key(ZONE) {
            out.push(FieldError::internal(&here.key(ZONE), "reserved key was not removed in conversion"));
        }
        if endpoint.has("hostname") {
            check::name(names::dns1123_label, endpoint.text("hostname"), &at.child("hostname"), &mut out);
        }
        hints(endpoint.sub("hints"), &at.child("hints"), &mut out);
    }
    let ports = Path::ROOT.child("ports");
    let list = object.list("ports");
    if list.len() > MOST_PORTS {
        out.push(FieldError::too_many(&ports, list.len(), MOST_PORTS as i64));
        return out;
    }
    let mut seen = HashSet::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn endpoints_are_checked_part_by_part() {
        let label = |name: &str| names::dns1123_label(name).remove(0);
        let long = "x".repeat(64);
        for (kind, endpoint, expected) in [
            ("IPv4", r#""addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"a"}]}"#.to_owned(), vec![]),
            ("FQDN", r#""addresses":["a.b."]"#.to_owned(), vec![]),
            (
                "FQDN",
                format!(r#""addresses":["{long}.{long}.a"]"#),
                vec![format!(r#"endpoints[0].addresses[0]: Invalid value: "{long}": {}"#, label(&long))],
            ),
            (
                "FQDN",
                r#""addresses":["a"]"#.to_owned(),
                vec![
                    r#"endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at least two segments separated by dots"#
                        .to_owned(),
                ],
            ),
            (
                "IPv4",
                r#""addresses":["10.0.0.1"],"hostname":"A","deprecatedTopology":{"topology.kubernetes.io/zone":"z"}"#
                    .to_owned(),
                vec![
                    "endpoints[0].deprecatedTopology[topology.kubernetes.io/zone]: Internal error: reserved key was not removed in conversion"
                        .to_owned(),
                    format!(r#"endpoints[0].hostname: Invalid value: "A": {}"#, label("A")),
                ],
            ),
            (
                "IPv4",
                r#""addresses":["10.0.0.1"],"hints":{"forNodes":[{"name":"n"},{"name":"n"}]}"#.to_owned(),
                vec![r#"endpoints[0].hints.forNodes[1].name: Duplicate value: "n""#.to_owned()],
            ),
        ] {
            let object = value(&format!(r#"{{"addressType":"{kind}","endpoints":[{{{endpoint}}}]}}"#));
            let found: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{endpoint}");
        }
    }

    #[test]
    fn names_as_addresses_are_warned_of_once() {
        let object = value(r#"{"addressType":"FQDN","endpoints":[{"addresses":["a.b"]}]}"#);
        assert_eq!(warnings(&object, None), ["spec.addressType: FQDN endpoints are deprecated"]);
        assert!(warnings(&object, Some(&object)).is_empty());
    }

    #[test]
    fn labels_of_endpoints_are_dropped_but_for_their_node() {
        const NODE: &str = r#""deprecatedTopology":{"kubernetes.io/hostname":"n"}"#;
        let with = |endpoint: &str| value(&format!(r#"{{"endpoints":[{{{endpoint}}}]}}"#));
        let odd = r#""addresses":["b"],"deprecatedTopology":{"kubernetes.io/hostname":"m"}"#;
        for (old, new, left) in [
            (Value::Null, NODE.to_owned(), String::new()),
            (with(NODE), NODE.to_owned(), NODE.to_owned()),
            (with(NODE), format!(r#""addresses":["b"],{NODE}"#), r#""addresses":["b"],"nodeName":"n""#.to_owned()),
            (with(NODE), odd.to_owned(), r#""addresses":["b"]"#.to_owned()),
        ] {
            let mut object = with(&new);
            drop_disabled(&mut object, &old);
            assert_eq!(object, with(&left), "{new}");
        }
    }
}
