//! The statuses of the control plane's components, which are made when they are asked for and kept nowhere.

use super::Request;
use super::list::Collected;
use super::present::ListMeta;
use crate::answer::Outcome;
use crate::registry::{Selection, Stored};
use object::{Value, map};
use store::Entry;

/// Whether the objects of the request's resource are made here.
pub(crate) fn has(request: &Request<'_>) -> bool {
    request.resource.storage.prefix.is_empty()
}

/// The one of the name in the path.
pub(crate) fn get(request: &Request<'_>) -> Outcome<Stored> {
    let found = statuses(request).into_iter().find(|(name, _)| *name == request.info.name);
    found.map(|(_, status)| status).ok_or_else(|| request.not_found())
}

/// Those that a selection matches.
pub(crate) fn list(request: &Request<'_>, selection: &Selection) -> Collected {
    let matching = statuses(request).into_iter().filter(|(name, s)| selection.matches(&request.resource, name, s));
    let entries = matching.map(|(name, status)| Entry {
        key: name.into(),
        value: status.raw().clone(),
        create_revision: 0,
        mod_revision: 0,
        version: 1,
    });
    Collected { entries: entries.collect(), meta: ListMeta::default() }
}

/// There is one component beside the server that answers: its store, under upstream's name.
fn statuses(request: &Request<'_>) -> Vec<(&'static str, Stored)> {
    let healthy = map! { "type" => "Healthy", "status" => "True", "message" => "ok" };
    let status = map! {
        "apiVersion" => "v1",
        "kind" => "ComponentStatus",
        "metadata" => map! { "name" => "etcd-0", "creationTimestamp" => Value::Null },
        "conditions" => vec![healthy],
    };
    let fingerprint = request.resource.strategy.fingerprint();
    vec![("etcd-0", Stored::new(&Value::Object(status), fingerprint))]
}
