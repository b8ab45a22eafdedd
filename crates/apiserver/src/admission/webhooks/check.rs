//! What is checked of a configuration beside its fields: that its conditions compile.

use crate::admission::cel::condition;
use cel::library::ExpressionSet;
use object::Value;
use object::field::{FieldError, Path};

/// The conditions of a configuration that do not compile. Those that were there before may use all that the server
/// knows; where none changed, none is looked at.
pub(crate) fn condition_errors(configuration: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_some_and(|old| expressions(old).eq(expressions(configuration))) {
        return errors;
    }
    let (root, at) = (Path::ROOT, "webhooks");
    let path = root.child(at);
    for (w, c, expression) in expressions(configuration).filter(|(_, _, e)| !e.trim().is_empty()) {
        let known = old.is_some_and(|old| expressions(old).any(|(_, _, e)| e == expression));
        let set = if known { ExpressionSet::Stored } else { ExpressionSet::New };
        if let Err(why) = condition(expression, set) {
            let webhook = path.index(w);
            let conditions = webhook.child("matchConditions");
            let condition = conditions.index(c);
            errors.push(why.at(&condition.child("expression"), expression));
        }
    }
    errors
}

/// The conditions' expressions, each with the index of its webhook and its own.
fn expressions(configuration: &Value) -> impl Iterator<Item = (usize, usize, &str)> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
    webhooks.iter().enumerate().flat_map(|(w, webhook)| {
        let conditions = webhook.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let texts = conditions.iter().enumerate();
        texts.map(move |(c, condition)| (w, c, condition.str_at(&["expression"]).unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn conditions_have_to_compile() {
        let with = |expression: &str| {
            let text = format!(r#"{{"webhooks":[{{"matchConditions":[{{"expression":"{expression}"}}]}}]}}"#);
            json::parse(text.as_bytes()).unwrap()
        };
        for (new, old, expected) in [
            ("true", None, None),
            (
                "1",
                None,
                Some(
                    "webhooks[0].matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int",
                ),
            ),
            ("", None, None),
            ("1", Some("1"), None),
        ] {
            let errors = condition_errors(&with(new), old.map(with).as_ref());
            assert_eq!(errors.first().map(ToString::to_string).as_deref(), expected, "{new:?} after {old:?}");
        }
    }
}
