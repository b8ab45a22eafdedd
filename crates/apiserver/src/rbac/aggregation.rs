//! Cluster roles that are made of others: their rules follow the rules of the roles that their selectors name.

use super::authorizer::Kind;
use super::bootstrap::GROUP;
use crate::Server;
use crate::answer::Outcome;
use crate::registry::{self, Stored};
use object::selector::Labels;
use object::{Map, Value, map};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Expect, ListOptions, Range, Write, WriteError};

/// Who owns the rules of such roles (upstream's controller).
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The cluster roles that others can be made of, in order of their names.
#[derive(Debug, Default)]
pub(crate) struct Sources(BTreeMap<String, Source>);

#[derive(Debug)]
struct Source {
    labels: Map,
    rules: Vec<Value>,
    /// What the role itself is made of; none for one with rules of its own.
    selectors: Option<Vec<Labels>>,
}

impl Sources {
    /// Adds a role, or puts it in its place.
    pub(crate) fn put(&mut self, name: &str, role: &Value) {
        let labels = role.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let rules = role.get("rules").and_then(Value::as_array).unwrap_or_default().to_vec();
        self.0.insert(name.to_owned(), Source { labels, rules, selectors: selectors(role) });
    }

    /// Adds a role unless there is one of its name.
    pub(crate) fn put_missing(&mut self, name: &str, role: &Value) {
        if !self.0.contains_key(name) {
            self.put(name, role);
        }
    }

    /// Works out the rules of all roles that are made of others, which may be made of others themselves. Gives the names
    /// of those whose rules change.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let aggregated: Vec<String> =
            self.0.iter().filter(|(_, s)| s.selectors.is_some()).map(|(name, _)| name.clone()).collect();
        let mut changed = Vec::new();
        // In a chain each round settles at least one more; a circle only grows until all have all.
        for _ in 0..=aggregated.len() {
            let mut settled = true;
            for name in &aggregated {
                let rules = self.gather(name);
                if let Some(source) = self.0.get_mut(name).filter(|s| s.rules != rules) {
                    source.rules = rules;
                    settled = false;
                    if !changed.contains(name) {
                        changed.push(name.clone());
                    }
                }
            }
            if settled {
                break;
            }
        }
        changed
    }

    /// The rules of a role.
    pub(crate) fn rules(&self, name: &str) -> &[Value] {
        self.0.get(name).map(|s| s.rules.as_slice()).unwrap_or_default()
    }

    /// The rules that the role's selectors name: selector by selector, role by role, each rule once.
    fn gather(&self, name: &str) -> Vec<Value> {
        let mut rules: Vec<Value> = Vec::new();
        for selector in self.0.get(name).and_then(|s| s.selectors.as_deref()).unwrap_or_default() {
            let others =
                self.0.iter().filter(|(other, source)| *other != name && selector.matches(Some(&source.labels)));
            for rule in others.flat_map(|(_, source)| &source.rules) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }
}

fn selectors(role: &Value) -> Option<Vec<Labels>> {
    let rule = role.get("aggregationRule").filter(|r| !r.is_null())?;
    let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or_default();
    Some(selectors.iter().filter_map(|s| Labels::from_object(s).ok()).collect())
}

/// Brings the rules of roles that are made of others up to date; called after each write of a cluster role, before it is
/// answered.
pub(crate) async fn run(server: &Arc<Server>) {
    if !server.options.role_aggregation {
        return;
    }
    // One at a time: each sees what the one before wrote.
    let _turn = server.aggregating.lock().await;
    if let Err(failure) = bring_up_to_date(server).await {
        tracing::error!(?failure, "cluster roles cannot be aggregated");
    }
}

async fn bring_up_to_date(server: &Arc<Server>) -> Outcome<()> {
    let page = server.store.list(&Range::prefix(Kind::ClusterRole.prefix()), ListOptions::default()).await;
    let entries = page.map_err(registry::read_failure)?.entries;
    let mut sources = Sources::default();
    for entry in &entries {
        let Some(stored) = Stored::read(entry.value.clone()) else { continue };
        let name = entry.key.strip_prefix(Kind::ClusterRole.prefix()).unwrap_or(&entry.key);
        sources.put(name, &stored.value(0));
    }
    for name in sources.settle() {
        let key = format!("{}{name}", Kind::ClusterRole.prefix());
        write(server, &key, &name, sources.rules(&name)).await?;
    }
    Ok(())
}

/// Applies the rules to a role, as its owner.
async fn write(server: &Arc<Server>, key: &str, name: &str, rules: &[Value]) -> Outcome<()> {
    let catalogue = server.catalogue();
    let Some(resource) = catalogue.resource(GROUP, "v1", Kind::ClusterRole.plural()) else { return Ok(()) };
    let config = Value::Object(map! {
        "apiVersion" => resource.api_version(),
        "kind" => "ClusterRole",
        "metadata" => map! { "name" => name },
        "rules" => Value::Array(rules.to_vec()),
    });
    let now = (server.options.clock)().as_second();
    loop {
        let entry = server.store.get(key, None).await.map_err(registry::read_failure)?;
        let Some(entry) = entry else { return Ok(()) };
        let live = registry::stored(&entry)?.value(entry.mod_revision);
        if selectors(&live).is_none() {
            return Ok(());
        }
        let ownership = resource.strategy.ownership();
        let merged = ownership.applied(crate::strategy::Part::Main, Some(&live), &config, MANAGER, true, now)?;
        let mut object = merged;
        if rules.is_empty() {
            object.set_at(&["rules"], Value::Null);
        }
        let stored = Stored::new(&object, resource.strategy.fingerprint());
        let write = Write::put(entry.key.clone(), Expect::Revision(entry.mod_revision), stored.raw().clone());
        match server.store.write(write).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Conflict { .. }) => {}
            Err(error) => return Err(registry::write_failure(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn role(label: &str, from: &str, resources: &str) -> Value {
        let mut text = format!(r#"{{"metadata":{{"labels":{{"{label}":"true"}}}},"#);
        match from {
            "" => text.push_str(&format!(r#""rules":[{{"resources":["{resources}"]}}]}}"#)),
            from => text.push_str(&format!(
                r#""aggregationRule":{{"clusterRoleSelectors":[{{"matchLabels":{{"{from}":"true"}}}}]}},"rules":null}}"#
            )),
        }
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn roles_made_of_roles_made_of_roles_settle() {
        let mut sources = Sources::default();
        sources.put("admin", &role("x", "to-admin", ""));
        sources.put("edit", &role("to-admin", "to-edit", ""));
        sources.put("view", &role("to-edit", "to-view", ""));
        sources.put("own", &role("to-view", "", "foos"));
        let mut changed = sources.settle();
        changed.sort();
        assert_eq!(changed, ["admin", "edit", "view"]);
        assert_eq!(json::to_string(&sources.rules("admin")[0]), r#"{"resources":["foos"]}"#);
        assert!(sources.settle().is_empty());
    }

    #[test]
    fn what_goes_away_goes_from_all_it_was_in() {
        let mut sources = Sources::default();
        sources.put("view", &role("x", "to-view", ""));
        sources.put("own", &role("to-view", "", "foos"));
        sources.settle();
        sources.put("own", &role("other", "", "foos"));
        assert_eq!(sources.settle(), ["view"]);
        assert!(sources.rules("view").is_empty());
    }

    #[test]
    fn a_circle_ends() {
        let mut sources = Sources::default();
        sources.put("a", &role("to-b", "to-a", ""));
        sources.put("b", &role("to-a", "to-b", ""));
        assert!(sources.settle().is_empty());
    }
}
