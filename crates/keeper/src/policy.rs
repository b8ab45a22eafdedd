//! What a block of resources asks for: who may own an object, and what becomes of it.

use object::{Map, Value};

/// Whether an object that somebody else made may be managed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Creation {
    /// Only what the parent itself creates.
    #[default]
    Owner,
    /// What exists is adopted, what does not is created.
    Merge,
}

/// What becomes of an object that its parent no longer wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Deletion {
    /// A created object is deleted, an adopted one loses the parent's fields.
    #[default]
    Remove,
    /// The object stays as it is, without tracking.
    Orphan,
}

/// The policy of a target. The default is the kinds' default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Whether an existing object may be adopted.
    pub creation: Creation,
    /// Whether the object is marked, so that admission turns others away.
    pub protect: bool,
    /// Whether fields are taken from other managers.
    pub force: bool,
    /// What becomes of the object when the parent lets go of it.
    pub deletion: Deletion,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { creation: Creation::Owner, protect: true, force: false, deletion: Deletion::Remove }
    }
}

impl Policy {
    /// Reads `policy` of a specification or a status; what is missing or unknown has its default.
    pub fn read(policy: &Value) -> Self {
        let text = |key| policy.get(key).and_then(Value::as_str);
        let flag = |key, default| policy.get(key).and_then(Value::as_bool).unwrap_or(default);
        Policy {
            creation: if text("creation") == Some("Merge") { Creation::Merge } else { Creation::Owner },
            protect: flag("protect", true),
            force: flag("force", false),
            deletion: if text("deletion") == Some("Orphan") { Deletion::Orphan } else { Deletion::Remove },
        }
    }

    /// The policy as it stands in a status: every field, without a condition.
    pub fn to_value(self) -> Value {
        let mut map = Map::new();
        map.insert("creation", if self.creation == Creation::Merge { "Merge" } else { "Owner" });
        map.insert("protect", self.protect);
        map.insert("force", self.force);
        map.insert("deletion", if self.deletion == Deletion::Orphan { "Orphan" } else { "Remove" });
        map.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_policy_is_read_with_its_defaults_and_written_in_full() {
        for (text, expected) in [
            ("{}", r#"{"creation":"Owner","deletion":"Remove","force":false,"protect":true}"#),
            (
                r#"{"creation":"Merge","deletion":"Orphan","force":true,"protect":false,"condition":"x"}"#,
                r#"{"creation":"Merge","deletion":"Orphan","force":true,"protect":false}"#,
            ),
            (r#"{"protect":null}"#, r#"{"creation":"Owner","deletion":"Remove","force":false,"protect":true}"#),
        ] {
            let policy = Policy::read(&json::parse(text.as_bytes()).unwrap_or_default());
            assert_eq!(json::to_string(&policy.to_value()), expected);
            assert_eq!(Policy::read(&policy.to_value()), policy);
        }
    }
}
