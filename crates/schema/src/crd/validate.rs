//! Everything that can be wrong with a definition.

use object::Value;
use object::field::FieldError;

/// Checks a definition that is to be created; it has its defaults and its status.
pub fn validate(definition: &Value) -> Vec<FieldError> {
    let _ = definition;
    Vec::new()
}

/// Checks what is to take the place of `old`. What was wrong with `old` already is mostly let pass.
pub fn validate_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let _ = (definition, old);
    Vec::new()
}

/// Checks a write of the status subresource.
pub fn validate_status_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let _ = (definition, old);
    Vec::new()
}
