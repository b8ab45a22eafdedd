//! IPAddresses and ServiceCIDRs.

use crate::check::{self, Errors};
use crate::net;
use crate::read::Read;
use crate::resource::{Column, Generation, Resource, SelectableField, Strategy, Subresource, Version};
use crate::table;
use object::field::{FieldError, Path, Shown};
use object::{Value, go};

pub(super) const IP_ADDRESSES: Resource = Resource {
    short_names: &["ip"],
    namespaced: false,
    columns: &[Column::NAME, Column::new("ParentRef", "string"), Column::AGE],
    cells: |object, now| {
        let parent = object.sub("spec").sub("parentRef");
        let parts = [parent.text("group"), parent.text("resource"), parent.text("namespace"), parent.text("name")];
        let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        vec![object.name().into(), parts.join("/").into(), table::age(object, now)]
    },
    selectable: &[SelectableField {
        name: "spec.parentRef.name",
        value: |object| object.sub("spec").sub("parentRef").text("name").to_owned(),
    }],
    strategy: Strategy {
        name: address_name,
        generation: Generation::One,
        validate: validate_address,
        validate_update: |new, old| {
            let mut out = Errors::new();
            let path = Path::ROOT.child("spec");
            check::immutable(new.sub("spec"), old.sub("spec"), "parentRef", &path, &mut out);
            out
        },
        ..Strategy::PLAIN
    },
    ..Resource::new(
        "networking.k8s.io",
        "IPAddress",
        "ipaddresses",
        &[Version::stored("v1", "io.k8s.api.networking.v1.IPAddress")],
    )
};

fn address_name(name: &str) -> Vec<String> {
    match net::parse_ip(name) {
        Some(ip) if ip.to_string() == name => Vec::new(),
        _ => vec!["must be a valid IP address in canonical form".to_owned()],
    }
}

fn validate_address(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let path = spec.child("parentRef");
    let parent = object.sub("spec").sub("parentRef");
    if !object.sub("spec").has("parentRef") {
        out.push(FieldError::required(&path, ""));
        return out;
    }
    check::required(parent, "resource", &path, &mut out);
    check::required(parent, "name", &path, &mut out);
    out
}

pub(super) const SERVICE_CIDRS: Resource = Resource {
    namespaced: false,
    subresources: &[Subresource::status("ServiceCIDR")],
    columns: &[Column::NAME, Column::new("CIDRs", "string"), Column::AGE],
    cells: |object, now| {
        vec![object.name().into(), object.sub("spec").strings("cidrs").join(",").into(), table::age(object, now)]
    },
    strategy: Strategy {
        generation: Generation::One,
        validate: validate_cidrs,
        validate_update: |new, old| {
            let mut out = Errors::new();
            if new.sub("spec").sub("cidrs") != old.sub("spec").sub("cidrs") {
                let path = Path::ROOT.child("spec");
                let shown = Shown::raw(go::string_list(&new.sub("spec").strings("cidrs")));
                out.push(FieldError::invalid(&path.child("cidrs"), shown, check::IMMUTABLE));
            }
            out
        },
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "networking.k8s.io",
        "ServiceCIDR",
        "servicecidrs",
        &[Version::stored("v1", "io.k8s.api.networking.v1.ServiceCIDR")],
    )
};

fn validate_cidrs(object: &Value) -> Errors {
    let mut out = Errors::new();
    let spec = Path::ROOT.child("spec");
    let path = spec.child("cidrs");
    let list = object.sub("spec").strings("cidrs");
    if list.is_empty() {
        out.push(FieldError::required(&path, "at least one CIDR required"));
    }
    if list.len() > 2 {
        let shown = Shown::raw(go::string_list(&list));
        out.push(FieldError::invalid(&path, shown, "may only hold up to 2 values"));
    }
    for (i, cidr) in list.iter().enumerate() {
        net::cidr(cidr, &path.index(i), &mut out);
    }
    out
}
