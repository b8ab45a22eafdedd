//! Conditions, as statuses hold them.

use jiff::Timestamp;
use object::{Map, Value, map};

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type, such as `Ready`.
    pub kind: &'static str,
    /// True, false, or neither yet.
    pub status: Option<bool>,
    /// A word.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// The longest message, in characters.
const MAX_MESSAGE: usize = 32768;

impl Condition {
    /// Everything is as declared.
    pub fn ready() -> Self {
        Condition { kind: "Ready", status: Some(true), reason: "Succeeded", message: "reconciled".to_owned() }
    }

    /// Something is not as declared.
    pub fn failed(message: impl Into<String>) -> Self {
        Condition { kind: "Ready", status: Some(false), reason: "Failed", message: message.into() }
    }

    /// A new declaration is being carried out.
    pub fn reconciling() -> Self {
        Condition { kind: "Ready", status: None, reason: "Reconciling", message: "processing".to_owned() }
    }

    /// Whether everything stands still.
    pub fn cordoned(is_cordoned: bool) -> Self {
        let (reason, message) = if is_cordoned { ("Cordoned", "is cordoned") } else { ("Active", "not cordoned") };
        Condition { kind: "Cordoned", status: Some(is_cordoned), reason, message: message.to_owned() }
    }

    fn status_text(&self) -> &'static str {
        match self.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
    }
}

/// The conditions of a status with `changed` put in. The time of the last transition stays where the status stays.
pub fn with_conditions(old: Option<&Value>, changed: &[Condition], generation: i64, now: Timestamp) -> Value {
    let mut all: Vec<Value> = old.and_then(Value::as_array).unwrap_or_default().to_vec();
    for condition in changed {
        let found = all.iter().position(|c| c.str_at(&["type"]) == Some(condition.kind));
        let known = found.and_then(|i| all.get(i));
        let same = known.is_some_and(|c| c.str_at(&["status"]) == Some(condition.status_text()));
        let since = known.filter(|_| same).and_then(|c| c.str_at(&["lastTransitionTime"]));
        let since = since.map_or_else(|| rfc3339(now), str::to_owned);
        let message: String = condition.message.chars().take(MAX_MESSAGE).collect();
        let value: Value = map! {
            "type" => condition.kind, "status" => condition.status_text(), "reason" => condition.reason,
            "message" => message, "observedGeneration" => generation, "lastTransitionTime" => since,
        }
        .into();
        match found {
            Some(i) => all[i] = value,
            None => all.push(value),
        }
    }
    Value::Array(all)
}

/// Whether an object says that it is ready as it is now declared.
pub fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|c| c.str_at(&["status"]) == Some("True"))
}

/// A condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = object.at(&["status", "conditions"])?.as_array()?;
    all.iter().find(|c| c.str_at(&["type"]) == Some(kind))
}

/// Whether the status of an object is about what is declared now.
pub fn is_observed(object: &Value) -> bool {
    object.at(&["status", "observedGeneration"]).and_then(Value::as_int) == Some(generation(object))
}

/// `metadata.generation`.
pub fn generation(object: &Value) -> i64 {
    object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default()
}

/// A time in whole seconds, as statuses hold it.
pub fn rfc3339(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// What of `wanted` is not yet in a status: a merge patch for it; `None` if there is nothing to change.
pub fn difference(current: Option<&Value>, wanted: Map) -> Option<Value> {
    let changed: Map = wanted
        .into_iter()
        .filter(|(key, value)| {
            let known = current.and_then(|c| c.get(key)).filter(|v| !v.is_null());
            known != Some(value).filter(|v| !v.is_null())
        })
        .collect();
    (!changed.is_empty()).then(|| map! { "status" => changed }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_keeps_its_time_until_the_status_changes() {
        let at = |s: &str| -> Timestamp { s.parse().unwrap() };
        let first = with_conditions(None, &[Condition::failed("a")], 1, at("2026-01-01T00:00:00Z"));
        let second = with_conditions(Some(&first), &[Condition::failed("b")], 2, at("2026-01-01T00:01:00Z"));
        let third = with_conditions(
            Some(&second),
            &[Condition::ready(), Condition::cordoned(false)],
            2,
            at("2026-01-01T00:02:00Z"),
        );
        let time = |v: &Value, i: usize| {
            v.as_array().and_then(|a| a.get(i)).and_then(|c| c.str_at(&["lastTransitionTime"])).map(str::to_owned)
        };
        assert_eq!(time(&second, 0).as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(time(&third, 0).as_deref(), Some("2026-01-01T00:02:00Z"));
        assert_eq!(third.as_array().map(<[Value]>::len), Some(2));
    }

    #[test]
    fn only_what_differs_is_written() {
        let current: Value = map! { "a" => 1, "b" => "x" }.into();
        assert_eq!(difference(Some(&current), map! { "a" => 1, "b" => "x" }), None);
        assert_eq!(difference(Some(&current), map! { "a" => 1, "c" => Value::Null }), None);
        let patch = difference(Some(&current), map! { "a" => 2, "b" => Value::Null });
        assert_eq!(patch, Some(map! { "status" => map! { "a" => 2, "b" => Value::Null } }.into()));
    }
}
