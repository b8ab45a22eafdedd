//! Which resource a request is about.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// What has to be escaped in a part of a path.
pub(crate) const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A resource of a server: its group and version, its plural and its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version.
    pub version: Cow<'static, str>,
    /// The plural, as in paths.
    pub plural: Cow<'static, str>,
    /// The kind.
    pub kind: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A resource that the program knows beforehand.
    pub const fn known(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
        namespaced: bool,
    ) -> Self {
        Resource {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            plural: Cow::Borrowed(plural),
            kind: Cow::Borrowed(kind),
            namespaced,
        }
    }

    /// `VERSION` or `GROUP/VERSION`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The path of the collection in a namespace (empty: all of them, or none), of an object in it, or of a
    /// subresource.
    pub fn path(&self, namespace: &str, name: &str, subresource: &str) -> String {
        let mut path = root(&self.group, &self.version);
        let mut push = |part: &str| {
            path.push('/');
            path.extend(utf8_percent_encode(part, ESCAPED));
        };
        if self.namespaced && !namespace.is_empty() {
            push("namespaces");
            push(namespace);
        }
        push(&self.plural);
        for part in [name, subresource].into_iter().filter(|p| !p.is_empty()) {
            push(part);
        }
        path
    }
}

/// `VERSION` or `GROUP/VERSION`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `/api/VERSION` or `/apis/GROUP/VERSION`.
pub(crate) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

#[cfg(test)]
mod tests {
    use crate::resources::{DEPLOYMENTS, NODES, PODS};

    #[test]
    fn paths_are_those_of_the_server() {
        for (path, expected) in [
            (PODS.path("a", "b", ""), "/api/v1/namespaces/a/pods/b"),
            (PODS.path("", "", ""), "/api/v1/pods"),
            (NODES.path("a", "b", "status"), "/api/v1/nodes/b/status"),
            (DEPLOYMENTS.path("a", "", ""), "/apis/apps/v1/namespaces/a/deployments"),
            (PODS.path("a", "x/y", ""), "/api/v1/namespaces/a/pods/x%2Fy"),
        ] {
            assert_eq!(path, expected);
        }
    }
}
