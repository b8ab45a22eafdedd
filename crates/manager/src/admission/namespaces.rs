//! Namespaces of tenants: whose they are when they are made, and that they stay so; and the labels of what is in them.

use super::Request;
use crate::kinds::TENANTS;
use crate::manager::Shared;
use crate::tenancy::{TENANT_LABEL, is_deleted};
use object::{Value, map};
use std::sync::Arc;

/// The labels that say of an object in a tenant's namespace which tenant that is.
const LABELS: [&str; 3] = [TENANT_LABEL, "projectcapsule.dev/tenant", "capsule.clastix.io/managed-by"];

/// Gives a new namespace to a tenant: to the one that it names, or to the only one that its maker owns. It belongs to the
/// tenant from then on.
pub(super) fn mutate(shared: &Shared, request: &Request<'_>, object: &mut Value) -> Result<bool, String> {
    if is_exempt(shared, request) {
        return Ok(false);
    }
    let named = object.label(TENANT_LABEL).filter(|name| !name.is_empty()).map(str::to_owned);
    match (request.operation, named) {
        ("CREATE", Some(name)) => match shared.tenancy.tenant(&name) {
            Some(tenant) => Ok(own(&tenant, object)),
            None if shared.is_administrator(request) => Ok(false),
            None => Err(format!("tenant {name:?} not found")),
        },
        ("CREATE", None) if !shared.is_administrator(request) => {
            let mut owned = shared.tenancy.tenants();
            owned.retain(|tenant| !is_deleted(tenant) && is_owner(tenant, request));
            match owned.as_slice() {
                [] => Ok(false),
                [tenant] => {
                    object.set_at(&["metadata", "labels", TENANT_LABEL], tenant.name().into());
                    own(tenant, object);
                    Ok(true)
                }
                _ => Err(format!("you own several tenants: say which one by the label {TENANT_LABEL}")),
            }
        }
        ("UPDATE", named) => {
            let former = tenant_of(request.old);
            let stays = former == named.as_deref();
            let left = former.filter(|_| !stays).and_then(|former| shared.tenancy.tenant(former));
            let left = left.is_some_and(|former| disown(&former, object));
            // Who writes a namespace as a whole does not know to whom it belongs.
            let tenant = named.and_then(|name| shared.tenancy.tenant(&name));
            let its = tenant.filter(|tenant| !stays || request.old.is_some_and(|old| belongs(tenant, old)));
            Ok(its.is_some_and(|tenant| own(&tenant, object)) || left)
        }
        _ => Ok(false),
    }
}

/// Whether a namespace may be made, change or go.
pub(super) fn validate(shared: &Shared, request: &Request<'_>, object: Option<&Value>) -> Result<(), String> {
    if is_exempt(shared, request) || shared.is_administrator(request) {
        return Ok(());
    }
    let (was, is) = (tenant_of(request.old), tenant_of(object));
    if request.operation == "UPDATE" {
        return if was == is {
            Ok(())
        } else {
            Err("the tenant of a namespace is changed by administrators only".to_owned())
        };
    }
    let Some(tenant) = was.or(is).and_then(|name| shared.tenancy.tenant(name)) else { return Ok(()) };
    let cordoned = tenant.at(&["spec", "cordoned"]).and_then(Value::as_bool) == Some(true);
    if cordoned {
        return Err(format!("tenant {:?} is cordoned: its namespaces are neither made nor deleted", tenant.name()));
    }
    if request.operation != "CREATE" {
        return Ok(());
    }
    if !is_owner(&tenant, request) {
        return Err(format!("you are not an owner of tenant {:?}", tenant.name()));
    }
    let quota = tenant.at(&["spec", "namespaceOptions", "quota"]).and_then(Value::as_int);
    let count = i64::try_from(shared.tenancy.all_namespaces(tenant.name()).len()).unwrap_or(i64::MAX);
    match quota {
        // In the original's words.
        Some(quota) if count >= quota => {
            Err("Cannot exceed Namespace quota: please, reach out to the system administrators".to_owned())
        }
        _ => Ok(()),
    }
}

/// The tenant that a namespace names.
fn tenant_of(namespace: Option<&Value>) -> Option<&str> {
    namespace?.label(TENANT_LABEL).filter(|name| !name.is_empty())
}

/// Labels what is in a namespace of a tenant.
pub(super) fn stamp(shared: &Shared, request: &Request<'_>, object: &mut Value) -> bool {
    if request.namespace.is_empty() || !request.subresource.is_empty() || object.at(&["metadata"]).is_none() {
        return false;
    }
    let Some(tenant) = shared.tenancy.tenant_of(request.namespace) else { return false };
    let mut changed = false;
    for label in LABELS {
        if object.label(label) != Some(&tenant) {
            object.set_at(&["metadata", "labels", label], tenant.as_str().into());
            changed = true;
        }
    }
    changed
}

fn is_exempt(shared: &Shared, request: &Request<'_>) -> bool {
    !request.subresource.is_empty()
        || shared.is_controller(request.user)
        || super::protection::is_part_of_the_cluster(request.user)
}

/// Whether whoever writes owns a tenant.
fn is_owner(tenant: &Value, request: &Request<'_>) -> bool {
    let owners = tenant.at(&["spec", "owners"]).and_then(Value::as_array).unwrap_or_default();
    owners.iter().any(|owner| {
        let name = owner.str_at(&["name"]).unwrap_or_default();
        match owner.str_at(&["kind"]) {
            Some("Group") => request.groups.iter().any(|group| group == name),
            _ => request.user == name,
        }
    })
}

/// Whether a namespace belongs to a tenant.
fn belongs(tenant: &Value, namespace: &Value) -> bool {
    let all = namespace.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    all.iter().any(|owner| owner.str_at(&["uid"]) == Some(tenant.meta_str("uid")))
}

/// Lets a namespace belong to a tenant, so that it goes with it.
fn own(tenant: &Arc<Value>, namespace: &mut Value) -> bool {
    if belongs(tenant, namespace) {
        return false;
    }
    let owner: Value = map! {
        "apiVersion" => TENANTS.api_version(), "kind" => &*TENANTS.kind, "name" => tenant.name(),
        "uid" => tenant.meta_str("uid"),
    }
    .into();
    let mut owners =
        namespace.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    owners.push(owner);
    namespace.set_at(&["metadata", "ownerReferences"], Value::Array(owners));
    true
}

/// Lets a namespace belong to a tenant no more.
fn disown(tenant: &Value, namespace: &mut Value) -> bool {
    if !belongs(tenant, namespace) {
        return false;
    }
    let all = namespace.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    let rest = all.iter().filter(|owner| owner.str_at(&["uid"]) != Some(tenant.meta_str("uid"))).cloned();
    let rest: Vec<Value> = rest.collect();
    namespace.set_at(&["metadata", "ownerReferences"], Value::Array(rest));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn owners_are_users_groups_and_accounts() {
        let tenant = yaml::parse(
            b"spec: {owners: [{kind: User, name: alice}, {kind: Group, name: ops}, {kind: ServiceAccount, name: 'system:serviceaccount:a:b'}]}",
        )
        .unwrap();
        for (user, group, expected) in [
            ("alice", "x", true),
            ("bob", "ops", true),
            ("system:serviceaccount:a:b", "x", true),
            ("ops", "x", false),
            ("bob", "alice", false),
        ] {
            let groups = [group.to_owned()];
            let request = Request {
                operation: "CREATE",
                group: "",
                resource: "namespaces",
                kind: "Namespace",
                subresource: "",
                namespace: "",
                name: "n",
                user,
                groups: &groups,
                old: None,
                now: jiff::Timestamp::UNIX_EPOCH,
            };
            assert_eq!(is_owner(&tenant, &request), expected, "{user} {group}");
        }
    }

    #[test]
    fn a_namespace_belongs_to_its_tenant_once() {
        let tenant = Arc::new(yaml::parse(b"metadata: {name: t, uid: u}").unwrap());
        let mut namespace = yaml::parse(b"metadata: {name: n}").unwrap();
        assert!(own(&tenant, &mut namespace) && belongs(&tenant, &namespace));
        assert!(!own(&tenant, &mut namespace));
    }
}
