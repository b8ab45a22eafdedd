//! A request's method and path, taken apart (upstream's `RequestInfo`).

use super::Query;
use super::query::percent_decoded;
use http::Method;

/// What a request does. Authorisation knows it by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A method that means nothing to a resource.
    Other,
}

impl Verb {
    /// The name that authorisation and webhooks know; empty for [`Verb::Other`].
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
            Verb::Other => "",
        }
    }
}

/// What a path and a method stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path names a resource (`/api/v1/…`, `/apis/G/V/…`) rather than a page such as `/healthz`.
    pub is_resource: bool,
    /// The path as it was sent, decoded.
    pub path: String,
    /// What is done with the resource; for pages the method in small letters is [`RequestInfo::method`].
    pub verb: Verb,
    /// The HTTP method.
    pub method: Method,
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace; empty where there is none. `/namespaces/x` itself has the namespace `x`.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; often empty.
    pub subresource: String,
    /// The object's name; empty for a collection. A list or watch of one name by a field selector has that.
    pub name: String,
    /// Whether the path itself names an object.
    pub names_object: bool,
    /// What follows the subresource.
    pub rest: Vec<String>,
    /// Whether the path is an old `/watch/` one.
    pub watch_path: bool,
}

/// Subresources of a namespace: `/namespaces/x/status` is not the resource `status` in the namespace `x`.
const OF_NAMESPACE: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// Takes a request's method and path apart.
    pub fn new(method: &Method, path: &str, query: &Query) -> Self {
        let decoded = percent_decoded(path);
        let mut info = RequestInfo {
            is_resource: false,
            path: decoded,
            verb: Verb::Other,
            method: method.clone(),
            group: String::new(),
            version: String::new(),
            namespace: String::new(),
            resource: String::new(),
            subresource: String::new(),
            name: String::new(),
            names_object: false,
            rest: Vec::new(),
            watch_path: false,
        };
        let trimmed = path.trim_matches('/');
        let parts: Vec<String> = trimmed.split('/').map(percent_decoded).collect();
        let mut parts = parts.into_iter().peekable();
        let minimum = match parts.next().as_deref() {
            Some("api") => 2,
            Some("apis") => 3,
            _ => return info,
        };
        if parts.len() < minimum {
            return info;
        }
        if minimum == 3 {
            info.group = parts.next().unwrap_or_default();
        }
        info.version = parts.next().unwrap_or_default();
        info.is_resource = true;
        info.verb = match *method {
            Method::POST => Verb::Create,
            Method::GET | Method::HEAD => Verb::Get,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => Verb::Other,
        };
        if parts.peek().is_some_and(|p| p == "watch") && parts.len() > 1 {
            parts.next();
            info.watch_path = true;
            info.verb = Verb::Watch;
        }
        let mut parts: Vec<String> = parts.collect();
        if parts.first().is_some_and(|p| p == "namespaces")
            && let Some(namespace) = parts.get(1)
        {
            info.namespace = namespace.clone();
            if parts.get(2).is_some_and(|p| !OF_NAMESPACE.contains(&p.as_str())) {
                parts.drain(..2);
            }
        }
        let mut parts = parts.into_iter();
        info.resource = parts.next().unwrap_or_default();
        info.name = parts.next().unwrap_or_default();
        info.subresource = parts.next().unwrap_or_default();
        info.rest = parts.collect();
        info.names_object = !info.name.is_empty();
        if info.name.is_empty() {
            info.verb = match info.verb {
                Verb::Get if query.flag("watch") => Verb::Watch,
                Verb::Get => Verb::List,
                Verb::Delete => Verb::DeleteCollection,
                verb => verb,
            };
            if matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
                let fields = query.get("fieldSelector").and_then(|f| object::selector::Fields::parse(f).ok());
                let name = fields.as_ref().and_then(|f| f.required("metadata.name"));
                // Authorisation by name covers a list of that one object.
                info.name = name.filter(|n| object::names::path_segment(n).is_empty()).unwrap_or_default().to_owned();
            }
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, path: &str, query: &str) -> RequestInfo {
        RequestInfo::new(&Method::from_bytes(method.as_bytes()).unwrap(), path, &Query::parse(Some(query)))
    }

    #[test]
    fn paths_name_resources() {
        for (method, path, query, want) in [
            ("GET", "/api/v1/namespaces/a/pods/b", "", ("get", "", "v1", "a", "pods", "b", "")),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "", ("get", "", "v1", "a", "pods", "b", "log")),
            ("GET", "/api/v1/namespaces/a", "", ("get", "", "v1", "a", "namespaces", "a", "")),
            ("PUT", "/api/v1/namespaces/a/finalize", "", ("update", "", "v1", "a", "namespaces", "a", "finalize")),
            ("GET", "/apis/x.io/v2/foos", "", ("list", "x.io", "v2", "", "foos", "", "")),
            ("GET", "/apis/x.io/v2/foos", "watch=1", ("watch", "x.io", "v2", "", "foos", "", "")),
            (
                "GET",
                "/apis/x.io/v2/foos",
                "fieldSelector=metadata.name%3Dq",
                ("list", "x.io", "v2", "", "foos", "q", ""),
            ),
            ("DELETE", "/apis/x.io/v2/namespaces/n/foos", "", ("deletecollection", "x.io", "v2", "n", "foos", "", "")),
            ("POST", "/api/v1/namespaces", "", ("create", "", "v1", "", "namespaces", "", "")),
        ] {
            let i = info(method, path, query);
            let got = (
                i.verb.name(),
                i.group.as_str(),
                i.version.as_str(),
                i.namespace.as_str(),
                i.resource.as_str(),
                i.name.as_str(),
                i.subresource.as_str(),
            );
            assert_eq!(got, want, "{method} {path}");
        }
    }

    #[test]
    fn short_paths_are_pages() {
        for path in ["/", "/api", "/api/v1", "/apis", "/apis/x.io", "/apis/x.io/v1", "/healthz", "/version"] {
            assert!(!info("GET", path, "").is_resource, "{path}");
        }
    }
}
