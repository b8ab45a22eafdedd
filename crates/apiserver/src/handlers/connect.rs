//! Requests that are handed on to a pod, a service or a node: `exec`, `attach`, `portforward`, `proxy`. Admission sees
//! them as CONNECT, with their parameters as the object.

use super::Request;
use crate::admission::Attributes;
use crate::answer::Outcome;
use crate::catalogue::{Resource, Subresource};
use object::{Map, Value, map};

/// Whether a subresource hands requests on.
pub(crate) fn connects(resource: &Resource, subresource: &str) -> bool {
    let of_pods = resource.plural == "pods" && matches!(subresource, "exec" | "attach" | "portforward");
    resource.group.is_empty() && (of_pods || subresource == "proxy") && !resource.is_custom()
}

/// What webhooks and policies say of handing the request on.
pub(crate) async fn admit(request: &mut Request<'_>) -> Outcome<()> {
    let server = request.server.clone();
    let admission = &server.options.admission;
    let resource = request.resource.clone();
    if !admission.concerns(&resource) {
        return Ok(());
    }
    let Some(subresource) = resource.subresource(&request.info.subresource) else { return Ok(()) };
    let mut options = parameters(request, subresource);
    let attributes = Attributes {
        operation: "CONNECT",
        resource: &resource,
        subresource: &request.info.subresource,
        namespace: if resource.namespaced { &request.info.namespace } else { "" },
        name: &request.info.name,
        user: request.user,
        dry_run: false,
        old: None,
        options: &Value::Null,
        now: request.now,
    };
    let mut warnings = Vec::new();
    let mut outcome = admission.mutate(&server, attributes, Some(&mut options), &mut warnings).await.map(drop);
    if outcome.is_ok() {
        outcome = admission.validate(&server, attributes, Some(&options), &mut warnings).await;
    }
    request.warnings.extend(warnings);
    outcome
}

/// The parameters as the object that upstream makes of them.
fn parameters(request: &Request<'_>, subresource: &Subresource) -> Value {
    let mut options = map! {
        "kind" => subresource.kind.as_str(),
        "apiVersion" => crate::catalogue::api_version(&subresource.group, &subresource.version),
    };
    let query = request.query;
    let set_flags = |options: &mut Map| {
        for name in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|name| query.flag(name)) {
            options.insert(name, true);
        }
        if let Some(container) = query.get("container").filter(|c| !c.is_empty()) {
            options.insert("container", container);
        }
    };
    match subresource.name.as_str() {
        "exec" => {
            set_flags(&mut options);
            let command: Vec<Value> = query.all("command").map(Value::from).collect();
            options.insert("command", Some(command).filter(|c| !c.is_empty()).map_or(Value::Null, Value::Array));
        }
        "attach" => set_flags(&mut options),
        "portforward" => {
            let ports: Vec<Value> = query.all("ports").filter_map(|p| p.parse::<i64>().ok()).map(Value::Int).collect();
            if !ports.is_empty() {
                options.insert("ports", ports);
            }
        }
        _ => {
            let path = path(request);
            if !path.is_empty() {
                options.insert("path", path);
            }
        }
    }
    Value::Object(options)
}

/// The path behind `proxy`.
fn path(request: &Request<'_>) -> String {
    let mut path = String::new();
    for part in request.info.rest.iter() {
        path.push('/');
        path.push_str(part);
    }
    if request.info.path.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}
