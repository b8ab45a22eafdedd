//! The policies that are bound, with their bindings.

use super::binding::Binding;
use super::policy::{self, Sort};
use crate::registry::{self, Stored};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::{ListOptions, Range, ReadError, Revision, Store};

/// The bound policies in order of their names, each with its bindings in order of theirs. (Upstream's order is that of
/// Go's maps.)
#[derive(Debug)]
pub(super) struct Configured<S> {
    /// Policies that have bindings.
    pub bound: Vec<Bound<S>>,
}

/// A policy and its bindings.
#[derive(Debug)]
pub(super) struct Bound<S> {
    revision: Revision,
    /// The policy.
    pub policy: Arc<S>,
    /// Its bindings.
    pub bindings: Vec<Binding>,
}

impl<S> Default for Configured<S> {
    fn default() -> Self {
        Configured { bound: Vec::new() }
    }
}

impl<S: Sort> Configured<S> {
    /// Reads what is configured. Policies that did not change are taken from `held`, with what was compiled of them.
    pub async fn read(store: &dyn Store, held: &Configured<S>) -> Result<Self, ReadError> {
        let mut bindings: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
        let page = store.list(&Range::prefix(S::BINDINGS), ListOptions::default()).await?;
        for stored in page.entries.iter().filter_map(|entry| registry::stored(entry).ok()) {
            let binding = Binding::read(&stored.value(0));
            bindings.entry(binding.policy.clone()).or_default().push(binding);
        }
        if bindings.is_empty() {
            return Ok(Configured::default());
        }
        let held: HashMap<&str, &Bound<S>> = held.bound.iter().map(|b| (b.policy.policy().name.as_str(), b)).collect();
        let page = store.list(&Range::prefix(S::POLICIES), ListOptions::default()).await?;
        let mut bound = Vec::new();
        for entry in page.entries {
            let revision = entry.mod_revision;
            let name = entry.key.strip_prefix(S::POLICIES).unwrap_or_default();
            let Some(bindings) = bindings.remove(name) else { continue };
            let policy = match held.get(name).filter(|held| held.revision == revision) {
                Some(held) => held.policy.clone(),
                None => {
                    let Some(stored) = Stored::read(entry.value.clone()) else { continue };
                    Arc::new(policy::read(&stored.value(0)))
                }
            };
            bound.push(Bound { revision, policy, bindings });
        }
        Ok(Configured { bound })
    }

    /// Whether any policy might be about a resource, in any of its versions.
    pub fn concern(&self, group: &str, resource: &str) -> bool {
        self.bound.iter().any(|bound| bound.policy.policy().criteria.concern(group, resource))
    }
}
