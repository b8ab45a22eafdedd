//! The place that a request's path names, and what its method asks for there.

use super::Query;
use percent_encoding::percent_decode_str;

/// What a request asks for, in the words of authorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many objects.
    List,
    /// Follow changes.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object.
    Patch,
    /// Remove an object.
    Delete,
    /// Remove many objects.
    DeleteCollection,
    /// A method that means nothing.
    Unknown,
}

impl Verb {
    /// The verb's name in rules and messages; empty for a method that means nothing.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Unknown => "",
        }
    }

    /// Whether requests with this verb change something.
    pub fn is_write(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch | Verb::Unknown)
    }
}

/// A path that names a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath {
    /// What is asked for.
    pub verb: Verb,
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace; empty where the path has none.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// The object's name; empty for a collection.
    pub name: String,
    /// The subresource, with all that follows it; empty for none.
    pub subresource: String,
}

/// The place that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A resource or an object of it.
    Resource(ResourcePath),
    /// Anything else: discovery, health, documents.
    Path(String),
}

impl Target {
    /// Reads a method and a path (still percent-encoded).
    pub fn of(method: &http::Method, path: &str, query: &Query) -> Self {
        Self::resource(method, path, query).map_or_else(|| Target::Path(path.to_owned()), Target::Resource)
    }

    fn resource(method: &http::Method, path: &str, query: &Query) -> Option<ResourcePath> {
        // An empty part in the middle names nothing; one slash at the end is let pass.
        let trimmed = path.strip_prefix('/')?;
        let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
        let decode = |s: &str| percent_decode_str(s).decode_utf8_lossy().into_owned();
        let parts: Vec<String> = trimmed.split('/').map(decode).collect();
        let (group, version, rest) = match parts.split_first()? {
            (first, [version, rest @ ..]) if first == "api" => ("", version, rest),
            (first, [group, version, rest @ ..]) if first == "apis" => (group.as_str(), version, rest),
            _ => return None,
        };
        if rest.is_empty() || rest.iter().any(String::is_empty) {
            return None;
        }
        // The old form of a watch: /apis/G/V/watch/RESOURCE.
        let (watch, rest) = if rest[0] == "watch" && rest.len() > 1 { (true, &rest[1..]) } else { (false, rest) };
        let (namespace, rest) = match rest {
            [first, namespace, tail @ ..] if first == "namespaces" && is_namespaced(tail) => (namespace.as_str(), tail),
            _ => ("", rest),
        };
        let (resource, rest) = rest.split_first()?;
        let (name, subresource) = match rest {
            [] => (String::new(), String::new()),
            [name, subresource @ ..] => (name.clone(), subresource.join("/")),
        };
        let namespace = if resource == "namespaces" && group.is_empty() && namespace.is_empty() { name.clone() } else { namespace.to_owned() };
        Some(ResourcePath {
            verb: verb(method, &name, watch || query.flag("watch")),
            group: group.to_owned(),
            version: version.clone(),
            namespace,
            resource: resource.clone(),
            name,
            subresource,
        })
    }
}

/// Whether what follows `namespaces/NAME` names a resource in it rather than a part of the namespace itself.
fn is_namespaced(tail: &[String]) -> bool {
    match tail {
        [] => false,
        [only] => !matches!(only.as_str(), "status" | "finalize"),
        _ => true,
    }
}

fn verb(method: &http::Method, name: &str, watch: bool) -> Verb {
    match method.as_str() {
        "GET" | "HEAD" if watch => Verb::Watch,
        "GET" | "HEAD" if name.is_empty() => Verb::List,
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if name.is_empty() => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => Verb::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn read(method: Method, path: &str) -> Option<ResourcePath> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match Target::of(&method, path, &Query::parse(query)) {
            Target::Resource(r) => Some(r),
            Target::Path(_) => None,
        }
    }

    #[test]
    fn paths_name_resources() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/pods", (Verb::List, "", "v1", "", "pods", "", "")),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", (Verb::Get, "", "v1", "a", "pods", "b", "log")),
            (Method::GET, "/api/v1/namespaces/a", (Verb::Get, "", "v1", "a", "namespaces", "a", "")),
            (Method::PUT, "/api/v1/namespaces/a/finalize", (Verb::Update, "", "v1", "a", "namespaces", "a", "finalize")),
            (Method::GET, "/api/v1/namespaces/a/", (Verb::Get, "", "v1", "a", "namespaces", "a", "")),
            (Method::GET, "/apis/x.io/v1/foos?watch=1", (Verb::Watch, "x.io", "v1", "", "foos", "", "")),
            (Method::GET, "/apis/x.io/v1/watch/foos", (Verb::Watch, "x.io", "v1", "", "foos", "", "")),
            (Method::DELETE, "/apis/x.io/v1/foos", (Verb::DeleteCollection, "x.io", "v1", "", "foos", "", "")),
            (Method::PATCH, "/apis/x.io/v1/foos/a%2fb", (Verb::Patch, "x.io", "v1", "", "foos", "a/b", "")),
        ] {
            let r = read(method, path).unwrap();
            let got = (r.verb, &*r.group, &*r.version, &*r.namespace, &*r.resource, &*r.name, &*r.subresource);
            assert_eq!(got, expected, "{path}");
        }
    }

    #[test]
    fn other_paths_name_none() {
        for path in ["/", "/api", "/api/v1", "/apis/x.io", "/apis/x.io/v1", "/healthz", "//api/v1", "/api/v1//pods"] {
            assert_eq!(read(Method::GET, path), None, "{path}");
        }
    }
}
