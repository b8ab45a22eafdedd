//! One entry of a parent's inventory, in the form of `status.processedItems[]`.

use compact_str::CompactString;
use object::{Map, Value};

use crate::identity::{Identity, Kind};
use crate::policy::Policy;

/// What is known of one target: what it is, where it comes from, whose it is, when it was applied.
///
/// The items of a parent are its inventory: the only record of what it has to clean up one day. An item is written
/// before its target is, and goes after the target has gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// The target. Cluster-scoped targets have no namespace.
    pub identity: Identity,
    /// The tenant for which it was rendered; empty where there is none.
    pub tenant: CompactString,
    /// The place in the parent from which it was rendered, for example `0/raw-1`: for people only.
    pub origin: CompactString,
    /// Tells the items of one parent about one object apart; nearly always 0. Part of the field manager's name.
    pub slot: u32,
    /// What became of it.
    pub state: State,
}

/// What became of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Whether it is as it should be; `None` as long as nothing was tried.
    pub ready: Option<bool>,
    /// What is wrong, or why nothing was done; empty when all is well.
    pub message: String,
    /// When its content was last applied (RFC 3339); `None` if it never was.
    pub last_apply: Option<CompactString>,
    /// Whether the parent made the object, rather than adopted it.
    pub created: bool,
    /// Whether the kind is cluster-scoped.
    pub cluster_scoped: bool,
    /// The policy that was last carried out in full; what becomes of the object in the end follows from it.
    pub policy: Option<Policy>,
}

impl Item {
    /// Reads an entry of `status.processedItems`; `None` if it names no object.
    pub fn read(entry: &Value) -> Option<Self> {
        let text = |key| CompactString::from(entry.get(key).and_then(Value::as_str).unwrap_or_default());
        let kind = Kind { group: text("group"), version: text("version"), kind: text("kind") };
        let status = entry.get("status");
        let field = |key| status.and_then(|status| status.get(key));
        let flag = |key| field(key).and_then(Value::as_bool).unwrap_or_default();
        let cluster_scoped = flag("clusterScoped");
        // Some versions of the original note the namespace for which a cluster-scoped object was rendered.
        let namespace = if cluster_scoped { CompactString::default() } else { text("namespace") };
        let identity = Identity { kind, namespace, name: text("name") };
        if identity.name.is_empty() || identity.kind.kind.is_empty() {
            return None;
        }
        let state = State {
            ready: match field("status").and_then(Value::as_str) {
                Some("True") => Some(true),
                Some("False") => Some(false),
                _ => None,
            },
            message: field("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            last_apply: field("lastApply").and_then(Value::as_str).map(CompactString::from),
            created: flag("created"),
            cluster_scoped,
            policy: field("policy").filter(|policy| !policy.is_null()).map(Policy::read),
        };
        let slot = entry.get("slot").and_then(Value::as_int).and_then(|slot| u32::try_from(slot).ok());
        Some(Item { identity, tenant: text("tenant"), origin: text("origin"), slot: slot.unwrap_or_default(), state })
    }

    /// The entry of `status.processedItems`.
    pub fn to_value(&self) -> Value {
        let mut entry = Map::new();
        for (key, text) in [
            ("group", &self.identity.kind.group),
            ("version", &self.identity.kind.version),
            ("kind", &self.identity.kind.kind),
            ("namespace", &self.identity.namespace),
            ("name", &self.identity.name),
            ("tenant", &self.tenant),
            ("origin", &self.origin),
        ] {
            if !text.is_empty() {
                entry.insert(key, text.clone());
            }
        }
        if self.slot != 0 {
            entry.insert("slot", i64::from(self.slot));
        }
        entry.insert("status", self.state.to_value());
        entry.into()
    }

    /// Reads `status.processedItems`; entries that name no object are left out.
    pub fn read_all(entries: Option<&Value>) -> Vec<Self> {
        entries.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Item::read).collect()
    }

    /// Sorts as `status.processedItems` is: by tenant, namespace, name, kind.
    pub fn sort(items: &mut [Item]) {
        let key = |item: &Item| {
            let Identity { kind, namespace, name } = item.identity.clone();
            (item.tenant.clone(), namespace, name, kind.kind, kind.group, item.slot)
        };
        items.sort_by_cached_key(key);
    }
}

impl State {
    /// The longest message that the kinds' schemas take, in characters.
    const MESSAGE: usize = 32768;

    fn to_value(&self) -> Value {
        let mut status = Map::new();
        status.insert("type", "Ready");
        status.insert(
            "status",
            match self.ready {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            },
        );
        if !self.message.is_empty() {
            status.insert("message", self.message.chars().take(State::MESSAGE).collect::<String>());
        }
        if let Some(time) = &self.last_apply {
            status.insert("lastApply", time.clone());
        }
        status.insert("created", self.created);
        status.insert("clusterScoped", self.cluster_scoped);
        if let Some(policy) = self.policy {
            status.insert("policy", policy.to_value());
        }
        status.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn an_item_is_read_as_it_is_written() {
        let text = r#"{"group":"rbac.authorization.k8s.io","kind":"Role","name":"a","namespace":"n","origin":"0/raw-1","slot":2,"status":{"clusterScoped":false,"created":true,"lastApply":"2026-08-31T10:02:13Z","policy":{"creation":"Merge","deletion":"Orphan","force":false,"protect":true},"status":"True","type":"Ready"},"tenant":"t","version":"v1"}"#;
        let item = Item::read(&json::parse(text.as_bytes()).unwrap_or_default()).unwrap_or_default();
        assert_eq!(json::to_string(&item.to_value()), text);
    }

    #[test]
    fn a_cluster_scoped_item_has_no_namespace_whatever_is_written() {
        let text =
            br#"{"kind":"ClusterRole","name":"a","namespace":"iterated","version":"v1","status":{"clusterScoped":true}}"#;
        let item = Item::read(&json::parse(text).unwrap_or_default()).unwrap_or_default();
        assert_eq!((item.identity.namespace.as_str(), item.state.ready), ("", None));
    }
}
