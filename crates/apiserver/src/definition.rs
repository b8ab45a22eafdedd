//! A definition as its resources know it. A server may have thousands of definitions of which few are in use: one is
//! kept as the text that the store holds anyway, and read, or compiled, when somebody needs it.

use crate::registry::Stored;
use object::{Map, Value, json};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};

/// What a definition says that is not of one version only.
#[derive(Debug)]
pub struct Definition {
    /// The definition's name: `PLURAL.GROUP`.
    pub name: String,
    /// The definition's uid.
    pub uid: String,
    /// The generation: it grows with each change of the spec.
    pub generation: i64,
    /// Whether the definition is going away, so that nothing may be created any more.
    pub terminating: bool,
    /// Whether a webhook converts between its versions.
    pub converts: bool,
    /// Names all that the outcome of a conversion depends on, the object apart; 0 where no webhook converts.
    pub conversion: u64,
    /// The definition without its versions and managed fields.
    pub about: Arc<Value>,
    stored: Stored,
    read: Mutex<Weak<Value>>,
    versions: OnceLock<Box<[Arc<schema::Version>]>>,
}

impl Definition {
    /// A definition that was read from its stored form.
    pub(crate) fn new(definition: &Value, about: Arc<Value>, stored: Stored) -> Self {
        let converts = definition.str_at(&["spec", "conversion", "strategy"]) == Some("Webhook");
        Definition {
            name: definition.name().to_owned(),
            uid: definition.meta_str("uid").to_owned(),
            generation: generation(definition),
            terminating: !definition.meta_str("deletionTimestamp").is_empty(),
            converts,
            conversion: if converts { conversion(definition) } else { 0 },
            about,
            stored,
            read: Mutex::default(),
            versions: OnceLock::new(),
        }
    }

    /// The whole definition. Those who ask at the same time share it; it is not kept.
    pub fn object(&self) -> Arc<Value> {
        let mut read = self.read.lock();
        if let Some(object) = read.upgrade() {
            return object;
        }
        let object = Arc::new(self.stored.value(0));
        *read = Arc::downgrade(&object);
        object
    }

    /// The compiled versions. The first call compiles them; their patterns and rules are compiled later still.
    pub fn versions(&self) -> &[Arc<schema::Version>] {
        self.versions.get_or_init(|| {
            let object = self.object();
            let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
            let names = versions.iter().filter_map(|v| v.str_at(&["name"]));
            // A stored definition was checked: nothing is left out.
            names.filter_map(|name| schema::Version::new(&object, name).ok().flatten()).map(Arc::new).collect()
        })
    }
}

/// The generation of a definition.
pub(crate) fn generation(definition: &Value) -> i64 {
    definition.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0)
}

/// A definition without what makes it large: its versions and managed fields.
pub(crate) fn about(definition: &Value) -> Value {
    let members = |value: Option<&Value>, without: &str| -> Map {
        let members = value.and_then(Value::as_object).into_iter().flat_map(Map::iter);
        members.filter(|(key, _)| *key != without).map(|(key, value)| (key, value.clone())).collect()
    };
    let mut out = Map::new();
    out.insert("metadata", Value::Object(members(definition.get("metadata"), "managedFields")));
    out.insert("spec", Value::Object(members(definition.get("spec"), "versions")));
    out.insert("status", definition.get("status").cloned().unwrap_or_default());
    Value::Object(out)
}

/// A number for a definition's webhook and the schemas of its versions.
fn conversion(definition: &Value) -> u64 {
    let mut text = definition.meta_str("uid").to_owned();
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let parts = versions.iter().flat_map(|v| [v.get("name"), v.get("schema")]);
    for part in parts.chain([definition.at(&["spec", "conversion"])]).flatten() {
        json::write(&mut text, part);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    u64::from_le_bytes(digest.as_ref().first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_again_only_when_nobody_has_it() {
        let value = json::parse(
            br#"{"metadata":{"name":"as.x.io","managedFields":[1]},"spec":{"group":"x.io","versions":[{"name":"v1"}]}}"#,
        )
        .unwrap();
        let definition = Definition::new(&value, Arc::new(about(&value)), Stored::new(&value, 1));
        let first = definition.object();
        assert_eq!(*first, value);
        assert!(Arc::ptr_eq(&first, &definition.object()));
        assert_eq!(definition.versions().len(), 1);
        assert_eq!(
            json::to_string(&definition.about),
            r#"{"metadata":{"name":"as.x.io"},"spec":{"group":"x.io"},"status":null}"#
        );
    }
}
