//! Cluster roles that are made of others: their rules follow the rules of the roles that their selectors name.

use super::authorizer::Kind;
use super::bootstrap::GROUP;
use crate::Server;
use crate::answer::Outcome;
use crate::registry::{self, Stored};
use bytes::Bytes;
use object::selector::Labels;
use object::{Map, Status, Value, map};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use store::{Expect, ListOptions, Range, Watch, Write, WriteError};

/// Who owns the rules of such roles (upstream's controller).
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The cluster roles that others can be made of, in order of their names.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    roles: BTreeMap<String, Source>,
    /// The names of those that are made of others.
    aggregated: BTreeSet<String>,
    /// Whether anything changed that others are made of.
    unsettled: bool,
}

#[derive(Debug, PartialEq)]
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
        let source = Source { labels, rules, selectors: selectors(role) };
        if self.roles.get(name) == Some(&source) {
            return;
        }
        self.remove(name);
        if source.selectors.is_some() {
            self.aggregated.insert(name.to_owned());
        }
        self.unsettled |= self.matters(&source);
        self.roles.insert(name.to_owned(), source);
    }

    /// Adds a role unless there is one of its name.
    pub(crate) fn put_missing(&mut self, name: &str, role: &Value) {
        if !self.roles.contains_key(name) {
            self.put(name, role);
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(source) = self.roles.remove(name) else { return };
        self.unsettled |= self.matters(&source);
        self.aggregated.remove(name);
    }

    /// Takes over a change in the store.
    fn take(&mut self, key: &str, value: Option<Bytes>) {
        let name = key.strip_prefix(Kind::ClusterRole.prefix()).unwrap_or(key);
        match value.and_then(Stored::read) {
            Some(stored) => self.put(name, &stored.value(0)),
            None => self.remove(name),
        }
    }

    /// Whether a role is made of others, or others are made of it.
    fn matters(&self, source: &Source) -> bool {
        let made_of = |name: &String| self.roles.get(name).is_some_and(|other| other.selects(source));
        source.selectors.is_some() || self.aggregated.iter().any(made_of)
    }

    /// Works out the rules of all roles that are made of others, which may be made of others themselves. Gives the names
    /// of those whose rules change.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        // In a chain each round settles at least one more; a circle only grows until all have all.
        for _ in 0..=self.aggregated.len() {
            let mut settled = true;
            for name in &self.aggregated {
                let rules = self.gather(name);
                if let Some(source) = self.roles.get_mut(name).filter(|s| s.rules != rules) {
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
        self.roles.get(name).map(|s| s.rules.as_slice()).unwrap_or_default()
    }

    /// The rules that the role's selectors name: selector by selector, role by role, each rule once.
    fn gather(&self, name: &str) -> Vec<Value> {
        let mut rules: Vec<Value> = Vec::new();
        let mut seen = HashSet::new();
        for selector in self.roles.get(name).and_then(|s| s.selectors.as_deref()).unwrap_or_default() {
            let others =
                self.roles.iter().filter(|(other, source)| *other != name && selector.matches(Some(&source.labels)));
            for rule in others.flat_map(|(_, source)| &source.rules) {
                if seen.insert(object::json::to_string(rule)) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }
}

impl Source {
    /// Whether the role is made of another.
    fn selects(&self, other: &Source) -> bool {
        self.selectors.iter().flatten().any(|selector| selector.matches(Some(&other.labels)))
    }
}

fn selectors(role: &Value) -> Option<Vec<Labels>> {
    let rule = role.get("aggregationRule").filter(|r| !r.is_null())?;
    let selectors = rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or_default();
    Some(selectors.iter().filter_map(|s| Labels::from_object(s).ok()).collect())
}

/// The cluster roles as the last write left them, and what was written since.
#[derive(Debug, Default)]
pub(crate) struct Aggregator {
    sources: Sources,
    /// None until the first write, and after the store could not tell all changes.
    changes: Option<Watch>,
}

/// Brings the rules of roles that are made of others up to date; called after each write of a cluster role, before it is
/// answered.
pub(crate) async fn run(server: &Arc<Server>) {
    if !server.options.role_aggregation {
        return;
    }
    // One at a time: each sees what the one before wrote.
    let mut aggregator = server.aggregator.lock().await;
    if let Err(failure) = aggregator.bring_up_to_date(server).await {
        aggregator.changes = None;
        tracing::error!(?failure, "cluster roles cannot be aggregated");
    }
}

impl Aggregator {
    async fn bring_up_to_date(&mut self, server: &Arc<Server>) -> Outcome<()> {
        if !self.catch_up() {
            self.read(server).await?;
        }
        if !std::mem::take(&mut self.sources.unsettled) {
            return Ok(());
        }
        for name in self.sources.settle() {
            let key = format!("{}{name}", Kind::ClusterRole.prefix());
            write(server, &key, &name, self.sources.rules(&name)).await?;
        }
        Ok(())
    }

    /// Takes over what was written since the last time; false when the store cannot tell.
    fn catch_up(&mut self) -> bool {
        let Some(changes) = &mut self.changes else { return false };
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match changes.poll_next(&mut context) {
                Poll::Pending => return true,
                Poll::Ready(Err(_)) => return false,
                Poll::Ready(Ok(batch)) => {
                    for event in batch.events.iter() {
                        self.sources.take(&event.key, event.value.clone());
                    }
                }
            }
        }
    }

    /// Reads all roles, and watches what follows.
    async fn read(&mut self, server: &Arc<Server>) -> Outcome<()> {
        let range = Range::prefix(Kind::ClusterRole.prefix());
        let page = server.store.list(&range, ListOptions::default()).await.map_err(registry::read_failure)?;
        let changes = server.store.watch(&range, page.revision).await.map_err(Status::internal)?;
        self.sources = Sources { unsettled: true, ..Sources::default() };
        for entry in page.entries {
            self.sources.take(&entry.key, Some(entry.value));
        }
        self.changes = Some(changes);
        Ok(())
    }
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
        let merged = ownership.applied(crate::strategy::Part::Main, Some(&live), &config, MANAGER, true, now, None)?;
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
