//! The resources of the group `apiregistration.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Subresource, Version};
use crate::table;
use object::field::{FieldError, Path};
use object::{Value, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("APIService")],
    columns: &[Column::NAME, Column::new("Service", "string"), Column::new("Available", "string"), Column::AGE],
    cells: |object, now| {
        let service = object.sub("spec").sub("service");
        let shown = if object.sub("spec").has("service") {
            format!("{}/{}", service.text("namespace"), service.text("name"))
        } else {
            "Local".to_owned()
        };
        let available = object.sub("status").list("conditions").iter().find(|c| c.text("type") == "Available");
        let available = match available.map(|c| (c.text("status"), c.text("reason"))) {
            None => "Unknown".to_owned(),
            Some(("True", _)) => "True".to_owned(),
            Some((status, reason)) => format!("{status} ({reason})"),
        };
        vec![object.name().into(), shown.into(), available.into(), table::age(object, now)]
    },
    strategy: Strategy {
        name: names::path_segment,
        generation: Generation::None,
        unconditional_update: false,
        validate,
        validate_update: |new, _| validate(new),
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "apiregistration.k8s.io",
        "APIService",
        "apiservices",
        &[Version::stored("v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService").with_default(
            |object| {
                if let Some(service) = object_mut(object, &["spec", "service"]) {
                    default_to(service, "port", 443);
                }
            },
        )],
    )
}];

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let (group, version) = (spec.text("group"), spec.text("version"));
    let meta = Path::ROOT.child("metadata");
    let required = format!("{version}.{group}");
    if object.name() != required && !(group.is_empty() && object.name() == format!("{version}.")) {
        let why = format!("must be `spec.version+\".\"+spec.group`: {}", object::go::quote(&required));
        out.push(FieldError::invalid(&meta.child("name"), object.name(), why));
    }
    if group.is_empty() {
        if version != "v1" {
            let why = "only v1 may have an empty group and it better be legacy kube";
            out.push(FieldError::required(&path.child("group"), why));
        }
    } else {
        check::name(names::dns1123_subdomain, group, &path.child("group"), &mut out);
    }
    check::name(names::dns1035_label, version, &path.child("version"), &mut out);
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = spec.int(key);
        if value <= 0 || value > most {
            let why = format!("must be positive and less than {most}");
            out.push(FieldError::invalid(&path.child(key), value, why));
        }
    }
    let service = spec.sub("service");
    let at = path.child("service");
    if !spec.has("service") {
        if !spec.text("caBundle").is_empty() {
            let why = "local APIServices may not have a caBundle";
            let shown = object::field::Shown::raw(object::go::plain(spec.sub("caBundle")));
            out.push(FieldError::invalid(&path.child("caBundle"), shown, why));
        }
        if spec.flag("insecureSkipTLSVerify") {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            out.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, why));
        }
        return out;
    }
    check::required(service, "namespace", &at, &mut out);
    check::required(service, "name", &at, &mut out);
    let port = service.int("port");
    if let Some(why) = check::port_number(port) {
        out.push(FieldError::invalid(&at.child("port"), port, format!("port is not valid: {why}")));
    }
    if spec.flag("insecureSkipTLSVerify") && !spec.text("caBundle").is_empty() {
        let why = "may not be true if caBundle is present";
        out.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, why));
    }
    out
}
