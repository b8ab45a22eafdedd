//! The resources that are served: built-in kinds and those of CustomResourceDefinitions.
//!
//! A [`Catalogue`] never changes; the server holds the present one and puts another in its place when definitions
//! change. A request keeps the one it started with.

pub use crate::definition::Definition;

use crate::discovery::Pages;
use crate::strategy::Strategy;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// All that is served at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    generation: u64,
    groups: BTreeMap<Arc<str>, Arc<Group>>,
    pages: Pages,
}

/// A group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The name; empty for the core group.
    pub name: String,
    /// Whether definitions make it, not the program.
    pub custom: bool,
    /// The versions; the preferred one first.
    pub versions: Vec<Version>,
}

/// A version of a group.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The name.
    pub name: String,
    /// The resources in the order in which discovery tells them.
    pub resources: Vec<Arc<Resource>>,
    /// The places of the resources in the order of their plurals.
    by_plural: Vec<u32>,
}

/// A resource in one version.
pub struct Resource {
    /// A number of its own; a changed definition makes resources with new ones.
    pub serial: u64,
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name in paths.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of its lists; empty for resources that are not listed.
    pub list_kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Short names for the command line.
    pub short_names: Vec<String>,
    /// Categories for the command line.
    pub categories: Vec<String>,
    /// What can be done with it, in the order in which discovery tells it.
    pub verbs: &'static [&'static str],
    /// Its subresources, in the order in which discovery tells them.
    pub subresources: Vec<Subresource>,
    /// What a client of this version is warned of; empty when there is nothing.
    pub deprecation: String,
    /// Where and in which version objects are stored.
    pub storage: Arc<Storage>,
    /// What is particular to the kind.
    pub strategy: Arc<dyn Strategy>,
    /// The definition that makes it; none for a built-in kind.
    pub definition: Option<Arc<Definition>>,
}

/// What is stored how.
#[derive(Debug)]
pub struct Storage {
    /// What all keys of the resource start with: `/registry/GROUP/PLURAL/`.
    pub prefix: String,
    /// The version that is written.
    pub version: String,
    /// Its group, which for events is not the resource's.
    pub group: String,
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The name, for example `status`.
    pub name: String,
    /// The group of the kind that goes in and out.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The kind that goes in and out.
    pub kind: String,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({}/{} {})", self.group, self.version, self.plural)
    }
}

impl Resource {
    /// `GROUP/VERSION`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The resource for messages.
    pub fn qualified(&self) -> object::status::Qualified<'_> {
        object::status::Qualified { group: &self.group, name: &self.plural }
    }

    /// The kind for messages.
    pub fn qualified_kind(&self) -> object::status::Qualified<'_> {
        object::status::Qualified { group: &self.storage.group, name: &self.kind }
    }

    /// Whether definitions make it, not the program.
    pub fn is_custom(&self) -> bool {
        self.definition.is_some()
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// `GROUP/VERSION`, or the version alone in the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

impl Version {
    /// A version with these resources.
    pub fn new(name: impl Into<String>, resources: Vec<Arc<Resource>>) -> Self {
        let plural = |place: &u32| resources.get(*place as usize).map(|r| &*r.plural);
        let mut by_plural: Vec<u32> = (0..).take(resources.len()).collect();
        by_plural.sort_by(|a, b| plural(a).cmp(&plural(b)));
        Version { name: name.into(), resources, by_plural }
    }

    /// The resource of a plural.
    pub fn resource(&self, plural: &str) -> Option<&Arc<Resource>> {
        let resource = |place: &u32| self.resources.get(*place as usize);
        let found = self.by_plural.binary_search_by(|place| resource(place).map(|r| &*r.plural).cmp(&Some(plural)));
        found.ok().and_then(|i| self.by_plural.get(i)).and_then(resource)
    }
}

impl Group {
    /// The version of a name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.name == name)
    }
}

impl Catalogue {
    /// A catalogue of these groups.
    pub fn new(groups: impl IntoIterator<Item = Group>) -> Self {
        let groups = groups.into_iter().map(|g| (Arc::from(&*g.name), Arc::new(g))).collect();
        Catalogue { groups, ..Catalogue::default() }
    }

    /// A number that grows with each change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The documents made of this catalogue.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The groups in order of their names.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.groups.values()
    }

    /// The group of a name.
    pub fn group(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.get(name)
    }

    /// The resource at `/apis/GROUP/VERSION/PLURAL`.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.version(version)?.resource(plural)
    }

    /// All resources in all versions.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(|g| &g.versions).flat_map(|v| &v.resources)
    }

    /// The resource of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.version(version)?.resources.iter().find(|r| r.kind == kind)
    }

    /// The next catalogue: with `group` in the place of the one of its name, or without it when it has no versions.
    pub fn with_group(&self, group: Group) -> Self {
        let mut groups = self.groups.clone();
        if group.versions.is_empty() {
            groups.remove(&*group.name);
        } else {
            groups.insert(Arc::from(&*group.name), Arc::new(group));
        }
        Catalogue { generation: self.generation + 1, groups, pages: Pages::default() }
    }
}

/// Orders versions as clients prefer them: `v2` before `v1` before `v1beta1` before `v1alpha1`, before all others by
/// name. Gives a key to sort by.
pub fn version_order(version: &str) -> impl Ord + use<> {
    let stable = parse_version(version);
    match stable {
        Some((major, stage, minor)) => (0u8, std::cmp::Reverse((stage, major, minor)), String::new()),
        None => (1, std::cmp::Reverse((0, 0, 0)), version.to_owned()),
    }
}

/// The major number, the stage (2 stable, 1 beta, 0 alpha) and the number within the stage.
fn parse_version(version: &str) -> Option<(u64, u8, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(end);
    if major.is_empty() || major.starts_with('0') {
        return None;
    }
    let major = major.parse().ok()?;
    if stage.is_empty() {
        return Some((major, 2, 0));
    }
    let (kind, number) = match stage.strip_prefix("beta") {
        Some(number) => (1, number),
        None => (0, stage.strip_prefix("alpha")?),
    };
    if number.starts_with('0') {
        return None;
    }
    Some((major, kind, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_of_their_stability() {
        let mut versions =
            vec!["foo10", "v1", "v10", "v3beta1", "v11alpha2", "foo1", "v2", "v12alpha1", "v10beta3", "v11beta2"];
        versions.sort_by_key(|v| version_order(v));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
        );
    }
}
