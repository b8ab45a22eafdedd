//! The parameters of policies.

use super::binding::{Chosen, ParamRef};
use crate::Server;
use crate::answer::Failure;
use crate::catalogue::{Catalogue, Resource};
use crate::registry;
use object::Value;
use std::sync::Arc;
use store::{Entry, ListOptions, Range};

/// The kind of a policy's parameters.
#[derive(Debug)]
pub(super) struct ParamKind {
    api_version: String,
    kind: String,
}

impl ParamKind {
    /// Reads a `paramKind`.
    pub fn read(kind: &Value) -> Self {
        let text = |key: &str| kind.str_at(&[key]).unwrap_or_default().to_owned();
        ParamKind { api_version: text("apiVersion"), kind: text("kind") }
    }

    /// Its group and version.
    pub fn group_version(&self) -> (&str, &str) {
        self.api_version.split_once('/').unwrap_or(("", &self.api_version))
    }

    /// The resource that has this kind; the error is upstream's text.
    pub fn resource(&self, catalogue: &Catalogue) -> Result<Arc<Resource>, String> {
        let (group, version) = self.group_version();
        let found = catalogue.kind(group, version, &self.kind).cloned();
        found.ok_or_else(|| {
            let kind = &self.kind;
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
        })
    }
}

/// The parameters that a reference means in a request for a namespace. The error is upstream's text.
pub(super) async fn find(
    server: &Server,
    resource: &Resource,
    reference: &ParamRef,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    if !resource.verbs.contains(&"list") {
        let (version, kind) = (resource.api_version(), &resource.kind);
        let kind = format!("&ParamKind{{APIVersion:{version},Kind:{kind},}}");
        return Err(format!("paramKind kind `{kind}` not yet synced to use for admission"));
    }
    let namespace = match (resource.namespaced, reference.namespace.as_str()) {
        (false, "") => "",
        (false, _) => return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()),
        (true, "") if namespace.is_empty() => {
            let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => namespace,
        (true, given) => given,
    };
    let entries = match &reference.chosen {
        Chosen::Name(name) => {
            let entry = server.store.get(&registry::key(resource, namespace, name), None).await;
            entry.map_err(registry::read_failure).map(|entry| entry.into_iter().collect::<Vec<_>>())
        }
        Chosen::Selector(selector) => {
            let selector = selector.as_ref().map_err(String::clone)?;
            let range = Range::prefix(registry::prefix(resource, namespace).as_str());
            let page = server.store.list(&range, ListOptions::default()).await;
            let chosen = |entry: &Entry| {
                let Ok(stored) = registry::stored(entry) else { return false };
                selector.is_empty() || selector.matches(stored.labels().as_ref())
            };
            page.map_err(registry::read_failure).map(|page| page.entries.into_iter().filter(chosen).collect())
        }
    };
    let mut params = Vec::new();
    for entry in entries.map_err(text)? {
        let stored = registry::stored(&entry).map_err(text)?;
        let mut param = server.load(resource, &stored, entry.mod_revision).await.map_err(text)?;
        resource.strategy.present(&mut param);
        params.push(param);
    }
    if params.is_empty() && reference.required {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}

/// What a failure says.
pub(super) fn text(failure: Failure) -> String {
    match failure {
        Failure::Status(status) => status.message,
        Failure::Text(_, text) => text,
        Failure::Busy => crate::answer::BUSY.to_owned(),
        Failure::Object(_, object) => object.str_at(&["message"]).unwrap_or_default().to_owned(),
    }
}
