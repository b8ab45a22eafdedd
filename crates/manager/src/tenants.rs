//! The controller of Tenant: its namespaces, its state, its role bindings.

use crate::kinds::{GROUP, MANAGER, TENANTS};
use crate::manager::Shared;
use crate::replications::Record;
use crate::runner::Reconciler;
use crate::status::{self, Condition};
use crate::tenancy::{TENANT_LABEL, is_deleted};
use client::cache::Selection;
use client::{Cache, DeleteParams, Error, Patch, PatchParams, Resource};
use object::{Map, Value, map};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Role bindings.
pub(crate) const ROLE_BINDINGS: Resource =
    Resource::known("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true);
/// The label of a tenant's role bindings: a hash of what they bind.
const BINDING_LABEL: &str = "capsule.clastix.io/role-binding";
/// The label of what the tenant's controller manages.
const MANAGED_BY: &str = "projectcapsule.dev/managed-by";
/// What owners are, if their tenant does not say.
const OWNER_ROLES: [&str; 2] = ["admin", "capsule-namespace-deleter"];

/// The role bindings that belong to tenants.
pub(crate) fn role_bindings_selection() -> Selection {
    Selection { label_selector: format!("{TENANT_LABEL},{BINDING_LABEL}"), ..Selection::default() }
}

pub(crate) struct Tenants {
    shared: Arc<Shared>,
    bindings: Arc<Cache>,
}

impl Reconciler for Tenants {
    const NAME: &'static str = "tenants";

    async fn sync(&self, key: &str) -> Result<Option<Duration>, Error> {
        let api = self.shared.client.api(&TENANTS);
        let Some(tenant) = api.find("", key).await? else { return Ok(None) };
        if is_deleted(&tenant) {
            return Ok(None);
        }
        let problem = self.bind(&tenant).await;
        let condition = match &problem {
            Ok(()) => Condition::ready(),
            Err(error) => Condition::failed(error.to_string()),
        };
        let record = Record::new(&api, &tenant);
        record.status(self.status(&tenant, condition)).await?;
        problem.map(|()| None)
    }
}

impl Tenants {
    pub fn new(shared: Arc<Shared>, bindings: Arc<Cache>) -> Self {
        Tenants { shared, bindings }
    }

    fn status(&self, tenant: &Value, condition: Condition) -> Map {
        let namespaces = self.shared.tenancy.all_namespaces(tenant.name());
        let cordoned = tenant.at(&["spec", "cordoned"]).and_then(Value::as_bool).unwrap_or(false);
        let now = self.shared.now();
        let generation = status::generation(tenant);
        let old = tenant.at(&["status", "conditions"]);
        let conditions = [condition, Condition::cordoned(cordoned)];
        let names: Vec<&str> = namespaces.iter().map(|n| n.name()).collect();
        let size = i64::try_from(names.len()).unwrap_or(i64::MAX);
        let spaces = |name: &str| {
            let all = tenant.at(&["status", "spaces"]).and_then(Value::as_array).unwrap_or_default();
            all.iter().find(|s| s.str_at(&["name"]) == Some(name)).and_then(|s| s.get("conditions")).cloned()
        };
        let spaces: Vec<Value> = namespaces
            .iter()
            .map(|n| {
                let ready = if is_deleted(n) { Condition::failed("terminating") } else { Condition::ready() };
                let all = [ready, Condition::cordoned(cordoned)];
                let conditions = status::with_conditions(spaces(n.name()).as_ref(), &all, 0, now);
                map! { "name" => n.name(), "uid" => n.meta_str("uid"), "conditions" => conditions }.into()
            })
            .collect();
        map! {
            "namespaces" => names,
            "size" => size,
            "spaces" => spaces,
            "state" => if cordoned { "Cordoned" } else { "Active" },
            "observedGeneration" => generation,
            "conditions" => status::with_conditions(old, &conditions, generation, now),
        }
    }

    /// Gives owners and others their roles in every namespace, and takes away what is no longer given.
    async fn bind(&self, tenant: &Value) -> Result<(), Error> {
        let api = self.shared.client.api(&ROLE_BINDINGS);
        let wanted = role_bindings(tenant);
        let namespaces = self.shared.tenancy.namespaces(tenant.name());
        for namespace in &namespaces {
            for (name, binding) in &wanted {
                let known = self.bindings.get(namespace.name(), name);
                if known.is_some_and(|known| is_as_wanted(&known, binding)) {
                    continue;
                }
                let mut object = binding.clone();
                object.set_at(&["metadata", "namespace"], namespace.name().into());
                let apply = Patch::Apply { object, manager: MANAGER.to_owned(), force: true };
                match api.patch(namespace.name(), name, &apply, &PatchParams::default()).await {
                    Err(error) if error.is_invalid() => self.replace(namespace.name(), name, &apply).await?,
                    Err(error) if error.is_namespace_terminating() => {}
                    other => drop(other?),
                }
            }
        }
        let label = format!("{TENANT_LABEL}={}", tenant.name());
        let selector = object::selector::Labels::parse(&label).map_err(Error::Content)?;
        for old in self.bindings.select("", &selector) {
            if wanted.contains_key(old.name()) && namespaces.iter().any(|n| n.name() == old.namespace()) {
                continue;
            }
            let params = DeleteParams::background().with_uid(old.meta_str("uid"));
            match api.delete(old.namespace(), old.name(), &params).await {
                Err(error) if error.is_not_found() => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Makes a role binding anew, since its role cannot be changed.
    async fn replace(&self, namespace: &str, name: &str, apply: &Patch) -> Result<(), Error> {
        let api = self.shared.client.api(&ROLE_BINDINGS);
        api.delete(namespace, name, &DeleteParams::background()).await?;
        api.patch(namespace, name, apply, &PatchParams::default()).await.map(drop)
    }
}

/// Whether a live role binding says what it should.
fn is_as_wanted(live: &Value, wanted: &Value) -> bool {
    let within = |path: &[&str]| {
        let members = wanted.at(path).and_then(Value::as_object);
        members.is_none_or(|m| m.iter().all(|(k, v)| live.at(path).and_then(|l| l.get(k)) == Some(v)))
    };
    live.get("roleRef") == wanted.get("roleRef")
        && live.get("subjects") == wanted.get("subjects")
        && live.at(&["metadata", "ownerReferences"]) == wanted.at(&["metadata", "ownerReferences"])
        && within(&["metadata", "labels"])
        && within(&["metadata", "annotations"])
}

/// The role bindings that every namespace of a tenant gets, by name.
pub(crate) fn role_bindings(tenant: &Value) -> BTreeMap<String, Value> {
    let list = |path: &[&str]| tenant.at(path).and_then(Value::as_array).unwrap_or_default();
    let mut out = BTreeMap::new();
    let mut roles: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for owner in list(&["spec", "owners"]) {
        let own: Vec<&str> = match owner.get("clusterRoles").and_then(Value::as_array) {
            Some(roles) => roles.iter().filter_map(Value::as_str).collect(),
            None => OWNER_ROLES.to_vec(),
        };
        for role in own {
            roles.entry(role).or_default().extend(subject(owner));
        }
    }
    for (role, subjects) in roles {
        let (name, binding) = role_binding(tenant, role, subjects, &Value::Null);
        out.insert(name, binding);
    }
    for more in list(&["spec", "additionalRoleBindings"]) {
        let role = more.str_at(&["clusterRoleName"]).unwrap_or_default();
        let subjects = more.get("subjects").and_then(Value::as_array).unwrap_or_default();
        let subjects = subjects.iter().map(|s| with_group(s.clone())).collect();
        let (name, binding) = role_binding(tenant, role, subjects, more);
        out.insert(name, binding);
    }
    out
}

/// An owner as the subject of a role binding. A service account is written as the user that it is.
fn subject(owner: &Value) -> Option<Value> {
    let (kind, name) = (owner.str_at(&["kind"])?, owner.str_at(&["name"])?);
    let subject = match (kind, name.strip_prefix("system:serviceaccount:").and_then(|n| n.split_once(':'))) {
        ("ServiceAccount", Some((namespace, name))) => {
            map! { "kind" => kind, "name" => name, "namespace" => namespace }
        }
        _ => map! { "kind" => kind, "name" => name },
    };
    Some(with_group(subject.into()))
}

/// A subject with the group that the server gives it by default.
fn with_group(mut subject: Value) -> Value {
    if subject.str_at(&["kind"]) != Some("ServiceAccount") && subject.get("apiGroup").is_none() {
        subject.set_at(&["apiGroup"], "rbac.authorization.k8s.io".into());
    }
    subject
}

fn role_binding(tenant: &Value, role: &str, subjects: Vec<Value>, more: &Value) -> (String, Value) {
    let text = |v: &Value, key| v.str_at(&[key]).unwrap_or_default().to_owned();
    let parts = std::iter::once(role.to_owned())
        .chain(subjects.iter().flat_map(|s| [text(s, "kind"), text(s, "namespace"), text(s, "name")]));
    let hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
        let bytes = part.bytes().chain([0]);
        bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    });
    let hash = format!("{hash:x}");
    let name = format!("capsule-{}-{hash}", tenant.name());
    let part = |key| more.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut labels: Map = part("labels");
    labels.insert(TENANT_LABEL, tenant.name());
    labels.insert(BINDING_LABEL, hash);
    labels.insert(MANAGED_BY, "controller");
    let owner = map! {
        "apiVersion" => format!("{GROUP}/v1beta2"), "kind" => "Tenant", "name" => tenant.name(),
        "uid" => tenant.meta_str("uid"), "controller" => true, "blockOwnerDeletion" => true,
    };
    let mut metadata = map! {
        "name" => name.as_str(), "labels" => labels, "ownerReferences" => vec![Value::from(owner)],
    };
    let annotations = part("annotations");
    if !annotations.is_empty() {
        metadata.insert("annotations", annotations);
    }
    let binding = map! {
        "apiVersion" => ROLE_BINDINGS.api_version(), "kind" => "RoleBinding", "metadata" => metadata,
        "subjects" => subjects,
        "roleRef" => map! { "apiGroup" => "rbac.authorization.k8s.io", "kind" => "ClusterRole", "name" => role },
    };
    (name, binding.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{json, yaml};

    #[test]
    fn owners_of_one_role_share_a_binding() {
        let tenant = yaml::parse(
            b"{metadata: {name: solar, uid: u}, spec: {owners: [{kind: User, name: alice}, {kind: ServiceAccount, name: 'system:serviceaccount:ns:sa', clusterRoles: [admin]}], additionalRoleBindings: [{clusterRoleName: view, labels: {x: y}, subjects: [{kind: Group, name: g}]}]}}",
        )
        .unwrap();
        let all = role_bindings(&tenant);
        let shown: Vec<String> = all
            .values()
            .map(|b| {
                format!("{} {}", b.str_at(&["roleRef", "name"]).unwrap(), json::to_string(b.get("subjects").unwrap()))
            })
            .collect();
        let mut shown = shown;
        shown.sort();
        assert_eq!(
            shown,
            [
                r#"admin [{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"},{"kind":"ServiceAccount","name":"sa","namespace":"ns"}]"#,
                r#"capsule-namespace-deleter [{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"alice"}]"#,
                r#"view [{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"g"}]"#,
            ]
        );
        assert!(
            all.iter().all(|(name, b)| name.starts_with("capsule-solar-") && b.label(MANAGED_BY) == Some("controller"))
        );
        assert_eq!(all, role_bindings(&tenant));
    }
}
