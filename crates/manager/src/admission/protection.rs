//! Nobody but those who manage an object changes it while it is protected.
//!
//! What protects an object is the inventory of a live parent. Labels alone neither protect nor authorise; they only may not
//! be forged.

use super::Request;
use crate::manager::Shared;
use crate::permit::{Phase, record::phase};
use crate::permits::{self, recorded_account};
use crate::replications;
use crate::tenancy::is_terminating;
use keeper::{Item, ObjectKey};
use object::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The index of parents by the targets that they protect.
pub(crate) const BY_PROTECTED: &str = "protected";
/// The index of parents by the targets that they are about to write for the first time.
pub(crate) const BY_PENDING: &str = "pending";
/// Where a parent in a cache notes digests of what it protects, and of what it is about to write.
const DIGESTS: &str = "protects";
const PENDING: &str = "pends";
/// The label by which a protected object is known.
pub(super) const PROTECTED_BY: &str = "projectcapsule.dev/protected-by";
/// What markers of single controllers begin with.
pub(super) const MARKER: &str = "protection.projectcapsule.dev/";
/// The label of what the tenant's controller manages.
pub(super) const MANAGED_BY: &str = "projectcapsule.dev/managed-by";

/// The targets that a parent protects, as the index knows them: digests in base 16.
pub(crate) fn protected(parent: &Value) -> Vec<String> {
    noted(parent, DIGESTS, is_protected)
}

/// The targets that a parent recorded and is about to write for the first time, or just wrote. Whether it protects them is
/// known from what they bear.
pub(crate) fn pending(parent: &Value) -> Vec<String> {
    noted(parent, PENDING, is_pending)
}

fn noted(parent: &Value, member: &str, is: fn(&Item) -> bool) -> Vec<String> {
    let noted = parent.at(&["status", member]).and_then(Value::as_array);
    let digests =
        noted.map_or_else(|| digests(&items(parent), is), |noted| noted.iter().filter_map(Value::as_int).collect());
    digests.into_iter().map(|digest| format!("{digest:x}")).collect()
}

fn is_protected(item: &Item) -> bool {
    item.state.policy.map_or(item.state.created, |policy| policy.protect)
}

fn is_pending(item: &Item) -> bool {
    item.state.policy.is_none() && !item.state.created
}

/// What a cache keeps of a parent: in place of the inventory, by far the largest part, digests of what is protected.
pub(crate) fn reduce(parent: &mut Value) {
    let items = items(parent);
    parent.remove_at(&["status", "processedItems"]);
    if parent.get("status").is_none() {
        return;
    }
    for (member, is) in [(DIGESTS, is_protected as fn(&Item) -> bool), (PENDING, is_pending)] {
        let digests: Vec<Value> = digests(&items, is).into_iter().map(Value::Int).collect();
        parent.set_at(&["status", member], digests.into());
    }
}

fn items(parent: &Value) -> Vec<Item> {
    Item::read_all(parent.at(&["status", "processedItems"]))
}

fn digests(items: &[Item], is: fn(&Item) -> bool) -> Vec<i64> {
    items.iter().filter(|item| is(item)).map(|item| digest(&item.identity.object())).collect()
}

fn digest(object: &ObjectKey) -> i64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// Whether somebody may write an object.
pub(super) fn check(shared: &Shared, request: &Request<'_>, object: Option<&Value>) -> Result<(), String> {
    if !request.subresource.is_empty() || shared.is_controller(request.user) || is_part_of_the_cluster(request.user) {
        return Ok(());
    }
    let is_account = shared.is_account(request.user);
    if let Some(object) = object.filter(|_| !is_account) {
        forged(request.old, object)?;
    }
    let Some(old) = request.old else { return Ok(()) };
    if request.operation == "DELETE" && !request.namespace.is_empty() {
        let namespace = shared.tenancy.namespace(request.namespace);
        if namespace.is_none_or(|n| is_terminating(&n)) {
            return Ok(());
        }
    }
    if request.operation == "DELETE" && (request.group, request.resource) == ("", "serviceaccounts") {
        referenced(shared, request)?;
    }
    if old.label(MANAGED_BY) == Some("controller") && is_of_a_tenant(old) && !shared.is_administrator(request) {
        return Err("managed by a Tenant; only administrators and the controller may change it".to_owned());
    }
    let target = ObjectKey {
        group: request.group.into(),
        kind: request.kind.into(),
        namespace: request.namespace.into(),
        name: request.name.into(),
    };
    let key = format!("{:x}", digest(&target));
    let parents: Vec<Arc<Value>> = shared.parents().iter().flat_map(|c| c.indexed(BY_PROTECTED, &key)).collect();
    let Some(parent) = parents.first() else { return unrecorded(shared, request, old, &target, &key) };
    if is_account && parents.iter().any(|p| account(shared, p).as_deref() == Some(request.user)) {
        return Ok(());
    }
    Err(refusal(parent.str_at(&["kind"]).unwrap_or("parent"), &client::cache::key(parent)))
}

/// Between the write of an object and the record of its outcome in a status, the keeper knows who protects what bears a
/// marker. Where another replica does the work, the record from before the write knows.
fn unrecorded(
    shared: &Shared,
    request: &Request<'_>,
    old: &Value,
    target: &ObjectKey,
    key: &str,
) -> Result<(), String> {
    let labels = old.at(&["metadata", "labels"]).and_then(Value::as_object);
    if !labels.is_some_and(|labels| labels.keys().any(|label| label.starts_with(MARKER))) {
        return Ok(());
    }
    let parents = shared.keeper.protectors(target);
    match parents.first() {
        Some(parent) if !parents.iter().any(|parent| shared.works_for(parent, request.user)) => {
            let (kind, name) = described(parent);
            Err(refusal(kind, name))
        }
        Some(_) => Ok(()),
        None => {
            let pending: Vec<_> = shared.parents().iter().flat_map(|cache| cache.indexed(BY_PENDING, key)).collect();
            match pending.first() {
                Some(parent) if !pending.iter().any(|p| account(shared, p).as_deref() == Some(request.user)) => {
                    Err(refusal(parent.str_at(&["kind"]).unwrap_or("parent"), &client::cache::key(parent)))
                }
                _ => Ok(()),
            }
        }
    }
}

/// The kind and the place of a parent that the keeper knows by this key.
fn described(key: &str) -> (&'static str, &str) {
    match (key.strip_prefix(replications::PREFIX), key.strip_prefix(permits::PREFIX)) {
        (Some(name), _) if name.contains('/') => ("TenantResource", name),
        (Some(name), _) => ("GlobalTenantResource", name),
        (None, Some(name)) => ("ResourcePermit", name),
        (None, None) => ("parent", key),
    }
}

fn refusal(kind: &str, name: &str) -> String {
    format!("protected by {kind} {name}; only the controller or its service account may change it")
}

/// The controllers of the cluster itself, which do to every object what belongs to its kind: users, and what the names of
/// further ones begin with.
pub(super) const CLUSTER: [&str; 3] = ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"];
pub(super) const CLUSTER_PREFIXES: [&str; 2] = ["system:serviceaccount:kube-system:", "system:node:"];

pub(super) fn is_part_of_the_cluster(user: &str) -> bool {
    CLUSTER.contains(&user) || CLUSTER_PREFIXES.iter().any(|prefix| user.starts_with(prefix))
}

fn is_of_a_tenant(object: &Value) -> bool {
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    owners.iter().any(|o| o.str_at(&["kind"]) == Some("Tenant"))
}

/// Whether somebody gives an object marks that only the manager may give, or takes them away.
fn forged(old: Option<&Value>, object: &Value) -> Result<(), String> {
    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
    for (label, value) in labels.iter().flat_map(|l| l.iter()) {
        let is_mark = label == PROTECTED_BY || label.starts_with(MARKER);
        if is_mark && old.and_then(|o| o.label(label)) != value.as_str() {
            return Err(format!("the label {label} is set by the controller only"));
        }
    }
    Ok(())
}

/// The user name of the account that works for a parent.
fn account(shared: &Shared, parent: &Value) -> Option<String> {
    if parent.at(&["spec", "template"]).is_some() {
        return recorded_account(parent).map(|a| a.user());
    }
    shared.account_of(parent).map(|a| a.user())
}

/// Whether a service account still works for somebody.
fn referenced(shared: &Shared, request: &Request<'_>) -> Result<(), String> {
    let user = format!("system:serviceaccount:{}:{}", request.namespace, request.name);
    for cache in shared.parents() {
        for parent in cache.list() {
            if account(shared, &parent).as_deref() == Some(&user) && phase(&parent) != Phase::Expired {
                let kind = parent.str_at(&["kind"]).unwrap_or("parent");
                return Err(format!("the service account is used by {kind} {}", client::cache::key(&parent)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn a_parent_protects_what_its_policy_says_or_what_it_once_made() {
        let parent = yaml::parse(
            b"status: {processedItems: [{kind: A, version: v1, name: a, namespace: ns, status: {policy: {protect: true}}}, {kind: A, version: v1, name: b, status: {created: true, policy: {protect: false}}}, {group: g, kind: C, version: v1, name: c, status: {created: true, clusterScoped: true}}, {kind: A, version: v1, name: d, status: {}}]}",
        )
        .unwrap();
        let key = |group: &str, kind: &str, namespace: &str, name: &str| {
            let [group, kind, namespace, name] = [group, kind, namespace, name].map(Into::into);
            format!("{:x}", digest(&ObjectKey { group, kind, namespace, name }))
        };
        let expected = [key("", "A", "ns", "a"), key("g", "C", "", "c")];
        assert_eq!(protected(&parent), expected);
        assert_eq!(pending(&parent), [key("", "A", "", "d")]);
        let mut reduced = parent.clone();
        reduce(&mut reduced);
        assert_eq!(pending(&reduced), pending(&parent));
        assert_eq!((protected(&reduced), reduced.at(&["status", "processedItems"])), (expected.to_vec(), None));
    }

    #[test]
    fn marks_cannot_be_forged() {
        let with = |labels: &str| yaml::parse(format!("metadata: {{labels: {labels}}}").as_bytes()).unwrap();
        let marked = with("{projectcapsule.dev/protected-by: replications}");
        assert!(forged(None, &marked).is_err());
        assert!(forged(Some(&with("{}")), &with("{protection.projectcapsule.dev/resource-permit: 'true'}")).is_err());
        assert!(forged(Some(&marked), &marked).is_ok());
        assert!(forged(None, &with("{team: a}")).is_ok());
    }
}
