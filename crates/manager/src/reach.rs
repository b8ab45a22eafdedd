//! How far somebody reaches who declares something in a namespace without naming a service account for it. Then it is done
//! by the manager's own rights. They are not its author's: what is in other tenants' namespaces or in none is out of reach,
//! and so is what would carry the manager's rights on to others.

use crate::kinds::{GLOBAL_TENANT_RESOURCES, GROUP, PERMITS, TENANT_RESOURCES};
use crate::tenancy::Tenancy;
use keeper::{Creation, Policy};
use object::Value;

/// Groups of kinds that give rights, or have the manager act in turn.
const GRANTING: [&str; 3] = ["rbac.authorization.k8s.io", GROUP, "core.oam.dev"];
/// Kinds of the core group that limit those who work in a namespace.
const LIMITING: [&str; 2] = ["ResourceQuota", "LimitRange"];

/// The namespaces of one tenant, or the one namespace that belongs to none.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    tenancy: &'a Tenancy,
    namespace: &'a str,
}

impl<'a> Reach<'a> {
    /// From a namespace.
    pub fn from(tenancy: &'a Tenancy, namespace: &'a str) -> Self {
        Reach { tenancy, namespace }
    }

    /// Whether a namespace is within reach; what is in none (an empty one) is not.
    pub fn includes(&self, place: &str) -> bool {
        let tenant = self.tenancy.tenant_of(self.namespace);
        !place.is_empty() && (place == self.namespace || tenant.is_some() && self.tenancy.tenant_of(place) == tenant)
    }

    /// Whether an object may be made where it is; `namespaced` says whether its kind is, if that is known.
    pub fn check(&self, object: &Value, namespaced: Option<bool>, policy: &Policy) -> Result<(), String> {
        let (kind, place) = (object.str_at(&["kind"]).unwrap_or_default(), object.namespace());
        if namespaced == Some(false) {
            return Err(format!("cluster-scoped kind {kind} is not allowed without a service account"));
        }
        if !self.includes(place) {
            return Err(format!("writing {kind} to namespace {place:?} is not allowed without a service account"));
        }
        within_rights(object, policy)
    }
}

/// Whether an object may be made by the manager's own rights for somebody who has them not.
pub(crate) fn within_rights(object: &Value, policy: &Policy) -> Result<(), String> {
    let (group, kind) = kind_of(object);
    if GRANTING.contains(&group) {
        return Err(format!(
            "kind {kind} of {group} is not allowed without a service account: it would give its rights"
        ));
    }
    if group.is_empty() && LIMITING.contains(&kind) && policy.creation == Creation::Merge {
        return Err(format!("kind {kind} is not taken over (creation: Merge) without a service account"));
    }
    Ok(())
}

/// Whether an object declares objects itself.
pub(crate) fn declares(object: &Value) -> bool {
    let (group, kind) = kind_of(object);
    group == GROUP && [&TENANT_RESOURCES, &GLOBAL_TENANT_RESOURCES, &PERMITS].iter().any(|known| *known.kind == *kind)
}

fn kind_of(object: &Value) -> (&str, &str) {
    let text = |key| object.str_at(&[key]).unwrap_or_default();
    (text("apiVersion").split_once('/').map_or("", |(group, _)| group), text("kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Cache;
    use object::yaml;

    #[test]
    fn a_tenant_and_what_lends_no_rights_is_within_reach() {
        let read = |text: &str| yaml::parse(text.as_bytes()).unwrap();
        let namespaces = ["a-1, labels: {capsule.clastix.io/tenant: a}", "a-2, labels: {capsule.clastix.io/tenant: a}"]
            .into_iter()
            .chain(["b-1, labels: {capsule.clastix.io/tenant: b}", "own", "other"])
            .map(|n| read(&format!("metadata: {{name: {n}}}")));
        let tenancy = Tenancy::new(Cache::of(Vec::new()), Cache::of(namespaces.collect()));
        for (from, reached) in [("a-1", &["a-1", "a-2"][..]), ("own", &["own"]), ("gone", &["gone"])] {
            let all = ["a-1", "a-2", "b-1", "own", "other", "gone", ""];
            let found: Vec<&str> = all.into_iter().filter(|n| Reach::from(&tenancy, from).includes(n)).collect();
            assert_eq!(found, reached);
        }
        let reach = Reach::from(&tenancy, "a-1");
        let merge = Policy { creation: Creation::Merge, ..Policy::default() };
        for (object, namespaced, policy, problem) in [
            ("apiVersion: v1, kind: Secret", Some(true), merge, ""),
            ("apiVersion: v1, kind: Node", Some(false), merge, "cluster-scoped kind Node is not allowed"),
            (
                "apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding",
                Some(true),
                merge,
                "it would give its rights",
            ),
            ("apiVersion: capsule.clastix.io/v1beta2, kind: ResourcePermit", None, merge, "it would give its rights"),
            ("apiVersion: core.oam.dev/v1beta1, kind: Application", None, merge, "it would give its rights"),
            ("apiVersion: v1, kind: ResourceQuota", Some(true), Policy::default(), ""),
            ("apiVersion: v1, kind: ResourceQuota", Some(true), merge, "is not taken over"),
        ] {
            let object = read(&format!("{{{object}, metadata: {{name: x, namespace: a-2}}}}"));
            let got = reach.check(&object, namespaced, &policy).err().unwrap_or_default();
            assert!(got.contains(problem) && got.is_empty() == problem.is_empty(), "{got}");
        }
    }
}
