//! NetworkPolicies.

use crate::check::{self, Errors};
use crate::net;
use crate::read::{Read, default_to, list_mut, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use crate::table;
use object::Value;
use object::field::{FieldError, Path};

pub(super) const NETWORK_POLICIES: Resource = Resource {
    short_names: &["netpol"],
    columns: &[Column::NAME, Column::new("Pod-Selector", "string"), Column::AGE],
    cells: |object, now| {
        let selector = table::selector(object.sub("spec").sub("podSelector"));
        vec![object.name().into(), selector.into(), table::age(object, now)]
    },
    strategy: Strategy {
        generation: Generation::Counts(&[&["spec"]]),
        validate,
        validate_update: |new, _| validate(new),
        warnings,
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "networking.k8s.io",
        "NetworkPolicy",
        "networkpolicies",
        &[Version::stored("v1", "io.k8s.api.networking.v1.NetworkPolicy").with_default(default)],
    )
};

/// Networks in odd forms.
fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let path = Path::ROOT.child("spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = path.child(direction);
        for (i, rule) in object.sub("spec").list(direction).iter().enumerate() {
            let rule_path = rules.index(i);
            let list = rule_path.child(peers);
            for (j, peer) in rule.list(peers).iter().enumerate() {
                let (block, peer_path) = (peer.sub("ipBlock"), list.index(j));
                let at = peer_path.child("ipBlock");
                net::cidr_warning(block.text("cidr"), &at.child("cidr"), &mut out);
                let except = at.child("except");
                for (k, cidr) in block.strings("except").into_iter().enumerate() {
                    net::cidr_warning(cidr, &except.index(k), &mut out);
                }
            }
        }
    }
    out
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    for direction in ["ingress", "egress"] {
        for rule in list_mut(spec, direction) {
            for port in list_mut(rule, "ports") {
                default_to(port, "protocol", "TCP");
            }
        }
    }
    if spec.list("policyTypes").is_empty() {
        let types = if spec.list("egress").is_empty() { vec!["Ingress"] } else { vec!["Ingress", "Egress"] };
        spec.set_at(&["policyTypes"], types.into());
    }
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    check::label_selector(spec.sub("podSelector"), &path.child("podSelector"), &mut out);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let list = path.child(direction);
        for (i, rule) in spec.list(direction).iter().enumerate() {
            let at = list.index(i);
            let ports = at.child("ports");
            for (j, value) in rule.list("ports").iter().enumerate() {
                port(value, &ports.index(j), &mut out);
            }
            let from = at.child(peers);
            for (j, value) in rule.list(peers).iter().enumerate() {
                peer(value, &from.index(j), &mut out);
            }
        }
    }
    let types = path.child("policyTypes");
    let list = spec.strings("policyTypes");
    if list.len() > 2 {
        let shown = check::go_list("networking.PolicyType", &list);
        out.push(FieldError::invalid(&types, shown, "may not specify more than two policyTypes"));
        return out;
    }
    for (i, kind) in list.iter().enumerate().filter(|(_, t)| !matches!(**t, "Ingress" | "Egress")) {
        out.push(FieldError::not_supported(&types.index(i), *kind, &["Ingress", "Egress"]));
    }
    out
}

fn port(port: &Value, path: &Path<'_>, out: &mut Errors) {
    if port.has("protocol") {
        check::one_of(port, "protocol", &["TCP", "UDP", "SCTP"], path, out);
    }
    let end = port.opt_int("endPort");
    let at = path.child("endPort");
    if port.has("port") {
        check::port_or_name(port.sub("port"), &path.child("port"), out);
    }
    let Some(end) = end else { return };
    match port.sub("port") {
        Value::Int(start) => {
            if end < *start {
                out.push(FieldError::invalid(&at, *start, "must be greater than or equal to `port`"));
            }
            if let Some(why) = check::port_number(end) {
                out.push(FieldError::invalid(&at, end, why));
            }
        }
        Value::String(_) => {
            out.push(FieldError::invalid(&at, end, "may not be specified when `port` is non-numeric"));
        }
        _ => out.push(FieldError::invalid(&at, end, "may not be specified when `port` is not specified")),
    }
}

fn peer(peer: &Value, path: &Path<'_>, out: &mut Errors) {
    let mut found = 0;
    for key in ["podSelector", "namespaceSelector"].into_iter().filter(|k| peer.has(k)) {
        found += 1;
        check::label_selector(peer.sub(key), &path.child(key), out);
    }
    if peer.has("ipBlock") {
        ip_block(peer.sub("ipBlock"), &path.child("ipBlock"), out);
        if found > 0 {
            out.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
        }
    } else if found == 0 {
        out.push(FieldError::required(path, "must specify a peer"));
    }
}

fn ip_block(block: &Value, path: &Path<'_>, out: &mut Errors) {
    let text = block.text("cidr");
    if text.is_empty() {
        out.push(FieldError::required(&path.child("cidr"), ""));
        return;
    }
    net::cidr(text, &path.child("cidr"), out);
    let Some(network) = net::parse_cidr(text) else { return };
    let list = path.child("except");
    for (i, except) in block.strings("except").into_iter().enumerate() {
        let at = list.index(i);
        net::cidr(except, &at, out);
        if let Some((address, length)) = net::parse_cidr(except)
            && !(net::contains(network, address) && length > network.1)
        {
            out.push(FieldError::invalid(&at, except, "must be a strict subset of `cidr`"));
        }
    }
}
