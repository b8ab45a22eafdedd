//! Which namespace belongs to which tenant.

use client::Cache;
use object::Value;
use object::selector::Labels;
use std::sync::Arc;

/// The label that binds a namespace to a tenant.
pub const TENANT_LABEL: &str = "capsule.clastix.io/tenant";

const BY_TENANT: &str = "tenant";

/// Tenants and namespaces as the server has them.
#[derive(Clone, Debug)]
pub struct Tenancy {
    tenants: Arc<Cache>,
    namespaces: Arc<Cache>,
}

impl Tenancy {
    /// The tenancy of these caches.
    pub fn new(tenants: Arc<Cache>, namespaces: Arc<Cache>) -> Self {
        namespaces.index(BY_TENANT, |namespace| namespace.label(TENANT_LABEL).map(str::to_owned).into_iter().collect());
        Tenancy { tenants, namespaces }
    }

    /// All tenants, by name.
    pub fn tenants(&self) -> Vec<Arc<Value>> {
        self.tenants.list()
    }

    /// A tenant that is not being deleted.
    pub fn tenant(&self, name: &str) -> Option<Arc<Value>> {
        self.tenants.get("", name).filter(|t| !is_deleted(t))
    }

    /// The tenants that a selector selects and that are not being deleted, by name.
    pub fn select(&self, selector: &Labels) -> Vec<Arc<Value>> {
        let mut found = self.tenants.select("", selector);
        found.retain(|t| !is_deleted(t));
        found
    }

    /// A tenant's namespaces that are not being deleted, by name.
    pub fn namespaces(&self, tenant: &str) -> Vec<Arc<Value>> {
        let mut found = self.namespaces.indexed(BY_TENANT, tenant);
        found.retain(|n| !is_terminating(n));
        found
    }

    /// All of a tenant's namespaces, by name.
    pub fn all_namespaces(&self, tenant: &str) -> Vec<Arc<Value>> {
        self.namespaces.indexed(BY_TENANT, tenant)
    }

    /// The name of the tenant that a namespace belongs to.
    pub fn tenant_of(&self, namespace: &str) -> Option<String> {
        self.namespaces.get("", namespace)?.label(TENANT_LABEL).map(str::to_owned)
    }

    /// A namespace.
    pub fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        self.namespaces.get("", name)
    }

    /// All namespaces.
    pub fn every_namespace(&self) -> Vec<Arc<Value>> {
        self.namespaces.list()
    }
}

/// Whether an object is being deleted.
pub fn is_deleted(object: &Value) -> bool {
    !object.meta_str("deletionTimestamp").is_empty()
}

/// Whether a namespace is being deleted.
pub fn is_terminating(namespace: &Value) -> bool {
    is_deleted(namespace) || namespace.str_at(&["status", "phase"]) == Some("Terminating")
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn namespaces_belong_to_tenants_by_their_label() {
        let read = |texts: &[&str]| Cache::of(texts.iter().map(|t| yaml::parse(t.as_bytes()).unwrap()).collect());
        let tenancy = Tenancy::new(
            read(&[
                "metadata: {name: a, labels: {x: z}}",
                "metadata: {name: b, deletionTimestamp: '2026-01-01T00:00:00Z', labels: {x: z}}",
            ]),
            read(&[
                "metadata: {name: a-1, labels: {capsule.clastix.io/tenant: a}}",
                "{metadata: {name: a-2, labels: {capsule.clastix.io/tenant: a}}, status: {phase: Terminating}}",
                "metadata: {name: other}",
            ]),
        );
        let names = |all: Vec<Arc<Value>>| all.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(tenancy.namespaces("a")), ["a-1"]);
        assert_eq!(names(tenancy.all_namespaces("a")), ["a-1", "a-2"]);
        assert_eq!(names(tenancy.select(&Labels::parse("x=z").unwrap())), ["a"]);
        assert_eq!((tenancy.tenant_of("a-2").as_deref(), tenancy.tenant_of("other")), (Some("a"), None));
        assert!(tenancy.tenant("b").is_none());
    }
}
