//! Finding resources and kinds.

use crate::groups::{GROUPS, admissionregistration, authentication};
use crate::resource::{Resource, Version};

/// What `serviceaccounts/token` takes: the kind of a subresource that stands for no resource of its own.
pub static TOKEN_REQUEST: Resource = authentication::TOKEN_REQUEST;

/// Every built-in resource that a 1.33 server serves by default: groups in the order of discovery, the core group
/// first; resources of a group in the order of their names.
pub fn resources() -> impl Iterator<Item = &'static Resource> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// Resources that a server can serve but does not by default, in groups that have other versions beside. [`find`] and
/// [`find_kind`] know them, the rest of this module does not.
pub fn optional() -> &'static [Resource] {
    admissionregistration::OPTIONAL
}

/// The groups in the order of discovery, the core group (`""`) first.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().filter_map(|group| Some(group.first()?.group))
}

/// The served versions of a group, the preferred one first; empty for an unknown group.
pub fn group_versions(group: &str) -> Vec<&'static str> {
    let mut versions: Vec<&'static str> = Vec::new();
    for version in in_group(group).iter().flat_map(|r| r.versions) {
        if !versions.contains(&version.name) {
            versions.push(version.name);
        }
    }
    versions
}

/// The resources of a group.
pub fn in_group(group: &str) -> &'static [Resource] {
    GROUPS.iter().find(|g| g.first().is_some_and(|r| r.group == group)).copied().unwrap_or_default()
}

/// The resources of a group, those that have to be switched on too.
fn known(group: &str) -> impl Iterator<Item = &'static Resource> {
    in_group(group).iter().chain(optional().iter().filter(move |r| r.group == group))
}

/// The resource of a group and plural, in the version asked for.
pub fn find(group: &str, version: &str, plural: &str) -> Option<(&'static Resource, &'static Version)> {
    let resource = known(group).find(|r| r.plural == plural)?;
    Some((resource, resource.version(version)?))
}

/// The resource of a kind, in the version asked for.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<(&'static Resource, &'static Version)> {
    let resource = known(group).find(|r| r.kind == kind)?;
    Some((resource, resource.version(version)?))
}
