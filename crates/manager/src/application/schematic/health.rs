//! Health as a definition sees it.

use std::sync::LazyLock;

use cel::env::Env;
use object::{Map, Value, json, map};

use super::super::expression::{Expression, environment};

static NAMES: LazyLock<Env> = LazyLock::new(|| environment(&["parameter", "context"]));

/// What a definition says of live objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Whether they do what they are there for.
    pub healthy: bool,
    /// For people.
    pub message: String,
    /// More of it: texts by name.
    pub details: Map,
}

/// Judges live objects: the details first, then health, then the message; each sees what came before as
/// `context.status`.
///
/// # Errors
///
/// If an expression cannot be read. One that fails on the objects makes them unhealthy.
pub(super) fn judge(health: &Value, parameter: &Value, mut context: Value) -> Result<Verdict, String> {
    let evaluated = |place: &str, text: &str, context: &Value| -> Result<Result<Value, String>, String> {
        let told = |error: String| format!("schematic.health.{place}: {error}");
        let expression = Expression::new(text, &NAMES).map_err(told)?;
        Ok(expression.value(&[("parameter", parameter), ("context", context)]).map_err(told))
    };
    let mut details = Map::new();
    for (name, text) in health.get("details").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        let text = text.as_str().ok_or_else(|| format!("schematic.health.details.{name}: must be a string"))?;
        // What cannot be told yet is left out.
        if let Ok(value) = evaluated(&format!("details.{name}"), text, &context)? {
            let value = value.as_str().map_or_else(|| json::to_string(&value), str::to_owned);
            details.insert(name, value);
        }
    }
    context.set_at(&["status"], map! { "details" => details.clone() }.into());
    let (mut healthy, mut message) = (true, String::new());
    if let Some(text) = health.str_at(&["isHealthy"]) {
        match evaluated("isHealthy", text, &context)? {
            Ok(Value::Bool(is_healthy)) => healthy = is_healthy,
            Ok(other) => {
                return Err(format!("schematic.health.isHealthy: gives no boolean but a {}", other.type_name()));
            }
            Err(error) => (healthy, message) = (false, error),
        }
    }
    context.set_at(&["status", "healthy"], healthy.into());
    if let Some(text) = health.str_at(&["message"])
        && let Ok(Value::String(told)) = evaluated("message", text, &context)?
    {
        message = told.to_string();
    }
    Ok(Verdict { healthy, message, details })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn definitions_judge_live_objects() {
        let health = parse(
            r#"{"isHealthy":"context.output.status.ready == parameter.n","message":"context.status.healthy ? 'all of ' + context.status.details.n : 'waiting'","details":{"n":"string(parameter.n)","none":"context.output.status.x"}}"#,
        );
        for (live, healthy, message) in [
            (r#"{"output":{"status":{"ready":2}}}"#, true, "all of 2"),
            (r#"{"output":{"status":{"ready":1}}}"#, false, "waiting"),
            (r#"{"output":{}}"#, false, "waiting"),
        ] {
            let verdict = judge(&health, &parse(r#"{"n":2}"#), parse(live)).unwrap_or_default();
            assert_eq!((verdict.healthy, verdict.message.as_str()), (healthy, message), "{live}");
            assert_eq!(json::to_string(&Value::from(verdict.details)), r#"{"n":"2"}"#);
        }
        let broken = judge(&parse(r#"{"isHealthy":"context."}"#), &Value::Null, Value::Null);
        assert!(broken.is_err_and(|error| error.starts_with("schematic.health.isHealthy: 1:9: ")));
    }
}
