//! Field ownership of a kind in one version: who owns what after a write.

use crate::strategy::Part;
use object::{Status, Value};

/// What field ownership knows about a kind in one version.
#[derive(Debug, Default)]
pub struct Kind {}

impl Kind {
    /// Of a built-in kind.
    pub fn builtin(_resource: &'static kinds::Resource, _version: &'static kinds::Version) -> Self {
        Kind {}
    }

    /// Gives a new object to its creator.
    pub fn created(&self, _part: Part, object: Value, _manager: &str, _now: i64) -> Value {
        object
    }

    /// Records a write other than an apply.
    pub fn updated(&self, _part: Part, _live: &Value, new: Value, _manager: &str, _now: i64) -> Value {
        new
    }

    /// Applies a configuration.
    pub fn applied(
        &self,
        _part: Part,
        _live: Option<&Value>,
        config: &Value,
        _manager: &str,
        _force: bool,
        _now: i64,
    ) -> Result<Value, Status> {
        Ok(config.clone())
    }
}

/// Puts the ownership of `old` back where a write changed nothing but times; tells whether it did.
pub fn keep_times_of_noop(_old: &Value, _new: &mut Value) -> bool {
    false
}

/// The manager's name: the option, or the part of the user agent before its first `/`, without what cannot be printed.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if field_manager.is_empty() {
        user_agent.split('/').next().unwrap_or_default().to_owned()
    } else {
        field_manager.to_owned()
    }
}
