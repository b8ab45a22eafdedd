//! The built-in part of the catalogue, from the crate `kinds`.

use crate::catalogue::{Catalogue, Group, Resource, Storage, Subresource, Version};
use crate::controllers::serial;
use crate::strategy::{Builtin, Definitions, Strategy};
use std::sync::Arc;

/// The catalogue of a server without definitions; `optional` names the resources that are served beside those that
/// always are.
pub(crate) fn catalogue(optional: &[&str]) -> Catalogue {
    let chosen: Vec<_> = kinds::optional().iter().filter(|r| optional.contains(&r.plural)).collect();
    Catalogue::new(kinds::groups().map(|name| group(name, &chosen)))
}

fn group(name: &'static str, optional: &[&'static kinds::Resource]) -> Group {
    let optional = || optional.iter().copied().filter(|r| r.group == name);
    let mut names = kinds::group_versions(name);
    for version in optional().flat_map(|r| r.versions).map(|v| v.name) {
        if !names.contains(&version) {
            names.push(version);
        }
    }
    let versions = names.into_iter().map(|version| {
        let resources = kinds::in_group(name).iter().chain(optional()).filter_map(|r| Some((r, r.version(version)?)));
        Version::new(version, resources.map(|(r, v)| Arc::new(resource(r, v))).collect())
    });
    Group { name: name.to_owned(), custom: false, versions: versions.collect() }
}

fn resource(resource: &'static kinds::Resource, version: &'static kinds::Version) -> Resource {
    let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
    let builtin = Builtin::new(resource, version);
    let strategy: Arc<dyn Strategy> = match resource.group {
        "apiextensions.k8s.io" => Arc::new(Definitions::new(builtin)),
        _ => Arc::new(builtin),
    };
    let storage = match resource.storage {
        // Where upstream keeps them; the controller of definitions reads them there.
        Some(storage) if storage.group == "apiextensions.k8s.io" => Storage {
            prefix: crate::controllers::definitions::PREFIX.to_owned(),
            version: storage.version.to_owned(),
            group: storage.group.to_owned(),
        },
        Some(storage) => Storage {
            prefix: format!("/registry/{}/", storage.resource),
            version: storage.version.to_owned(),
            group: storage.group.to_owned(),
        },
        None => Storage { prefix: String::new(), version: version.name.to_owned(), group: resource.group.to_owned() },
    };
    let subresources = resource.subresources.iter().map(|s| Subresource {
        name: s.name.to_owned(),
        group: if s.version.is_empty() { resource.group } else { s.group }.to_owned(),
        version: if s.version.is_empty() { version.name } else { s.version }.to_owned(),
        kind: s.kind.to_owned(),
        verbs: s.verbs,
    });
    Resource {
        serial: serial(),
        group: resource.group.to_owned(),
        version: version.name.to_owned(),
        plural: resource.plural.to_owned(),
        singular: resource.singular(),
        kind: resource.kind.to_owned(),
        list_kind: if resource.verbs.contains(&"list") { resource.list_kind() } else { String::new() },
        namespaced: resource.namespaced,
        short_names: texts(resource.short_names),
        categories: texts(resource.categories),
        verbs: resource.verbs,
        subresources: subresources.collect(),
        deprecation: deprecation(resource.group, resource.kind).to_owned(),
        storage: Arc::new(storage),
        strategy,
        definition: None,
    }
}

/// What clients of an old kind are told.
fn deprecation(group: &str, kind: &str) -> &'static str {
    match (group, kind) {
        ("", "Endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ("", "ComponentStatus") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_are_found_by_their_path() {
        let catalogue = catalogue(&[]);
        let maps = catalogue.resource("", "v1", "configmaps").unwrap();
        assert_eq!((maps.kind.as_str(), maps.storage.prefix.as_str()), ("ConfigMap", "/registry/configmaps/"));
        assert!(catalogue.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").is_some());
        assert!(catalogue.resource("apps", "v9", "deployments").is_none());
    }

    #[test]
    fn optional_kinds_are_served_where_they_are_named() {
        let served = |optional: &[&str]| {
            let catalogue = super::catalogue(optional);
            let group = catalogue.group("admissionregistration.k8s.io").unwrap();
            group.versions.iter().map(|v| format!("{} {}", v.name, v.resources.len())).collect::<Vec<_>>()
        };
        assert_eq!(served(&[]), ["v1 4"]);
        let optional = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
        assert_eq!(served(&optional), ["v1 4", "v1alpha1 2"]);
    }
}
