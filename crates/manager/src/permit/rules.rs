//! `x-kubernetes-validations` in a schema of parameters: CEL over `self`.

use crate::condition::Rule;
use object::Value;

/// The keys of a rule.
const KEYS: [&str; 7] =
    ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf", "description"];
const REASONS: [&str; 4] = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];

/// Checks the rules of one node of a schema.
///
/// # Errors
///
/// The first rule that cannot be.
pub fn check(node: &Value) -> Result<(), String> {
    let Some(rules) = node.get("x-kubernetes-validations") else { return Ok(()) };
    let Some(rules) = rules.as_array().filter(|r| !r.is_empty()) else {
        return Err("x-kubernetes-validations: must be a list that is not empty".to_owned());
    };
    for (i, rule) in rules.iter().enumerate() {
        let place = |what: &str| format!("x-kubernetes-validations[{i}]{what}");
        let members = rule.as_object().ok_or_else(|| place(": must be an object"))?;
        if let Some(unknown) = members.keys().find(|k| !KEYS.contains(k)) {
            return Err(place(&format!(": unknown field {unknown:?}")));
        }
        let text = |key: &str| rule.str_at(&[key]).unwrap_or_default();
        if text("rule").trim().is_empty() {
            return Err(place(".rule: Required value"));
        }
        if text("rule").trim().contains('\n') && text("message").is_empty() {
            return Err(place(".message: Required value: message must be specified if rule contains line breaks"));
        }
        if text("message").contains('\n') || text("fieldPath").contains('\n') {
            return Err(place(".message: Invalid value: must not contain line breaks"));
        }
        if !text("reason").is_empty() && !REASONS.contains(&text("reason")) {
            return Err(place(&format!(".reason: Unsupported value: {:?}", text("reason"))));
        }
        Rule::new(text("rule")).map_err(|e| place(&format!(".rule: Invalid value: {e}")))?;
    }
    Ok(())
}

/// Evaluates the rules of a node for a value; rules about a change are passed over, since there is none.
pub fn violations(node: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let rules = node.get("x-kubernetes-validations").and_then(Value::as_array).unwrap_or_default();
    for rule in rules {
        let text = rule.str_at(&["rule"]).unwrap_or_default();
        let compiled = match Rule::new(text) {
            Ok(compiled) if compiled.needs_old() => continue,
            Ok(compiled) => compiled,
            Err(error) => {
                errors.push(format!("{path}: {error}"));
                continue;
            }
        };
        let path = format!("{path}{}", rule.str_at(&["fieldPath"]).unwrap_or_default());
        match compiled.evaluate(value) {
            Ok(true) => {}
            Ok(false) => {
                let said = rule.str_at(&["messageExpression"]).and_then(|m| compiled_text(m, value));
                let fixed = || rule.str_at(&["message"]).filter(|m| !m.is_empty()).map(str::to_owned);
                errors
                    .push(format!("{path}: {}", said.or_else(fixed).unwrap_or_else(|| format!("failed rule: {text}"))));
            }
            Err(error) => errors.push(format!("{path}: {error}")),
        }
    }
}

fn compiled_text(expression: &str, value: &Value) -> Option<String> {
    crate::condition::text(expression, value).filter(|t| !t.trim().is_empty() && !t.contains('\n'))
}
