//! The `conditions` of a status, as `metav1/validation.ValidateConditions` checks them.

use crate::check::{self, Errors};
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};
use object::names::pattern_text;
use std::collections::HashSet;

/// The most bytes of a condition's reason.
const MAX_REASON: usize = 1024;
/// The most bytes of a condition's message.
const MAX_MESSAGE: usize = 32 * 1024;

/// Checks conditions; `path` is that of the list.
pub(crate) fn validate(conditions: &[Value], path: &Path<'_>, out: &mut Errors) {
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let at = path.index(i);
        if !seen.insert(condition.text("type")) {
            out.push(FieldError::duplicate(&at.child("type"), condition.text("type")));
        }
        one(condition, &at, out);
    }
}

fn one(condition: &Value, path: &Path<'_>, out: &mut Errors) {
    check::label_name(condition.text("type"), &path.child("type"), out);
    let status = condition.text("status");
    if !matches!(status, "True" | "False" | "Unknown") {
        out.push(FieldError::not_supported(&path.child("status"), status, &["False", "True", "Unknown"]));
    }
    if let Some(generation) = condition.get("observedGeneration").and_then(Value::as_int).filter(|g| *g < 0) {
        let why = "must be greater than or equal to zero";
        out.push(FieldError::invalid(&path.child("observedGeneration"), generation, why));
    }
    if condition.text("lastTransitionTime").is_empty() {
        out.push(FieldError::required(&path.child("lastTransitionTime"), "must be set"));
    }
    let (reason, at) = (condition.text("reason"), path.child("reason"));
    if reason.is_empty() {
        out.push(FieldError::required(&at, "must be set"));
    } else if !is_reason(reason) {
        out.push(FieldError::invalid(&at, reason, reason_text()));
    }
    for (key, max) in [("reason", MAX_REASON), ("message", MAX_MESSAGE)] {
        if condition.text(key).len() > max {
            out.push(FieldError::too_long(&path.child(key), max as i64));
        }
    }
}

fn is_reason(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().copied().is_some_and(word)
        && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':'))
}

fn reason_text() -> String {
    let text = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
    let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
    pattern_text(text, "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", &examples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn errors(conditions: &str) -> Vec<String> {
        let conditions = json::parse(conditions.as_bytes()).unwrap();
        let mut out = Errors::new();
        validate(conditions.as_array().unwrap(), &Path::ROOT.child("conditions"), &mut out);
        out.iter().map(|e| e.to_string()).collect()
    }

    #[test]
    fn a_condition_has_a_type_a_status_a_time_and_a_reason() {
        let good = r#"{"type":"a.b/C","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"R,S:t_"}"#;
        assert_eq!(errors(&format!("[{good}]")), Vec::<String>::new());
        assert_eq!(errors(&format!("[{good},{good}]")), [r#"conditions[1].type: Duplicate value: "a.b/C""#]);
        let bad = errors(r#"[{"type":"T","status":"no","reason":"1","observedGeneration":-1}]"#);
        assert_eq!(bad.len(), 4, "{bad:?}");
        assert!(
            bad[3].starts_with(r#"conditions[0].reason: Invalid value: "1": a condition reason must start"#),
            "{bad:?}"
        );
    }
}
