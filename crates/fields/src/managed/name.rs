//! Names of managers, and what is checked about entries.

use object::Value;
use object::field::{FieldError, Path};
use object::go;
use object::metadata::validate_field_manager;

/// The most bytes a manager's name may have.
pub const MAX_MANAGER_LENGTH: usize = 128;
const MAX_SUBRESOURCE_LENGTH: usize = 256;

/// The manager of a write: the `fieldManager` option, else what the user agent has before its first `/` without
/// characters that do not print, as far as it fits. An empty name is recorded as `unknown`.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| go::is_print(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER_LENGTH {
            break;
        }
        name.push(c);
    }
    name
}

/// Checks the entries of an object's `managedFields` as part of its metadata; `path` is that of the list.
pub fn validate_entries(entries: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let path = path.index(i);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid(&path.child("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(text("manager"), &path.child("manager")));
        if text("subresource").len() > MAX_SUBRESOURCE_LENGTH {
            errors.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE_LENGTH as i64));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_and_the_user_agent_is_cut() {
        assert_eq!(manager_name("me", "kubectl/v1"), "me");
        assert_eq!(manager_name("", "kubectl/v1.33 (linux)"), "kubectl");
        assert_eq!(manager_name("", "a\u{1}b c"), "ab c");
        assert_eq!(manager_name("", ""), "");
        assert_eq!(manager_name("", &"\u{fc}".repeat(100)).len(), 128);
        assert_eq!(manager_name("", &format!("x{}", "\u{fc}".repeat(100))).len(), 127);
    }
}
