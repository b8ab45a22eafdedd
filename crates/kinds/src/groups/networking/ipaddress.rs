//! IPAddresses and ServiceCIDRs.

use crate::check::{self, Errors};
use crate::net;
use crate::read::Read;
use crate::resource::{
    Column, Generation, METADATA_OF_OTHERS, MetadataChecks, Resource, Strategy, Subresource, Version, restore,
};
use crate::table;
use object::field::{FieldError, Path, Shown};
use object::{Value, go, names};

pub(super) const IP_ADDRESSES: Resource = Resource {
    short_names: &["ip"],
    namespaced: false,
    // Upstream's rows have the age nevertheless.
    columns: &[Column::NAME, Column::new("ParentRef", "string")],
    cells: |object, now| {
        let parent = object.sub("spec").sub("parentRef");
        let resource = [parent.text("resource"), parent.text("group")].map(str::to_lowercase);
        let resource = resource.iter().filter(|p| !p.is_empty()).map(String::as_str).collect::<Vec<_>>().join(".");
        let place = [parent.text("namespace"), parent.text("name")].into_iter().filter(|p| !p.is_empty());
        let shown = std::iter::once(resource.as_str()).chain(place).collect::<Vec<_>>().join("/");
        vec![object.name().into(), shown.into(), table::age(object, now)]
    },
    strategy: Strategy {
        name: address_name,
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        validate: validate_address,
        validate_update: |new, old| {
            let mut out = validate_address(new);
            let (parent, spec) = (new.sub("spec").sub("parentRef"), Path::ROOT.child("spec"));
            if parent != old.sub("spec").sub("parentRef") {
                out.push(FieldError::invalid(&spec.child("parentRef"), shown_parent(parent), check::IMMUTABLE));
            }
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

fn shown_parent(parent: &Value) -> Shown {
    if parent.is_null() {
        return parent.into();
    }
    let part = |key: &str| go::quote(parent.text(key));
    let (group, resource, namespace, name) = (part("group"), part("resource"), part("namespace"), part("name"));
    Shown::raw(format!(
        "networking.ParentReference{{Group:{group}, Resource:{resource}, Namespace:{namespace}, Name:{name}}}"
    ))
}

fn address_name(name: &str) -> Vec<String> {
    net::canonical_ip(name)
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
    if !parent.text("group").is_empty() {
        check::name(names::dns1123_subdomain, parent.text("group"), &path.child("group"), &mut out);
    }
    for key in ["resource", "name"] {
        check::required_name(names::path_segment, parent, key, &path, &mut out);
    }
    if !parent.text("namespace").is_empty() {
        check::name(names::path_segment, parent.text("namespace"), &path.child("namespace"), &mut out);
    }
    out
}

pub(super) const SERVICE_CIDRS: Resource = Resource {
    namespaced: false,
    subresources: &[Subresource::status("ServiceCIDR")],
    columns: &[Column::NAME, Column::new("CIDRs", "string"), Column::AGE],
    cells: |object, now| {
        vec![object.name().into(), object.sub("spec").strings("cidrs").join(",").into(), table::age(object, now)]
    },
    // Upstream leaves the status to whoever writes.
    strategy: Strategy {
        generation: Generation::None,
        reset: &[],
        drops_on_create: false,
        // What a write of the status leaves as it was has an owner nevertheless: upstream names a group that is none.
        reset_status: &[],
        prepare_status: |object, old, _| {
            restore(object, old, &[&["spec"]]);
            restore(object, old, METADATA_OF_OTHERS);
        },
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
    let shown = || Shown::raw(format!("networking.ServiceCIDRSpec{{CIDRs:{}}}", go::string_list(&list)));
    let families: Vec<bool> = list.iter().filter_map(|c| net::parse_cidr(c)).map(|(a, _)| a.is_ipv4()).collect();
    if list.is_empty() {
        out.push(FieldError::required(&path, "at least one CIDR required"));
    } else if list.len() > 2 {
        out.push(FieldError::invalid(&path, shown(), "may only hold up to 2 values"));
    } else if list.len() == 2 && !matches!(families[..], [true, false] | [false, true]) {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        out.push(FieldError::invalid(&path, shown(), why));
    } else {
        for (i, cidr) in list.iter().enumerate() {
            let complaints = net::canonical_cidr(cidr);
            out.extend(complaints.into_iter().map(|why| FieldError::invalid(&path.index(i), *cidr, why)));
        }
    }
    out
}
