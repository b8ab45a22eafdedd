//! Ingresses.

use crate::check::{self, Errors};
use crate::net;
use crate::read::Read;
use crate::resource::{Column, Parts, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::field::{FieldError, Path, Shown};
use object::{Value, go, names};

const CLASS: &str = "kubernetes.io/ingress.class";
const STATUS_LEAVES: Parts = &[&["spec"]];

pub(super) const INGRESSES: Resource = Resource {
    short_names: &["ing"],
    subresources: &[Subresource::status("Ingress")],
    columns: &[
        Column::NAME,
        Column::new("Class", "string"),
        Column::new("Hosts", "string"),
        Column::new("Address", "string"),
        Column::new("Ports", "string"),
        Column::AGE,
    ],
    cells,
    strategy: Strategy {
        reset_status: STATUS_LEAVES,
        validate: |object| {
            let mut out = validate(object, &Value::Null);
            class_conflict(object, &mut out);
            out
        },
        validate_update: |new, old| validate(new, old),
        validate_status,
        warnings,
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "networking.k8s.io",
        "Ingress",
        "ingresses",
        &[Version::stored("v1", "io.k8s.api.networking.v1.Ingress")],
    )
};

/// A new Ingress that names its class as it was done before there was a field.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let by_annotation = object.at(&["metadata", "annotations", CLASS]).is_some();
    if old.is_some() || !by_annotation || object.sub("spec").has("ingressClassName") {
        return Vec::new();
    }
    vec![format!("annotation {} is deprecated, please use 'spec.ingressClassName' instead", go::quote(CLASS))]
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = object.sub("spec");
    let class = if spec.has("ingressClassName") { spec.text("ingressClassName") } else { "<none>" };
    let ports = if spec.list("tls").is_empty() { "80" } else { "80, 443" };
    let address = table::load_balancer(object.sub("status").sub("loadBalancer"));
    vec![
        object.name().into(),
        class.into(),
        hosts(spec.list("rules")).into(),
        address.into(),
        ports.into(),
        table::age(object, now),
    ]
}

/// The first three hosts. How many more there are is told once a rule follows the third, and counts every rule, those
/// without a host too.
fn hosts(rules: &[Value]) -> String {
    const MOST: usize = 3;
    let mut list: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= list.len() == MOST;
        if !more && !rule.text("host").is_empty() {
            list.push(rule.text("host"));
        }
    }
    match list.join(",") {
        text if text.is_empty() => "*".to_owned(),
        text if more => format!("{text} + {} more...", rules.len() - MOST),
        text => text,
    }
}

fn class_conflict(object: &Value, out: &mut Errors) {
    let spec = object.sub("spec");
    if let Some(class) = object.annotation(CLASS)
        && spec.has("ingressClassName")
        && class != spec.text("ingressClassName")
    {
        let annotations = Path::ROOT.child("annotations");
        let why = "must match `ingressClassName` when both are specified";
        out.push(FieldError::invalid(&annotations.child(CLASS), class, why));
    }
}

/// Checks an ingress. Names of secrets that are none stay allowed where `old` has such a name.
fn validate(object: &Value, old: &Value) -> Errors {
    let bad =
        |t: &Value| !t.text("secretName").is_empty() && !names::dns1123_subdomain(t.text("secretName")).is_empty();
    let lenient_secrets = old.sub("spec").list("tls").iter().any(bad);
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    if spec.list("rules").is_empty() && !spec.has("defaultBackend") {
        let shown = Shown::raw("[]networking.IngressRule(nil)");
        out.push(FieldError::invalid(&path, shown, "either `defaultBackend` or `rules` must be specified"));
    }
    if spec.has("defaultBackend") {
        backend(spec.sub("defaultBackend"), &path.child("defaultBackend"), &mut out);
    }
    let rules = path.child("rules");
    for (i, rule) in spec.list("rules").iter().enumerate() {
        let at = rules.index(i);
        let name = rule.text("host");
        if !name.is_empty() {
            host(name, &at.child("host"), true, &mut out);
        }
        if rule.has("http") {
            let http = at.child("http");
            let paths = http.child("paths");
            let list = rule.sub("http").list("paths");
            if list.is_empty() {
                out.push(FieldError::required(&paths, ""));
            }
            for (j, value) in list.iter().enumerate() {
                http_path(value, &paths.index(j), &mut out);
            }
        }
    }
    let tls = path.child("tls");
    for (i, entry) in spec.list("tls").iter().enumerate() {
        let at = tls.index(i);
        let hosts = at.child("hosts");
        for (j, name) in entry.strings("hosts").into_iter().enumerate() {
            host(name, &hosts.index(j), false, &mut out);
        }
        if !entry.text("secretName").is_empty() && !lenient_secrets {
            check::name(names::dns1123_subdomain, entry.text("secretName"), &at.child("secretName"), &mut out);
        }
    }
    if spec.has("ingressClassName") {
        check::name(names::dns1123_subdomain, spec.text("ingressClassName"), &path.child("ingressClassName"), &mut out);
    }
    out
}

fn wildcard(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push(names::max_length_text(253));
    }
    if let Some(rest) = name.strip_prefix("*.")
        && names::dns1123_subdomain(rest).is_empty()
    {
        return out;
    }
    let text = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
    let pattern = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    out.push(names::pattern_text(text, pattern, &["*.example.com"]));
    out
}

fn host(name: &str, path: &Path<'_>, no_address: bool, out: &mut Errors) {
    if no_address && net::parse_ip(name).is_some() {
        out.push(FieldError::invalid(path, name, "must be a DNS name, not an IP address"));
    }
    check::name(if name.contains('*') { wildcard } else { names::dns1123_subdomain }, name, path, out);
}

fn http_path(value: &Value, path: &Path<'_>, out: &mut Errors) {
    const TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    const SUFFIXES: [&str; 2] = ["/..", "/."];
    let target = value.text("path");
    let at = path.child("path");
    if !value.has("pathType") {
        out.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
        return;
    }
    match value.text("pathType") {
        "Exact" | "Prefix" => {
            if !target.starts_with('/') {
                out.push(FieldError::invalid(&at, target, "must be an absolute path"));
            }
            if !target.is_empty() {
                for bad in SEQUENCES.into_iter().filter(|s| target.contains(s)) {
                    out.push(FieldError::invalid(&at, target, format!("must not contain '{bad}'")));
                }
                for bad in SUFFIXES.into_iter().filter(|s| target.ends_with(s)) {
                    out.push(FieldError::invalid(&at, target, format!("cannot end with '{bad}'")));
                }
            }
        }
        "ImplementationSpecific" => {
            if !target.is_empty() && !target.starts_with('/') {
                out.push(FieldError::invalid(&at, target, "must be an absolute path"));
            }
        }
        _ => check::one_of(value, "pathType", &TYPES, path, out),
    }
    backend(value.sub("backend"), &path.child("backend"), out);
}

fn backend(value: &Value, path: &Path<'_>, out: &mut Errors) {
    match (value.has("resource"), value.has("service")) {
        (true, true) => {
            out.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
        }
        (true, false) => {
            super::ingressclass::reference(value.sub("resource"), &path.child("resource"), out);
        }
        (false, true) => {
            let at = path.child("service");
            let service = value.sub("service");
            if service.text("name").is_empty() {
                out.push(FieldError::required(&at.child("name"), ""));
            } else {
                check::name(names::dns1035_label, service.text("name"), &at.child("name"), out);
            }
            let port = service.sub("port");
            let at = at.child("port");
            match (port.text("name"), port.int("number")) {
                ("", 0) => out.push(FieldError::required(path, "port name or number is required")),
                ("", number) => {
                    if let Some(why) = check::port_number(number) {
                        out.push(FieldError::invalid(&at.child("number"), number, why));
                    }
                }
                (name, 0) => check::name(check::port_name, name, &at.child("name"), out),
                _ => out.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
            }
        }
        (false, false) => {
            out.push(FieldError::invalid(path, "", "resource or service backend is required"));
        }
    }
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = Path::ROOT.child("status");
    let balancer = status.child("loadBalancer");
    let list = balancer.child("ingress");
    for (i, ingress) in new.sub("status").sub("loadBalancer").list("ingress").iter().enumerate() {
        let at = list.index(i);
        if !ingress.text("ip").is_empty() {
            net::ip(ingress.text("ip"), &at.child("ip"), &mut out);
        }
        let name = ingress.text("hostname");
        if !name.is_empty() {
            if net::parse_ip(name).is_some() {
                out.push(FieldError::invalid(&at.child("hostname"), name, "must be a DNS name, not an IP address"));
            }
            check::name(names::dns1123_subdomain, name, &at.child("hostname"), &mut out);
        }
    }
    out
}
