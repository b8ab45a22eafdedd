//! TenantResource and GlobalTenantResource: what their objects say.

use crate::block::{Block, list};
use object::selector::Labels;
use object::{Value, duration};
use std::time::Duration;

/// Over what a parent is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every namespace of every selected tenant.
    Namespace,
    /// Every selected tenant.
    Tenant,
    /// Once.
    None,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// Its name as a user.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// What a TenantResource or GlobalTenantResource declares.
#[derive(Debug)]
pub struct Replication {
    /// The namespace; empty for a GlobalTenantResource.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Over what it is rendered; always namespaces for a TenantResource.
    pub scope: Scope,
    /// Which tenants are meant; only for a GlobalTenantResource.
    pub tenants: Labels,
    /// What is declared.
    pub blocks: Vec<Block>,
    /// After how long everything is looked at again.
    pub resync: Duration,
    /// Whether nothing is to be done.
    pub cordoned: bool,
    /// Parents of the same kind that must be ready before.
    pub depends_on: Vec<String>,
    /// The service account that the object names, where it is whole; then the one that works for it.
    pub account: Option<Account>,
    /// What becomes of items without a stored policy.
    pub prune_without_policy: bool,
}

impl Replication {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// What cannot be read, with its path.
    pub fn read(object: &Value) -> Result<Self, String> {
        let nothing = Value::Null;
        let spec = object.get("spec").unwrap_or(&nothing);
        let namespace = object.namespace();
        let mut blocks = Vec::new();
        for (i, block) in list(spec, &["resources"]).iter().enumerate() {
            blocks.push(Block::read(block, spec).map_err(|e| format!("spec.resources[{i}].{e}"))?);
        }
        let tenants = match spec.get("tenantSelector").filter(|s| !s.is_null()) {
            Some(selector) => Labels::from_object(selector).map_err(|e| format!("spec.tenantSelector: {e}"))?,
            None => Labels::default(),
        };
        Ok(Replication {
            namespace: namespace.to_owned(),
            name: object.name().to_owned(),
            scope: match spec.str_at(&["scope"]).filter(|_| namespace.is_empty()) {
                Some("Tenant") => Scope::Tenant,
                Some("None") => Scope::None,
                _ => Scope::Namespace,
            },
            tenants,
            blocks,
            resync: resync(spec).map_err(|e| format!("spec.resyncPeriod: {e}"))?,
            cordoned: spec.get("cordoned").and_then(Value::as_bool).unwrap_or(false),
            depends_on: depends_on(object).map(str::to_owned).collect(),
            account: account(spec, namespace),
            prune_without_policy: spec.get("pruningOnDelete").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

fn resync(spec: &Value) -> Result<Duration, String> {
    match spec.str_at(&["resyncPeriod"]).filter(|t| !t.is_empty()) {
        Some(text) => duration::go(text).map(|d| d.max(Duration::from_secs(1))),
        None => Ok(Duration::from_secs(60)),
    }
}

/// The names in `spec.dependsOn`.
pub fn depends_on(object: &Value) -> impl Iterator<Item = &str> {
    let all = object.at(&["spec", "dependsOn"]).and_then(Value::as_array).unwrap_or_default();
    all.iter().filter_map(|d| d.str_at(&["name"]))
}

/// The service account of a specification. That of a TenantResource is in its own namespace; that of a
/// GlobalTenantResource counts only if it is whole.
fn account(spec: &Value, namespace: &str) -> Option<Account> {
    let text = |key| spec.str_at(&["serviceAccount", key]).filter(|t| !t.is_empty());
    let name = text("name")?;
    let namespace = if namespace.is_empty() { text("namespace")? } else { namespace };
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Result<Replication, String> {
        Replication::read(&yaml::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_specification_is_read_with_its_defaults() {
        let r = read("{metadata: {name: a, namespace: ns}, spec: {scope: None, serviceAccount: {name: runner, namespace: evil}, resources: [{}]}}").unwrap();
        assert_eq!((r.scope, r.resync, r.cordoned), (Scope::Namespace, Duration::from_secs(60), false));
        assert_eq!(r.account, Some(Account { namespace: "ns".into(), name: "runner".into() }));
        assert_eq!(r.blocks[0].policy, keeper::Policy::default());
        let g = read(
            "{metadata: {name: a}, spec: {scope: None, serviceAccount: {name: half}, resources: [], resyncPeriod: 5m}}",
        )
        .unwrap();
        assert_eq!((g.scope, g.account, g.resync), (Scope::None, None, Duration::from_secs(300)));
    }

    #[test]
    fn fields_of_older_versions_make_a_policy() {
        let r = read("{metadata: {name: a}, spec: {settings: {adopt: true, force: true}, pruningOnDelete: false, resources: [{}, {policy: {}}]}}").unwrap();
        let old = keeper::Policy {
            creation: keeper::Creation::Merge,
            protect: true,
            force: true,
            deletion: keeper::Deletion::Orphan,
        };
        assert_eq!((r.blocks[0].policy, r.blocks[1].policy), (old, keeper::Policy::default()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (spec, error) in [
            (
                "resources: [{generators: [{template: '{{ end }}'}]}]",
                "spec.resources[0].generators[0].template: template: generators[0]:1: unexpected {{end}}",
            ),
            ("resources: [{}, {policy: {condition: 'x'}}]", "spec.resources[1].policy.condition: Invalid value: "),
            ("resyncPeriod: 30d", "spec.resyncPeriod: invalid duration \"30d\""),
            (
                "resources: [{context: {resources: [{kind: A, index: x}, {kind: B, index: x}]}}]",
                "spec.resources[0].context.resources[1].index: Duplicate value: \"x\"",
            ),
        ] {
            let got = read(&format!("{{metadata: {{name: a}}, spec: {{{spec}}}}}")).unwrap_err();
            assert!(got.starts_with(error), "{got}");
        }
    }
}
